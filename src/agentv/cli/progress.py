"""What a person, or a program, gets to see of a run."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

from agentv.app.evaluate import GRACE_S, Outcome, evaluate
from agentv.app.preparation import Prepared, prepare
from agentv.app.settings import EvalSettings
from agentv.cli.formats import ANNOTATED, Format, print_as, print_run_as
from agentv.cli.printing import for_people, print_diagnostics, print_sample
from agentv.errors import LoadError, UsageError
from agentv.foreign.guard import unable_to_exit
from agentv.model.budget import BudgetUse
from agentv.model.events import (
    Event,
    RunInterrupted,
    RunRegrades,
    RunResumed,
    RunStarted,
    TargetStopped,
    TrialFinished,
    TrialKept,
)
from agentv.reports.paths import shown_from
from agentv.reports.plain import progress_line, render_plain
from agentv.reports.text import one_line
from agentv.reports.totals import plural, totals
from agentv.reports.view import RunView

if TYPE_CHECKING:
    from agentv.cli.exams import Exams

QUIET_S = 10.0
"""Seconds between two lines of progress where nobody watches a bar."""


class Live(Protocol):
    """Something that shows how far a run is."""

    def update(self, view: RunView) -> None:
        """Show this; called after every trial, so it must be cheap most of the time."""
        ...


def follow(settings: EvalSettings, *, form: Format, quiet: bool, no_progress: bool, promotes: bool = False) -> int:
    """Run what the settings say and show it; the exit status.

    Args:
        settings: what to run.
        form: how what was found is told.
        quiet: only the totals, and the exams that did not go well.
        no_progress: nothing is drawn while it runs.
        promotes: say of every exam whether its prompt may be promoted now.
    """
    here = str(Path.cwd())  # users' code may change it
    if form != "text" and sys.stdout is None:
        raise UsageError(f"--format {form} has nowhere to write to: stdout is closed")
    prepared = _prepared(settings, form)
    warnings = [found for found in prepared.diagnostics if found.severity == "warning"]
    if form not in ANNOTATED:
        print_diagnostics(warnings)
    for note in prepared.notes:
        click.echo(f"note: {one_line(note)}", err=True)
    print_sample(prepared)
    view = RunView(prepared.counts[1])
    watched = for_people() and not quiet and not no_progress
    progress = _live() if watched else nullcontext(_Lines(silent=quiet or no_progress))
    with (
        redirect_stdout(sys.stderr),
        unable_to_exit(),
        progress as live,
    ):  # what users' code prints is for people; stdout is for programs
        outcome = evaluate(prepared, _sink(view, live, quiet=quiet))
    if form in ANNOTATED:
        print_run_as(form, warnings, view, outcome)
    exams = _exams(outcome, here, promotes=promotes, quiet=quiet and form != "json")
    _report(view, outcome, exams, here, as_json=form == "json", quiet=quiet or form in ANNOTATED)
    if exams is not None and form != "json":
        click.echo(exams.text(color=for_people() and "NO_COLOR" not in os.environ), err=True)
    if outcome.exports and not quiet:
        click.echo(f"exports: {', '.join(map(one_line, outcome.exports))}", err=True)
    if outcome.interrupted:
        click.echo(f"interrupted; what finished is saved. Go on with:\n  {resuming(outcome, sys.argv)}", err=True)
    elif outcome.budget is not None and outcome.budget.used_up:
        other = "budget in tokens" if outcome.uncounted else "larger budget"
        click.echo(f"what finished is saved. Go on with a {other}:\n  {resuming(outcome, sys.argv)}", err=True)
    return outcome.status


def _prepared(settings: EvalSettings, form: Format) -> Prepared:
    """What is to be run; what is wrong with the files is told in the format that was asked for."""
    try:
        return prepare(settings)
    except LoadError as error:
        if form not in ANNOTATED:
            raise
        print_as(error.diagnostics, form)
        raise LoadError(()) from error  # told already; what is left is its exit status


def resuming(outcome: Outcome, arguments: list[str]) -> str:
    """The command line that goes on with a run that did not end. It records nothing: a cassette holds a whole run.

    Where the budget is used up, a larger one is to be filled in, or one in tokens where the calls have no price.
    """
    words = ["eva" if Path(arguments[0]).name == "eva" else "agentv"]
    more = ("--budget-tokens",) if outcome.uncounted else _larger(outcome.budget)
    recorded = ("--record",) if any(word.partition("=")[0] == "--record" for word in arguments) else ()
    valued = (*recorded, *more)
    skip = False
    for word, after in zip(arguments[1:], [*arguments[2:], ""], strict=True):
        if skip or word.startswith(("--resume", *valued)):
            skip = not skip and (word in valued or (word == "--resume" and after == outcome.run_id))
            continue
        words.append(word)
    words += [f"{flag}=MORE" for flag in more]
    results = outcome.directory.parent.name == "results"
    named = outcome.run_id if results else shown_from(str(outcome.directory), str(Path.cwd()))
    return shlex.join([*words, f"--resume={named}"])


def _larger(use: BudgetUse | None) -> tuple[str, ...]:
    """The flags whose budget must grow before a run can go on."""
    if use is None or not use.used_up:
        return ()
    return tuple(f"--budget-{name}" for name in ("usd", "tokens") if getattr(use, name) is not None)


def _sink(view: RunView, live: Live, *, quiet: bool) -> Callable[[Event], None]:
    def take(event: Event) -> None:
        if isinstance(event, TrialFinished):
            view.add(event.result)
            live.update(view)
        elif isinstance(event, RunStarted):
            view.planned = event.trials + view.earlier
        elif isinstance(event, TrialKept):
            view.add_earlier(event.result)
        elif isinstance(event, RunResumed | RunRegrades) and not quiet:
            click.echo(_going_on(event) if isinstance(event, RunResumed) else _regrading(event), err=True)
        elif isinstance(event, TargetStopped):
            click.echo(_without(event), err=True)
        elif isinstance(event, RunInterrupted):
            click.echo(_stopping(event), err=True)

    return take


def _going_on(event: RunResumed) -> str:
    """`going on: 120 trials stand, 20 are graded anew from the answers that were kept, 160 are asked`."""
    parts = [f"{plural(event.standing, 'trial')} {'stands' if event.standing == 1 else 'stand'}"]
    if event.regraded:
        parts.append(f"{event.regraded:,} {_are(event.regraded)} graded anew from the answers that were kept")
    parts.append(f"{'up to ' if event.at_most else ''}{event.asked:,} {_are(event.asked)} asked")
    return f"going on: {', '.join(parts)}"


def _regrading(event: RunRegrades) -> str:
    told = f"grading {plural(event.found, 'answer')} of {event.earlier} anew; no target is asked"
    return f"{told}, and {plural(event.missing, 'trial')} will be errored for want of one" if event.missing else told


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _without(event: TargetStopped) -> str:
    return f"stopped asking '{one_line(event.name)}', trials that need it are not run: {one_line(event.reason)}"


def _stopping(event: RunInterrupted) -> str:
    if event.reason == "max-errors":
        return "too many errored trials: no more are started"
    if event.reason == "budget":
        return f"{one_line(event.why)}; no more trials are started"
    if event.reason == "fail-fast":
        return "a trial did not pass: no more are started"
    running = f"waiting up to {GRACE_S:g} s for {event.running} running" if event.running else "nothing runs"
    return f"\nstopping: {running}; Ctrl-C again stops now"


def _exams(outcome: Outcome, here: str, *, promotes: bool, quiet: bool) -> Exams | None:
    """What became of the exams, for those who read it; None where there was none, or quiet, and all went well."""
    if not outcome.sittings:
        return None
    from agentv.cli.exams import exams_of, is_quiet  # only exams pay for this

    told = [sat for sat in outcome.sittings if not (quiet and is_quiet(sat))]
    return exams_of(told, here, promotes=promotes) if told else None


def _report(view: RunView, outcome: Outcome, exams: Exams | None, here: str, *, as_json: bool, quiet: bool) -> None:
    results = shown_from(str(outcome.directory), here)
    for note in outcome.notes:
        click.echo(f"note: {note}", err=True)
    if outcome.problem:
        click.echo(f"error: {one_line(outcome.problem)}", err=True)
    if as_json:
        from agentv.reports.json_report import render_json

        told = exams.as_json() if exams is not None else None
        click.echo(render_json(view, outcome.summary, here=here, results=results, exams=told))
    elif quiet:
        click.echo("\n".join(totals(outcome.summary, view.noted, results)), err=True)
    elif for_people():
        from shutil import get_terminal_size

        from agentv.reports.terminal import render_terminal

        width, color = get_terminal_size().columns, "NO_COLOR" not in os.environ
        page = render_terminal(view, outcome.summary, here=here, results=results, width=width, color=color)
        click.echo(page, err=True, color=color)
    else:
        click.echo(render_plain(view, outcome.summary, here=here, results=results), err=True)


def _live() -> AbstractContextManager[Live]:
    from agentv.reports.terminal import live_progress

    return live_progress()


class _Lines:
    """Progress as a line now and then, for logs."""

    def __init__(self, *, silent: bool) -> None:
        self._silent = silent
        self._next = time.monotonic() + QUIET_S

    def update(self, view: RunView) -> None:
        """Print a line if the last one is old."""
        if self._silent or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + QUIET_S
        click.echo(progress_line(view), err=True)
