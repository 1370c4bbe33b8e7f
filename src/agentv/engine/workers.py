"""Workers of a run, and their queue: each takes a trial, runs it, hands in its result, and takes the next."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Protocol

from agentv.engine.run_context import RunContext
from agentv.engine.run_state import RunState
from agentv.engine.sequential_samples import SequentialSampler
from agentv.engine.trial import not_run
from agentv.engine.trial_runner import TrialRunner
from agentv.model.run.trial import Trial, TrialResult
from agentv.model.values.response import Failure


class TrialQueue(Protocol):
    """Hands out trials, each when it may start. Used from one event loop.

    Attributes:
        batch: results that a worker may bring in before it lets the others have a turn.
        skipped: trials that will not run, and why. Whoever takes trials takes these away too.
        noticed: takes them away while everybody who takes trials waits.
    """

    batch: int
    skipped: deque[tuple[Trial, Failure]]
    noticed: Callable[[], None]

    async def take(self) -> Trial | None:
        """The next trial that may start, once there is one; None at the end."""
        ...

    def comparison_group(self, number: int) -> list[Trial]:
        """The next trials, which are compared with the one that was just taken."""
        ...

    def also(self) -> None:
        """A further sample of a case runs, which `take` has not handed out."""
        ...

    def finish(self, result: TrialResult) -> None:
        """A trial that was taken has ended."""
        ...

    def close(self) -> None:
        """Release all waiting workers: a trial that others wait for will not end."""
        ...


class IndependentTrials:
    """Trials that wait for nothing: each may start as soon as a worker is free. A `TrialQueue`."""

    batch = 16

    def __init__(self, trials: Iterable[Trial]) -> None:
        self.skipped: deque[tuple[Trial, Failure]] = deque()
        self.noticed: Callable[[], None] = _nothing
        self._trials = iter(trials)

    async def take(self) -> Trial | None:
        """The next trial; None after the last."""
        return next(self._trials, None)

    def comparison_group(self, number: int) -> list[Trial]:
        """The next trials."""
        return list(islice(self._trials, number))

    def also(self) -> None:
        """Nothing waits for the samples of a case."""

    def finish(self, result: TrialResult) -> None:
        """Nothing waits for a trial."""

    def close(self) -> None:
        """Nothing waits here."""


def _nothing() -> None:
    """No trial is ever skipped."""


class Workers:
    """Shared state of the workers of one run.

    Args:
        queue: source of trials.
        runner: runs one trial.
        sampler: decides when a case needs no more samples.
        state: receives the results, and decides whether the run continues.
        run_context: of the run.
    """

    def __init__(
        self,
        queue: TrialQueue,
        runner: TrialRunner,
        sampler: SequentialSampler,
        state: RunState,
        run_context: RunContext,
    ) -> None:
        self._queue = queue
        self._runner = runner
        self._sampler = sampler
        self._state = state
        self._run_context = run_context
        queue.noticed = self._take_skipped

    async def work(self) -> None:
        """Run trials until the queue is empty or the run has stopped."""
        queue, state = self._queue, self._state
        results_in_batch = 0
        following: Trial | None = None
        try:
            while (trial := following or await queue.take()) is not None and state.stopped is None:
                results = await self._runner.run(trial)
                if not results:
                    break
                following = self._take_in(results)
                for result in results:
                    queue.finish(result)
                if following is not None:
                    queue.also()
                self._take_skipped()
                results_in_batch += 1
                if results_in_batch >= queue.batch:
                    results_in_batch = 0
                    await asyncio.sleep(0)
        finally:
            if state.stopped is not None or sys.exception() is not None:
                queue.close()  # waiters would otherwise block for ever
        self._take_skipped()

    def _take_in(self, results: Iterable[TrialResult]) -> Trial | None:
        """Take in results; the sample of the same case that comes next, where samples end early and it is needed."""
        following: Trial | None = None
        for result in results:
            if not result.trial.in_turn:
                self._state.add(result)
            else:
                last, following = self._sampler.after(result)
                self._state.add(last)
        return following

    def _take_skipped(self) -> None:
        """Take in the trials that will not run."""
        queue, refused = self._queue, self._sampler.refused
        while queue.skipped:
            trial, why = queue.skipped.popleft()
            following = self._take_in((not_run(trial, why, self._run_context),))
            while following is not None:  # what keeps one sample of a case from running keeps all of them
                result = not_run(following, why, self._run_context)
                following = self._take_in((result,))
                queue.also()
                queue.finish(result)
        while refused:
            result = not_run(*refused.popleft(), self._run_context)
            self._state.add(result)
            queue.also()
            queue.finish(result)
