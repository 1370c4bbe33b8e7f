"""Workers of a run: each takes trials from the queue, runs those that may begin, and hands in their results."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from itertools import count, islice
from typing import Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.engine.calls.retry_policy import is_interrupted, is_stopped, is_unaffordable
from agentv.engine.executor import TrialExecutor
from agentv.engine.sequential_samples import SequentialSampler
from agentv.engine.trial import AnsweredTrial, RunContext, not_run
from agentv.model.run.events import StopReason
from agentv.model.run.trial import Trial, TrialResult
from agentv.model.values.response import CallFailure, Failure


class RunLimits(Struct, frozen=True):
    """Conditions for starting no more trials.

    Attributes:
        max_errors: number of errored trials at which to stop; None: no limit.
        fail_fast: stop after the first trial that failed or errored.
        decided: receives each result and returns whether no more cases are needed; None: all are needed.
    """

    max_errors: int | None = None
    fail_fast: bool = False
    decided: Callable[[TrialResult], bool] | None = None


NO_LIMITS = RunLimits()


class RunState(Struct):
    """State of a run. Used from one event loop.

    Attributes:
        limits: limits of the run.
        finished: results that have not been reported yet.
        begun: the running trials, each with the time at which it began.
        stopped: why no more trials start; None as long as they may.
        changed: set when there is something to report.
    """

    limits: RunLimits = NO_LIMITS
    finished: deque[TrialResult] = field(default_factory=deque)
    begun: dict[int, tuple[Trial, float]] = {}
    _places: count[int] = field(default_factory=count)
    stopped: StopReason | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    _errors: int = 0

    def begin(self, trials: Iterable[Trial], now: float) -> Collection[int]:
        """Count trials as running; return the numbers to pass to `end`."""
        places = {next(self._places): (trial, now) for trial in trials}
        self.begun |= places
        return places

    def end(self, begun: Collection[int]) -> None:
        """Stop counting trials as running."""
        for place in begun:
            del self.begun[place]

    def stop(self, reason: StopReason) -> None:
        """Start no more trials. Only the first reason is reported."""
        self.stopped = self.stopped or reason
        self.changed.set()

    def add(self, result: TrialResult) -> None:
        """Add a result, and stop if the limits require it."""
        self.finished.append(result)
        self.changed.set()
        limits = self.limits
        if limits.fail_fast and result.status in ("failed", "errored"):
            self.stop("fail-fast")
        if limits.decided is not None and limits.decided(result):
            self.stop("decided")
        if result.status == "errored":
            self._errors += 1
            if limits.max_errors is not None and self._errors >= limits.max_errors:
                self.stop("max-errors")


_NO_LIMIT: AbstractAsyncContextManager[None] = nullcontext()


class TrialRunner(Struct):
    """Runs trials for the workers of one run.

    Attributes:
        executor: runs a trial that may begin.
        run_context: services of the run.
        state: state of the run, which is stopped when the budget does not allow a call.
        next_trials: takes this many more trials, which are compared with the one just taken.
    """

    executor: TrialExecutor
    run_context: RunContext
    state: RunState
    next_trials: Callable[[int], Iterable[Trial]]
    _queries: Counter[int] = field(default_factory=Counter)  # number of running queries, by suite
    _queries_ended: asyncio.Event | None = None
    _limits: dict[str, asyncio.Semaphore] = {}

    async def run(self, trial: Trial) -> Sequence[TrialResult]:
        """Run a trial and those it is compared with; return their results, or none if interrupted."""
        if not trial.case.asks_judge and not self._queries:
            return await self._run_in_turn(trial)
        async with self._turn(trial):
            return () if self.state.stopped else await self._run_in_turn(trial)

    async def _run_in_turn(self, trial: Trial) -> Sequence[TrialResult]:
        if trial.comparison_group:
            return await self._run_together(trial)
        refused = self.run_context.throttle.stops.failure_for_trial(trial)
        if refused is not None:
            return (not_run(trial, refused, self.run_context),)
        begun = self.state.begin((trial,), self.run_context.clock.monotonic())
        try:
            async with self._limit(trial):
                result = await self.executor.run(trial)
        finally:
            self.state.end(begun)
        counted = self._result_to_record(trial, result)
        return () if counted is None else (counted,)

    async def _run_together(self, first: Trial) -> Sequence[TrialResult]:
        """Run trials whose answers are compared and return their results; none if one of them is interrupted."""
        trials = [first, *self.next_trials(len(first.comparison_group) - 1)]
        answered: list[AnsweredTrial | TrialResult] = []
        begun = self.state.begin(trials, self.run_context.clock.monotonic())
        try:
            for trial in trials:
                one = None if self.state.stopped and answered else await self._answer(trial)
                if one is None:
                    return ()
                answered.append(one)
            results = await self.executor.compare(answered)
        finally:
            self.state.end(begun)
        counted = [self._result_to_record(result.trial, result) for result in results]
        return [result for result in counted if result is not None] if None not in counted else ()

    async def _answer(self, trial: Trial) -> AnsweredTrial | TrialResult | None:
        refused = self.run_context.throttle.stops.failure_for_trial(trial)
        if refused is not None:
            return not_run(trial, refused, self.run_context)
        async with self._limit(trial):
            answered = await self.executor.answer(trial)
        return self._result_to_record(trial, answered) if isinstance(answered, TrialResult) else answered

    def _limit(self, trial: Trial) -> AbstractAsyncContextManager[None]:
        """Return a context that limits the concurrent calls of the trial's target."""
        at_once = trial.target.workers
        if at_once is None:
            return _NO_LIMIT
        return self._limits.setdefault(trial.target.name, asyncio.Semaphore(at_once))

    def _result_to_record(self, trial: Trial, result: TrialResult) -> TrialResult | None:
        """Return the result to record, or None if the trial was interrupted or the budget did not allow its call.

        An interrupted agent leaves a row for its trace, and its trial runs again when the run is resumed.
        """
        error = result.error
        if error is None:
            return result
        if is_interrupted(error):
            return result if result.work is not None and result.work.trace is not None else None
        if is_unaffordable(error):
            self.state.stop("budget")  # no row: resuming with a larger budget runs the trial again
            return None
        why = self.run_context.throttle.stops.failure_for_trial(trial)
        if is_stopped(error):
            return not_run(trial, why or error, self.run_context)
        stopping = why is not None and error.code.startswith("judge-")
        return replace(result, error=CallFailure(error.code, error.message, stops=True)) if stopping else result

    @asynccontextmanager
    async def _turn(self, trial: Trial) -> AsyncIterator[None]:
        """Wait for the running queries of a trial's suite, unless it is a query itself; the body runs the trial."""
        suite = id(trial.suite)
        if not trial.case.asks_judge:
            while self._queries[suite]:
                self._queries_ended = self._queries_ended or asyncio.Event()
                await self._queries_ended.wait()
            yield
            return
        self._queries[suite] += 1
        try:
            yield
        finally:
            self._queries[suite] -= 1
            if not self._queries[suite]:
                del self._queries[suite]
                if self._queries_ended is not None:
                    self._queries_ended.set()
                    self._queries_ended = None


class TrialQueue(Protocol):
    """Queue that hands out each trial when it may start. Used from one event loop.

    Attributes:
        batch: number of results after which a worker yields to the others.
        skipped: trials that will not run, with the reason; workers remove and report them.
        on_skipped: reports the skipped trials while all workers are waiting.
    """

    batch: int
    skipped: deque[tuple[Trial, Failure]]
    on_skipped: Callable[[], None]

    async def take(self) -> Trial | None:
        """Wait for a trial that may start and return it, or None at the end."""

    def comparison_group(self, number: int) -> list[Trial]:
        """Return the next trials, which are compared with the one just taken."""

    def add_running(self) -> None:
        """Count one more running sample of a case that `take` did not hand out."""

    def finish(self, result: TrialResult) -> None:
        """Record that a running trial has ended."""

    def close(self) -> None:
        """Release all waiting workers: a trial that others wait for will not end."""


class IndependentTrials:
    """A `TrialQueue` of trials without dependencies: each may start as soon as a worker is free."""

    batch = 16

    def __init__(self, trials: Iterable[Trial]) -> None:
        self.skipped: deque[tuple[Trial, Failure]] = deque()
        self.on_skipped: Callable[[], None] = lambda: None
        self._trials = iter(trials)

    async def take(self) -> Trial | None:
        """Return the next trial, or None after the last."""
        return next(self._trials, None)

    def comparison_group(self, number: int) -> list[Trial]:
        """Return the next trials."""
        return list(islice(self._trials, number))

    def add_running(self) -> None:
        """Do nothing: no trial waits for the samples of a case."""

    def finish(self, result: TrialResult) -> None:
        """Do nothing: no trial waits for another."""

    def close(self) -> None:
        """Do nothing: no worker waits here."""


class Workers(Struct):
    """Shared state of the workers of one run.

    Attributes:
        queue: source of trials.
        runner: runs one trial.
        sampler: decides when a case needs no more samples.
        state: receives the results, and decides whether the run continues.
        run_context: services of the run.
    """

    queue: TrialQueue
    runner: TrialRunner
    sampler: SequentialSampler
    state: RunState
    run_context: RunContext

    async def work(self) -> None:
        """Run trials until the queue is empty or the run has stopped."""
        queue, state = self.queue, self.state
        results_in_batch = 0
        following: Trial | None = None
        try:
            while (trial := following or await queue.take()) is not None and state.stopped is None:
                results = await self.runner.run(trial)
                if not results:
                    break
                following = self._add_results(results)
                for result in results:
                    queue.finish(result)
                if following is not None:
                    queue.add_running()
                self.take_skipped()
                results_in_batch += 1
                if results_in_batch >= queue.batch:
                    results_in_batch = 0
                    await asyncio.sleep(0)
        finally:
            if state.stopped is not None or sys.exception() is not None:
                queue.close()  # waiters would otherwise block for ever
        self.take_skipped()

    def _add_results(self, results: Iterable[TrialResult]) -> Trial | None:
        """Record results; return the next sample of the same case if its samples are sequential and one is needed."""
        following: Trial | None = None
        for result in results:
            if not result.trial.is_sequential:
                self.state.add(result)
            else:
                last, following = self.sampler.after(result)
                self.state.add(last)
        return following

    def take_skipped(self) -> None:
        """Record the results of the trials that will not run."""
        queue, refused = self.queue, self.sampler.refused
        while queue.skipped:
            trial, why = queue.skipped.popleft()
            following = self._add_results((not_run(trial, why, self.run_context),))
            while following is not None:  # what keeps one sample of a case from running keeps all of them
                result = not_run(following, why, self.run_context)
                following = self._add_results((result,))
                queue.add_running()
                queue.finish(result)
        while refused:
            result = not_run(*refused.popleft(), self.run_context)
            self.state.add(result)
            queue.add_running()
            queue.finish(result)
