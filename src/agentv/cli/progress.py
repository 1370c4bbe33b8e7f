"""The output of a run while it runs and when it ends, for people and for programs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, cast

import click
from msgspec import Struct

from agentv.app.planning.preparation import Prepared, prepare, root_of
from agentv.app.running.drive import GRACE_S
from agentv.app.running.evaluate import Opened, Outcome, evaluate
from agentv.app.settings import EvalSettings
from agentv.app.wiring import redactor_for
from agentv.cli.formats import ANNOTATED, Format, print_as, print_run_as
from agentv.cli.printing import is_interactive, print_diagnostics, print_json, print_sample, redacted, takes_color
from agentv.cli.values import with_options
from agentv.errors import ExitStatus, LoadError, UsageError
from agentv.model.run.events import (
    AgentProgress,
    Event,
    RunInterrupted,
    RunProgress,
    RunRegrades,
    RunResumed,
    RunStarted,
    TargetPaused,
    TargetStopped,
    TrialFinished,
    TrialKept,
)
from agentv.model.values.formatting import money, plural
from agentv.registry.extensions import BESIDE_RUNS, COMMANDS, PORTS, loaded, registered
from agentv.reports.run.plain import progress_line, render_plain
from agentv.reports.run.totals import totals
from agentv.reports.run.view import RunView, WorkingAgents, run_word
from agentv.reports.text import one_line, shown_from
from agentv.user_code.command_process import note_resume
from agentv.user_code.guard import output_to_stderr
from agentv.user_code.plugins import added, added_value

if TYPE_CHECKING:
    from agentv.model.run.summary import Activation
    from agentv.model.suite.library import ExamReport

    _Exams = list[tuple[ExamReport, Activation | None]]


QUIET_S = 10.0
"""Seconds between two lines of progress, if there is no progress bar."""

AGENTS_QUIET_S = 30.0
"""Seconds between two lines of progress while agents are working, which takes minutes."""


class Live(Protocol):
    """A display of a run's progress."""

    def update(self, view: RunView) -> None:
        """Show the progress; called after every trial, so that it must be cheap most of the time."""
        ...


class ProgressOptions(Struct, frozen=True):
    """Options for the output of a run.

    Attributes:
        form: output format.
        quiet: show only the totals, and the exams that did not pass.
        verbose: show every trial as it finishes.
        no_progress: show no progress.
    """

    form: Format
    quiet: bool
    verbose: bool
    no_progress: bool


Beside = Callable[[Opened], AbstractContextManager[Opened]]
"""Something that an extension does alongside a run; see `BESIDE_RUNS` in `registry/extensions.py`."""


def run_and_report(
    settings: EvalSettings, options: ProgressOptions, beside: Mapping[str, Any] = MappingProxyType({})
) -> int:
    """Run with the settings, show the progress and the results, and return the exit status.

    Args:
        settings: settings of the run.
        options: options for the output.
        beside: values of the options for what extensions do alongside the run.
    """
    form = options.form
    if options.quiet and options.verbose:
        raise UsageError("--quiet and --verbose conflict", "use one of them")
    if form != "text" and sys.stdout is None:
        raise UsageError(f"--format {form} cannot write to stdout: it is closed")
    prepared, others = _prepare(settings, options, beside)

    def record_run(run_id: str, directory: Path) -> None:
        """Record the resume command for the parent process, in case this process is killed."""
        note_resume(_resume_line(run_id, directory, sys.argv))
        if settings.watched is not None:
            Path(settings.watched).write_text(str(directory.absolute()), encoding="utf-8")

    opened: Opened = record_run
    with redacted(redactor_for(prepared.suites)), ExitStack() as stack:
        for other in others:
            opened = stack.enter_context(other(opened))
        return _run_prepared(prepared, options, opened)


def _run_prepared(prepared: Prepared, options: ProgressOptions, opened: Opened) -> int:
    form, quiet = options.form, options.quiet
    here = str(Path.cwd())  # read now, because user code may change it
    warnings = [found for found in prepared.diagnostics if found.severity == "warning"]
    if form not in ANNOTATED:
        print_diagnostics(warnings)
    for note in prepared.notes:
        click.echo(f"note: {one_line(note)}", err=True)
    print_sample(prepared)
    view = RunView(prepared.counts[1])
    hidden = options.quiet or options.verbose or options.no_progress
    progress: AbstractContextManager[Live] = nullcontext(_ProgressLines(hidden=hidden))
    if is_interactive() and not hidden:
        from agentv.reports.run.terminal import LiveProgress

        progress = LiveProgress(sys.stderr)  # everything else that is written to stderr scrolls above it
    with output_to_stderr(), progress as live:
        targets = (getattr(spec.settings, "calls", None) for suite in prepared.suites for spec in suite.targets)
        if prepared.settings.replay is None and any(calls in {"server", "any-server"} for calls in targets):
            view.progress = RunProgress(0, 0.0)  # shown at once: the libraries of model APIs take a second to import
        outcome = evaluate(prepared, partial(_on_event, view, live, options, here), opened=opened)
    if outcome.status != ExitStatus.PASSED:
        from agentv.reports.run.rerun import RerunOptions

        root, directory = root_of(prepared.suites), str(outcome.directory.absolute())
        view.rerun = RerunOptions.of(outcome.record, here=here, root=root, directory=directory)
    if form in ANNOTATED:
        print_run_as(form, warnings, view, outcome)
    exams = _exam_reports(outcome, quiet=quiet and form != "json")
    _print_results(view, outcome, exams, here, as_json=form == "json", quiet=quiet or form in ANNOTATED)
    if exams and form != "json":
        from agentv.reports.run.activation import triggering_lines
        from agentv.reports.run.exam_attempts import exam_lines, painted

        color = takes_color(sys.stderr)
        texts = (exam_lines(one, triggering_lines(queries) if queries else (), here) for one, queries in exams)
        click.echo("\n".join(painted(line, color=color) for lines in texts for line in lines), err=True, color=color)
    if outcome.exports and not quiet:
        click.echo(f"exports: {', '.join(map(one_line, outcome.exports))}", err=True)
    _print_next_command(outcome, view, prepared, here, quiet=quiet)
    return outcome.status


def _print_next_command(outcome: Outcome, view: RunView, prepared: Prepared, here: str, *, quiet: bool) -> None:
    """Print the command that resumes an unfinished run or, if it is complete, the command that shows its answers."""
    trials = outcome.summary.trials
    if outcome.interrupted and not (trials.skipped or trials.errored):
        click.echo("interrupted after every trial had finished", err=True)
    elif outcome.interrupted:
        click.echo(
            f"interrupted; finished trials are saved. Resume with:\n  {resume_command(outcome, sys.argv)}", err=True
        )
    elif outcome.budget is not None and outcome.budget.used_up:
        other = "budget in tokens" if outcome.uncounted else "larger budget"
        click.echo(
            f"finished trials are saved. Resume with a {other}:\n  {resume_command(outcome, sys.argv)}", err=True
        )
    elif (
        is_interactive()
        and not quiet
        and view.done
        and prepared.settings.watched is None
        and "view" in registered(COMMANDS)
    ):
        run = run_word(outcome.summary, shown_from(str(outcome.directory), here))
        named = "" if run == outcome.run_id else f" {run}"
        click.echo(f"read the answers in a browser: agentv view{named}", err=True)


def _prepare(
    settings: EvalSettings, options: ProgressOptions, beside: Mapping[str, Any]
) -> tuple[Prepared, list[Beside]]:
    """Return the prepared run and what extensions do alongside it; report invalid files in the chosen format."""
    try:
        prepared = prepare(settings)
        made = (added_value(BESIDE_RUNS, name)(prepared, beside, quiet=options.quiet) for name in added(BESIDE_RUNS))
        return prepared, [one for one in made if one is not None]
    except LoadError as error:
        if options.form not in ANNOTATED:
            raise
        print_as(error.diagnostics, options.form)
        raise LoadError(()) from error  # the diagnostics were printed; this sets the exit status


def resume_command(outcome: Outcome, arguments: list[str]) -> str:
    """Return the command that resumes an unfinished run, without `--record`, because a cassette has a whole run.

    If the budget is used up, it contains a placeholder for a larger one, in tokens if the calls have no known price.
    """
    more: tuple[str, ...] = ()
    if outcome.uncounted:
        more = ("--budget-tokens",)
    elif (use := outcome.budget) is not None and use.used_up:
        more = tuple(f"--budget-{name}" for name in ("usd", "tokens") if getattr(use, name) is not None)
    return _resume_line(outcome.run_id, outcome.directory, arguments, more)


def _resume_line(run_id: str, directory: Path, arguments: list[str], more: tuple[str, ...] = ()) -> str:
    words = ["eva" if Path(arguments[0]).name == "eva" else "agentv"]
    recorded = ("--record",) if any(word.partition("=")[0] == "--record" for word in arguments) else ()
    valued = (*recorded, *more, "--watched")
    skip = False
    given = arguments[1:]
    for word, after in zip(given, [*given[1:], ""][: len(given)], strict=True):
        if skip or word.startswith(("--resume", *valued)):
            skip = not skip and (word in valued or (word == "--resume" and after == run_id))
            continue
        words.append(word)
    named = run_id if directory.parent.name == "results" else shown_from(str(directory), str(Path.cwd()))
    from shlex import join

    return join(with_options(words, [*(f"{flag}=MORE" for flag in more), f"--resume={named}"]))


def _on_event(view: RunView, live: Live, options: ProgressOptions, here: str, event: Event) -> None:
    if isinstance(event, AgentProgress):
        if view.agents is None:  # few suites have agents
            view.agents = cast("WorkingAgents", loaded(PORTS, "WorkingAgents")(time.monotonic))
        view.agents.take(event)
    elif isinstance(event, RunProgress):
        view.progress = event
    elif isinstance(event, TrialFinished):
        view.add(event.result)
        if options.verbose:
            from agentv.reports.run.terminal import verbose_lines

            lines = verbose_lines(event.result, number=view.done, planned=view.planned, here=here)
            click.echo("\n".join(lines), err=True)
    elif isinstance(event, RunStarted):
        view.planned = event.trials + view.earlier
    elif isinstance(event, TrialKept):
        view.add_earlier(event.result)
        return
    else:
        if (message := _event_message(event, quiet=options.quiet)) is not None:
            # click would bypass the stream that keeps the progress bar at the bottom
            if is_interactive():
                sys.stderr.write(f"{message}\n")
            else:
                click.echo(message, err=True)
        return
    live.update(view)


def _event_message(event: Event, *, quiet: bool) -> str | None:
    """Return the message that is printed for an event as soon as it occurs, or None."""
    if isinstance(event, RunResumed):
        return None if quiet else _resumed_message(event)
    if isinstance(event, RunRegrades):
        line = f"grading {plural(event.found, 'answer')} of {event.earlier} again without calling a target"
        missing = f"; {plural(event.missing, 'trial')} without a stored answer will be errored"
        if quiet:
            return None
        return line + missing if event.missing else line
    if isinstance(event, TargetStopped):
        stopped = f"stopped calling '{one_line(event.name)}'"
        return f"{stopped}: no call to it can succeed, so trials that need it are skipped"
    if isinstance(event, TargetPaused):
        return f"waiting for '{one_line(event.name)}': {one_line(event.reason)}"
    return _interrupted_message(event) if isinstance(event, RunInterrupted) else None


def _resumed_message(event: RunResumed) -> str:
    """Return a message like `resuming: 120 trials complete, 20 to grade again from stored answers, 160 to run`."""
    parts = [f"{plural(event.complete, 'trial')} complete"]
    if event.regraded:
        parts.append(f"{event.regraded:,} to grade again from stored answers")
    parts.append(f"{'up to ' if event.at_most else ''}{event.to_call:,} to run")
    line = f"resuming: {', '.join(parts)}"
    if not event.interrupted:
        return line
    calls = f"{plural(event.calls, 'model call', ',')}, " if event.calls else ""
    took = f"{calls}{'cost unknown' if event.cost_usd is None else money(event.cost_usd)} so far"
    begin = "was interrupted and begins" if event.interrupted == 1 else "were interrupted and begin"
    why = "an agent's workspace and tools do not outlive its process"
    return f"{line}\n{plural(event.interrupted, 'trial')} {begin} again from the start ({took}): {why}"


def _interrupted_message(event: RunInterrupted) -> str:
    if event.reason == "max-errors":
        return "too many errored trials: starting no more"
    if event.reason == "budget":
        return f"{one_line(event.why)}; starting no more trials"
    if event.reason == "decided":
        return "the comparison is decided: drawing no more cases"
    if event.reason == "fail-fast":
        return "a trial did not pass: starting no more"
    running = f"waiting up to {GRACE_S:g} s for {event.running} running" if event.running else "no trials are running"
    return f"\nstopping: {running}; press Ctrl-C again to stop at once"


def _exam_reports(outcome: Outcome, *, quiet: bool) -> _Exams:
    """Return the exams' reports, with the activation of their skills; if quiet, only for those that did not pass."""
    if not outcome.exam_attempts:
        return []
    from agentv.app.prompt_exams import confusion, report_of

    return [
        (report_of(one), confusion(one.exam, one.verdicts) if one.exam.queries else None)
        for one in outcome.exam_attempts
        if not (quiet and one.exam_row.all_passed and not one.exam_row.partial and one.error is None)
    ]


def _print_results(view: RunView, outcome: Outcome, exams: _Exams, here: str, *, as_json: bool, quiet: bool) -> None:
    results = shown_from(str(outcome.directory), here)
    for note in outcome.notes:
        click.echo(f"note: {note}", err=True)
    if outcome.problem:
        click.echo(f"error: {one_line(outcome.problem)}", err=True)
    if outcome.unchecked:
        click.echo(f"note: {outcome.unchecked}", err=True)
    if as_json:
        from agentv.reports.json_report import run_data

        exams_json = None
        if exams:
            from agentv.reports.run.activation import triggering_json
            from agentv.reports.run.exam_attempts import exam_json

            exams_json = [exam_json(one, triggering_json(queries) if queries else None, here) for one, queries in exams]
        print_json(run_data(view, outcome.summary, here=here, results=results, exams=exams_json))
    elif quiet:
        click.echo("\n".join(totals(outcome.summary, view.noted, results)), err=True)
    elif is_interactive() or takes_color(sys.stderr):
        from shutil import get_terminal_size

        from agentv.reports.run.terminal import render_terminal

        width, color = get_terminal_size().columns, takes_color(sys.stderr)
        page = render_terminal(view, outcome.summary, here=here, results=results, width=width, color=color)
        click.echo(page, err=True, color=color)
    else:
        click.echo(render_plain(view, outcome.summary, here=here, results=results), err=True)


class _ProgressLines(Struct):
    """Progress as occasional lines, for logs."""

    hidden: bool
    clock: Callable[[], float] = time.monotonic
    _last: float | None = None
    _limited: bool = False

    def update(self, view: RunView) -> None:
        """Print a line, unless the last one is recent."""
        if self.hidden:
            return
        now, agents, progress = self.clock(), view.agents, view.progress
        if progress is None:
            return
        limited, before = bool(progress.limited), self._limited
        self._limited = limited
        soon = self._last is not None and now < self._last + (AGENTS_QUIET_S if agents else QUIET_S)
        if soon and not (limited and not before):
            return
        self._last = now
        working = f"; working: {agents.log_line()}" if agents else ""
        click.echo(f"{progress_line(view)}{working}", err=True)
