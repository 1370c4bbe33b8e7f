"""The structure family: assertions inside an assertion (SPEC sections 7.2 and 10)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar

from agentv.lazy_dataclass import dataclass
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Check, Grade, spent_on
from agentv.model.run.trial import Score
from agentv.model.run.verdict import ZERO_HINT, combined, counts, excludes_nothing, passes_gate
from agentv.model.values.values import Json
from agentv.registry.fields import Alias, DeclaredAssertion, Doc, Entries, Fraction, Issue


@dataclass(frozen=True, slots=True)
class AssertSet(DeclaredAssertion):
    """Several assertions that count as one: their weighted mean is compared with a threshold."""

    assert_: Annotated[
        Entries, Alias(("assertions", "evaluators")), Doc("the assertions of the set; sets can be nested to any depth")
    ]
    threshold: Annotated[Fraction | None, Doc("minimum score of the set to pass; default: the case's threshold")] = None

    short: ClassVar[str | None] = "assert"
    timeout_s: ClassVar[float | None] = math.inf  # each assertion of the set has a limit of its own

    def label(self) -> str:
        """The number of assertions in it."""
        return f"{len(self.assert_)} assertion{'s' if len(self.assert_) != 1 else ''}"

    def validate(self) -> Iterable[Issue]:
        """Reports a set that checks nothing."""
        if not self.assert_:
            yield Issue(("assert_",), "the set is empty, so it checks nothing", "missing-value")
        elif not any(entry.settings.weight or entry.settings.required is not False for entry in self.assert_):
            message = "every assertion of the set has weight 0 and none is required, so it checks nothing"
            yield Issue(("assert_",), message)
        if excludes_nothing(self.threshold, self.assert_):
            message = "with threshold: 0, every answer passes this set"
            yield Issue(("threshold",), message, "zero-threshold", ZERO_HINT, warning=True)

    async def grade(self, context: AssertionContext) -> Grade:
        """Grade the set's assertions and combine them as a case's are. An errored one errs the set."""
        scores = await context.services.grade(self.assert_, context)
        threshold = context.threshold if self.threshold is None else self.threshold
        whole = combined(scores, threshold)
        cost, usage = spent_on(score.grade for score in scores)
        return Grade(
            score=whole.score,
            passed=whole.passed,
            checks=tuple(_checks(scores)) if whole.error is None else (),
            reason=whole.error.message if whole.error is not None else "; ".join(_remarks(scores)) or None,
            details={"threshold": threshold, "scores": [_shown(score) for score in scores]},
            error=whole.error,
            own_mark=True,
            cost_usd=cost,
            token_usage=usage,
            undecided=not whole.passed and any(score.grade.undecided and counts(score) for score in scores),
        )


def _checks(scores: Iterable[Score]) -> Iterator[Check]:
    for score in scores:
        name, grade = score.entry.name, score.grade
        for check in grade.checks:
            yield Check(f"{name}: {check.text}", check.passed, check.evidence)
        if not grade.checks and grade.error is None:
            yield Check(name, grade.passed, grade.reason)


def _remarks(scores: Iterable[Score]) -> Iterator[str]:
    """What the checks do not say: gates that fell, and errors that do not count."""
    for score in scores:
        if score.grade.error is not None:
            yield f"{score.entry.name} could not be graded: {score.grade.error.message}"
        elif not passes_gate(score):
            yield f"{score.entry.name} is required"


def _shown(score: Score) -> dict[str, Json]:
    """One assertion of the set, as the row's details show it."""
    shown: dict[str, Json] = {
        "name": score.entry.name,
        "type": score.entry.shown_type,
        "weight": score.entry.settings.weight,
        "required": score.entry.settings.required,
    }
    if score.grade.error is not None:
        return {**shown, "error": {"code": score.grade.error.code, "message": score.grade.error.message}}
    return {**shown, "score": score.grade.score, "pass": score.grade.passed}
