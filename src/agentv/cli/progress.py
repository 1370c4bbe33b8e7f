"""Output during a run, for people and for programs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import click
from msgspec import Struct

from agentv.app.planning.preparation import Prepared, prepare, root_of
from agentv.app.running.evaluate import GRACE_S, Opened, Outcome, evaluate
from agentv.app.settings import EvalSettings
from agentv.app.wiring import redactor_for
from agentv.cli.formats import ANNOTATED, Format, print_as, print_run_as
from agentv.cli.printing import for_people, print_diagnostics, print_sample, redacted, takes_color
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
from agentv.model.run.trial import TrialResult
from agentv.model.values.formatting import money, plural
from agentv.model.values.usage import BudgetUse
from agentv.model.values.values import Json
from agentv.registry.extensions import BESIDE_RUNS, COMMANDS, PORTS, loaded, registered
from agentv.reports.run.plain import progress_line, render_plain
from agentv.reports.run.totals import totals
from agentv.reports.run.view import RunView, WorkingAgents, run_word
from agentv.reports.text import one_line, shown_from
from agentv.user_code.command_process import note_resume
from agentv.user_code.guard import apart_from_output
from agentv.user_code.plugins import added, added_value

if TYPE_CHECKING:
    from agentv.app.running.exam_attempt import ExamAttempt
    from agentv.reports.run.rerun import RerunOptions


QUIET_S = 10.0
"""Seconds between two lines of progress where nobody watches a bar."""

AGENTS_QUIET_S = 30.0
"""The same while agents are working, which takes minutes."""


class Live(Protocol):
    """Something that shows how far a run is."""

    def update(self, view: RunView) -> None:
        """Show this; called after every trial, so it must be cheap most of the time."""
        ...


class ProgressOptions(Struct, frozen=True):
    """How much of a run is shown.

    Attributes:
        form: output format.
        quiet: only the totals, and the exams that did not pass.
        verbose: every trial as it finishes.
        no_progress: show no progress.
    """

    form: Format
    quiet: bool
    verbose: bool
    no_progress: bool


Beside = Callable[[Opened], AbstractContextManager[Opened]]
"""What goes on beside a run: see `BESIDE_RUNS`."""


def follow(settings: EvalSettings, options: ProgressOptions, beside: Mapping[str, Any] = MappingProxyType({})) -> int:
    """Run what the settings say and show it; the exit status.

    Args:
        settings: of the run.
        options: how it is shown.
        beside: values of options that are for what goes on beside the run.
    """
    form = options.form
    if options.quiet and options.verbose:
        raise UsageError("--quiet and --verbose conflict", "use one of them")
    if form != "text" and sys.stdout is None:
        raise UsageError(f"--format {form} cannot write to stdout: it is closed")
    prepared, others = _prepared(settings, options, beside)
    opened: Opened = _note_resume if settings.watched is None else _note_watched(settings.watched)
    with redacted(redactor_for(prepared.suites)), ExitStack() as stack:
        for other in others:
            opened = stack.enter_context(other(opened))
        return _followed(prepared, options, opened)


def _followed(prepared: Prepared, options: ProgressOptions, opened: Opened) -> int:
    form, quiet = options.form, options.quiet
    here = str(Path.cwd())  # users' code may change it
    warnings = [found for found in prepared.diagnostics if found.severity == "warning"]
    if form not in ANNOTATED:
        print_diagnostics(warnings)
    for note in prepared.notes:
        click.echo(f"note: {one_line(note)}", err=True)
    print_sample(prepared)
    view = RunView(prepared.counts[1])
    progress = _progress(options)
    with apart_from_output(), progress as live:
        trials = _Trials(here) if options.verbose else None
        if _calls_servers(prepared):
            view.progress = RunProgress(0, 0.0)  # shown at once: the libraries of model APIs take a second to import
        outcome = evaluate(prepared, _sink(view, live, trials, quiet=quiet), opened=opened)
    view.rerun = _rerun_options(outcome, prepared, here)
    if form in ANNOTATED:
        print_run_as(form, warnings, view, outcome)
    exams = _exams(outcome, here, quiet=quiet and form != "json")
    _report(view, outcome, exams, here, as_json=form == "json", quiet=quiet or form in ANNOTATED)
    if exams is not None and form != "json":
        color = takes_color(sys.stderr)
        click.echo(exams.text(color=color), err=True, color=color)
    if outcome.exports and not quiet:
        click.echo(f"exports: {', '.join(map(one_line, outcome.exports))}", err=True)
    _say_how_to_go_on(outcome, view, prepared, here, quiet=quiet)
    return outcome.status


def _say_how_to_go_on(outcome: Outcome, view: RunView, prepared: Prepared, here: str, *, quiet: bool) -> None:
    """The command that resumes an unfinished run; after a whole one, the command that shows its answers."""
    trials = outcome.summary.trials
    if outcome.interrupted and not (trials.skipped or trials.errored):
        click.echo("interrupted after every trial had finished", err=True)
    elif outcome.interrupted:
        click.echo(f"interrupted; finished trials are saved. Resume with:\n  {resuming(outcome, sys.argv)}", err=True)
    elif outcome.budget is not None and outcome.budget.used_up:
        other = "budget in tokens" if outcome.uncounted else "larger budget"
        click.echo(f"finished trials are saved. Resume with a {other}:\n  {resuming(outcome, sys.argv)}", err=True)
    elif for_people() and not quiet and view.done and prepared.settings.watched is None:
        _name_view(outcome, here)


def _name_view(outcome: Outcome, here: str) -> None:
    """Say how to read the answers in a browser, if the extension that shows them is here."""
    if "view" in registered(COMMANDS):
        results = shown_from(str(outcome.directory), here)
        run = run_word(outcome.summary, results)
        named = "" if run == outcome.run_id else f" {run}"
        click.echo(f"read the answers in a browser: agentv view{named}", err=True)


def _calls_servers(prepared: Prepared) -> bool:
    targets = (getattr(spec.settings, "calls", None) for suite in prepared.suites for spec in suite.targets)
    return prepared.settings.replay is None and any(calls in {"server", "any-server"} for calls in targets)


def _rerun_options(outcome: Outcome, prepared: Prepared, here: str) -> RerunOptions | None:
    """How to run the cases again that did not pass."""
    if outcome.status == ExitStatus.PASSED:
        return None
    from agentv.reports.run.rerun import RerunOptions

    return RerunOptions.of(
        outcome.record, here=here, root=root_of(prepared.suites), directory=str(outcome.directory.absolute())
    )


def _prepared(
    settings: EvalSettings, options: ProgressOptions, beside: Mapping[str, Any]
) -> tuple[Prepared, list[Beside]]:
    """What is to be run, and what goes on beside it; wrong files are reported in the format that was asked for."""
    try:
        prepared = prepare(settings)
        made = (added_value(BESIDE_RUNS, name)(prepared, beside, quiet=options.quiet) for name in added(BESIDE_RUNS))
        return prepared, [one for one in made if one is not None]
    except LoadError as error:
        if options.form not in ANNOTATED:
            raise
        print_as(error.diagnostics, options.form)
        raise LoadError(()) from error  # printed already; only the exit status is left


def resuming(outcome: Outcome, arguments: list[str]) -> str:
    """The command that resumes an unfinished run. It records nothing, because a cassette contains a whole run.

    If the budget is used up, it contains a placeholder for a larger one, in tokens if the calls have no known price.
    """
    more = ("--budget-tokens",) if outcome.uncounted else _larger(outcome.budget)
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
    words += [f"{flag}=MORE" for flag in more]
    named = run_id if directory.parent.name == "results" else shown_from(str(directory), str(Path.cwd()))
    from shlex import join

    return join([*words, f"--resume={named}"])


def _note_resume(run_id: str, directory: Path) -> None:
    """Leave word of how to go on, for the process in front: this one may not live to say it."""
    note_resume(_resume_line(run_id, directory, sys.argv))


def _note_watched(file: str) -> Callable[[str, Path], None]:
    def note(run_id: str, directory: Path) -> None:
        _note_resume(run_id, directory)
        Path(file).write_text(str(directory.absolute()), encoding="utf-8")

    return note


def _larger(use: BudgetUse | None) -> tuple[str, ...]:
    """The flags whose budget must grow before a run can go on."""
    if use is None or not use.used_up:
        return ()
    return tuple(f"--budget-{name}" for name in ("usd", "tokens") if getattr(use, name) is not None)


def _sink(view: RunView, live: Live, trials: _Trials | None, *, quiet: bool) -> Callable[[Event], None]:
    def take(event: Event) -> None:
        if isinstance(event, AgentProgress):
            if view.agents is None:
                view.agents = _agents_view()
            view.agents.take(event)
            live.update(view)
        elif isinstance(event, RunProgress):
            view.progress = event
            live.update(view)
        elif isinstance(event, TrialFinished):
            view.add(event.result)
            if trials is not None:
                trials.show(view, event.result)
            live.update(view)
        elif isinstance(event, RunStarted):
            view.planned = event.trials + view.earlier
            live.update(view)
        elif isinstance(event, TrialKept):
            view.add_earlier(event.result)
        elif (message := _message(event, quiet=quiet)) is not None:
            _print(message)

    return take


def _message(event: Event, *, quiet: bool) -> str | None:
    """What is printed of an event at once."""
    if isinstance(event, RunResumed | RunRegrades):
        text = _resuming(event) if isinstance(event, RunResumed) else _regrading(event)
        return None if quiet else text
    if isinstance(event, TargetStopped):
        return _without(event)
    if isinstance(event, TargetPaused):
        return f"waiting for '{one_line(event.name)}': {one_line(event.reason)}"
    return _stopping(event) if isinstance(event, RunInterrupted) else None


def _agents_view() -> WorkingAgents:
    view: WorkingAgents = loaded(PORTS, "WorkingAgents")(time.monotonic)  # few suites have agents
    return view


def _print(text: str) -> None:
    """Prints while a progress bar may be drawn: click would write past the stream that scrolls the bar."""
    if for_people():
        sys.stderr.write(f"{text}\n")
    else:
        click.echo(text, err=True)


def _resuming(event: RunResumed) -> str:
    """`resuming: 120 trials complete, 20 to grade again from stored answers, 160 to run`."""
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


def _regrading(event: RunRegrades) -> str:
    line = f"grading {plural(event.found, 'answer')} of {event.earlier} again without calling a target"
    missing = f"; {plural(event.missing, 'trial')} without a stored answer will be errored"
    return line + missing if event.missing else line


def _without(event: TargetStopped) -> str:
    return f"stopped calling '{one_line(event.name)}': no call to it can succeed, so trials that need it are skipped"


def _stopping(event: RunInterrupted) -> str:
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


def _exams(outcome: Outcome, here: str, *, quiet: bool) -> _Exams | None:
    """What became of the exams, for those who read it; None where there was none, or quiet, and all went well."""
    if not outcome.exam_attempts:
        return None

    shown = [one for one in outcome.exam_attempts if not (quiet and _is_quiet(one))]
    return _Exams(shown, here) if shown else None


def _is_quiet(attempt: ExamAttempt) -> bool:
    """Whether an attempt passed, was complete and is recorded, so that there is nothing else to report."""
    return attempt.exam_row.all_passed and not attempt.exam_row.partial and attempt.error is None


def _report(view: RunView, outcome: Outcome, exams: _Exams | None, here: str, *, as_json: bool, quiet: bool) -> None:
    results = shown_from(str(outcome.directory), here)
    for note in outcome.notes:
        click.echo(f"note: {note}", err=True)
    if outcome.problem:
        click.echo(f"error: {one_line(outcome.problem)}", err=True)
    if outcome.unchecked:
        click.echo(f"note: {outcome.unchecked}", err=True)
    if as_json:
        from agentv.reports.json_report import render_json

        exams_json = exams.as_json() if exams is not None else None
        click.echo(render_json(view, outcome.summary, here=here, results=results, exams=exams_json))
    elif quiet:
        click.echo("\n".join(totals(outcome.summary, view.noted, results)), err=True)
    elif for_people() or takes_color(sys.stderr):
        from shutil import get_terminal_size

        from agentv.reports.run.terminal import render_terminal

        width, color = get_terminal_size().columns, takes_color(sys.stderr)
        page = render_terminal(view, outcome.summary, here=here, results=results, width=width, color=color)
        click.echo(page, err=True, color=color)
    else:
        click.echo(render_plain(view, outcome.summary, here=here, results=results), err=True)


def _progress(options: ProgressOptions) -> AbstractContextManager[Live]:
    """Progress display: a live view, or a line now and then; nothing if every trial is printed."""
    hidden = options.quiet or options.verbose or options.no_progress
    return _live() if for_people() and not hidden else nullcontext(_ProgressLines(hidden=hidden))


def _live() -> AbstractContextManager[Live]:
    from agentv.reports.run.terminal import live_progress

    return live_progress()


class _ProgressLines:
    """Progress as a line now and then, for logs."""

    def __init__(self, *, hidden: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._silent = hidden
        self._clock = clock
        self._last: float | None = None
        self._limited = False

    def update(self, view: RunView) -> None:
        """Print a line if the last one is old."""
        if self._silent:
            return
        now, agents, progress = self._clock(), view.agents, view.progress
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


class _Trials:
    """Prints every trial as it finishes."""

    def __init__(self, here: str) -> None:
        self._here = here

    def show(self, view: RunView, ended: TrialResult) -> None:
        """Print the trial."""
        from agentv.reports.run.terminal import verbose_lines

        lines = verbose_lines(ended, number=view.done, planned=view.planned, here=self._here)
        click.echo("\n".join(lines), err=True)


class _Exams:
    """The exams of a run, with the promotion gates after it; `here` is the directory that paths are shown from."""

    def __init__(self, attempts: Sequence[ExamAttempt], here: str) -> None:
        from agentv.app.prompt_exams import confusion, report_of

        self._here = here
        self._found = [
            (report_of(one), confusion(one.exam, one.verdicts) if one.exam.queries else None) for one in attempts
        ]

    def text(self, *, color: bool) -> str:
        """A paragraph for each, for people."""
        from agentv.reports.run.activation import triggering_lines
        from agentv.reports.run.exam_attempts import exam_lines, painted

        found = ((report, triggering_lines(one) if one is not None else ()) for report, one in self._found)
        lines = (line for report, triggering in found for line in exam_lines(report, triggering, self._here))
        return "\n".join(painted(line, color=color) for line in lines)

    def as_json(self) -> list[Json]:
        """An object for each, for programs."""
        from agentv.reports.run.activation import triggering_json
        from agentv.reports.run.exam_attempts import exam_json

        found = ((report, triggering_json(one) if one is not None else None) for report, one in self._found)
        return [exam_json(report, triggering, self._here) for report, triggering in found]
