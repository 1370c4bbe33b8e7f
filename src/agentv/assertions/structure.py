"""The structure family: assertions inside an assertion (SPEC sections 7.2 and 10)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec.structs import replace

from agentv.assertions.aggregators import AGGREGATOR, Aggregator, with_results
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Check, Grade, reaches, spent_on
from agentv.model.run.trial import Score
from agentv.model.run.verdict import ZERO_HINT, Combined, combined, counts, excludes_nothing, passes_gate
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.values.values import Json
from agentv.registry.fields import Alias, CallTimeTemplate, DeclaredAssertion, Doc, Entries, Fraction, Issue


@dataclass(frozen=True, slots=True)
class AssertSet(DeclaredAssertion):
    """Several assertions that count as one: their weighted mean is compared with a threshold."""

    assert_: Annotated[
        Entries, Alias(("assertions", "evaluators")), Doc("the assertions of the set; sets can be nested to any depth")
    ]
    threshold: Annotated[Fraction | None, Doc("minimum score of the set to pass; default: the case's threshold")] = None
    aggregator: Annotated[
        Aggregator | None,
        CallTimeTemplate(),
        Doc("how the grades become one; default: their weighted mean, compared with the threshold"),
    ] = None

    short: ClassVar[str | None] = "assert"
    timeout_s: ClassVar[float | None] = math.inf  # each assertion of the set has a limit of its own

    @property
    def inner(self) -> tuple[AssertionEntry, ...]:
        """Its assertions, and then its aggregator if that runs code or calls a judge."""
        entry = self.aggregator.entry if self.aggregator is not None else None
        known = entry is None or any(one.type == AGGREGATOR for one in self.assert_)
        return self.assert_ if known or entry is None else (*self.assert_, entry)

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
        if self.aggregator is not None:
            yield from self._aggregator_issues(self.aggregator)
        if excludes_nothing(self.threshold, self.assert_):
            message = "with threshold: 0, every answer passes this set"
            yield Issue(("threshold",), message, "zero-threshold", ZERO_HINT, warning=True)

    async def grade(self, context: AssertionContext) -> Grade:
        """Grade the set's assertions and combine them as a case's are. An errored one errs the set."""
        children = tuple(entry for entry in self.inner if entry.type != AGGREGATOR)
        scores = await context.services.grade(children, context)
        threshold = context.threshold if self.threshold is None else self.threshold
        if self.aggregator is not None:
            return await self._aggregated(self.aggregator, scores, context, threshold)
        whole = combined(scores, threshold)
        cost, usage = spent_on(score.grade for score in scores)
        return Grade(
            score=whole.score,
            passed=whole.passed,
            checks=tuple(_checks(scores)) if whole.error is None else (),
            reason=whole.error.message if whole.error is not None else "; ".join(_notes(scores)) or None,
            details={"threshold": threshold, "scores": [_shown(score) for score in scores]},
            error=whole.error,
            has_own_threshold=True,
            cost_usd=cost,
            token_usage=usage,
            undecided=not whole.passed and any(score.grade.undecided and counts(score) for score in scores),
            needs=threshold,
        )

    async def _aggregated(
        self, aggregator: Aggregator, scores: Sequence[Score], context: AssertionContext, threshold: float
    ) -> Grade:
        """The grade that the aggregator makes of the grades, whose score counts as it is.

        It counts as failed, not by its score, where the set has a threshold of its own or a required grade falls.
        """
        whole, check = aggregator.count(scores, threshold)
        graders = [entry for entry in self.inner if entry.type == AGGREGATOR]
        made: tuple[Score, ...] = ()
        if graders and whole.error is None:
            weighed = [replace(score, entry=aggregator.weighed(score.entry)) for score in scores]
            made = await context.services.grade(graders, with_results(context, weighed, threshold))
            whole = _judged_by(made[0].grade, gated=all(map(passes_gate, scores)))
        cost, usage = spent_on(score.grade for score in (*scores, *made))
        checks = ((check,) if check is not None else made[0].grade.checks if made else ()) if not whole.error else ()
        gated = all(map(passes_gate, scores))
        has_own = bool(made) and made[0].grade.has_own_threshold
        return Grade(
            score=whole.score,
            passed=whole.passed and (self.threshold is None or reaches(whole.score, self.threshold)),
            checks=(*checks, *_checks(scores)) if whole.error is None else (),
            reason=whole.error.message
            if whole.error is not None
            else "; ".join([*_notes(scores), *(score.grade.reason for score in made if score.grade.reason)]) or None,
            details={
                "threshold": threshold,
                "scores": [_shown(score) for score in scores],
                **({"aggregator": aggregator.type} if aggregator.type == "llm" else {}),
            },
            error=whole.error,
            has_own_threshold=self.threshold is not None or not gated or has_own,
            cost_usd=cost,
            token_usage=usage,
            undecided=not whole.passed and any(score.grade.undecided and counts(score) for score in scores),
            needs=self.threshold,
        )

    def _aggregator_issues(self, aggregator: Aggregator) -> Iterator[Issue]:
        """Reports weights of no assertion, two weights of one, weights that sum to 0, and two thresholds."""
        names = [entry.name for entry in self.assert_]
        for name in aggregator.weights or {}:
            if name not in names:
                hint = f"the set has {', '.join(repr(one) for one in names[:_SHOWN])}"
                message = f"no assertion of the set is called '{name}'"
                yield Issue(("aggregator", "weights", name), message, "unknown-key", hint)
        for place, entry in enumerate(self.assert_):
            if entry.name in (aggregator.weights or {}) and entry.settings.weight != 1:
                message = f"'{entry.name}' has a weight of its own and one in 'weights'; keep one of them"
                yield Issue(("assert_", place, "weight"), message, "two-spellings")
        weighed = [aggregator.weighed(entry).settings for entry in self.assert_]
        if aggregator.weights and not any(one.weight or one.required is not False for one in weighed):
            yield Issue(("aggregator", "weights"), "every assertion of the set has weight 0, so it checks nothing")
        if self.threshold is not None and aggregator.type in ("threshold", "all", "any"):
            message = f"'threshold' of the set has no meaning with an aggregator of type: {aggregator.type}"
            yield Issue(("threshold",), message, hint="put it under 'aggregator', with type: threshold")


def _judged_by(grade: Grade, *, gated: bool) -> Combined:
    return Combined(grade.score, grade.passed and gated, grade.error)


_SHOWN = 10


def _checks(scores: Iterable[Score]) -> Iterator[Check]:
    for score in scores:
        name, grade = score.entry.name, score.grade
        for check in grade.checks:
            yield Check(f"{name}: {check.text}", check.passed, check.evidence, check.spans)
        if not grade.checks and grade.error is None:
            yield Check(name, grade.passed, grade.reason)


def _notes(scores: Iterable[Score]) -> Iterator[str]:
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
