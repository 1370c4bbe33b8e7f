"""A run in a terminal: a progress line during the run, then the trials that did not pass, then the totals.

rich is imported lazily, when something is drawn. Text of models and files is never parsed as markup.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO

from agentv.model.run.summary import Summary
from agentv.model.run.trial import TrialResult
from agentv.model.values.formatting import duration, elapsed, money
from agentv.reports.run.failures import FailureGroup
from agentv.reports.run.plain import LISTING_FLAGS, doing_words, finding_line, running_words
from agentv.reports.run.samples import CaseList, case_lists
from agentv.reports.run.totals import totals
from agentv.reports.run.trial_view import (
    HEADINGS,
    LONGEST,
    STATUS_WORDS,
    Kind,
    TrialView,
    check,
    costs_of,
    label,
    reason,
    source,
    trial_view,
)
from agentv.reports.run.view import HEADING as FAILURES
from agentv.reports.run.view import SHOWN, FailureWords, RunView, closing_lines, rerun_line, run_word
from agentv.reports.text import cells, one_line

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text


REFRESHES = 8
"""Refreshes of the progress line per second."""

RESERVED_LINES = 3
"""Terminal lines not used for agents, but for the progress line and earlier output."""

_STYLES: dict[str, str] = {
    "passed": "green",
    "failed": "red",
    "errored": "magenta",
    "skipped": "cyan",
    "noted": "yellow",
    "shown": "cyan",
    "dim": "dim",
}
_MARKS = {"failed": "✗", "errored": "!", "noted": "✓"}


class LiveProgress:
    """A context manager that redraws a view on a terminal until its body ends.

    Args:
        file: the terminal.
        clock: monotonic clock in seconds.
        width, height: columns and lines to use; None for the size of the terminal.
    """

    def __init__(
        self,
        file: TextIO,
        clock: Callable[[], float] = time.monotonic,
        *,
        width: int | None = None,
        height: int | None = None,
    ) -> None:
        self._view = RunView(0)
        self._file = file
        self._clock = clock
        self._size = {"width": width, "height": height}
        self._started = 0.0
        self._live: Live | None = None

    def update(self, view: RunView) -> None:
        """Set the view to draw. This is cheap, since drawing happens in another thread."""
        self._view = view

    def refresh(self) -> None:
        """Draw the view now."""
        if self._live is not None:
            self._live.refresh()

    def __enter__(self) -> Self:
        from rich.live import Live

        self._started = self._clock()
        self._live = Live(
            get_renderable=self._drawn,
            console=_console(self._file, **self._size),
            refresh_per_second=REFRESHES,
            transient=True,
            redirect_stdout=sys.stdout.isatty(),  # output for programs must go to stdout unchanged
        )
        self._live.start(refresh=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def _drawn(self) -> RenderableType:
        line, agents = progress(self._view, self._clock() - self._started), self._view.agents
        lines = doing_words(self._view)
        if self._live is None or not (agents or lines):
            return line
        from rich.console import Group
        from rich.text import Text

        size = self._live.console.size
        if agents:
            lines += agents.lines(size.width, size.height - RESERVED_LINES - len(lines))
        return Group(line, *(Text(one, _STYLES["dim"], no_wrap=True) for one in lines))


def progress(view: RunView, elapsed_s: float) -> RenderableType:
    """The progress line: a bar, trials by status, their cost, and the time left."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    line = Table.grid(expand=True, padding=(0, 2, 0, 0))
    line.add_column(ratio=1)
    line.add_column(no_wrap=True, overflow="ellipsis")
    bar = ProgressBar(total=max(view.planned, 1), completed=view.done, complete_style="cyan", finished_style="cyan")
    line.add_row(bar, Text("  ").join(_counters(view, elapsed_s)))
    return line


def _counters(view: RunView, elapsed_s: float) -> Iterator[Text]:
    from rich.text import Text

    yield Text(f"{view.done}/{view.planned}")
    for name, number in (("passed", view.passed), ("failed", view.failed), ("errored", view.errored)):
        yield Text(f"{number} {name}", _STYLES[name if number else "dim"])
    if view.shown:
        yield Text(f"{view.shown} shown", _STYLES["shown"])
    if view.cost_usd is not None:
        yield Text(money(view.cost_usd))
    if view.progress is not None and view.done < view.planned:
        yield Text(running_words(view), _STYLES["dim"])
    if (left_s := view.left_s(elapsed_s)) is not None:
        yield Text(f"{elapsed(left_s)} left")


def render_terminal(
    view: RunView, summary: Summary, *, here: str, results: str, width: int = 80, color: bool = True
) -> str:
    """Tables of the trials that need attention, and the totals.

    Args:
        view: view of the run.
        summary: summary of the run.
        here: absolute path of the directory that paths are relative to.
        results: path of the run's directory, as typed in a command.
        width: width of the terminal.
        color: use ANSI colors.
    """
    page = io.StringIO()
    options = {"width": width, "force_terminal": color, "color_system": "standard" if color else None}
    console = _console(page, **options)
    _failures(console, view, summary, here=here, results=results)
    for kind in LISTING_FLAGS:
        _section(console, view, kind, here, run_word(summary, results))
    from rich.text import Text

    for why, number in view.stopped.items():
        console.print(Text(f"Not run ({number}): {one_line(why, LONGEST)}", _STYLES["skipped"]))
    if view.stopped:
        console.print()
    for listed in case_lists(summary, targets=view.several_targets):
        _cases(console, listed)
    for line in totals(summary, view.noted, results, console.width):
        shown = Text(line, overflow="fold")
        for name in ("passed", "failed", "errored", "shown"):
            shown.highlight_regex(rf"\b[1-9]\d* {name}", _STYLES[name])
        console.print(shown)
    return page.getvalue().rstrip("\n")


def _console(file: TextIO, **options: Any) -> Console:
    from rich.console import Console

    return Console(file=file, highlight=False, emoji=False, markup=False, **options)


def _failures(console: Console, view: RunView, summary: Summary, *, here: str, results: str) -> None:
    """Print the causes, each with its first trial and its rerun command, which is never wrapped."""
    from rich.text import Text

    groups, words = view.failure_groups(), FailureWords.of(view)
    if not groups:
        return
    _heading(console, f"{FAILURES} ({len(groups)})", f"bold {_STYLES[groups[0].status]}")
    first_column = max(cells(words.title(group)) for group in groups[:SHOWN])
    for group in groups[:SHOWN]:
        console.print(_group(group, words, here, min(first_column, console.width // 3)))
        rerun = view.rerun.rerun(group) if view.rerun is not None else None
        if rerun is not None:
            console.print(Text(rerun_line(rerun, group), _STYLES["dim"]), soft_wrap=True)
        console.print()
    closing = list(closing_lines(view, groups, summary, results))
    for line in closing:
        console.print(Text(line), soft_wrap=True)
    if closing:
        console.print()


def _group(group: FailureGroup, words: FailureWords, here: str, first_column: int) -> Table:
    from rich.text import Text

    table = _grid(first_column, first_column)
    table.add_row(Text(words.title(group), "bold"), "", Text(words.why(group), _STYLES[group.status]))
    if first := words.first(group):
        table.add_row("", "", Text(first))
    _add_findings(table, group.example, here)
    if others := words.others(group):
        table.add_row("", "", Text(others, _STYLES["dim"]))
    return table


def _section(console: Console, view: RunView, kind: Kind, here: str, run: str) -> None:
    from rich.text import Text

    trials = view.trials(kind)
    if not trials:
        return
    _heading(console, f"{HEADINGS[kind]} ({len(trials) + view.omitted(kind)})", f"bold {_STYLES[kind]}")
    console.print(_table(trials[:SHOWN], here, console.width, FailureWords.of(view)))
    more = len(trials[SHOWN:]) + view.omitted(kind)
    if more:
        console.print()
        shown = f"and {more} more: agentv results show {run} {LISTING_FLAGS[kind]}"
        console.print(Text(shown, _STYLES["dim"]), soft_wrap=True)
    console.print()


def _cases(console: Console, listed: CaseList) -> None:
    from rich.text import Text

    if not listed.rows:
        return
    _heading(console, listed.heading, "bold")
    table = _grid(console.width // 3)
    for name, mark, words in listed.rows:
        style = _STYLES["noted" if mark else "failed"]
        table.add_row(Text(name, "bold"), Text(mark, style), Text(words, style))
    console.print(table)
    if listed.more:
        console.print(Text(listed.more, _STYLES["dim"]))
    console.print()


def _heading(console: Console, text: str, style: str) -> None:
    from rich.text import Text

    console.print(Text(text, style))
    console.print(Text("─" * console.width, _STYLES["dim"]))


def _grid(most: int, least: int = 0) -> Table:
    """A table with three columns: a name of `least` to `most` characters, a mark, and the rest."""
    from rich.table import Table

    table = Table.grid(expand=True, padding=(0, 1, 0, 0))
    table.add_column(min_width=least, max_width=most, overflow="fold")
    table.add_column(width=1)
    table.add_column(ratio=1, overflow="fold")
    return table


def _table(trials: list[TrialView], here: str, width: int, words: FailureWords) -> Table:
    """A flat table with a row per line, since layout of nested tables takes five times as long."""
    from rich.text import Text

    table = _grid(width // 3)
    for number, trial in enumerate(trials):
        if number:
            table.add_row()
        name = label(trial, targets=words.targets, suites=words.suites)
        table.add_row(Text(name, "bold"), "", Text(reason(trial), _STYLES[trial.kind]))
        _add_findings(table, trial, here)
    return table


def _add_findings(table: Table, trial: TrialView, here: str) -> None:
    from rich.text import Text

    for finding in trial.findings:
        table.add_row("", Text(_MARKS[finding.state], _STYLES[finding.state]), Text(check(finding)))
        if finding.evidence:
            table.add_row("", "", Text(one_line(finding.evidence, LONGEST)))
        if place := source(finding, here):
            table.add_row("", "", Text(place, _STYLES["dim"]))


_BRIEF_MS = 100
"""Durations below this are reported in milliseconds."""


def verbose_lines(result: TrialResult, *, number: int, planned: int, here: str) -> Iterator[str]:
    """A line for the trial, then one for every retried call and every check that did not pass.

    Args:
        result: result of the trial, without secrets.
        number: number of trials that have ended, including this one.
        planned: number of planned trials.
        here: absolute path of the directory that paths are relative to.
    """
    kind: Kind = "noted" if result.status == "passed" else result.status
    trial = trial_view(kind, result)
    name = f"{one_line(trial.suite)}: {label(trial, targets=True)}"
    yield f"[{number}/{planned}] {STATUS_WORDS[result.status]} {name}: {', '.join(_facts(result, trial))}"
    for tried, attempt in enumerate(result.retries, 1):
        took = f"{_took(attempt.duration_ms)}, waited {_took(attempt.waited_ms)}"
        why = f"{one_line(attempt.code)}: {one_line(attempt.message, LONGEST)}"
        yield f"  call {tried} got no answer after {took}: {why}"
    for finding in trial.findings:
        yield f"  {finding_line(finding, here)}"


def _facts(result: TrialResult, trial: TrialView) -> Iterator[str]:
    if result.status != "passed":
        yield reason(trial)
    elif trial.score is not None:
        yield f"score {trial.score:.2f}"
    if result.status == "skipped":
        return
    if result.error is not None and trial.score is not None:
        yield f"score {trial.score:.2f}"
    yield _took(result.duration_ms)
    if result.time_to_first_token_ms is not None:
        yield f"first token after {_took(result.time_to_first_token_ms)}"
    yield from costs_of(result)
    if result.reused:
        yield "reused from an earlier run or a recording"


def _took(milliseconds: float) -> str:
    return f"{milliseconds:.0f} ms" if milliseconds < _BRIEF_MS else duration(milliseconds)
