"""`agent-rubric`: a judge with tools answers a rubric after it looked at the workspace (AGENTS.md section 11)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from dataclasses import replace as changed
from typing import ClassVar

from msgspec.structs import replace

from agentv.assertions.judged.rubric import LlmRubric
from agentv.extensions.agents.assertions.workspace_files import NO_WORKSPACE
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Grade
from agentv.model.run.rubric import Rubric
from agentv.model.suite.suite import AGENT_JUDGE_TIMEOUT_S
from agentv.model.values.response import Failure
from agentv.registry.fields import Issue


@dataclass(frozen=True, slots=True)
class AgentRubric(LlmRubric):
    """An agent grades by a rubric after it looked at a copy of the workspace."""

    needs_agent: ClassVar[bool] = True
    timeout_s: ClassVar[float | None] = AGENT_JUDGE_TIMEOUT_S

    def validate(self) -> Iterable[Issue]:
        """As of `llm-rubric`; its judge takes steps, so that they can be limited."""
        return (one for one in LlmRubric.validate(self) if one.path != ("max_steps",))

    def missing_inputs(self, variables: object, *, reference: bool, criteria: bool) -> Iterator[Issue]:
        """Something to judge by."""
        del variables, reference
        if self.value is None and self.prompt is None and not criteria:
            message = "'agent-rubric' needs 'value' or 'prompt', or 'criteria' of the case"
            yield Issue((), message, "missing-key")

    def rubric(self, criteria: str | None) -> Rubric | None:
        """The question, with the instruction to look at the files."""
        found = LlmRubric.rubric(self, criteria)
        return None if found is None else replace(found, looks=True)

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
        place = changed(place, max_turns=self.max_steps)
        grade = await LlmRubric.grade(self, changed(context, judge_workspace=place))
        if await workspace.is_as(place.sha256):
            return grade
        why = Failure("workspace-failed", "the judge changed the workspace that it was to look at")
        return replace(grade, score=0.0, passed=False, checks=(), reason=why.message, error=why)
