"""`agent-rubric`: a judge with tools answers a rubric after it looked at the workspace (AGENTS.md section 11)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from msgspec import structs
from msgspec.structs import replace

from agentv.assertions.judged.rubric import LlmRubric
from agentv.extensions.agents.assertions.files import NO_WORKSPACE
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Grade
from agentv.model.suite.suite import AGENT_JUDGE_TIMEOUT_S
from agentv.model.values.response import Failure


@dataclass(frozen=True, slots=True)
class AgentRubric(LlmRubric):
    """An agent grades by a rubric after it looked at a copy of the workspace."""

    needs_agent: ClassVar[bool] = True
    timeout_s: ClassVar[float | None] = AGENT_JUDGE_TIMEOUT_S
    title: ClassVar[str] = "agent-rubric"

    async def grade(self, context: AssertionContext) -> Grade:
        """Let the judge look at a copy. A judge that changed the workspace itself has no verdict."""
        workspace = context.workspace
        if workspace is None:
            return NO_WORKSPACE
        if context.output is None:
            return Grade.errored("no-output", "there is no answer to grade")
        place = await workspace.copy_for_judge()
        if isinstance(place, Failure):
            return Grade.errored(place.code, place.message)
        place = structs.replace(place, max_turns=self.max_steps)
        grade = await LlmRubric.grade(self, replace(context, judge_workspace=place))
        if await workspace.is_as(place.sha256):
            return grade
        why = Failure("workspace-failed", "the judge changed the workspace that it was to look at")
        return structs.replace(grade, score=0.0, passed=False, checks=(), reason=why.message, error=why)
