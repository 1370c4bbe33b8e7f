"""Trials that a worker has taken: admitted, run, and their results read as they count for the run."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from msgspec.structs import replace

from agentv.engine.calls.circuit_breaker import is_interrupted, is_stopped, is_unaffordable
from agentv.engine.executor import TrialExecutor
from agentv.engine.run_context import RunContext
from agentv.engine.run_state import RunState
from agentv.engine.trial import AnsweredTrial, not_run
from agentv.model.run.trial import Trial, TrialResult
from agentv.model.values.response import CallFailure, Failure

_NO_LIMIT: AbstractAsyncContextManager[None] = nullcontext()


class TrialRunner:
    """Runs trials for the workers of one run.

    Args:
        executor: runs a trial that may begin.
        run_context: of the run.
        state: of the run; a trial whose call the budget does not allow stops it.
        comparison_group: the next trials, so many of them, which are compared with the one that was taken.
    """

    def __init__(
        self,
        executor: TrialExecutor,
        run_context: RunContext,
        state: RunState,
        comparison_group: Callable[[int], Iterable[Trial]],
    ) -> None:
        self._executor = executor
        self._run_context = run_context
        self._state = state
        self._comparison_group = comparison_group
        self._queries = Queries()
        self._limits: dict[str, asyncio.Semaphore] = {}
        self._now = run_context.clock.monotonic

    async def run(self, trial: Trial) -> Sequence[TrialResult]:
        """The results of a trial and of those that it is compared with; empty if interrupted."""
        if not trial.case.asks_judge and not self._queries.running:
            return await self._run_in_turn(trial)
        async with self._queries.turn(trial):
            return () if self._state.stopped else await self._run_in_turn(trial)

    async def _run_in_turn(self, trial: Trial) -> Sequence[TrialResult]:
        if trial.comparison_group:
            return await self._run_together(trial)
        refused = self._refused(trial)
        if refused is not None:
            return (not_run(trial, refused, self._run_context),)
        begun = self._state.begin((trial,), self._now())
        try:
            async with self._limit(trial):
                result = await self._executor.run(trial)
        finally:
            self._state.end(begun)
        counted = self._counted(trial, result)
        return () if counted is None else (counted,)

    async def _run_together(self, first: Trial) -> Sequence[TrialResult]:
        """What became of trials whose answers are compared. An interrupted one takes the others along."""
        trials = [first, *self._comparison_group(len(first.comparison_group) - 1)]
        answered: list[AnsweredTrial | TrialResult] = []
        begun = self._state.begin(trials, self._now())
        try:
            for trial in trials:
                one = None if self._state.stopped and answered else await self._answer(trial)
                if one is None:
                    return ()
                answered.append(one)
            results = await self._executor.compare(answered)
        finally:
            self._state.end(begun)
        counted = [self._counted(result.trial, result) for result in results]
        return [result for result in counted if result is not None] if None not in counted else ()

    async def _answer(self, trial: Trial) -> AnsweredTrial | TrialResult | None:
        refused = self._refused(trial)
        if refused is not None:
            return not_run(trial, refused, self._run_context)
        async with self._limit(trial):
            answered = await self._executor.answer(trial)
        return self._counted(trial, answered) if isinstance(answered, TrialResult) else answered

    def _refused(self, trial: Trial) -> Failure | None:
        """Why a trial need not begin: its target, or a judge that it needs, is stopped."""
        stops = self._run_context.throttle.stops
        return stops.why_not(trial) if stops.any else None

    def _limit(self, trial: Trial) -> AbstractAsyncContextManager[None]:
        """One of the calls that the trial's target may get at once."""
        at_once = trial.target.workers
        if at_once is None:
            return _NO_LIMIT
        return self._limits.setdefault(trial.target.name, asyncio.Semaphore(at_once))

    def _counted(self, trial: Trial, result: TrialResult) -> TrialResult | None:
        """The result as it counts, or None if the trial was broken off or its call could not be made.

        An agent that was interrupted leaves a row for its trace, and its trial runs again when the run is resumed.
        """
        error = result.error
        if error is None:
            return result
        if is_interrupted(error):
            return result if result.work is not None and result.work.trace is not None else None
        if is_unaffordable(error):
            self._state.stop("budget")  # it leaves no row either: a run that resumes a larger budget takes it up again
            return None
        why = self._run_context.throttle.stops.why_not(trial)
        if is_stopped(error):
            return not_run(trial, why or error, self._run_context)
        stopping = why is not None and error.code.startswith("judge-")
        return replace(result, error=CallFailure(error.code, error.message, stops=True)) if stopping else result


class Queries:
    """The queries that are under way. Used from one event loop.

    Attributes:
        running: how many, by suite; empty where no trial has to wait.
    """

    def __init__(self) -> None:
        self.running: Counter[int] = Counter()
        self._ended: asyncio.Event | None = None

    @asynccontextmanager
    async def turn(self, trial: Trial) -> AsyncIterator[None]:
        """Wait until a trial may run; the body runs it."""
        suite = id(trial.suite)
        if not trial.case.asks_judge:
            while self.running[suite]:
                self._ended = self._ended or asyncio.Event()
                await self._ended.wait()
            yield
            return
        self.running[suite] += 1
        try:
            yield
        finally:
            self.running[suite] -= 1
            if not self.running[suite]:
                del self.running[suite]
                if self._ended is not None:
                    self._ended.set()
                    self._ended = None
