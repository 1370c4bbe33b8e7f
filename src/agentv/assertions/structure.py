"""The structure family: assertions inside an assertion (SPEC sections 7.2 and 10)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Annotated, ClassVar

from agentv.model.context import AssertionContext
from agentv.model.grade import Check, Grade
from agentv.model.response import TokenUsage
from agentv.model.trial import Score
from agentv.model.values import Json
from agentv.model.verdict import ZERO_HINT, combined, counts, excludes_nothing, passes_gate
from agentv.registry.fields import DeclaredAssertion, Doc, Entries, Fault, Fraction, Older


@dataclass(frozen=True, slots=True)
class AssertSet(DeclaredAssertion):
    """Several assertions that count as one: their weighted mean against a threshold."""

    assert_: Annotated[
        Entries, Older(("assertions", "evaluators")), Doc("the assertions of the set; sets nest to any depth")
    ]
    threshold: Annotated[Fraction | None, Doc("pass mark of the set; without it the case's")] = None

    short: ClassVar[str | None] = "assert"
    timeout_s: ClassVar[float | None] = math.inf  # each assertion of the set has a limit of its own

    def label(self) -> str:
        """How many assertions it holds."""
        return f"{len(self.assert_)} assertion{'s' if len(self.assert_) != 1 else ''}"

    def faults(self) -> Iterable[Fault]:
        """A set that checks nothing."""
        if not self.assert_:
            yield Fault(("assert_",), "the set is empty, so it checks nothing", "missing-value")
        elif not any(entry.settings.weight or entry.settings.required is not False for entry in self.assert_):
            message = "every assertion of the set has weight 0 and none is required, so it checks nothing"
            yield Fault(("assert_",), message)
        if excludes_nothing(self.threshold, self.assert_):
            message = "with a threshold of 0 every answer passes this set"
            yield Fault(("threshold",), message, "zero-threshold", ZERO_HINT, warning=True)

    async def grade(self, context: AssertionContext) -> Grade:
        """Grade the set's assertions and combine them as a case's are. An errored one errs the set."""
        scores = await context.services.grade(self.assert_, context)
        threshold = context.threshold if self.threshold is None else self.threshold
        whole = combined(scores, threshold)
        return Grade(
            score=whole.score,
            passed=whole.passed,
            checks=tuple(_checks(scores)) if whole.error is None else (),
            reason=whole.error.message if whole.error is not None else "; ".join(_remarks(scores)) or None,
            details={"threshold": threshold, "scores": [_shown(score) for score in scores]},
            error=whole.error,
            own_mark=True,
            cost_usd=_cost(scores),
            token_usage=_usage(scores),
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
            yield f"{score.entry.name} could not be judged: {score.grade.error.message}"
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


def _cost(scores: Sequence[Score]) -> float | None:
    costs = [score.grade.cost_usd for score in scores if score.grade.cost_usd is not None]
    return sum(costs) if costs else None


def _usage(scores: Sequence[Score]) -> TokenUsage | None:
    usages = [score.grade.token_usage for score in scores if score.grade.token_usage is not None]
    return reduce(add, usages) if usages else None
