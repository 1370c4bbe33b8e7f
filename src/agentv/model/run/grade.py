"""Grades of answers by assertions, and their arithmetic (SPEC sections 7.1 and 10)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.model.values.response import Failure
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import EMPTY, JsonObject, always

TOLERANCE = 1e-9
"""How far below its pass mark a score may lie and still pass: the rounding of a weighted mean."""

PLACES = 12
"""Decimal places that computed scores keep, so that taking the complement twice gives the same number back."""

NOT = "not: "
"""What the text of a check begins with when it was inverted."""


class Check(Struct, frozen=True, omit_defaults=True):
    """One line of evidence inside a grade.

    Attributes:
        spans: the places in the answer that it found: start and end, in characters.
    """

    text: str
    passed: bool
    evidence: str | None = always(None)
    spans: tuple[tuple[int, int], ...] = ()


class AskedJudge(Struct, frozen=True):
    """Which judge graded, and by what: labels by people are matched with grades by it.

    Attributes:
        judge: its name.
        model: provider and model; provider and a hash of the settings if it has no model.
        rubric: what the answer had to do, as a person can read it.
        rubric_sha256: of the rubric alone.
        prompt_sha256: of the judge prompt, and of the settings that change how the judge decides.
    """

    judge: str
    model: str
    rubric: str
    rubric_sha256: str
    prompt_sha256: str


class Grade(Struct, frozen=True):
    """A score from 0 to 1, a verdict, and the checks behind it.

    An errored grade has `error` set; its score and verdict mean nothing and are never averaged.

    Attributes:
        has_own_threshold: the type has its own threshold, or the grader itself said that the answer fails, so `passed`
            counts instead of `score`.
        threshold_checks: number of checks, at the end, that only say whether the score reaches a threshold.
        cost_usd: what the judge or script spent on this grade, in US dollars.
        undecided: it fails because the judge's reply has no verdict, so its negation fails too.
        asked_judge: which judge gave it; None: no judge did.
        needs: the score at which it passes; None: it is right or wrong, or its grader decides otherwise.
        note: what is noteworthy about the grader, such as a score outside of 0 to 1.
    """

    score: float
    passed: bool
    checks: tuple[Check, ...] = ()
    reason: str | None = None
    details: JsonObject = field(default=EMPTY)
    error: Failure | None = None
    has_own_threshold: bool = False
    cost_usd: float | None = None
    token_usage: TokenUsage | None = None
    undecided: bool = False
    threshold_checks: int = 0
    asked_judge: AskedJudge | None = None
    needs: float | None = None
    note: str | None = None

    @classmethod
    def of(cls, passed: bool, text: str, evidence: str | None = None) -> Grade:
        """The grade of a type that is either right or wrong."""
        return cls(1.0 if passed else 0.0, passed, (Check(text, passed, evidence),))

    @classmethod
    def errored(cls, code: str, message: str, *, details: JsonObject = EMPTY) -> Grade:
        """The grade of an assertion that could not grade."""
        return cls(0.0, False, (), message, details, Failure(code, message))

    def negated(self) -> Grade:
        """The exact complement: score, verdict and every check inverted. An errored grade is unchanged."""
        if self.error is not None or self.undecided:
            return self
        checks = [Check(_negated(check.text), not check.passed, check.evidence, check.spans) for check in self.checks]
        # written out: `replace` looks the fields up again, and this runs for every negated assertion of every case
        return Grade(
            round(1.0 - self.score, PLACES),
            not self.passed,
            tuple(checks),
            self.reason,
            self.details,
            None,
            self.has_own_threshold,
            self.cost_usd,
            self.token_usage,
            threshold_checks=self.threshold_checks,
            asked_judge=self.asked_judge,
            needs=None if self.needs is None else round(1.0 - self.needs, PLACES),
            note=self.note,
        )

    def without_spans(self) -> Grade:
        """The grade of a text that is not the answer, such as a transformed one."""
        if not any(check.spans for check in self.checks):
            return self
        return replace(self, checks=tuple(replace(check, spans=()) for check in self.checks))

    def passing_at(self, mark: float) -> Grade:
        """The same grade with another threshold; an errored grade is unchanged."""
        if self.error is not None or self.undecided:
            return self
        passed = reaches(self.score, mark)
        if not self.threshold_checks:
            return replace(self, passed=passed, has_own_threshold=False, needs=mark)
        first = len(self.checks) - self.threshold_checks
        judged = (replace(check, passed=passed) for check in self.checks[first:])
        checks = (*self.checks[:first], *judged)
        return replace(self, passed=passed, has_own_threshold=False, checks=checks, needs=mark)

    def required_at(self, threshold: float) -> Grade:
        """The same grade with the case's threshold as an additional requirement, with a check if it is missed.

        A grade whose type has its own threshold is unchanged, as are errored ones and those that do not pass.
        """
        if self.error is not None or self.has_own_threshold or not self.passed or reaches(self.score, threshold):
            return self
        text = f"required: the score reaches the case's threshold of {threshold:g}"
        check = Check(text, False, f"score {self.score:g}")
        failed = self.passing_at(threshold)
        return replace(failed, checks=(*failed.checks, check), threshold_checks=self.threshold_checks + 1)

    @property
    def counted(self) -> float:
        """The value for a weighted mean (SPEC section 10)."""
        if self.has_own_threshold:
            return 1.0 if self.passed else 0.0
        return self.score


def _negated(text: str) -> str:
    return text.removeprefix(NOT) if text.startswith(NOT) else NOT + text


def reaches(score: float, mark: float) -> bool:
    """Whether a score reaches a threshold, within the rounding error."""
    return score >= mark - TOLERANCE


def weighted_mean(pairs: Iterable[tuple[float, float]]) -> float:
    """Σ weight × score / Σ weight over (weight, score) pairs; 1.0 if no weight is positive.

    Source: SPEC section 10.
    """
    weights = total = 0.0
    for weight, score in pairs:
        weights += weight
        total += weight * score
    return round(total / weights, PLACES) if weights else 1.0


def spent_on(grades: Iterable[Grade]) -> tuple[float | None, TokenUsage | None]:
    """US dollars, and tokens; None if no grade reports them.

    The cost is also None if a part of it has no price, because the sum of the others would be too low.
    """
    cost: float | None = None
    usage: TokenUsage | None = None
    priced = True
    for grade in grades:
        if grade.cost_usd is not None:
            cost = (cost or 0.0) + grade.cost_usd
        if grade.token_usage is not None:
            usage = grade.token_usage if usage is None else usage + grade.token_usage
            priced = priced and grade.cost_usd is not None
    return cost if priced else None, usage


class AssertionScore(Struct, frozen=True):
    """The verdict of a custom assertion; `passed` or `score` is required.

    Attributes:
        passed: the verdict; None: `score >= 0.5` decides.
        score: 0..1, clamped; None: 1 if passed, else 0.
        assertions: one check per aspect.
        details: any data, kept in the row.
    """

    passed: bool | None = None
    score: float | None = None
    assertions: Sequence[Check] = ()
    reason: str | None = None
    details: JsonObject = field(default=EMPTY)
