"""Confidence interval of a proportion, bounds on unseen cases, and counts of a binary classification."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, log, sqrt

from agentv.model.run.matrix import MeasuredShare
from agentv.model.run.summary import Activation, ConfusionCell, SkillShares

USUAL = 0.95


USUAL_QUANTILE = 1.9599639845400536
"""Quantile for `USUAL`, equal to that of `statistics.NormalDist` to the last bit."""


def wilson_interval(successes: int, trials: int, confidence: float = USUAL) -> tuple[float, float]:
    """Wilson's score interval of a proportion, without continuity correction: (low, high), both in 0..1.

    Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927),
    209–212; method 3 in R. G. Newcombe, "Two-sided confidence intervals for the single proportion", Statistics in
    Medicine 17 (1998), 857–872, whose table I is in the tests.

    Raises:
        ValueError: there are no trials, more successes than trials, or `confidence` is out of range.
    """
    if not 0 <= successes <= trials or not trials:
        raise ValueError(f"no proportion: {successes} of {trials}")
    return interval_at(successes / trials, trials, confidence)


def interval_at(share: float, effective: float, confidence: float = USUAL) -> tuple[float, float]:
    """Wilson's interval of a share with this effective sample size: (low, high), both in 0..1.

    Args:
        share: a rate or a mean score, 0..1.
        effective: effective sample size, above 0, not necessarily whole.
        confidence: strictly between 0 and 1.
    """
    z = quantile(confidence)
    scale = 1 + z * z / effective
    centre = (share + z * z / (2 * effective)) / scale
    reach = z * sqrt(share * (1 - share) / effective + z * z / (4 * effective * effective)) / scale
    # at the ends, the formula gives 0 and 1 up to rounding
    low = 0.0 if share <= 0 else max(0.0, centre - reach)
    high = 1.0 if share >= 1 else min(1.0, centre + reach)
    return low, high


@lru_cache(maxsize=8)
def quantile(confidence: float) -> float:
    """The two-sided quantile of the standard normal distribution: 1.96 for 0.95."""
    if confidence == USUAL:
        return USUAL_QUANTILE
    from statistics import NormalDist  # takes 5 ms, and every summary uses the usual confidence

    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, found {confidence}")
    return NormalDist().inv_cdf((1 + confidence) / 2)


def unseen_share(seen: int, level: float = USUAL) -> float:
    """Upper bound on the share of different cases after `seen` cases that were all the same.

    The bound is 1 − ((1 − level)/2)^(1/seen), the upper end of the exact interval of 0 of `seen`. At level 0.95, it is
    about 3.7 divided by `seen`. R:
    `binom.test(0, seen, conf.level = level)$conf.int[2]`.

    Source: C. J. Clopper, E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case of the
    binomial", Biometrika 26 (1934), 404–413.
    """
    if seen < 1:
        raise ValueError(f"nothing was seen: {seen}")
    return float(1 - ((1 - level) / 2) ** (1 / seen))


def cases_for_share(share: float, level: float = USUAL) -> int:
    """Number of cases, all the same, that bound the share of different cases by `share`: the inverse of `unseen_share`.

    Args:
        share: above 0; one case is enough for a share of 1 or more.
        level: confidence level, as in `unseen_share`.
    """
    return 1 if share >= 1 else ceil(log((1 - level) / 2) / log(1 - share))


@dataclass(frozen=True, slots=True)
class Classified:
    """The confusion counts of a binary classification.

    Attributes:
        true_positives, false_positives: cases classified as yes, rightly and wrongly.
        false_negatives, true_negatives: cases classified as no, wrongly and rightly.
    """

    true_positives: int = 0
    false_positives: int = 0
    false_negatives: int = 0
    true_negatives: int = 0

    @property
    def total(self) -> int:
        """Number of all classified cases."""
        return self.true_positives + self.false_positives + self.false_negatives + self.true_negatives

    def precision(self, confidence: float = USUAL) -> MeasuredShare | None:
        """TP / (TP + FP), or None if nothing was classified as yes."""
        return _share(self.true_positives, self.true_positives + self.false_positives, confidence)

    def recall(self, confidence: float = USUAL) -> MeasuredShare | None:
        """TP / (TP + FN), or None if there are no positives."""
        return _share(self.true_positives, self.true_positives + self.false_negatives, confidence)

    def f1(self, confidence: float = USUAL) -> MeasuredShare | None:
        """2·TP / (2·TP + FP + FN), or None if there are no positives and nothing was classified as yes."""
        union = self.true_positives + self.false_positives + self.false_negatives
        jaccard = _share(self.true_positives, union, confidence)
        if jaccard is None:
            return None
        low, high = map(_f1_of, jaccard.interval)
        return MeasuredShare(_f1_of(jaccard.value), (low, high))

    def of_skill(self, skill: str) -> SkillShares:
        """The counts and measures of a skill: positives are the queries that should load it."""
        counts = (self.true_positives, self.false_positives, self.false_negatives, self.true_negatives)
        return SkillShares(skill, *counts, self.precision(), self.recall(), self.f1())


Query = tuple[str | None, Collection[str]]
"""The skill that a query should load (None for no skill), and the skills that it loaded."""


def activation_of(suite: str, queries: Iterable[Query], skills: Iterable[str]) -> Activation:
    """Measures of each skill and the confusion matrix, from judged queries.

    Args:
        suite: name of the suite or prompt.
        queries: each query once.
        skills: all skills that could be loaded.
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
