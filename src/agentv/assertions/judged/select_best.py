"""`select-best`: a judge chooses the best of the answers to a case from all prompts and targets (SPEC 7.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec.structs import replace

from agentv.assertions.evidence import excerpt, quoted
from agentv.assertions.judged.rubric import unjudged
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Check, Grade
from agentv.model.run.rubric import Choice
from agentv.model.suite.suite import JUDGE_TIMEOUT_S
from agentv.model.values.response import Failure
from agentv.registry.fields import Alias, DeclaredAssertion, Doc, FileText

ALONE = Grade.errored("nothing-to-choose", "there is only one answer, so there is nothing to choose from")


@dataclass(frozen=True, slots=True)
class SelectBest(DeclaredAssertion):
    """A judge chooses this answer as the best of those to the case from all prompts and targets."""

    value: Annotated[FileText, Alias(("criteria",)), Doc("the criterion to choose the best answer by")]
    judge: Annotated[
        str | None,
        Alias(("target", "judge_target", "provider", "model")),
        Doc("the judge of this assertion; default: the judge in effect"),
    ] = None

    needs_judge: ClassVar[bool] = True
    compares: ClassVar[bool] = True
    timeout_s: ClassVar[float | None] = 2 * JUDGE_TIMEOUT_S  # it asks twice

    def label(self) -> str:
        """The criteria."""
        return quoted(self.value)

    def grade(self, context: AssertionContext) -> Grade:
        """An errored grade: nothing is best alone."""
        del context
        return ALONE

    async def choose(self, contexts: Sequence[AssertionContext]) -> tuple[Grade, ...]:
        """The grade of each answer, in their order: the best one passes. A tie has no best one.

        Only the first grade has the cost of the judge.
        """
        if len(contexts) < 2:  # one is no choice
            return (ALONE,) * len(contexts)
        choice = await contexts[0].services.judge(self.judge).choose(self.value, contexts)
        if isinstance(choice, Failure):
            first = unjudged(choice)
            other = replace(first, token_usage=None, cost_usd=None)  # spent once for all of them
            return (first, *[other] * (len(contexts) - 1))
        return tuple(self._graded(choice, place) for place in range(len(contexts)))

    def _graded(self, choice: Choice, place: int) -> Grade:
        votes = choice.best.count(place)
        passed = votes == len(choice.best)
        tied = len(set(choice.best)) > 1
        reasons = [
            why
            for best, why in zip(choice.best, choice.reasons, strict=True)
            if why and (tied or best == place or not votes)
        ]
        reason = excerpt(" / ".join(dict.fromkeys(reasons)), 1_000) or None
        if tied:
            reason = f"a tie: in the opposite order, the judge chose another answer{f': {reason}' if reason else ''}"
        first = place == 0
        return Grade(
            score=votes / len(choice.best),
            passed=passed,
            checks=(Check(f"is the best answer: {quoted(self.value)}", passed, f"chosen in {votes} of 2 orders"),),
            reason=reason,
            has_own_threshold=True,
            cost_usd=choice.cost_usd if first else None,
            token_usage=choice.token_usage if first else None,
        )
