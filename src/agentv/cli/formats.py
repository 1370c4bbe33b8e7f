"""`--format` and `--json`: diagnostics for people, programs, GitHub Actions and code scanners (SARIF)."""

from __future__ import annotations

import codecs
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypeVar, get_args

import click

from agentv.cli.lazy import section
from agentv.cli.printing import ChangedStream, print_diagnostics, print_json, replaced_streams
from agentv.cli.values import Choice
from agentv.errors import Diagnostic, ExitStatus, Severity, UsageError
from agentv.model.values.formatting import plural
from agentv.model.values.values import lazy_pattern
from agentv.reports.text import safe, shown_from
from agentv.version import __version__

if TYPE_CHECKING:
    from agentv.app.running.evaluate import Outcome
    from agentv.reports.run.view import RunView


_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "hint": "notice"}


def render_github(found: Sequence[Diagnostic], *, root: str) -> str:
    """Return a workflow command of GitHub Actions for each diagnostic, sorted by file and line.

    Args:
        found: diagnostics, in any order.
        root: absolute path of the repository, to which paths are relative.
    """
    from agentv.reports.diagnostics import full_text

    lines = []
    for one in sorted(found, key=lambda one: one.order):
        properties = {**_position(one, root), "title": f"agentv {one.code}"}
        listed = ",".join(f"{name}={_escape_property(value)}" for name, value in properties.items())
        lines.append(f"::{_LEVELS[one.severity]} {listed}::{_escape_data(full_text(one))}")
    return "\n".join(lines)


def summary_command(text: str, *, title: str, failed: bool) -> str:
    """Return a workflow command without a file, for a summary such as the number of failed cases."""
    return f"::{'error' if failed else 'notice'} title={_escape_property(title)}::{_escape_data(text)}"


def _position(found: Diagnostic, root: str) -> dict[str, str]:
    """Return the properties of a position. GitHub's end column is inclusive, and columns require a single line."""
    span = found.span
    if span is None:
        return {}
    place = {"file": shown_from(span.file, root), "line": str(span.line), "endLine": str(span.end_line)}
    if span.end_line != span.line:
        return place
    columns = {"col": str(span.column), "endColumn": str(max(span.end_column - 1, span.column))}
    return {**place, **columns}


def _escape_data(text: str) -> str:
    return safe(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_data(text).replace(":", "%3A").replace(",", "%2C")


Format = Literal["text", "json", "github", "sarif"]

ANNOTATED: tuple[Format, ...] = ("github", "sarif")
"""Formats that also report the trials of a run as diagnostics."""

_Command = TypeVar("_Command", bound=Callable[..., Any])


def format_options(json_help: str, title: str = "") -> Callable[[_Command], _Command]:
    """Return a decorator that adds the options `--format` and `--json` to a command, in a section of its help."""
    option = section(title)

    def add(command: _Command) -> _Command:
        meaning = "Output format. All formats but text go to stdout."
        chosen = option("--format", "format_name", type=Choice(get_args(Format)), help=meaning)
        return chosen(option("--json", "as_json", is_flag=True, help=json_help)(command))

    return add


def chosen_format(format_name: Format | None, *, as_json: bool) -> Format:
    """Return the output format that the options `--format` and `--json` select.

    Raises:
        UsageError: they conflict.
    """
    if as_json and format_name not in (None, "json"):
        raise UsageError(f"--json and --format {format_name} conflict; use one of them")
    return "json" if as_json else format_name or "text"


def print_as(found: Sequence[Diagnostic], form: Format) -> None:
    """Write diagnostics in a format: text to stderr, all others to stdout."""
    from agentv.reports.diagnostics import diagnostics_data

    if form == "text":
        print_diagnostics(found)
    elif form == "json":
        print_json(diagnostics_data(found))
    elif form == "sarif":
        from agentv.app.authored.reference import explanations
        from agentv.reports.annotations import render_sarif

        rules = explanations(one.code for one in found)
        click.echo(render_sarif(found, rules, root=_root(), version=__version__))
    elif found:
        print_commands(render_github(found, root=_root()))


def print_run_as(form: Format, warnings: Sequence[Diagnostic], view: RunView, outcome: Outcome) -> None:
    """Write the problems of a run to stdout: for GitHub its totals and causes of failure, for SARIF its trials."""
    from agentv.reports.annotations import CAUSES, cause_diagnostics, ran_groups, run_diagnostics

    passed = outcome.status == ExitStatus.PASSED
    if form != "github":
        print_as([*warnings, *run_diagnostics(view, passed=passed)], form)
        return
    from agentv.reports.run.totals import gate_line, outcomes

    cases, left = outcome.summary.cases, len(ran_groups(view)) - CAUSES
    results = shown_from(str(outcome.directory), _root())
    more = f"; {plural(left, 'more cause')}, in {results}" if left > 0 else ""
    gates = "".join(f"; {gate_line(gate)}" for gate in outcome.summary.gates)
    text = f"{plural(cases.total, 'case')}: {outcomes(cases)}{more}{gates}"
    print_commands(summary_command(text, title="agentv eval", failed=not passed))
    print_as([*cause_diagnostics(view, passed=passed), *warnings], form)


def _root() -> str:
    """Return the root of the repository of the working directory, to which GitHub's paths are relative."""
    from agentv.authoring.source.files import repository_root

    return repository_root(str(Path.cwd()))


_LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_COMMAND = lazy_pattern(rf"(?P<begin>[{_LINE_ENDS}][^\S{_LINE_ENDS}]*:):|(?P<inside>##)\[")


def print_commands(text: str) -> None:
    """Print workflow commands that the runner of GitHub Actions must execute."""
    write_commands = getattr(sys.stdout, "write_commands", None)
    if write_commands is not None:
        write_commands(f"{text}\n")
    else:
        click.echo(text)


class ActionsStream(ChangedStream):
    """A stream that prevents GitHub Actions from executing workflow commands in what is printed.

    Args:
        stream: the stream to write to.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream, self._escaped)
        self._pending = "\n"

    def _escaped(self, text: str) -> str:
        """Return the text with one character of each workflow command escaped, even if a command spans two writes."""
        whole = self._pending + text
        shown = _COMMAND.sub(_escape_command, whole)[len(self._pending) :]
        # keep the end of the text, if it may be the beginning of a command
        end = max(whole.rfind(one) for one in _LINE_ENDS)
        line = whole[end + 1 :]
        if end >= 0 and line.strip() in ("", ":") and not line[:-1].strip():
            self._pending = f"\n{line.strip()}"
        else:
            self._pending = line[-2:] if line.endswith("##") else line[-1:] if line.endswith("#") else ""
        return shown

    def write_commands(self, commands: str) -> None:
        """Write workflow commands, as lines of their own, unchanged."""
        self._stream.write(commands if self._pending == "\n" else f"\n{commands}")
        self._stream.flush()
        self._pending = "\n"


def without_commands(text: str, env: Mapping[str, str]) -> str:
    """Escape workflow commands in a text that another program prints, such as pytest, under GitHub Actions."""
    return _COMMAND.sub(_escape_command, f"\n{text}")[1:] if env.get("GITHUB_ACTIONS") == "true" else text


def _escape_command(found: re.Match[str]) -> str:
    """Return the command with its last character as a JSON escape, which keeps the meaning of a JSON document."""
    begin = found["begin"]
    return f"{begin}\\u003a" if begin is not None else f"{found['inside']}\\u005b"


@contextmanager
def guarded(env: Mapping[str, str]) -> Iterator[None]:
    """Escape workflow commands in everything that is printed within this context, under GitHub Actions."""
    if env.get("GITHUB_ACTIONS") != "true":
        yield
        return
    with replaced_streams(_guarded_stream):
        yield


def _guarded_stream(stream: Any) -> Any:
    if isinstance(stream, ActionsStream):
        return stream
    with suppress(OSError, ValueError, AttributeError):
        if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):  # a file is not a log, so it needs no escapes
            return stream
    if isinstance(stream, TextIOWrapper) and codecs.lookup(stream.encoding).name == "ascii":
        stream.reconfigure(encoding="utf-8", errors="replace")  # click bypasses ASCII streams
    return ActionsStream(stream)
