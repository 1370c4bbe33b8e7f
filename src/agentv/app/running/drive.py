"""The trials of a started run, driven to their end: every result is kept before it is shown."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agentv.app.planning.preparation import max_errors_of, workers_of
from agentv.app.running.artifacts import Artifacts
from agentv.app.running.start import StartedRun
from agentv.engine.executor import TrialExecutor
from agentv.engine.run import Run, RunOptions
from agentv.engine.trial import not_run
from agentv.engine.workers import IndependentTrials, RunLimits, TrialQueue
from agentv.model.redaction import Redactor
from agentv.model.run.events import (
    AgentProgress,
    Event,
    RunFinished,
    RunProgress,
    TargetPaused,
    TargetStopped,
    TrialFinished,
)
from agentv.model.run.summary import NOT_DRAWN
from agentv.model.run.trial import Trial
from agentv.model.values.response import Failure
from agentv.user_code.command_process import acting_on_signals

if TYPE_CHECKING:
    from agentv.engine.dependency_order import OnDemandScheduler

GRACE_S = 10.0
"""Seconds that running trials get after the first Ctrl-C."""

Demand = Callable[["OnDemandScheduler"], None]


class StopRequests:
    """Ends a run: the first request lets running trials finish for a while, the second and SIGQUIT give them up."""

    def __init__(self) -> None:
        self._received = 0
        self._bound: tuple[asyncio.AbstractEventLoop, Run] | None = None

    @contextmanager
    def ending(self, run: Run, *, signals: bool) -> Iterator[None]:
        """Requests, and signals if wanted, end this run, on the loop of the caller."""
        self._bound = asyncio.get_running_loop(), run
        if self._received:
            self._act(self._received)
        with acting_on_signals(self.request) if signals else nullcontext():
            yield
        self._bound = None

    def request(self, number: int = signal.SIGINT) -> None:
        """End the run, from any thread. `number`: of the signal that asks for it."""
        self._received += 2 if number == signal.SIGQUIT else 1
        bound = self._bound
        if bound is not None:
            with suppress(RuntimeError):  # the loop has closed: the run is over
                bound[0].call_soon_threadsafe(self._act, self._received)

    def _act(self, received: int) -> None:
        if self._bound is None:
            return
        loop, run = self._bound
        if received > 1:
            run.abort()
            return
        run.stop()
        loop.call_later(GRACE_S, run.abort)


async def drive(
    started: StartedRun,
    executor: TrialExecutor | None = None,
    *,
    signals: bool = False,
    demand: Demand | None = None,
    stops: StopRequests | None = None,
) -> tuple[RunFinished, tuple[int, int]]:
    """Run the trials that have no row yet; how the run ended, and how many distinct cases and trials were requested.

    Args:
        started: the run.
        executor: runs the trials; None: they run in this process.
        signals: SIGINT and SIGTERM end the run in good order.
        demand: requests single trials; only requested ones run.
        stops: end the run when another thread asks for it.

    Raises:
        StoreError: a row cannot be written.
    """
    prepared = started.open.prepared
    trials: TrialQueue
    if demand is not None:
        from agentv.engine.dependency_order import OnDemandScheduler  # only a test runner asks for single trials

        trials = on_demand = OnDemandScheduler(prepared.plan, started.sampler.firsts)
        demand(on_demand)
    else:
        trials = _trials(started)
    limits = RunLimits(
        max_errors_of(prepared), prepared.settings.fail_fast, None if prepared.draws is None else prepared.draws.add
    )
    options = RunOptions(workers_of(prepared), limits, started.sampler, executor)
    run_id, connections = started.open.directory.run_id, started.connections
    total = prepared.counts[1] - len(started.earlier.results)
    if prepared.chosen is not None or prepared.plan.ends_early or prepared.draws is not None:
        total = sum(1 for _ in started.pending())  # the plan does not say it
    run = Run(run_id, trials, total, run_context=connections, options=options)
    with (stops or StopRequests()).ending(run, signals=signals):
        finished = await _consume(run, started)
    if prepared.draws is not None and prepared.draws.decided:
        # trials that were not needed get rows that say so: a reader must not take the run for a whole one
        rows = set(started.journal.finished())
        why = Failure(NOT_DRAWN, f"not drawn: the comparison with {prepared.draws.base} was already decided")
        for trial in prepared.draws.trials:
            if trial.key not in rows:
                result = not_run(trial, why, started.connections)
                started.journal.finish(result)
                started.open.sink(TrialFinished(result))
    return finished, prepared.counts if demand is None else on_demand.counts


def _trials(started: StartedRun) -> TrialQueue:
    """What is to do, in order where cases depend on each other."""
    prepared = started.open.prepared
    pending: Iterable[Trial] = started.pending()
    if prepared.plan.samples_in_turn:
        pending = started.sampler.firsts(pending)
    if not any(suite.links for suite in prepared.suites):
        return IndependentTrials(pending)
    from agentv.engine.dependency_order import DependencyScheduler

    order = DependencyScheduler(prepared.plan, pending)
    results = started.earlier.results
    for trial in prepared.plan if results else ():
        result = results.get(trial.key)
        if result is not None:
            order.keep(replace(result, trial=trial))
    return order


async def _consume(run: Run, started: StartedRun) -> RunFinished:
    """Keep every row, then show it: the order that a crash cannot turn into a lie."""
    redactor, artifacts = started.open.directory.redactor, Artifacts(started.open.directory)
    last: RunFinished | None = None
    async for event in run.events():
        shown: Event = event
        if isinstance(event, TrialFinished):
            stored = event.result if event.result.work is None else artifacts.store(event.result)
            result = started.journal.finish(stored)
            started.open.totals.add_result(stored)
            if result is not event.result:
                shown = TrialFinished(result, event.result.trial)  # what is shown holds no secret
        elif isinstance(event, AgentProgress):
            shown = _without_secrets(event, redactor)
        elif isinstance(event, RunProgress):
            shown = replace(event, slowest=tuple(map(redactor.redact, event.slowest))) if redactor else event
        elif isinstance(event, TargetStopped | TargetPaused):
            shown = type(event)(event.name, redactor.redact(event.reason))
        elif isinstance(event, RunFinished):
            last = event
        started.open.sink(shown)
    assert last is not None  # noqa: S101  # a run's last event
    return last


def _without_secrets(event: AgentProgress, redactor: Redactor) -> AgentProgress:
    if not redactor:
        return event
    done = event.activity
    return replace(
        event,
        case=redactor.redact(event.case),
        target=redactor.redact(event.target),
        variant=event.variant and redactor.redact(event.variant),
        prompt_id=event.prompt_id and redactor.redact(event.prompt_id),
        activity=done and replace(done, last_tool=redactor.redact(done.last_tool)),
    )
