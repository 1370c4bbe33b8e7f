"""Evaluation of a prepared run: started, driven to its end, finished."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from msgspec.structs import replace

from agentv.app.labelled_runs import labelled_runs
from agentv.app.planning.answer_sources import answer_sources
from agentv.app.planning.preparation import Prepared, results_of
from agentv.app.results.finding import find_run
from agentv.app.running.drive import GRACE_S, Demand, StopRequests, drive
from agentv.app.running.finish import finish
from agentv.app.running.outcome import Outcome
from agentv.app.running.start import OpenRun, Sink, StartedRun, opened_run, start
from agentv.app.settings import LOCAL
from agentv.app.wiring import Connections, redactor_for
from agentv.engine.executor import TrialExecutor
from agentv.errors import ExitStatus, LoadError, StoreError
from agentv.registry.extensions import EXECUTORS
from agentv.store.files.directory import RunDirectory
from agentv.user_code.plugins import added_value

Opened = Callable[[str, Path], None]

ExecutorFactory: TypeAlias = Callable[[Connections], TrialExecutor]
"""Makes the executor of a run's trials, given what it reaches here."""


def evaluate(prepared: Prepared, sink: Sink, *, opened: Opened | None = None) -> Outcome:
    """Run a prepared plan. Every event goes to the sink, from this thread.

    Args:
        prepared: the plan.
        sink: receives every event.
        opened: called with the id of the run and its results directory before any call is made.

    Raises:
        StoreError: the run directory cannot be created, opened or written, or labels that decide it cannot be read.
        UsageError: labels show that a judge is worse than its suite allows.
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
    """As `evaluate`, in an event loop that is already running.

    Args:
        prepared: the plan.
        sink: receives every event, from this thread.
        signals: SIGINT and SIGTERM end the run in good order; the process belongs to this run alone.
        demand: receives the object that requests trials when the run begins; only requested ones run.
        opened: as in `evaluate`.
        stops: end the run when another thread asks for it.

    Raises:
        StoreError, UsageError: as `evaluate`.
    """
    labels = labelled_runs().before(prepared.suites)
    async with _executors(prepared) as executors:
        with answer_sources(prepared) as sources, _directory(prepared) as directory:
            if opened is not None:
                opened(directory.run_id, directory.path)
            run = replace(opened_run(prepared, directory, sources, sink), labels=labels)
            return await _evaluated(run, executors, signals=signals, demand=demand, stops=stops)


async def _evaluated(
    run: OpenRun, executors: ExecutorFactory | None, *, signals: bool, demand: Demand | None, stops: StopRequests | None
) -> Outcome:
    """One run, from an open directory to its outcome."""
    started: StartedRun | None = None
    try:
        with run.journal() as journal:
            started = await start(run, journal, loads_code=executors is None)
            connections = started.connections
            executor = executors(connections) if executors is not None else None
            try:
                driven = await drive(started, executor, signals=signals, demand=demand, stops=stops)
            finally:
                try:
                    await connections.close()
                finally:
                    programs = sys.modules.get("agentv.user_code.processes")  # None: no program was started
                    if signals and programs is not None:  # else it would kill what another run has started
                        programs.kill_all()
            return finish(started, driven)
    except (StoreError, LoadError) as error:
        if started is not None:
            error.status = ExitStatus.ERRORED  # trials ran; what they gave, or a case to come, cannot be used
        raise


def _executors(prepared: Prepared) -> AbstractAsyncContextManager[ExecutorFactory | None]:
    """What makes the executor of trials on other machines; None: they run in this process."""
    chosen = prepared.settings.executor
    if chosen == LOCAL:
        return nullcontext()
    pool: AbstractAsyncContextManager[ExecutorFactory] = added_value(EXECUTORS, chosen)(prepared)
    return pool


@contextmanager
def _directory(prepared: Prepared) -> Iterator[RunDirectory]:
    """The run's directory: a new one, or that of the run to resume."""
    settings = prepared.settings
    redactor = redactor_for(prepared.suites)
    if settings.resume_run is not None:
        found = find_run(settings.resume_run, results_of(prepared.suites), settings.out)
        opened = RunDirectory.open(found, redactor=redactor)
    else:
        out = Path(settings.out) if settings.out else None
        place = results_of(prepared.suites, of_new_run=True)
        opened = RunDirectory.create(place, datetime.now(UTC), out=out, redactor=redactor)
    with opened:
        yield opened


__all__ = ["GRACE_S", "StopRequests", "evaluate", "evaluate_async"]
