"""The Ray executor: a pool with as many workers as the run can use."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import ceil

from agentv.app.planning.preparation import Prepared, budget_of, caches, workers_of
from agentv.app.running.evaluate import ExecutorFactory
from agentv.errors import UsageError
from agentv.extensions.ray.connection import ADDRESS, cluster
from agentv.extensions.ray.files import needed_files
from agentv.extensions.ray.messages import WorkerConfig
from agentv.extensions.ray.serialization import SharedObjects
from agentv.extensions.ray.trials import RayExecutor
from agentv.extensions.ray.worker_pool import Needs, WorkerPool


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
