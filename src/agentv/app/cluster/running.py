"""A crew for one run: as many workers as it has use for, told what this run asks of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from math import ceil
from typing import TypeAlias

from agentv.app.cluster.connecting import ADDRESS, cluster
from agentv.app.cluster.crew import Crew, Needs
from agentv.app.cluster.files import needed_files
from agentv.app.cluster.packing import Luggage
from agentv.app.cluster.parcels import Terms
from agentv.app.cluster.trials import ClusterTrials
from agentv.app.preparation import Prepared, budget_of, caches, workers_of
from agentv.app.wiring import Answers
from agentv.engine.executor import TrialExecutor
from agentv.engine.services import World
from agentv.errors import UsageError
from agentv.model.suite import TargetSpec

Elsewhere: TypeAlias = Callable[[World, Answers], TrialExecutor]
"""Makes the executor of a run, given what it reaches here."""


@asynccontextmanager
async def crew_of(prepared: Prepared) -> AsyncIterator[Elsewhere]:
    """Workers for a run, ended when it has.

    Raises:
        UsageError: there is no cluster, its workers lack what trials need, a target cannot be asked from there, or
            there is a budget.
    """
    _check_targets(prepared)
    if budget_of(prepared) != (None, None):
        hint = "--max-errors and --limit bound a run on a cluster; a provider can bound what a key spends"
        raise UsageError("a budget and --executor ray: workers do not know what the others spend", hint)
    at_once = workers_of(prepared)
    with cluster(prepared.settings.process_env.get(ADDRESS)) as ray:
        free = int(ray.available_resources().get("CPU", 0))
        number = max(1, min(at_once, free, prepared.counts[1]))
        luggage = Luggage(number)
        needs = Needs(needed_files(prepared.plan), prepared.settings.process_env)
        crew = Crew(ray, terms_of(prepared, number), luggage, needs)
        try:
            await crew.open(number)
            yield lambda world, answers: ClusterTrials(crew, luggage, world, answers)
        finally:
            await crew.close()


def terms_of(prepared: Prepared, number: int) -> Terms:
    """What each of so many workers is told: how many calls it makes at once, and whether it asks at home first.

    An endpoint gets no more calls at once from all of them together than from one process.
    """
    settings = prepared.settings
    offline = settings.replay is not None and settings.replay_mode == "strict"
    earlier = (settings.goes_on_with, settings.regrade, settings.replay)
    return Terms(
        at_once=ceil(workers_of(prepared) / number),
        looks=any(one is not None for one in earlier) or caches(prepared),
        no_target=offline or settings.regrade is not None,
        no_judge=offline,
    )


def _check_targets(prepared: Prepared) -> None:
    """Refuse functions that belong to the caller's own event loop."""
    for spec in _given(prepared):
        if getattr(spec.settings, "on_our_loop", False):
            what = f"'{spec.name}' is a function that is awaited on the loop of evaluate_async"
            raise UsageError(f"{what}, so that no other machine can call it", "name a function of a file instead")


def _given(prepared: Prepared) -> Iterator[TargetSpec]:
    for given in (prepared.settings.given_target, prepared.settings.given_judge):
        if isinstance(given, TargetSpec):
            yield given
