"""Work of agents that an earlier run kept, for trials whose answers are graded again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agentv.engine.run_context import RunContext
from agentv.model.run.trial import Trial
from agentv.model.values.response import Failure, TargetResponse

if TYPE_CHECKING:
    from agentv.extensions.agents.trial.work import TrialWork


async def with_kept_work(
    answer: TargetResponse, trial: Trial, run_context: RunContext, work: TrialWork | None
) -> TargetResponse | Failure:
    """A recorded answer with the trace that was kept of it; why that cannot be used.

    Args:
        answer: the last one of the trial.
        trial: of the answer.
        run_context: whose archive is asked.
        work: gets what the agent left; None: the case has neither a workspace nor tools.
    """
    archive = run_context.kept_works
    kept = await asyncio.to_thread(archive.work, trial, answer.output) if archive is not None else None
    if isinstance(kept, Failure):
        return kept
    if work is not None:
        work.recall(kept)
    return answer if kept is None or kept.trace is None else replace(answer, trace=kept.trace)
