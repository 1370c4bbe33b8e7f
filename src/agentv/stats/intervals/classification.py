"""Precision, recall and F1 of a yes-or-no classification, with confidence intervals.

Precision and recall are shares, and have Wilson's interval. F1 is their harmonic mean, 2·TP / (2·TP + FP + FN), which
is no share of anything that was drawn; but with J = TP / (TP + FP + FN), the Jaccard index, it is 2·J / (1 + J). J is a
share, of those that were right among all that were said or should have been, and F1 grows with it, so the ends of J's
interval become the ends of F1's.

Sources: C. J. van Rijsbergen, Information Retrieval, 2nd ed. (1979), chapter 7, for the measures; K. F. Y. Lam,
V. Gopal, J. Qian, "Confidence intervals for the F1 score: a comparison of four methods" (arXiv:2309.14621), where the
interval of F1 is the "Wilson indirect method".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from agentv.model.run.matrix import MeasuredShare
from agentv.model.run.summary import Activation, ConfusionCell, SkillShares
from agentv.stats.intervals.proportion import USUAL, wilson_interval


@dataclass(frozen=True, slots=True)
class Classified:
    """The four counts of a yes-or-no question with known answers.

    Attributes:
        true_positives, false_positives: yes was said, rightly and wrongly.
        false_negatives, true_negatives: no was said, wrongly and rightly.
    """

    true_positives: int = 0
    false_positives: int = 0
    false_negatives: int = 0
    true_negatives: int = 0

    @property
    def total(self) -> int:
        """All that was judged."""
        return self.true_positives + self.false_positives + self.false_negatives + self.true_negatives

    def precision(self, confidence: float = USUAL) -> MeasuredShare | None:
        """TP / (TP + FP): how often yes was right. None where yes was never said."""
        return _share(self.true_positives, self.true_positives + self.false_positives, confidence)

    def recall(self, confidence: float = USUAL) -> MeasuredShare | None:
        """TP / (TP + FN): how much of what is yes was found. None where nothing is."""
        return _share(self.true_positives, self.true_positives + self.false_negatives, confidence)

    def f1(self, confidence: float = USUAL) -> MeasuredShare | None:
        """2·TP / (2·TP + FP + FN). None where yes was never said and nothing is: there is nothing to be found."""
        union = self.true_positives + self.false_positives + self.false_negatives
        jaccard = _share(self.true_positives, union, confidence)
        if jaccard is None:
            return None
        low, high = map(_f1_of, jaccard.interval)
        return MeasuredShare(_f1_of(jaccard.value), (low, high))

    def of_skill(self, skill: str) -> SkillShares:
        """The counts and the measures, for queries that load this skill, or should."""
        counts = (self.true_positives, self.false_positives, self.false_negatives, self.true_negatives)
        return SkillShares(skill, *counts, self.precision(), self.recall(), self.f1())


Query = tuple[str | None, Collection[str]]
"""The skill that a query should load, or None, and those that it loaded."""


def activation_of(suite: str, queries: Iterable[Query], skills: Iterable[str]) -> Activation:
    """What judged queries show of each skill.

    Args:
        suite: name of what they were asked about.
        queries: each once.
        skills: all that could be loaded.
    """
    found = list(queries)
    shares = [
        Classified(
            sum(name == wanted and name in loaded for wanted, loaded in found),
            sum(name != wanted and name in loaded for wanted, loaded in found),
            sum(name == wanted and name not in loaded for wanted, loaded in found),
            sum(name != wanted and name not in loaded for wanted, loaded in found),
        ).of_skill(name)
        for name in skills
    ]
    cells = Counter((wanted, name) for wanted, loaded in found for name in loaded or (None,))
    order = sorted(cells, key=lambda cell: [(name is None, name or "") for name in cell])
    right = sum(set(loaded) == ({wanted} - {None}) for wanted, loaded in found)
    confusion = tuple(ConfusionCell(*cell, cells[cell]) for cell in order)
    return Activation(suite, len(found), right, tuple(shares), confusion)


def _share(part: int, whole: int, confidence: float) -> MeasuredShare | None:
    return MeasuredShare(part / whole, wilson_interval(part, whole, confidence)) if whole else None


def _f1_of(jaccard: float) -> float:
    return 2 * jaccard / (1 + jaccard)
