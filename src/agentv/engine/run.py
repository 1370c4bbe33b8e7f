"""Many trials at once: a bounded pool of workers that pull from an iterator, and the stream of what they did."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from agentv.engine.calls.circuit_breaker import is_interrupted, is_stopped, is_unaffordable
from agentv.engine.dependency_order import DependencyScheduler
from agentv.engine.executor import LocalTrials, TrialExecutor
from agentv.engine.queries import Queries
from agentv.engine.sequential_samples import SequentialSampler
from agentv.engine.services import RunContext
from agentv.engine.trial import Answered, not_run
from agentv.model.run.events import (
    Event,
    RunFinished,
    RunInterrupted,
    RunStarted,
    StopReason,
    TargetPaused,
    TargetStopped,
    TrialFinished,
)
from agentv.model.run.trial import Trial, TrialResult
from agentv.model.values.response import CallFailure

TURN = 16
"""Trials that a worker may finish without a wait before it lets the others have a turn."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """When to start no more trials.

    Attributes:
        max_errors: after so many that errored; None: never.
        fail_fast: after the first that failed or errored.
        series: knows when a case needs no more samples; None: every trial is run.
        decides: takes in each result, and says when no more cases are needed; None: all of them are.
    """

    max_errors: int | None = None
    fail_fast: bool = False
    series: SequentialSampler | None = None
    decides: Callable[[TrialResult], bool] | None = None


NO_LIMITS = RunLimits()


class Run:
    """One run of many trials. `events` drives it; `stop` and `abort` end it early, from the same thread.

    Trials in an `DependencyScheduler` may have to wait for each other; all others start as soon as a worker is free.
    """

    def __init__(
        self,
        run_id: str,
        trials: Iterable[Trial] | DependencyScheduler,
        total: int,
        *,
        workers: int,
        world: RunContext,
        limits: RunLimits = NO_LIMITS,
    ) -> None:
        self.run_id = run_id
        self._series = limits.series if limits.series is not None else SequentialSampler()
        self._order = trials if isinstance(trials, DependencyScheduler) else None
        if self._order is not None:
            self._order.noticed = partial(self._note_skipped, self._order)
        self._trials: Iterator[Trial] = iter(()) if isinstance(trials, DependencyScheduler) else iter(trials)
        self._total = total
        self._workers = workers
        self._world = world
        self._executor: TrialExecutor = world.elsewhere or LocalTrials(world)
        self._ends_early = limits
        self._limits: dict[str, asyncio.Semaphore] = {}
        self._queries = Queries()
        self._finished: deque[TrialResult] = deque()
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._stopped: StopReason | None = None
        self._announced = False
        self._running = 0
        self._errors = 0
        self._done = 0

    def stop(self, reason: StopReason = "interrupt") -> None:
        """Start no more trials. Those that run go on; interrupted, those end that only wait to ask again."""
        self._stopped = self._stopped or reason
        if reason == "interrupt":
            self._executor.interrupt()
        self._wake.set()

    def abort(self) -> None:
        """Start no more trials and give up those that run: they leave no row."""
        self.stop()
        for task in self._tasks:
            task.cancel()

    async def events(self) -> AsyncIterator[Event]:
        """All events, in order. The run continues only while this is iterated."""
        started = self._world.clock.monotonic()
        workers = max(1, min(self._workers, self._total))
        yield RunStarted(self.run_id, self._total, workers)
        self._tasks = [asyncio.create_task(self._work()) for _ in range(workers)]
        self._world.throttle.noticed = self._wake.set
        for task in self._tasks:
            task.add_done_callback(lambda _task: self._wake.set())
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                over = all(task.done() for task in self._tasks)
                for event in self._happened():
                    yield event
                if over and not self._finished:
                    break
            self._raise_bugs()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        duration = (self._world.clock.monotonic() - started) * 1000
        interrupted = self._stopped == "interrupt"
        unstarted = self._total - self._done - self._series.spared
        yield RunFinished(self.run_id, self._done, unstarted, interrupted, duration, self._stopped)

    def _happened(self) -> Iterator[Event]:
        stopped = self._world.throttle.stopped
        paused = self._world.throttle.paused
        while paused:
            yield TargetPaused(*paused.popleft())
        while stopped:
            name, failure = stopped.popleft()
            yield TargetStopped(name, failure.message)
        while self._finished:
            result = self._finished.popleft()
            self._done += 1
            yield TrialFinished(result)
        if self._stopped and not self._announced:
            self._announced = True
            budget_limiter = self._world.throttle.budget_limiter
            why = budget_limiter.refused if budget_limiter is not None and self._stopped == "budget" else None
            yield RunInterrupted(self._running, self._stopped, why or "")

    def _raise_bugs(self) -> None:
        for task in self._tasks:
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error

    async def _work(self) -> None:
        if self._order is not None:
            await self._work_in_order(self._order)
            return
        for turns, trial in enumerate(self._trials, 1):
            sample: Trial | None = trial
            while sample is not None:
                if self._is_stopped():
                    return
                sample = self._noted(await self._ran(sample))
            if turns % TURN == 0:
                await asyncio.sleep(0)
            if self._is_stopped():
                return

    async def _work_in_order(self, order: DependencyScheduler) -> None:
        """As `_work`, where some trials wait for others."""
        try:
            sample: Trial | None = None
            while (trial := sample or await order.take()) is not None and not self._is_stopped():
                results = await self._ran(trial)
                if not results:
                    break
                sample = self._noted(results)
                for result in results:
                    order.finish(result)
                if sample is not None:
                    order.also()
                self._note_skipped(order)
                await asyncio.sleep(0)
        finally:
            if self._is_stopped() or sys.exception() is not None:
                order.close()  # whoever waits for what this worker did not finish waits in vain
        self._note_skipped(order)

    def _noted(self, results: Iterable[TrialResult]) -> Trial | None:
        """Take in results; the sample of the same case that comes next, where samples end early and it is needed."""
        following: Trial | None = None
        for result in results:
            if result.trial.alpha is None:
                self._note(result)
            else:
                told, following = self._series.after(result)
                self._note(told)
        return following

    def _note_skipped(self, order: DependencyScheduler) -> None:
        while order.skipped:
            self._noted((not_run(*order.skipped.popleft(), self._world),))

    def _is_stopped(self) -> bool:
        return self._stopped is not None

    async def _ran(self, trial: Trial) -> Sequence[TrialResult]:
        """The results of a trial and of those that it is compared with; empty if interrupted."""
        if trial.case.asks_judge or self._queries.any:
            async with self._queries.turn(trial):
                return () if self._is_stopped() else await self._ran_now(trial)
        return await self._ran_now(trial)

    async def _ran_now(self, trial: Trial) -> Sequence[TrialResult]:
        if trial.rivals:
            return await self._ran_together(trial)
        result = await self._ran_alone(trial)
        return () if result is None else (result,)

    async def _ran_together(self, first: Trial) -> Sequence[TrialResult]:
        """What became of trials whose answers are compared. An interrupted one takes the others along."""
        more = len(first.rivals) - 1
        trials = [first, *(islice(self._trials, more) if self._order is None else self._order.rivals(more))]
        answered: list[Answered | TrialResult] = []
        self._running += len(trials)
        try:
            for trial in trials:
                one = None if self._is_stopped() and answered else await self._answered(trial)
                if one is None:
                    return ()
                answered.append(one)
            results = await self._executor.compare(answered)
        finally:
            self._running -= len(trials)
        settled = [self._settled(result.trial, result) for result in results]
        return [result for result in settled if result is not None] if None not in settled else ()

    async def _answered(self, trial: Trial) -> Answered | TrialResult | None:
        world = self._world
        why = world.throttle.stops.why_not(trial) if world.throttle.stops.any else None
        if why is not None:
            return not_run(trial, why, world)
        async with self._limit(trial):
            answered = await self._executor.answer(trial)
        return self._settled(trial, answered) if isinstance(answered, TrialResult) else answered

    async def _ran_alone(self, trial: Trial) -> TrialResult | None:
        """The result of a trial; None if interrupted, so that it counts as not started."""
        world = self._world
        why = world.throttle.stops.why_not(trial) if world.throttle.stops.any else None
        if why is not None:
            return not_run(trial, why, world)
        self._running += 1
        try:
            result = await self._limited(trial)
        finally:
            self._running -= 1
        return self._settled(trial, result)

    def _settled(self, trial: Trial, result: TrialResult) -> TrialResult | None:
        """The result as it counts: a call that could not be made is none; None where the trial was broken off."""
        world, error = self._world, result.error
        if error is None:
            return result
        if is_interrupted(error):
            return None
        if is_unaffordable(error):
            self.stop("budget")  # it leaves no row either: a run that resumes a larger budget takes it up again
            return None
        why = world.throttle.stops.why_not(trial)
        if is_stopped(error):
            return not_run(trial, why or error, world)
        stopping = why is not None and error.code.startswith("judge-")
        return replace(result, error=CallFailure(error.code, error.message, stops=True)) if stopping else result

    async def _limited(self, trial: Trial) -> TrialResult:
        if trial.target.workers is None:
            return await self._executor.run(trial)
        async with self._limit(trial):
            return await self._executor.run(trial)

    def _limit(self, trial: Trial) -> AbstractAsyncContextManager[None]:
        """One of the calls that the trial's target may get at once."""
        at_once = trial.target.workers
        if at_once is None:
            return nullcontext()
        return self._limits.setdefault(trial.target.name, asyncio.Semaphore(at_once))

    def _note(self, result: TrialResult) -> None:
        self._finished.append(result)
        self._wake.set()
        ends = self._ends_early
        if ends.fail_fast and result.status in ("failed", "errored"):
            self.stop("fail-fast")
        if ends.decides is not None and ends.decides(result):
            self.stop("decided")
        if result.status == "errored":
            self._errors += 1
            if ends.max_errors is not None and self._errors >= ends.max_errors:
                self.stop("max-errors")
