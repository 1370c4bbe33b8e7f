"""Answers that a judge graded, and that are drawn to be labelled."""

from __future__ import annotations

from msgspec import Struct

from agentv.model.run.clusters import ClusterId
from agentv.model.run.grade import PLACES, AskedJudge
from agentv.model.run.labelled.labels import LabelItem, LabelKey, LabelVerdict


class PointScale(Struct, frozen=True):
    """The scale of a rubric: lowest and highest points, and those at which an answer passes."""

    low: int
    high: int
    passing: int

    def score(self, points: int) -> float:
        """The score of points, 0..1, as the judge's.

        Raises:
            ValueError: the scale has no such points.
        """
        if not self.low <= points <= self.high:
            raise ValueError(f"the scale is from {self.low} to {self.high}")
        return round((points - self.low) / (self.high - self.low), PLACES)

    def points(self, score: float) -> int:
        """The points of a score."""
        return round(self.low + score * (self.high - self.low))

    def verdict(self, points: int) -> LabelVerdict:
        """Whether points pass."""
        return "pass" if points >= self.passing else "fail"


class GradedAnswer(Struct, frozen=True):
    """An answer with the grade of a judge. Trials of a case with the same answer and verdict are one of them.

    Attributes:
        input, output, reference: as text; the reference is empty if there is none.
        retrieved: texts that were retrieved for the answer.
        passed: the verdict of the judge, hidden until the answer is labelled.
        reason: of the judge.
        trials: how many there are.
        score: of the judge, 0..1.
        scale: of the rubric; None: it has none.
        prompt, variant: of the trial, with its target; None: the run has one of them, or none.
    """

    suite: str
    case: str
    target: str
    assertion: str
    input: str
    output: str
    output_sha256: str
    reference: str
    retrieved: tuple[str, ...]
    asked: AskedJudge
    passed: bool
    reason: str | None
    cluster: ClusterId
    trials: int = 1
    score: float = 0.0
    scale: PointScale | None = None
    prompt: str | None = None
    variant: str | None = None

    @property
    def key(self) -> LabelKey:
        """What a label of it is of."""
        return self.case, self.output_sha256, self.asked.rubric_sha256

    @property
    def item(self) -> LabelItem:
        """As that of its labels."""
        return self.key, self.asked.model, self.asked.prompt_sha256, self.passed


class DrawnAnswer(Struct, frozen=True):
    """An answer to label.

    Attributes:
        probability: with which it was drawn from those with the same verdict.
        drawn_from: how many trials there are with that verdict.
    """

    answer: GradedAnswer
    probability: float
    drawn_from: int
