"""`agentv eval`, once everything is read: run, keep, sum up."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from agentv.app.planning.answer_sources import Shelves, shelves_of
from agentv.app.planning.preparation import Prepared, caches, max_errors_of, results_of, root_of, workers_of
from agentv.app.planning.resume import PreviousRun, before
from agentv.app.results.finding import find_run
from agentv.app.running.budget import budget_limiter_of, notes_on
from agentv.app.running.exam_attempt import Sat, logs_of, restored_logs, sit
from agentv.app.running.exam_eligibility import why_of_run
from agentv.app.running.outcome import Outcome, changed_exports, cut_by, journal_damage, superseded_rows
from agentv.app.running.run_record import record_of
from agentv.app.running.run_totals import RunTotals
from agentv.app.wiring import Connections, redactor_for
from agentv.engine.calls.recorded_call import call_key
from agentv.engine.conversation import first_request
from agentv.engine.dependency_order import DependencyScheduler, parted
from agentv.engine.plan import without
from agentv.engine.run import Run, RunLimits
from agentv.engine.sequential_samples import SequentialSampler
from agentv.engine.trial import not_run
from agentv.errors import ExitStatus, LoadError, StoreError, UsageError
from agentv.model.run.events import (
    Event,
    RunFinished,
    RunRegrades,
    RunResumed,
    TargetPaused,
    TargetStopped,
    TrialFinished,
    TrialKept,
)
from agentv.model.run.sequential import NOT_DRAWN
from agentv.model.run.trial import Trial, TrialResult
from agentv.model.values.response import Failure
from agentv.model.values.values import JsonObject
from agentv.store.files.directory import INDEX, RUN, SUMMARY, RunDirectory, read_document
from agentv.store.files.private_files import Mark, mark
from agentv.store.journal.journal import Journal
from agentv.store.rows.reading import RowFacts, read_rows
from agentv.store.totals.summary import Planned, take_summary
from agentv.user_code.functions.own_loop import run_on_own_loop
from agentv.user_code.processes.interrupts import acting_on_signals
from agentv.user_code.processes.processes import kill_all

if TYPE_CHECKING:
    from agentv.app.ray.executor import ExecutorFactory
    from agentv.engine.draws import Draws
    from agentv.engine.on_demand import OnDemandScheduler
    from agentv.engine.services import RunContext

GRACE_S = 10.0
"""Seconds that running trials get after the first Ctrl-C."""

HELD = 5000
"""Trials without a row that are held while a run is resumed, so that long files are not read for them again."""

Sink = Callable[[Event], None]
Opened = Callable[[str, Path], None]


def evaluate(prepared: Prepared, sink: Sink, *, opened: Opened | None = None) -> Outcome:
    """Run what was prepared. Every event goes to the sink, from this thread.

    Args:
        prepared: what is to be run.
        sink: gets every event.
        opened: told, before anything is called, the id of the run and where its results go.

    Raises:
        StoreError: the run directory cannot be made, opened or written.
    """
    return run_on_own_loop(evaluate_async(prepared, sink, signals=True, opened=opened))


async def evaluate_async(
    prepared: Prepared,
    sink: Sink,
    *,
    signals: bool = False,
    demand: Callable[[OnDemandScheduler], None] | None = None,
    opened: Opened | None = None,
) -> Outcome:
    """As `evaluate`, in a loop that runs already.

    Args:
        prepared: what is to be run.
        sink: gets every event, from this thread.
        signals: SIGINT and SIGTERM end the run in good order.
        demand: gets, when the run begins, what its trials are asked for with; of the plan only those are run.
        opened: as of `evaluate`.

    Raises:
        StoreError: as `evaluate`.
    """
    async with _elsewhere(prepared) as elsewhere:
        with shelves_of(prepared) as shelves, _checked(shelves, elsewhere), _directory(prepared) as directory:
            if opened is not None:
                opened(directory.run_id, directory.path)
            evaluation = _Evaluation(prepared, directory, sink, shelves)
            if demand is not None:
                from agentv.engine.on_demand import (
                    OnDemandScheduler,  # only a test runner asks for one trial after the other
                )

                evaluation.asked = OnDemandScheduler(prepared.plan, evaluation.firsts)
                demand(evaluation.asked)
            try:
                return await evaluation.run(signals=signals, elsewhere=elsewhere)
            except (StoreError, LoadError) as error:
                if evaluation.begun:
                    error.status = ExitStatus.ERRORED  # trials ran; what they gave, or a case to come, cannot be used
                raise


def _checked(shelves: Shelves, elsewhere: ExecutorFactory | None) -> AbstractContextManager[None]:
    """Nothing, once it is clear that workers can do without what is here.

    Raises:
        UsageError: code that grades is answered for by a cassette, which workers cannot see.
    """
    if elsewhere is not None and shelves.code is not None:
        hint = "run it without --executor ray: a replay makes no calls"
        raise UsageError("a cassette with grades (--record-code) cannot be used with --executor ray", hint)
    return nullcontext()


def _elsewhere(prepared: Prepared) -> AbstractAsyncContextManager[ExecutorFactory | None]:
    """What runs the trials on other machines; None: they run in this process."""
    if prepared.settings.executor == "local":
        return nullcontext()
    from agentv.app.ray.executor import pool_of

    return pool_of(prepared)


class _Evaluation:
    """One run, from an open directory to its outcome."""

    def __init__(self, prepared: Prepared, directory: RunDirectory, sink: Sink, shelves: Shelves) -> None:
        self._prepared = prepared
        self._directory = directory
        self._sink = sink
        self._shelves = shelves
        self._root = root_of(prepared.suites)
        self._retired = 0
        self._before = before(directory.path) if prepared.settings.goes_on_with is not None else PreviousRun()
        self._budget_limiter = budget_limiter_of(prepared, directory.path)
        self._others: JsonObject = {}
        self.series = SequentialSampler()
        self._totals = RunTotals(prepared)
        self._marks: dict[str, Mark | None] = {}
        self._others_to_do: list[Trial] | None = None
        self._draws = prepared.draws
        self.begun = False
        self.asked: OnDemandScheduler | None = None

    async def run(self, *, signals: bool, elsewhere: ExecutorFactory | None) -> Outcome:
        """Run the trials that have no row yet."""
        prepared, directory = self._prepared, self._directory
        with Journal(directory, self._root, self._totals.add_row, before_ms=self._before.duration_ms) as journal:
            goes_on = prepared.settings.goes_on_with is not None
            kept = self._kept(journal) if goes_on else {}
            if goes_on:
                self._sink(self._resumed(kept, journal))
            self._tell_regraded(journal, kept)
            self._totals.add_replaced(self._replaced())
            seed = None if self._draws is None else self._draws.seed
            journal.begin(record_of(prepared, directory.run_id, self._before, seed))
            logs = logs_of(prepared)
            connections = Connections(workers_of(prepared), self._budget_limiter)
            answers = self._shelves.answers(journal)
            world = connections.world(answers)
            counted = prepared.chosen is None and not prepared.plan.ends_early and self._draws is None
            run = Run(
                directory.run_id,
                self._trials(kept),
                prepared.counts[1] - len(kept) if counted else sum(1 for _ in self._to_do(kept)),
                workers=workers_of(prepared),
                world=world if elsewhere is None else replace(world, elsewhere=elsewhere(world, answers)),
                limits=RunLimits(max_errors_of(prepared), prepared.settings.fail_fast, self.series, self._decides),
            )
            if elsewhere is None:
                await self._load_code(connections)
            self.begun = True
            try:
                with _signals(run) if signals else nullcontext():
                    finished = await self._consume(run, journal)
                if self._draws is not None and self._draws.decided:
                    self._tell_not_drawn(self._draws, journal, world)
            finally:
                await connections.close()
                if signals:  # the process is this run's alone; elsewhere it would kill what another run has started
                    kill_all()
            notes = (
                *journal.mended,
                *journal_damage(journal.damaged),
                *superseded_rows(self._retired),
                *self._totals.unpriced.notes(),
                *self._shelves.notes(),
                *connections.notes(),
            )
            # before anything is made of what is on the disk, and once more when all of it is there
            touched = (*journal.restored(), *self._shelves.restored(), *restored_logs(logs, directory.run_id))
            outcome = self._outcome(finished, journal, notes)
            touched = (*touched, *journal.restored(), *changed_exports(self._marks))
            return replace(outcome, touched=tuple(dict.fromkeys(touched)))

    async def _load_code(self, connections: Connections) -> None:
        """Import what grades before any target is asked; not what a cassette stands for."""
        if self._shelves.code is None or self._shelves.code.asks:
            await connections.imported.load(self._prepared.suites, connections.executor)

    def _kept(self, journal: Journal) -> dict[str, TrialResult | None]:
        """The keys of the planned trials that stand; their results are shown with those to come.

        The results themselves are held only where trials to come hang on them.
        """
        from agentv.store.rows.results import read_results  # only a run that goes on has results to read

        journal.recall()
        if self._draws is not None:
            journal.draw_again()
        self._others = take_summary(self._directory)
        rerun = self._prepared.settings.rerun
        if rerun is not None:
            chosen = self._prepared.chosen
            planned = {trial.key for trial in self._prepared.plan} if chosen is None else chosen
            journal.begin_anew(lambda row: row.status == rerun and row.key in planned)
        linked = any(suite.links for suite in self._prepared.suites)
        keys, self._others_to_do = parted(self._prepared.plan, set(journal.finished()), HELD)
        kept: dict[str, TrialResult | None] = dict.fromkeys(keys)
        self._retired = journal.retire(kept)
        for row in read_rows(self._directory.path / INDEX):
            self._totals.add_row(row)
        for result in read_results(self._directory.path / INDEX, self._root):
            if result.trial.key in kept:
                self._sink(TrialKept(result))
                self.series.keep(result)
                if self._draws is not None:
                    self._draws.add(result)
                if linked:
                    kept[result.trial.key] = result
        return kept

    @property
    def _decides(self) -> Callable[[TrialResult], bool] | None:
        return None if self._draws is None else self._draws.add

    def _tell_not_drawn(self, draws: Draws, journal: Journal, world: RunContext) -> None:
        """Give the trials that were not needed rows that say so: a reader must not take the run for a whole one."""
        rows = set(journal.finished())
        why = Failure(NOT_DRAWN, f"not drawn: the comparison with {draws.base} was already decided")
        for trial in draws.trials:
            if trial.key not in rows:
                result = not_run(trial, why, world)
                journal.finish(result)
                self._sink(TrialFinished(result))

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
        planned: Iterable[Trial] = self._prepared.plan if self._draws is None else self._draws.to_come
        held = self._others_to_do if self._draws is None else None
        to_do = self.series.open(without(planned, kept) if held is None else held)
        return to_do if chosen is None else (trial for trial in to_do if trial.key in chosen)

    def firsts(self, trials: Iterable[Trial]) -> Iterable[Trial]:
        """Of trials that were asked for, those that may start; code that a cassette stands for does not run."""
        code = self._shelves.code
        return self.series.firsts(trials if code is None else code.within(trials))

    def _trials(self, kept: Mapping[str, TrialResult | None]) -> Iterable[Trial] | DependencyScheduler:
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
        order = DependencyScheduler(plan, to_do)
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
                shown = journal.finish(event.result)
                self._totals.add_result(event.result)
                if shown is not event.result:
                    event = TrialFinished(shown, event.result.trial)  # noqa: PLW2901  # what is shown holds no secret
            elif isinstance(event, TargetStopped | TargetPaused):
                event = type(event)(event.name, redactor.redact(event.reason))  # noqa: PLW2901  # as above
            elif isinstance(event, RunFinished):
                last = event
            self._sink(event)
        assert last is not None  # noqa: S101  # a run's last event
        return last

    def _outcome(self, finished: RunFinished, journal: Journal, mended: tuple[str, ...]) -> Outcome:
        directory, prepared = self._directory, self._prepared
        cases, trials = prepared.counts if self.asked is None else self.asked.counts
        summary = self._totals.counts.summary(
            run_id=directory.run_id,
            planned=Planned(cases=cases, trials=trials),
            duration_ms=self._before.duration_ms + finished.duration_ms,
            processes=self._before.processes + 1,
        )
        use = self._budget_limiter.use() if self._budget_limiter is not None else None
        summary = replace(summary, budget=use) if use is not None else summary
        if self._draws is not None:
            from agentv.app.against.drawing import comparison_of

            summary = replace(summary, against=comparison_of(self._draws))
        if (cut := cut_by(finished, summary, self._draws)) is not None:
            summary = summary.cut_short(cut)
        journal.sum_up({**summary.as_json(), **self._others})
        interrupted = finished.interrupted
        sittings: tuple[Sat, ...] = ()
        if any(suite.exam is not None for suite in prepared.suites):
            why = tuple(
                why_of_run(prepared.settings, self._before.settings, interrupted=interrupted, cached=caches(prepared))
            )
            sittings = sit(prepared, self._totals.exam_rows.values(), run_id=directory.run_id, why=why)
        told, failed = self._shelves.ended(
            interrupted=interrupted, cut=finished.unstarted > 0, errored=summary.trials.errored
        )
        exports, faults = self._exported() if prepared.settings.exports else ((), ())
        mended = (*mended, *notes_on(self._budget_limiter, summary))
        return Outcome(
            directory.run_id,
            directory.path,
            summary,
            interrupted,
            notes=(*mended, told) if told and not failed else mended,
            held_back=self._totals.held_back,
            fail_fast=prepared.settings.fail_fast,
            problem="; ".join((*([told] if failed else []), *faults)) or None,
            budget=use,
            uncounted=self._budget_limiter is not None and self._budget_limiter.uncounted,
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
        written, faults = write_exports(run, self._prepared.settings.exports)
        self._marks = {one: mark(Path(one)) for one in written}
        return written, faults

    def _replaced(self) -> Iterable[RowFacts]:
        """The rows in whose place newer ones stand: those of a run that was resumed."""
        if self._prepared.settings.goes_on_with is None:
            return ()
        from agentv.store.rows.history import replaced_rows

        return replaced_rows(self._directory.path)


@contextmanager
def _directory(prepared: Prepared) -> Iterator[RunDirectory]:
    """The run's directory: a new one, or that of the run to go on with."""
    settings = prepared.settings
    redactor = redactor_for(prepared.suites)
    going_on = settings.goes_on_with
    if going_on is not None:
        opened = RunDirectory.open(find_run(going_on, results_of(prepared.suites), settings.out), redactor=redactor)
    else:
        out = Path(settings.out) if settings.out else None
        place = results_of(prepared.suites, anew=True)
        opened = RunDirectory.create(place, datetime.now(UTC), out=out, redactor=redactor)
    with opened:
        yield opened


@contextmanager
def _signals(run: Run) -> Iterator[None]:
    """The first signal lets running trials finish for a while; the second, and SIGQUIT, gives them up."""
    loop = asyncio.get_running_loop()
    asked = 0

    def on_signal(number: int) -> None:
        nonlocal asked
        asked += 1
        if asked == 1 and number != signal.SIGQUIT:
            run.stop()
            loop.call_later(GRACE_S, run.abort)
        else:
            run.abort()

    with acting_on_signals(lambda number: loop.call_soon_threadsafe(on_signal, number)):
        yield
