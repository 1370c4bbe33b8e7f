"""`--format` and `--json`: diagnostics as people, programs, GitHub and code scanners want them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from agentv.cli.actions_log import print_commands
from agentv.cli.lazy import section
from agentv.cli.printing import print_diagnostics
from agentv.cli.values import Choice
from agentv.errors import Diagnostic, ExitStatus, Severity, UsageError
from agentv.model.values.formatting import plural
from agentv.reports.text.escaping import safe, shown_from
from agentv.version import __version__

if TYPE_CHECKING:
    from agentv.app.running.outcome import Outcome
    from agentv.reports.run.view import RunView


_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "hint": "notice"}


def render_github(found: Sequence[Diagnostic], *, root: str) -> str:
    """One command a diagnostic, by file and line.

    Args:
        found: in any order.
        root: absolute path of the repository, from which GitHub reads paths.
    """
    return "\n".join(_annotation(one, root) for one in sorted(found, key=lambda one: one.order))


def summary_command(text: str, *, title: str, failed: bool) -> str:
    """A command without a file, such as the number of failed cases."""
    return f"::{'error' if failed else 'notice'} title={_property(title)}::{_data(text)}"


def _annotation(found: Diagnostic, root: str) -> str:
    from agentv.reports.diagnostics.diagnostics import full_text

    properties = {**_place(found, root), "title": f"agentv {found.code}"}
    listed = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{_LEVELS[found.severity]} {listed}::{_data(full_text(found))}"


def _place(found: Diagnostic, root: str) -> dict[str, str]:
    """Where it is. GitHub's end column is inclusive, and columns are for places of one line only."""
    span = found.span
    if span is None:
        return {}
    place = {"file": shown_from(span.file, root), "line": str(span.line), "endLine": str(span.end_line)}
    if span.end_line != span.line:
        return place
    columns = {"col": str(span.column), "endColumn": str(max(span.end_column - 1, span.column))}
    return {**place, **columns}


def _data(text: str) -> str:
    return safe(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


Format = Literal["text", "json", "github", "sarif"]
FORMATS = ("text", "json", "github", "sarif")

ANNOTATED: tuple[Format, ...] = ("github", "sarif")
"""Formats that tell the trials of a run as diagnostics, too."""

_Command = TypeVar("_Command", bound=Callable[..., Any])


def format_options(json_help: str, title: str = "") -> Callable[[_Command], _Command]:
    """The options `--format` and `--json` of a command, in a section of its help."""
    option = section(title)

    def add(command: _Command) -> _Command:
        meaning = "Output format. All formats but text go to stdout."
        chosen = option("--format", "format_name", type=Choice(FORMATS), help=meaning)
        return chosen(option("--json", "as_json", is_flag=True, help=json_help)(command))

    return add


def chosen_format(format_name: Format | None, *, as_json: bool) -> Format:
    """The output format that the two options select.

    Raises:
        UsageError: they contradict each other.
    """
    if as_json and format_name not in (None, "json"):
        raise UsageError(f"--json and --format {format_name} conflict; use one of them")
    return "json" if as_json else format_name or "text"


def print_as(found: Sequence[Diagnostic], form: Format) -> None:
    """Write diagnostics: text to stderr, everything else to stdout."""
    from agentv.reports.diagnostics.diagnostics import diagnostics_json

    if form == "text":
        print_diagnostics(found)
    elif form == "json":
        click.echo(diagnostics_json(found))
    elif form == "sarif":
        click.echo(_sarif(found))
    elif found:
        print_commands(render_github(found, root=_root()))


def print_run_as(form: Format, warnings: Sequence[Diagnostic], view: RunView, outcome: Outcome) -> None:
    """Write what is wrong with a run to stdout: its totals and causes for GitHub, its trials for code scanners."""
    from agentv.reports.run.annotations import CAUSES, cause_diagnostics, ran_groups, run_diagnostics

    if form != "github":
        print_as([*warnings, *run_diagnostics(view)], form)
        return
    from agentv.reports.run.corrected import gate_line
    from agentv.reports.run.totals import outcomes

    cases, left = outcome.summary.cases, len(ran_groups(view)) - CAUSES
    results = shown_from(str(outcome.directory), _root())
    more = f"; {plural(left, 'more cause')}, in {results}" if left > 0 else ""
    gates = "".join(f"; {gate_line(gate)}" for gate in outcome.summary.gates)
    text = f"{plural(cases.total, 'case')}: {outcomes(cases)}{more}{gates}"
    print_commands(summary_command(text, title="agentv eval", failed=outcome.status != ExitStatus.PASSED))
    print_as([*cause_diagnostics(view), *warnings], form)


def _sarif(found: Sequence[Diagnostic]) -> str:
    from agentv.app.authored.explain import explanations
    from agentv.reports.export.sarif import render_sarif

    rules = explanations(one.code for one in found)
    return render_sarif(found, rules, root=_root(), version=__version__)


def _root() -> str:
    """Of the repository that the command runs in: where GitHub's paths begin."""
    from agentv.app.authored.validate import root_of

    return root_of(str(Path.cwd()))
