"""The Ray executor: a cluster, joined or started, and a pool with as many workers as the run can use."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from importlib.util import find_spec
from math import ceil
from typing import Any

from agentv.app.planning.preparation import Prepared, budget_of, caches, workers_of
from agentv.app.running.evaluate import ExecutorFactory
from agentv.errors import UsageError
from agentv.extensions.ray.files import needed_files
from agentv.extensions.ray.messages import SharedObjects, WorkerConfig
from agentv.extensions.ray.trials import RayExecutor
from agentv.extensions.ray.worker_pool import Needs, WorkerPool
from agentv.registry.extras import install_hint

ADDRESS = "RAY_ADDRESS"

_STORE_BYTES = 200_000_000
"""Of the object store of a cluster that is started here: an answer is at most 10 MB."""


@contextmanager
def cluster(address: str | None) -> Iterator[Any]:
    """The `ray` module, connected; let go of at the end. A program that has connected itself stays connected.

    Args:
        address: of a cluster; None: one that runs on this machine, else a new one for this run alone.

    Raises:
        UsageError: Ray is not installed, or no cluster can be reached or started.
    """
    if find_spec("ray") is None:
        raise UsageError("--executor ray requires the package ray, which is not installed", install_hint("ray"))
    # agentv sends nothing to anybody who was not named, and a cluster of its own does not either
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else it warns of what it will do one day
    import ray

    if ray.is_initialized():
        yield ray
        return
    with _own_signals():
        _connect(ray, address)
    try:
        yield ray
    finally:
        with _own_signals():
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
    with suppress(AttributeError):  # keep it from printing its daemons' logs: twenty lines for each lost machine
        ray._private.worker._worker_logs_enabled = False  # noqa: SLF001  # there is no public way


@contextmanager
def _own_signals() -> Iterator[None]:
    """Ray takes over SIGTERM, which ends a run in good order."""
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
    """Workers for a run, ended when it has.

    Raises:
        UsageError: there is no cluster, its workers lack what trials need, a target cannot be asked from there, or
            there is a budget.
    """
    if budget_of(prepared) != (None, None):
        hint = "--max-errors and --limit limit a run on a cluster; providers can also cap what a key spends"
        raise UsageError("a budget does not work with --executor ray: workers do not know what the others spend", hint)
    at_once = workers_of(prepared)
    with cluster(prepared.settings.process_env.get(ADDRESS)) as ray:
        free = int(ray.available_resources().get("CPU", 0))
        number = max(1, min(at_once, free, prepared.counts[1]))
        shared = SharedObjects(number)
        needs = Needs(needed_files(prepared.plan), prepared.settings.process_env)
        pool = WorkerPool(ray, worker_config(prepared, number), shared, needs)
        try:
            await pool.open(number)
            yield lambda connections: RayExecutor(pool, shared, connections)
        finally:
            await pool.close()


def worker_config(prepared: Prepared, number: int) -> WorkerConfig:
    """Configuration of each worker: its concurrent calls, and whether it looks answers up on the first machine.

    All workers together make no more concurrent calls to an endpoint than one process would.
    """
    settings = prepared.settings
    offline = settings.replay is not None and settings.replay_mode == "strict"
    earlier = (settings.resume_run, settings.regrade, settings.replay)
    return WorkerConfig(
        at_once=ceil(workers_of(prepared) / number),
        looks=any(one is not None for one in earlier) or caches(prepared),
        no_target=offline or settings.regrade is not None,
        no_judge=offline,
    )
