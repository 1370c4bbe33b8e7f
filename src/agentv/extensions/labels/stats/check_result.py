"""What labels by people say of the judges of a run."""

from __future__ import annotations

from dataclasses import dataclass

from agentv.extensions.labels.stats.agreement import ConfusionMatrix, JudgeAccuracy
from agentv.extensions.labels.stats.corrected import MoreLabels
from agentv.extensions.labels.stats.posterior import Estimated
from agentv.model.run.labelled.labels import Label, LabelVerdict

FEW = 10
"""Labelled answers below which numbers come with a warning."""


@dataclass(frozen=True, slots=True)
class LabelCounts:
    """The labels of a judge's answers, and those that do not count for it.

    Attributes:
        labels: pass or fail, one for each person and answer.
        people: who gave them.
        unsure: labels that say neither.
        ties: answers that as many people pass as fail.
        not_drawn: of the labels those of answers that were not drawn at random: they do not correct the pass rate.
        other_judge: labels of these answers that were given beside another judge model or prompt.
        other_rubric: labels of these answers by a rubric that has changed.
        other_outputs: labels of other answers, such as those of another run.
        impossible_time: labels with a time before 2000, or more than a day from now.
    """

    labels: int = 0
    people: int = 0
    unsure: int = 0
    ties: int = 0
    not_drawn: int = 0
    other_judge: int = 0
    other_rubric: int = 0
    other_outputs: int = 0
    impossible_time: int = 0


@dataclass(frozen=True, slots=True)
class PeopleAgreement:
    """How far people agree with each other.

    Attributes:
        answers: with two labels or more.
        agreement: share of pairs of labels of an answer that agree.
        alpha: Krippendorff's; None where it is undefined, as all labels are alike.
    """

    answers: int
    agreement: float
    alpha: Estimated | None


@dataclass(frozen=True, slots=True)
class MeanScore:
    """The mean score of answers on a scale, 0..1.

    Attributes:
        judge: by the judge, over all trials.
        corrected: as people would give it; None: too few labels have points.
        answers: with points by people.
    """

    judge: float
    corrected: Estimated | None
    answers: int


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An answer on which the judge and most people differ.

    Attributes:
        labels: (person, verdict, note).
        target, prompt, variant: of a trial with this answer; None: labels alone do not say.
    """

    case: str
    suite: str
    run: str
    judge_passed: bool
    labels: tuple[tuple[str, LabelVerdict, str], ...]
    target: str | None = None
    prompt: str | None = None
    variant: str | None = None


@dataclass(frozen=True, slots=True)
class CheckedJudge:
    """How good the judge of one assertion is.

    Attributes:
        matrix: labelled answers, by the majority of people.
        judge_rate: the judge's own pass rate over all trials, with Wilson's interval, which is None for one cluster.
        accuracy, corrected, more: None without labels that were drawn.
        mean_score: None: the rubric has no scale, or there are no labels that were drawn.
        transferred: the pass rate corrected by labels of other answers; None: there are labels of these, or too few.
        transferred_answers: number of labelled answers of other runs.
        left_out: a rubric that labels leave out, so that no pass rate is corrected by them; None: there is none.
    """

    assertion: str
    model: str
    judge: str
    counts: LabelCounts
    matrix: ConfusionMatrix
    judge_rate: tuple[float, tuple[float, float] | None]
    people: PeopleAgreement | None = None
    disagreements: tuple[Disagreement, ...] = ()
    accuracy: JudgeAccuracy | None = None
    corrected: Estimated | None = None
    more: MoreLabels | None = None
    mean_score: MeanScore | None = None
    transferred: Estimated | None = None
    transferred_answers: int = 0
    left_out: str | None = None


@dataclass(frozen=True, slots=True)
class JudgeCheck:
    """The judges of a run, or of a file of labels.

    Attributes:
        run: its id; None: the labels alone.
        changed: labels that replaced another verdict of the same person.
    """

    run: str | None
    judges: tuple[CheckedJudge, ...]
    changed: tuple[Label, ...] = ()
