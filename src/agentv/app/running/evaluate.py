"""Evaluation of a prepared plan, from opening the run directory to the outcome."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from agentv.app.labelled_runs import has_gate, labelled_runs
from agentv.app.planning.answer_sources import answer_sources
from agentv.app.planning.preparation import Prepared, caches, results_of, root_of
from agentv.app.results.place import planned_counts
from agentv.app.results.stored import StoredRun, find_run
from agentv.app.running.drive import Demand, StopRequests, drive
from agentv.app.running.run_record import partial_of, with_agent_versions
from agentv.app.running.start import OpenRun, Sink, StartedRun, opened_run, start
from agentv.app.settings import LOCAL
from agentv.app.wiring import Connections, redactor_for
from agentv.engine.executor import TrialExecutor
from agentv.errors import ExitStatus, LoadError, StoreError
from agentv.model.run.events import RunFinished
from agentv.model.run.summary import Summary
from agentv.model.values.formatting import money, plural
from agentv.model.values.usage import BudgetUse
from agentv.model.values.values import EMPTY, JsonObject
from agentv.registry.extensions import EXECUTORS
from agentv.reports.text import one_line
from agentv.store.files.directory import HISTORY, INDEX, RUN, RunDirectory, read_document
from agentv.store.journal.verification import check_rows, stored_summary
from agentv.user_code.plugins import added_value

if TYPE_CHECKING:
    from agentv.app.running.exam_attempt import ExamAttempt
    from agentv.engine.calls.budget import BudgetLimiter


Opened = Callable[[str, Path], None]

ExecutorFactory: TypeAlias = Callable[[Connections], TrialExecutor]
"""Makes the executor of a run's trials from the run's connections."""


def evaluate(prepared: Prepared, sink: Sink, *, opened: Opened | None = None) -> Outcome:
    """Run a prepared plan. The sink is called on this thread.

    Args:
        prepared: the plan.
        sink: receives every event.
        opened: called with the id of the run and its results directory before any call is made.

    Raises:
        StoreError: the run directory cannot be created, opened or written, or labels that gates need cannot be read.
        UsageError: according to labels, a judge is worse than its suite allows.
    """
    return asyncio.run(evaluate_async(prepared, sink, signals=True, opened=opened))


async def evaluate_async(
    prepared: Prepared,
    sink: Sink,
    *,
    signals: bool = False,
    demand: Demand | None = None,
    opened: Opened | None = None,
    stops: StopRequests | None = None,
) -> Outcome:
    """Run a prepared plan in an event loop that is already running.

    Args:
        prepared: the plan.
        sink: receives every event, on this thread.
        signals: SIGINT and SIGTERM stop the run in an orderly way; no other run may use the process.
        demand: receives the object that requests trials when the run begins; only requested ones run.
        opened: as in `evaluate`.
        stops: stops the run on request of another thread.

    Raises:
        StoreError, UsageError: as `evaluate`.
    """
    labels = labelled_runs().before(prepared.suites)
    chosen = prepared.settings.executor
    pool: AbstractAsyncContextManager[ExecutorFactory | None] = nullcontext()  # trials run in this process
    if chosen != LOCAL:
        pool = added_value(EXECUTORS, chosen)(prepared)
    async with pool as executors:
        with answer_sources(prepared) as sources, _directory(prepared) as directory:
            if opened is not None:
                opened(directory.run_id, directory.path)
            run = replace(opened_run(prepared, directory, sources, sink), labels=labels)
            return await _evaluated(run, executors, signals=signals, demand=demand, stops=stops)


async def _evaluated(
    run: OpenRun, executors: ExecutorFactory | None, *, signals: bool, demand: Demand | None, stops: StopRequests | None
) -> Outcome:
    started: StartedRun | None = None
    try:
        with run.journal() as journal:
            started = await start(run, journal, loads_code=executors is None)
            connections = started.connections
            executor = executors(connections) if executors is not None else None
            try:
                finished, counts = await drive(started, executor, signals=signals, demand=demand, stops=stops)
            finally:
                try:
                    await connections.close()
                finally:
                    programs = sys.modules.get("agentv.user_code.processes")  # not imported if no program was started
                    if signals and programs is not None:  # otherwise, other runs may have started some
                        programs.kill_all()
            return finish(started, finished, counts)
    except (StoreError, LoadError) as error:
        if started is not None:
            error.status = ExitStatus.ERRORED  # trials ran, but their results or a later case cannot be used
        raise


def _directory(prepared: Prepared) -> RunDirectory:
    """Open the directory of the run to resume, or create a new one."""
    settings = prepared.settings
    redactor = redactor_for(prepared.suites)
    if settings.resume_run is not None:
        found = find_run(settings.resume_run, results_of(prepared.suites), settings.out)
        return RunDirectory.open(found, redactor=redactor)
    out = Path(settings.out) if settings.out else None
    place = results_of(prepared.suites, of_new_run=True)
    return RunDirectory.create(place, datetime.now(UTC), out=out, redactor=redactor)


def finish(started: StartedRun, finished: RunFinished, counts: tuple[int, int]) -> Outcome:
    """Write all results of a run whose trials have ended; `counts` are its numbers of cases and trials.

    Raises:
        StoreError: the run's directory, or a cassette, cannot be written.
    """
    run, journal = started.open, started.journal
    prepared, settings, budget_limiter = run.prepared, run.prepared.settings, run.budget_limiter
    gated = any(map(has_gate, prepared.suites))
    notes = [
        *journal.repaired,
        *_lost(journal.damaged, started.earlier.superseded),
        *run.totals.notes(),
        *run.sources.notes(),
        *started.connections.notes(),
    ]
    journal.flush()  # comparisons and gates read the rows on disk
    record = with_agent_versions(started.record, run.totals.agent_versions)
    if record is not None:
        run.directory.write(RUN, record)
    summary = _summary(started, finished, counts, budget_limiter.use() if budget_limiter is not None else None)
    summary = _with_gates(started, summary, gated=gated)
    journal.write_summary({**summary.as_json(), **started.earlier.summary_keys})
    attempts: tuple[ExamAttempt, ...] = ()
    if any(suite.exam is not None for suite in prepared.suites):
        from agentv.app.running.exam_attempt import record_attempts, why_run_partial

        before, cached = run.previous.settings, caches(settings, prepared.suites)
        why = tuple(why_run_partial(settings, before, interrupted=finished.interrupted, cached=cached))
        attempts = record_attempts(prepared, run.totals.exam_rows.values(), run_id=run.directory.run_id, why=why)
    cassette, failed = run.sources.ended(
        interrupted=finished.interrupted, cut=finished.unstarted > 0, errored=summary.trials.errored
    )
    shown = labelled_runs().with_rates(summary, _stored(started)) if summary.judges else summary
    if gated:
        now = labelled_runs().of_suites((suite.name for suite in prepared.suites), results_of(prepared.suites))
        if now.problem is not None or now.sha256 != run.labels.sha256:
            notes.append("labels were changed during the run; its gates are decided by those from before")
    exports: tuple[str, ...] = ()
    problems = _changed_rows(run.directory.path) if gated or settings.exports else ()
    if settings.exports and not problems:
        from agentv.app.exports import write_exports

        exports, problems = write_exports(_stored(started), settings.exports)
    if budget_limiter is not None:
        notes += _notes_on(budget_limiter, summary)
    if cassette and not failed:
        notes.append(cassette)
    return Outcome(
        run.directory.run_id,
        run.directory.path,
        shown,
        finished.interrupted,
        notes=tuple(notes),
        fail_fast=settings.fail_fast,
        allow_unchecked=settings.allow_unchecked,
        problem="; ".join((*((cassette,) if failed else ()), *problems)) or None,
        budget=summary.budget,
        uncounted=budget_limiter is not None and budget_limiter.uncounted,
        exam_attempts=attempts,
        exports=exports,
        record=started.record,
    )


def _summary(started: StartedRun, finished: RunFinished, counts: tuple[int, int], budget: BudgetUse | None) -> Summary:
    """Return the totals of all processes of the run."""
    run, (cases, trials) = started.open, counts
    summary = run.totals.counts.summary(
        run_id=run.directory.run_id,
        planned=replace(planned_counts(started.record), cases=cases, trials=trials),
        duration_ms=run.previous.duration_ms + finished.duration_ms,
        processes=run.previous.processes + 1,
    )
    summary = replace(summary, budget=budget) if budget is not None else summary
    summary = replace(
        summary, partial=partial_of(run.prepared), held_back=run.totals.held_back, judges=tuple(run.totals.judges)
    )
    draws = run.prepared.draws
    if draws is not None:
        from agentv.app.gates import comparison_of

        summary = replace(summary, against=comparison_of(draws))
    if summary.trials.skipped and draws is not None and draws.decided:
        summary = summary.cut_short("decided")
    elif summary.trials.skipped and finished.unstarted and finished.stopped in ("fail-fast", "max-errors"):
        summary = summary.cut_short(finished.stopped)
    if summary.matrix is None:
        return summary
    from agentv.app.results.listing import with_matrix  # imported here: few runs have several targets

    return with_matrix(summary, run.directory.path, started.record)


def _with_gates(started: StartedRun, summary: Summary, *, gated: bool) -> Summary:
    """Return the totals with the results of the suites' gates, by the labels from before the run."""
    run = started.open
    if summary.is_empty_shard or not (gated or summary.activation):
        return summary
    from agentv.app.gates import with_gates

    changed = run.previous.processes > 0 and run.previous.labels_sha256 != run.labels.sha256
    failed = run.totals.counts.failed_queries
    return with_gates(summary, run.prepared.suites, _stored(started), failed, changed=changed)


def _stored(started: StartedRun) -> StoredRun:
    """Return the run as it is on disk, with the labels from before it began."""
    run = started.open
    path, root = run.directory.path, root_of(run.prepared.suites)
    stored = stored_summary(path)
    summary = stored and stored.document
    return StoredRun(path, root, run.directory.run_id, read_document(path / RUN), summary, labels=run.labels)


def _changed_rows(path: Path) -> tuple[str, ...]:
    """Return why the rows on disk are not those of the run; () if they are."""
    try:
        check_rows(path)
        written = stored_summary(path)
    except StoreError as error:
        return (str(error),)
    if written is not None and written.verified:
        return ()
    return (f"{path / INDEX}: rows were added or removed during the run; --resume grades their trials again",)


def _notes_on(budget_limiter: BudgetLimiter, summary: Summary) -> Iterator[str]:
    """Yield notes about the budget: spending, trials that did not run, and calls that could not be counted."""
    use, parts = budget_limiter.use(), []
    if use.usd is not None:
        parts.append(f"{money(use.spent_usd)} of {money(use.usd)}")
    if use.tokens is not None:
        parts.append(f"{use.spent_tokens:,} of {use.tokens:,} tokens")
    note = f"budget: {' and '.join(parts)} spent"
    if use.used_up:
        trials = summary.trials
        run = f"{trials.total - trials.skipped:,} of {plural(trials.total, 'trial')} run"
        note += f"; {run}, {trials.skipped:,} not run"
    yield note
    for name, what in budget_limiter.silent():
        word = "what its calls cost" if what == "usd" else "how many tokens its calls use"
        yield f"'{one_line(name)}' does not report {word}: the budget counts them as zero"


class Outcome(Struct, frozen=True):
    """Result of a run.

    Attributes:
        directory: the run directory.
        interrupted: the run was stopped by Ctrl-C or a signal.
        notes: notes about the run, such as a torn line that was removed.
        fail_fast: the run was to stop at the first trial that does not pass, so skipped cases are expected.
        allow_unchecked: cases that are only shown do not change the exit status.
        problem: a failed side task, such as a cassette or an export that is not written.
        budget: use of the budget; None if there was none.
        uncounted: the cost of the calls is unknown, so a larger budget in dollars would not help.
        exam_attempts: results of the exams among the suites.
        exports: paths of written exports.
        record: content of `run.json`.
    """

    run_id: str
    directory: Path
    summary: Summary
    interrupted: bool
    notes: tuple[str, ...] = ()
    fail_fast: bool = False
    allow_unchecked: bool = False
    problem: str | None = None
    budget: BudgetUse | None = None
    uncounted: bool = False
    exam_attempts: tuple[ExamAttempt, ...] = ()
    exports: tuple[str, ...] = ()
    record: JsonObject = EMPTY

    @property
    def status(self) -> ExitStatus:
        """The exit status (SPEC section 12): 0 only if all answers were graded and good enough.

        A case skipped because of a dependency does not count, as the dependency failed or errored itself. The status is
        not 0 if other cases were skipped, if an exam's row could not be appended, or if cases were only shown and this
        is not allowed. Failed cases that a gate decides are not failures. An empty shard passes.
        """
        cases = self.summary.cases
        if self.interrupted:
            return ExitStatus.INTERRUPTED
        worse = self.summary.against is not None and self.summary.against.verdict == "worse"
        unexplained = (
            self.summary.trials.skipped > self.summary.held_back and not (self.fail_fast and cases.failed) and not worse
        )
        unrecorded = self.problem or any(one.error is not None for one in self.exam_attempts)
        if cases.errored or unexplained or unrecorded:
            return ExitStatus.ERRORED
        if not all(gate.passed for gate in self.summary.gates):
            return ExitStatus.FAILED
        if self.summary.is_empty_shard:
            return ExitStatus.PASSED
        good = cases.passed + (cases.shown if self.allow_unchecked else 0)
        decided = good + self._failed_within_gates
        lacking = cases.total != decided or not decided
        return ExitStatus.FAILED if worse or lacking else ExitStatus.PASSED

    @property
    def _failed_within_gates(self) -> int:
        """Number of failed cases whose verdicts gates replace: all of a suite, or its queries."""
        failed: dict[str, int] = {}
        for gate in self.summary.gates:
            failed[gate.suite] = max(failed.get(gate.suite, 0), gate.failed)
        return sum(failed.values())

    @property
    def unchecked(self) -> str | None:
        """The note about cases that are only shown, or None if every case is checked or this is allowed."""
        shown = self.summary.cases.shown
        if not shown or self.allow_unchecked:
            return None
        were = "1 case was" if shown == 1 else f"{shown:,} cases were"
        return f"{were} shown, not checked; --allow-unchecked accepts this"


def _lost(lines: int, rows: int) -> Iterator[str]:
    """Yield notes about damaged lines in a resumed run's journal, and about rows that no longer belong to it."""
    if lines:
        number = plural(lines, "answer")
        what = f"journal.jsonl: {number} skipped because of a wrong checksum: the file was changed or damaged"
        yield f"{what}; finished trials keep their rows, all others run again"
    if rows:
        why = "cases were edited, removed, configured differently, or depend on one that was"
        yield f"moved {plural(rows, 'outdated row', ',')} to {HISTORY}: {why}"
