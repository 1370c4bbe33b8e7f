"""Execution of a started run's trials. Each result is stored before it is shown."""

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
    """Stops a run: the first request gives running trials `GRACE_S` to finish; a second one or SIGQUIT aborts them."""

    def __init__(self) -> None:
        self._received = 0
        self._bound: tuple[asyncio.AbstractEventLoop, Run] | None = None

    @contextmanager
    def ending(self, run: Run, *, signals: bool) -> Iterator[None]:
        """Apply requests, and signals if wanted, to this run on the current event loop."""
        self._bound = asyncio.get_running_loop(), run
        if self._received:
            self._act(self._received)
        with acting_on_signals(self.request) if signals else nullcontext():
            yield
        self._bound = None

    def request(self, number: int = signal.SIGINT) -> None:
        """Request a stop, from any thread. `number` is that of the signal received."""
        self._received += 2 if number == signal.SIGQUIT else 1
        bound = self._bound
        if bound is not None:
            with suppress(RuntimeError):  # the loop is closed as the run has ended
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
    """Run the trials that have no row yet; return the final event and the numbers of requested cases and trials.

    Args:
        started: the run.
        executor: runs the trials; None: they run in this process.
        signals: SIGINT and SIGTERM stop the run in an orderly way.
        demand: requests single trials; only requested ones run.
        stops: stops the run on request of another thread.

    Raises:
        StoreError: a row cannot be written.
    """
    prepared = started.open.prepared
    trials: TrialQueue
    if demand is not None:
        from agentv.engine.dependency_order import OnDemandScheduler  # only the pytest plugin requests single trials

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
        total = sum(1 for _ in started.pending())  # the plan cannot tell the number
    run = Run(run_id, trials, total, run_context=connections, options=options)
    with (stops or StopRequests()).ending(run, signals=signals):
        finished = await _consume(run, started)
    if prepared.draws is not None and prepared.draws.decided:
        # write rows for the trials that were not drawn, so that the run does not look complete
        rows = set(started.journal.finished())
        why = Failure(NOT_DRAWN, f"not drawn: the comparison with {prepared.draws.base} was already decided")
        for trial in prepared.draws.trials:
            if trial.key not in rows:
                result = not_run(trial, why, started.connections)
                started.journal.finish(result)
                started.open.sink(TrialFinished(result))
    return finished, prepared.counts if demand is None else on_demand.counts


def _trials(started: StartedRun) -> TrialQueue:
    """Return the queue of pending trials, which respects dependencies between cases."""
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
            order.restore(replace(result, trial=trial))
    return order


async def _consume(run: Run, started: StartedRun) -> RunFinished:
    """Store each row before its event is shown, so that after a crash nothing was shown that is not stored."""
    redactor, artifacts = started.open.directory.redactor, Artifacts(started.open.directory)
    last: RunFinished | None = None
    async for event in run.events():
        shown: Event = event
        if isinstance(event, TrialFinished):
            stored = event.result if event.result.work is None else artifacts.store(event.result)
            result = started.journal.finish(stored)
            started.open.totals.add_result(stored)
            if result is not event.result:
                shown = TrialFinished(result, event.result.trial)  # secrets are redacted in the stored result
        elif isinstance(event, AgentProgress):
            shown = _without_secrets(event, redactor)
        elif isinstance(event, RunProgress):
            shown = replace(event, slowest=tuple(map(redactor.redact, event.slowest))) if redactor else event
        elif isinstance(event, TargetStopped | TargetPaused):
            shown = type(event)(event.name, redactor.redact(event.reason))
        elif isinstance(event, RunFinished):
            last = event
        started.open.sink(shown)
    assert last is not None  # noqa: S101  # RunFinished is a run's last event
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
