"""`--format` and `--json`: diagnostics as people, programs, GitHub and code scanners want them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from agentv.cli.actions_log import print_commands
from agentv.cli.lazy import section
from agentv.cli.options.expected import Choice
from agentv.cli.printing import print_diagnostics
from agentv.errors import Diagnostic, ExitStatus, UsageError

if TYPE_CHECKING:
    from agentv.app.running.outcome import Outcome
    from agentv.reports.run.view import RunView

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
    if form == "text":
        print_diagnostics(found)
    elif form == "json":
        from agentv.reports.diagnostics.diagnostics import diagnostics_json

        click.echo(diagnostics_json(found))
    elif form == "sarif":
        click.echo(_sarif(found))
    elif found:
        from agentv.reports.export.github import render_github

        print_commands(render_github(found, root=_root()))


def print_run_as(form: Format, warnings: Sequence[Diagnostic], view: RunView, outcome: Outcome) -> None:
    """Write what is wrong with a run to stdout: its totals and causes for GitHub, its trials for code scanners."""
    from agentv.reports.run.annotations import CAUSES, cause_diagnostics, ran_groups, run_diagnostics

    if form != "github":
        print_as([*warnings, *run_diagnostics(view)], form)
        return
    from agentv.model.values.formatting import plural
    from agentv.reports.export.github import summary_command
    from agentv.reports.run.corrected import gate_line
    from agentv.reports.run.totals import outcomes
    from agentv.reports.text.paths import shown_from

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
    from agentv.version import __version__

    rules = explanations(one.code for one in found)
    return render_sarif(found, rules, root=_root(), version=__version__)


def _root() -> str:
    """Of the repository that the command runs in: where GitHub's paths begin."""
    from agentv.app.authored.validate import root_of

    return root_of(str(Path.cwd()))
