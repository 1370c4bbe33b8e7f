"""A run of many trials: a bounded number of workers that take them from a queue, and the stream of events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

from msgspec import Struct, field

from agentv.engine.executor import LocalExecutor, TrialExecutor
from agentv.engine.sequential_samples import SequentialSampler
from agentv.engine.trial import RunContext
from agentv.engine.workers import NO_LIMITS, RunLimits, RunState, TrialQueue, TrialRunner, Workers
from agentv.model.run.events import (
    Event,
    RunFinished,
    RunInterrupted,
    RunProgress,
    RunStarted,
    TargetPaused,
    TargetStopped,
    TrialFinished,
)

TICK_S = 1.0
"""Seconds between progress reports."""


class RunOptions(Struct, frozen=True):
    """Options of a run.

    Attributes:
        workers: maximum number of concurrent trials.
        limits: conditions for starting no more trials.
        sampler: decides when a case needs no more samples.
        executor: runs the trials; None: they run in this process.
    """

    workers: int
    limits: RunLimits = NO_LIMITS
    sampler: SequentialSampler = field(default_factory=SequentialSampler)
    executor: TrialExecutor | None = None


class Run:
    """One run of many trials. Iterating over `events` drives it; `stop` and `abort` end it, from the same thread."""

    def __init__(
        self, run_id: str, trials: TrialQueue, total: int, *, run_context: RunContext, options: RunOptions
    ) -> None:
        self.run_id = run_id
        self._total = total
        self._options = options
        self._run_context = run_context
        self._executor = options.executor or LocalExecutor(run_context)
        self._state = RunState(options.limits)
        runner = TrialRunner(self._executor, run_context, self._state, trials.comparison_group)
        self._workers = Workers(trials, runner, options.sampler, self._state, run_context)
        trials.on_skipped = self._workers.take_skipped
        self._tasks: list[asyncio.Task[None]] = []
        self._timer: asyncio.TimerHandle
        self._ticked = False
        self._started = 0.0

    def stop(self) -> None:
        """Interrupt the run: start no more trials. Running ones finish, except those that only wait for a retry."""
        self._state.stop("interrupt")
        self._executor.interrupt()

    def abort(self) -> None:
        """Start no more trials and cancel the running ones, which then leave no row."""
        self.stop()
        for task in self._tasks:
            task.cancel()

    async def events(self) -> AsyncIterator[Event]:
        """Yield all events, in order. The run advances only while this is iterated."""
        clock, state, throttle = self._run_context.clock, self._state, self._run_context.throttle
        news = throttle.news
        self._started, done, announced = clock.monotonic(), 0, False
        number = max(1, min(self._options.workers, self._total))
        yield RunStarted(self._total)
        self._tasks = [asyncio.create_task(self._workers.work()) for _ in range(number)]
        news.on_news = throttle.agents.on_news = state.changed.set
        for task in self._tasks:
            task.add_done_callback(lambda _task: state.changed.set())
        self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)
        try:
            over = False
            while not over or state.finished:
                await state.changed.wait()
                state.changed.clear()
                over = all(task.done() for task in self._tasks)
                if self._ticked or news.limits_calls:
                    self._ticked = news.limits_calls = False
                    yield self._progress()
                for event in self._calls_news():
                    yield event
                while state.finished:
                    result = state.finished.popleft()
                    done += 1
                    yield TrialFinished(result)
                if state.stopped and not announced:
                    announced = True
                    budget = throttle.budget_limiter
                    why = budget.refused if budget is not None and state.stopped == "budget" else None
                    yield RunInterrupted(len(state.begun), state.stopped, why or "")
            for task in self._tasks:
                if not task.cancelled() and (error := task.exception()) is not None:
                    raise error
        finally:
            self._timer.cancel()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        duration = (clock.monotonic() - self._started) * 1000
        unstarted = self._total - done - self._options.sampler.spared
        yield RunFinished(done, unstarted, state.stopped == "interrupt", duration, state.stopped)

    def _tick(self) -> None:
        """Request a progress report, and schedule the next."""
        self._ticked = True
        self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)
        self._state.changed.set()

    def _calls_news(self) -> Iterator[Event]:
        """Yield news from calls: agents' progress, servers that ask for a long wait, and stopped targets."""
        throttle = self._run_context.throttle
        yield from throttle.agents.news()
        news = throttle.news
        while news.paused:
            yield TargetPaused(*news.paused.popleft())
        while news.stopped:
            name, failure = news.stopped.popleft()
            yield TargetStopped(name, failure.message)

    def _progress(self) -> RunProgress:
        now, begun = self._run_context.clock.monotonic(), self._state.begun.values()
        limited = self._run_context.throttle.limited()
        elapsed_s = now - self._started
        if not begun:
            return RunProgress(0, elapsed_s, limited)
        trial, since = min(begun, key=lambda one: one[1])
        names = (trial.case.id, trial.case.prompt_id, trial.target.name, trial.variant_name)
        slowest = tuple(name for name in names if name is not None)
        return RunProgress(len(begun), elapsed_s, limited, slowest, now - since)
