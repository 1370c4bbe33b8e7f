"""`agentv eval`, once everything is read: run, keep, sum up."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from agentv.app.budget import notes_on, purse_of
from agentv.app.going_on import Before, before
from agentv.app.partial import why_of_run
from agentv.app.preparation import Prepared, caches, max_errors_of, root_of, workers_of
from agentv.app.results.finding import find_run
from agentv.app.run_record import record_of
from agentv.app.shelves import Shelves, shelves_of
from agentv.app.sitting import Sat, sit
from agentv.app.unpriced import Unpriced
from agentv.app.wiring import Connections, redactor_for
from agentv.engine.conversation import first_request
from agentv.engine.kept import call_key
from agentv.engine.order import Order, standing
from agentv.engine.plan import without
from agentv.engine.run import Run, RunLimits
from agentv.engine.series import Series
from agentv.engine.stops import is_stopped
from agentv.errors import ExitStatus, StoreError, UsageError
from agentv.foreign.processes import kill_all
from agentv.model.budget import BudgetUse
from agentv.model.events import Event, RunFinished, RunRegrades, RunResumed, TargetStopped, TrialFinished, TrialKept
from agentv.model.summary import Summary
from agentv.model.trial import Trial, TrialResult
from agentv.model.values import JsonObject
from agentv.store.directory import HISTORY, INDEX, RUN, SUMMARY, RunDirectory, read_document
from agentv.store.journal import Journal
from agentv.store.reading import RowFacts, read_rows
from agentv.store.summary import Planned, summarize, take_summary, write_summary

if TYPE_CHECKING:
    from agentv.app.cluster.running import Elsewhere
    from agentv.engine.demand import Demand

GRACE_S = 10.0
"""Seconds that running trials get after the first Ctrl-C."""

Sink = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to.

    Attributes:
        directory: where the results are.
        interrupted: Ctrl-C or a signal ended it early.
        notes: what people should know of the directory, such as a torn line that was cut.
        held_back: cases that were not run because of what became of those that they hang on.
        fail_fast: the run was to stop at the first trial that does not pass, so that cases not run are no surprise.
        problem: what could not be done beside the run, such as a cassette or an export that is not written.
        budget: what became of it; None: there was none.
        uncounted: nobody knows what the calls cost, so that no larger budget in dollars would help.
        sittings: of the exams among the suites, each with its row in the log of its prompt.
        exports: the files that the run was written to.
    """

    run_id: str
    directory: Path
    summary: Summary
    interrupted: bool
    notes: tuple[str, ...] = ()
    held_back: int = 0
    fail_fast: bool = False
    problem: str | None = None
    budget: BudgetUse | None = None
    uncounted: bool = False
    sittings: tuple[Sat, ...] = ()
    exports: tuple[str, ...] = ()

    @property
    def status(self) -> ExitStatus:
        """The exit status (SPEC section 12). Only judged, good enough answers make it 0.

        A case that was held back adds nothing to what the one says that it hangs on: that one failed, or errored. An
        exam whose row could not be appended leaves no evidence, which is no success.
        """
        cases = self.summary.cases
        if self.interrupted:
            return ExitStatus.INTERRUPTED
        unexplained = cases.skipped > self.held_back and not (self.fail_fast and cases.failed)
        unrecorded = self.problem or any(one.fault is not None for one in self.sittings)
        if cases.errored or unexplained or unrecorded:
            return ExitStatus.ERRORED
        return ExitStatus.FAILED if cases.failed or cases.skipped or not cases.passed else ExitStatus.PASSED


def evaluate(prepared: Prepared, sink: Sink) -> Outcome:
    """Run what was prepared. Every event goes to the sink, from this thread.

    Raises:
        StoreError: the run directory cannot be made, opened or written.
    """
    return asyncio.run(evaluate_async(prepared, sink, signals=True))


async def evaluate_async(
    prepared: Prepared, sink: Sink, *, signals: bool = False, demand: Callable[[Demand], None] | None = None
) -> Outcome:
    """As `evaluate`, in a loop that runs already.

    Args:
        prepared: what is to be run.
        sink: gets every event, from this thread.
        signals: SIGINT and SIGTERM end the run in good order.
        demand: gets, when the run begins, what its trials are asked for with; of the plan only those are run.

    Raises:
        StoreError: as `evaluate`.
    """
    async with _elsewhere(prepared) as elsewhere:
        with shelves_of(prepared) as shelves, _checked(shelves, elsewhere), _directory(prepared) as directory:
            evaluation = _Evaluation(prepared, directory, sink, shelves)
            if demand is not None:
                from agentv.engine.demand import Demand  # only a test runner asks for one trial after the other

                evaluation.asked = Demand(prepared.plan, evaluation.firsts)
                demand(evaluation.asked)
            try:
                return await evaluation.run(signals=signals, elsewhere=elsewhere)
            except StoreError as error:
                if evaluation.begun:
                    error.status = ExitStatus.ERRORED  # trials ran, and what they gave could not be kept
                raise


def _checked(shelves: Shelves, elsewhere: Elsewhere | None) -> AbstractContextManager[None]:
    """Nothing, once it is clear that workers can do without what is here.

    Raises:
        UsageError: code that grades is answered for by a cassette, which workers cannot see.
    """
    if elsewhere is not None and shelves.code is not None:
        hint = "run it without --executor ray: a cassette asks nobody"
        raise UsageError("a cassette that holds what code says (--record-code) and --executor ray", hint)
    return nullcontext()


def _elsewhere(prepared: Prepared) -> AbstractAsyncContextManager[Elsewhere | None]:
    """What runs the trials on other machines; None: they run in this process."""
    if prepared.settings.executor == "local":
        return nullcontext()
    from agentv.app.cluster.running import crew_of

    return crew_of(prepared)


class _Evaluation:
    """One run, from an open directory to its outcome."""

    def __init__(self, prepared: Prepared, directory: RunDirectory, sink: Sink, shelves: Shelves) -> None:
        self._prepared = prepared
        self._directory = directory
        self._sink = sink
        self._shelves = shelves
        self._root = root_of(prepared.suites)
        self._held_back: set[tuple[int, str, str, str | None]] = set()
        self._retired = 0
        self._unpriced = Unpriced()
        self._before = before(directory.path) if prepared.settings.goes_on_with is not None else Before()
        self._purse = purse_of(prepared, directory.path)
        self._others: JsonObject = {}
        self.series = Series()
        self.begun = False
        self.asked: Demand | None = None

    async def run(self, *, signals: bool, elsewhere: Elsewhere | None) -> Outcome:
        """Run the trials that have no row yet."""
        prepared, directory = self._prepared, self._directory
        with Journal(directory, self._root) as journal:
            goes_on = prepared.settings.goes_on_with is not None
            kept = self._kept(journal) if goes_on else {}
            if goes_on:
                self._sink(self._resumed(kept, journal))
            self._tell_regraded(journal, kept)
            directory.write(RUN, record_of(prepared, directory.run_id, self._before))
            connections = Connections(workers_of(prepared), self._purse)
            answers = self._shelves.answers(journal)
            world = connections.world(answers)
            counted = prepared.chosen is None and not prepared.plan.ends_early
            run = Run(
                directory.run_id,
                self._trials(kept),
                prepared.counts[1] - len(kept) if counted else sum(1 for _ in self._to_do(kept)),
                workers=workers_of(prepared),
                world=world if elsewhere is None else replace(world, elsewhere=elsewhere(world, answers)),
                limits=RunLimits(max_errors_of(prepared), prepared.settings.fail_fast, self.series),
            )
            self.begun = True
            try:
                with _signals(run) if signals else nullcontext():
                    finished = await self._consume(run, journal)
            finally:
                await connections.close()
                if signals:  # the process is this run's alone; elsewhere it would kill what another run has started
                    kill_all()
        return self._outcome(
            finished, (*journal.mended, *_damage(journal.damaged), *_others(self._retired), *self._unpriced.notes())
        )

    def _kept(self, journal: Journal) -> dict[str, TrialResult | None]:
        """The keys of the planned trials that stand; their results are shown with those to come.

        The results themselves are held only where trials to come hang on them.
        """
        from agentv.store.results import read_results  # only a run that goes on has results to read

        journal.recall()
        self._others = take_summary(self._directory)
        rerun = self._prepared.settings.rerun
        if rerun is not None:
            chosen = self._prepared.chosen
            planned = {trial.key for trial in self._prepared.plan} if chosen is None else chosen
            journal.begin_anew(lambda row: row.status == rerun and row.key in planned)
        linked = any(suite.links for suite in self._prepared.suites)
        kept: dict[str, TrialResult | None] = dict.fromkeys(standing(self._prepared.plan, set(journal.finished())))
        self._retired = journal.retire(kept)
        for result in read_results(self._directory.path / INDEX, self._root):
            if result.trial.key in kept:
                self._sink(TrialKept(result))
                self.series.keep(result)
                if linked:
                    kept[result.trial.key] = result
        return kept

    def _tell_regraded(self, journal: Journal, kept: Mapping[str, object]) -> None:
        """Say of how many trials the run to regrade holds the answer."""
        earlier = self._shelves.earlier
        if earlier is None:
            return
        keys = (call_key(one.target, first_request(one)) for one in self._to_do(kept))
        there = [journal.holds(key) or key in earlier for key in keys]
        self._sink(RunRegrades(earlier.run_id, sum(there), len(there) - sum(there)))

    def _resumed(self, kept: Mapping[str, object], journal: Journal) -> RunResumed:
        """How many trials stand, and for how many of the others an answer is there already."""
        held = [journal.holds(call_key(trial.target, first_request(trial))) for trial in self._to_do(kept)]
        return RunResumed(len(kept), sum(held), len(held) - sum(held), self._prepared.plan.ends_early)

    def _to_do(self, kept: Mapping[str, object]) -> Iterator[Trial]:
        """The trials that do not stand, and are chosen."""
        chosen = self._prepared.chosen
        to_do = self.series.open(without(self._prepared.plan, kept))
        return to_do if chosen is None else (trial for trial in to_do if trial.key in chosen)

    def firsts(self, trials: Iterable[Trial]) -> Iterable[Trial]:
        """Of trials that were asked for, those that may start; code that a cassette stands for does not run."""
        code = self._shelves.code
        return self.series.firsts(trials if code is None else code.within(trials))

    def _trials(self, kept: Mapping[str, TrialResult | None]) -> Iterable[Trial] | Order:
        """What is to do, in order where cases hang on each other."""
        plan = self._prepared.plan
        if self.asked is not None:
            return self.asked
        to_do = self._to_do(kept)
        if self._shelves.code is not None:
            to_do = self._shelves.code.within(to_do)
        if plan.ends_early:
            to_do = self.series.firsts(to_do)
        if not any(suite.links for suite in self._prepared.suites):
            return to_do
        order = Order(plan, to_do)
        for trial in plan if kept else ():
            result = kept.get(trial.key)
            if result is not None:
                order.keep(replace(result, trial=trial))
        return order

    async def _consume(self, run: Run, journal: Journal) -> RunFinished:
        """Keep every row, then show it: the order that a crash cannot turn into a lie."""
        redactor = self._directory.redactor
        last: RunFinished | None = None
        async for event in run.events():
            if isinstance(event, TrialFinished):
                journal.finish(event.result)
                self._unpriced.add(event.result)
                if event.result.status == "skipped" and not is_stopped(event.result.error):
                    trial = event.result.trial
                    self._held_back.add((id(trial.suite), trial.target.name, trial.case.id, trial.case.prompt_id))
                if redactor:
                    event = TrialFinished(redactor.redact_result(event.result))  # noqa: PLW2901  # what is shown holds no secret
            elif isinstance(event, TargetStopped):
                event = TargetStopped(event.name, redactor.redact(event.reason))  # noqa: PLW2901  # as above
            elif isinstance(event, RunFinished):
                last = event
            self._sink(event)
        assert last is not None  # noqa: S101  # a run's last event
        return last

    def _outcome(self, finished: RunFinished, mended: tuple[str, ...]) -> Outcome:
        directory, prepared = self._directory, self._prepared
        cases, trials = prepared.counts if self.asked is None else self.asked.counts
        summary = summarize(
            read_rows(directory.path / INDEX),
            run_id=directory.run_id,
            planned=Planned(cases=cases, trials=trials),
            duration_ms=self._before.duration_ms + finished.duration_ms,
            processes=self._before.processes + 1,
            replaced=self._replaced(),
        )
        use = self._purse.use() if self._purse is not None else None
        summary = replace(summary, budget=use) if use is not None else summary
        write_summary(directory, summary, self._others)
        interrupted, held_back = finished.interrupted, len(self._held_back)
        sittings: tuple[Sat, ...] = ()
        if any(suite.exam is not None for suite in prepared.suites):
            rows = read_rows(directory.path / INDEX)
            why = tuple(
                why_of_run(prepared.settings, self._before.settings, interrupted=interrupted, cached=caches(prepared))
            )
            sittings = sit(prepared, rows, run_id=directory.run_id, why=why)
        told, failed = self._shelves.ended(
            interrupted=interrupted, cut=finished.unstarted > 0, errored=summary.trials.errored
        )
        exports, faults = self._exported() if prepared.settings.exports else ((), ())
        mended = (*mended, *notes_on(self._purse, summary))
        return Outcome(
            directory.run_id,
            directory.path,
            summary,
            interrupted,
            notes=(*mended, told) if told and not failed else mended,
            held_back=held_back,
            fail_fast=prepared.settings.fail_fast,
            problem="; ".join((*([told] if failed else []), *faults)) or None,
            budget=use,
            uncounted=self._purse is not None and self._purse.uncounted,
            sittings=sittings,
            exports=exports,
        )

    def _exported(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The files that the run was written to, and why others could not be."""
        from agentv.app.exports import write_exports
        from agentv.app.results.stored import StoredRun

        path = self._directory.path
        record, summary = read_document(path / RUN), read_document(path / SUMMARY)
        run = StoredRun(path, self._root, self._directory.run_id, record, summary)
        return write_exports(run, self._prepared.settings.exports)

    def _replaced(self) -> Iterable[RowFacts]:
        """The rows in whose place newer ones stand: those of a run that was gone on with."""
        if self._prepared.settings.goes_on_with is None:
            return ()
        from agentv.store.history import replaced_rows

        return replaced_rows(self._directory.path)


def _damage(lines: int) -> Iterator[str]:
    """What a resumed run found in its journal."""
    if lines:
        number = "1 answer" if lines == 1 else f"{lines} answers"
        what = f"journal.jsonl: {number} passed over, for the checksum does not agree: the file was changed or damaged"
        yield f"{what}; trials that had finished keep their rows, all others are asked again"


def _others(rows: int) -> Iterator[str]:
    """Rows of a resumed run that are no part of it any more."""
    if rows:
        number = "1 row that does" if rows == 1 else f"{rows:,} rows that do"
        what = "of what was edited, removed or set otherwise since, or hangs on it"
        yield f"moved {number} not count any more to {HISTORY}: {what}"


@contextmanager
def _directory(prepared: Prepared) -> Iterator[RunDirectory]:
    """The run's directory: a new one, or that of the run to go on with."""
    settings = prepared.settings
    root = Path(root_of(prepared.suites))
    redactor = redactor_for(prepared.suites)
    going_on = settings.goes_on_with
    if going_on is not None:
        opened = RunDirectory.open(find_run(going_on, root, settings.out), redactor=redactor)
    else:
        out = Path(settings.out) if settings.out else None
        opened = RunDirectory.create(root, datetime.now(UTC), out=out, redactor=redactor)
    with opened:
        yield opened


@contextmanager
def _signals(run: Run) -> Iterator[None]:
    """SIGINT and SIGTERM: the first lets running trials finish for a while, the second gives them up."""
    loop = asyncio.get_running_loop()
    asked = 0

    def on_signal() -> None:
        nonlocal asked
        asked += 1
        if asked == 1:
            run.stop()
            loop.call_later(GRACE_S, run.abort)
        else:
            run.abort()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
