"""Run trials on a Ray cluster, joined or started here, with as many workers as the run can use."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from importlib.util import find_spec
from math import ceil
from typing import Any

from msgspec.structs import replace

from agentv.app.planning.preparation import Prepared, budget_of, caches, workers_of
from agentv.app.running.evaluate import ExecutorFactory
from agentv.app.wiring import Connections
from agentv.engine.trial import AnsweredTrial, context_of, result_of
from agentv.errors import UsageError
from agentv.extensions.ray.messages import (
    Job,
    LookupReply,
    NotSendableError,
    Received,
    Results,
    SharedObjects,
    StoppedTarget,
    TrialAnswer,
    Unreadable,
    Wanted,
    WorkerConfig,
    WorkerMessage,
    needed_files,
    unpacked_results,
)
from agentv.extensions.ray.worker_pool import (
    NoWorkersError,
    UnfitError,
    WorkerHandle,
    WorkerLostError,
    WorkerPool,
)
from agentv.model.run.trial import Trial, TrialResult
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.response import Failure, TargetResponse
from agentv.registry.fields import install_hint

TRIES = 3
"""Number of workers on which a job is tried."""


class RayExecutor:
    """Runs trials on a worker pool. Implements `agentv.engine.executor.TrialExecutor`.

    A job whose worker is lost goes to another one, on another node if possible, with the answers received so far.
    The last attempt gets a worker of its own, so that a trial that kills its worker can be distinguished from trials
    that only shared it.
    """

    def __init__(self, pool: WorkerPool, shared: SharedObjects, connections: Connections) -> None:
        self._pool = pool
        self._shared = shared
        self._connections = connections

    async def run(self, trial: Trial) -> TrialResult:
        """Return the result of one trial."""
        found = await self._result_of_job(Job("run", (trial,)))
        return found[0] if isinstance(found, tuple) else self._errored(trial, found)

    async def answer(self, trial: Trial) -> AnsweredTrial | TrialResult:
        """Return the answer to a trial, or its errored result."""
        found = await self._result_of_job(Job("answer", (trial,)))
        if isinstance(found, TrialAnswer):
            context = context_of(trial, found.answer, found.measured_ms, self._connections)
            return AnsweredTrial(trial, self._connections, found.answer, found.measured_ms, context)
        return found[0] if isinstance(found, tuple) else self._errored(trial, found)

    async def compare(self, answered: Sequence[AnsweredTrial | TrialResult]) -> Sequence[TrialResult]:
        """Return the results of trials whose answers are compared by one worker."""
        trials = tuple(one.trial for one in answered)
        given = tuple(one if isinstance(one, TrialResult) else (one.answer, one.measured_ms) for one in answered)
        found = await self._result_of_job(Job("compare", trials, answered=given))
        return found if isinstance(found, tuple) else [self._errored(trial, found) for trial in trials]

    def interrupt(self) -> None:
        """Make no further attempts."""
        self._connections.throttle.interrupt()
        self._pool.interrupt()

    def _errored(self, trial: Trial, found: TrialAnswer | Failure) -> TrialResult:
        assert isinstance(found, Failure)  # noqa: S101  # the outcome matches the job
        return result_of(trial, self._connections, 0.0, None, (), error=found)

    async def _result_of_job(self, job: Job) -> tuple[TrialResult, ...] | TrialAnswer | Failure:
        """Run a job, on up to `TRIES` workers, and return its outcome."""
        received: dict[str, TargetResponse] = {}
        lost_nodes: set[str] = set()
        why = ""
        for number in range(1, TRIES + 1):
            try:
                async with self._pool.worker(lost_nodes, alone=number == TRIES) as worker:
                    return await self._run_on(worker, replace(job, known=received), received, lost_nodes)
            except WorkerLostError as error:
                why = str(error)
            except NoWorkersError as error:
                return Failure("worker-lost", f"no worker left: {error}")
            except (UnfitError, NotSendableError) as error:
                return Failure("worker-unfit", f"it cannot run on another machine: {error}")
        return Failure(
            "worker-lost", f"{TRIES} workers were lost while running it, the last one while running it alone: {why}"
        )

    async def _run_on(
        self, worker: WorkerHandle, job: Job, received: dict[str, TargetResponse], lost_nodes: set[str]
    ) -> tuple[TrialResult, ...] | TrialAnswer:
        """Run a job on one worker and return its outcome. Answers are stored, and added to `received`."""
        try:
            async with aclosing(self._pool.messages(worker, self._shared.pack(job))) as messages:
                async for message in messages:
                    outcome = self._process(message, worker, job, received)
                    if outcome is not None:
                        return outcome
        except WorkerLostError:
            lost_nodes.add(worker.readiness.node_id)
            raise
        raise WorkerLostError("it ended without a message")

    def _process(
        self, message: WorkerMessage, worker: WorkerHandle, job: Job, received: dict[str, TargetResponse]
    ) -> tuple[TrialResult, ...] | TrialAnswer | None:
        """Process a message; return the outcome of the job if the message contains it."""
        if isinstance(message, Received):
            received[message.call.key] = message.answer
            self._connections.store.keep(message.call, message.answer)
        elif isinstance(message, Wanted):
            self._pool.reply(worker, message.number, self._reply(message), message.call.key)
        elif isinstance(message, StoppedTarget):
            spec = self._shared.resolve(message.spec)
            if isinstance(spec, TargetSpec):
                self._connections.throttle.record_stop(spec, message.failure)
        elif isinstance(message, Unreadable):
            raise UnfitError(message.why)
        elif isinstance(message, Results):
            return unpacked_results(message.body, job.trials)
        else:
            return message
        return None

    def _reply(self, wanted: Wanted) -> LookupReply:
        """Return the stored answer to a call, or the reasons not to make the call."""
        recorded = self._connections.store.stored_answer(wanted.call)
        if isinstance(recorded, TargetResponse):
            return LookupReply(recorded)
        refusals = (self._connections.answers.no_target, self._connections.answers.no_judge)
        return LookupReply(None, *(refused and refused(wanted.call) for refused in refusals))


ADDRESS = "RAY_ADDRESS"

_STORE_BYTES = 200_000_000
"""Size of the object store of a cluster that is started here. An answer is at most 10 MB."""


@contextmanager
def cluster(address: str | None) -> Iterator[Any]:
    """Yield the `ray` module, connected to a cluster. Disconnect at the end, unless it was connected before.

    Args:
        address: address of the cluster; None: one that runs on this machine, else a new one for this run alone.

    Raises:
        UsageError: Ray is not installed, or no cluster can be reached or started.
    """
    if find_spec("ray") is None:
        raise UsageError("--executor ray requires the package ray, which is not installed", install_hint("ray"))
    # agentv sends nothing to hosts that the user did not name, so its cluster does not report usage
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # otherwise Ray warns about a future change
    import ray

    if ray.is_initialized():
        yield ray
        return
    with _keep_sigterm_handler():
        _connect(ray, address)
    try:
        yield ray
    finally:
        with _keep_sigterm_handler():
            ray.shutdown()


def _connect(ray: Any, address: str | None) -> None:
    if address is not None and address.startswith("ray://"):
        hint = f"run agentv on a machine of the cluster, and set {ADDRESS} to auto"
        raise UsageError(f"{ADDRESS} is {address}: agentv does not send trials through a Ray client", hint)
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR, "include_dashboard": False}
    try:
        try:
            ray.init(address=address or "auto", **quiet)
        except ConnectionError:
            if address is not None:
                raise
            ray.init(address="local", object_store_memory=_STORE_BYTES, **quiet)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError, OSError) as error:
        why = (str(error).strip() or type(error).__name__).splitlines()[0]
        where = f"at {address}" if address else "on this machine"
        hint = f"set {ADDRESS} to use another one; `ray status` shows its state"
        raise UsageError(f"no Ray cluster {where}: {why}", hint) from error
    with suppress(AttributeError):  # do not print the logs of Ray's daemons: twenty lines for each lost machine
        ray._private.worker._worker_logs_enabled = False  # noqa: SLF001  # there is no public API


@contextmanager
def _keep_sigterm_handler() -> Iterator[None]:
    """Restore the handler of SIGTERM, which Ray replaces, so that the signal still ends a run in an orderly way."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before if before is not None else signal.SIG_DFL)


@asynccontextmanager
async def pool_of(prepared: Prepared) -> AsyncIterator[ExecutorFactory]:
    """Start the workers of a run, yield a factory of its executor, and end the workers.

    Raises:
        UsageError: there is no cluster, its workers lack files that trials need, or there is a budget.
    """
    if budget_of(prepared) != (None, None):
        hint = "--max-errors and --limit limit a run on a cluster; providers can also cap what a key spends"
        raise UsageError("a budget does not work with --executor ray: workers do not know what the others spend", hint)
    with cluster(prepared.settings.process_env.get(ADDRESS)) as ray:
        free = int(ray.available_resources().get("CPU", 0))
        number = max(1, min(workers_of(prepared), free, prepared.counts[1]))
        shared = SharedObjects(number)
        files, environment = needed_files(prepared.plan), prepared.settings.process_env
        pool = WorkerPool(ray, worker_config(prepared, number), shared, files, environment)
        try:
            await pool.open(number)
            yield lambda connections: RayExecutor(pool, shared, connections)
        finally:
            await pool.close()


def worker_config(prepared: Prepared, number: int) -> WorkerConfig:
    """Return the configuration of each worker: its concurrent calls, and whether it asks the driver for answers.

    All workers together make no more concurrent calls to an endpoint than one process would.
    """
    settings = prepared.settings
    offline = settings.replay is not None and settings.replay_mode == "strict"
    earlier = (settings.resume_run, settings.regrade, settings.replay)
    return WorkerConfig(
        at_once=ceil(workers_of(prepared) / number),
        looks=any(one is not None for one in earlier) or caches(prepared.settings, prepared.suites),
        no_target=offline or settings.regrade is not None,
        no_judge=offline,
    )
