"""Grades of answers by assertions, and their arithmetic (SPEC sections 7.1 and 10)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.model.values.response import Failure
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import EMPTY, JsonObject, always

TOLERANCE = 1e-9
"""How far below the threshold a score still passes, to allow for rounding in weighted means."""

PLACES = 12
"""Decimal places of computed scores, so that negating a score twice gives the same number."""

NOT = "not: "
"""Prefix of the text of a negated check."""


class Check(Struct, frozen=True, omit_defaults=True):
    """One line of evidence inside a grade.

    Attributes:
        spans: the positions that it found in the answer: start and end, in characters.
    """

    text: str
    passed: bool
    evidence: str | None = always(None)
    spans: tuple[tuple[int, int], ...] = ()


class AskedJudge(Struct, frozen=True):
    """The judge and the rubric of a grade, by which it is matched with human labels.

    Attributes:
        judge: name of the judge.
        model: provider and model, or provider and a hash of the settings if it has no model.
        rubric: the rubric in readable form.
        rubric_sha256: hash of the rubric alone.
        prompt_sha256: hash of the judge prompt and of the settings that affect the judge's decision.
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
        has_own_threshold: whether `passed` counts instead of `score`, because the type has its own threshold or the
            grader itself decided that the answer fails.
        threshold_checks: number of checks at the end that only say whether the score reaches a threshold.
        cost_usd: cost of the judge or script for this grade, in US dollars.
        undecided: whether it fails because the judge's reply has no verdict, so that its negation fails too.
        asked_judge: the judge that graded; None if no judge did.
        needs: threshold of the score; None if the grade is not decided by a threshold.
        note: a remark about the grader, such as that its score was outside of 0 to 1.
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
        """Return the grade of a check that either passes or fails."""
        return cls(1.0 if passed else 0.0, passed, (Check(text, passed, evidence),))

    @classmethod
    def errored(cls, code: str, message: str, *, details: JsonObject = EMPTY) -> Grade:
        """Return the grade of an assertion that could not grade."""
        return cls(0.0, False, (), message, details, Failure(code, message))

    def negated(self) -> Grade:
        """Return the exact complement: score, verdict and all checks inverted. Errored grades are unchanged."""
        if self.error is not None or self.undecided:
            return self
        checks = [Check(_negated(check.text), not check.passed, check.evidence, check.spans) for check in self.checks]
        # without `replace`, which is slower: this runs for every negated assertion of every case
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
        """Return the grade without positions, for a text that is not the answer itself, such as a transformed one."""
        if not any(check.spans for check in self.checks):
            return self
        return replace(self, checks=tuple(replace(check, spans=()) for check in self.checks))

    def passing_at(self, mark: float) -> Grade:
        """Return the grade decided by another threshold. Errored grades are unchanged."""
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
        """Return the grade that must also reach the case's threshold, with a failed check if it does not.

        Grades with their own threshold, errored grades and failed grades are unchanged.
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
    """Return Σ weight × score / Σ weight over (weight, score) pairs; 1.0 if no weight is positive.

    Source: SPEC section 10.
    """
    weights = total = 0.0
    for weight, score in pairs:
        weights += weight
        total += weight * score
    return round(total / weights, PLACES) if weights else 1.0


def spent_on(grades: Iterable[Grade]) -> tuple[float | None, TokenUsage | None]:
    """Return the total cost in US dollars and the total tokens; None if no grade reports them.

    The cost is also None if a grade with tokens has no price, because the sum of the others would be too low.
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
    """The result of a custom assertion; `passed` or `score` is required.

    Attributes:
        passed: the verdict; None to pass if `score >= 0.5`.
        score: 0..1, clamped; None for 1 if passed, else 0.
        assertions: one check per aspect.
        details: any data, kept in the row.
    """

    passed: bool | None = None
    score: float | None = None
    assertions: Sequence[Check] = ()
    reason: str | None = None
    details: JsonObject = field(default=EMPTY)
