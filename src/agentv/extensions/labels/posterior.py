"""Posterior draws of a judge's rates, given people's labels. Every number about a judge is computed from them.

Three shares describe how a judge compares with people: how often a person passes what the judge passes, how often a
person passes what the judge fails, and how often the judge passes. Each has Jeffreys' prior, Beta(½, ½), and its own
counts, so labels may be drawn with different probabilities from what the judge passed and from what it failed. Every
other number is a function of the three, and its interval is taken over the draws of that function. This needs no normal
approximation, which fails at high pass rates and with few labels, and never divides by zero.

Clustered observations, and labels of unequal weights, count with their effective sample size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from math import fsum
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from agentv.stats.intervals.design_effect import ClusterSum, estimated_rate

if TYPE_CHECKING:
    import numpy as np


Draws: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.float64]]"
DRAWS = 40_000
"""Draws of each share; with these, the ends of an interval are accurate to about 0.1 points."""

LEVEL = 0.95
JEFFREYS = 0.5


class Estimated(Struct, frozen=True):
    """An estimate with its 95% interval."""

    value: float
    interval: tuple[float, float]

    @property
    def low(self) -> float:
        """Lower end of the interval."""
        return self.interval[0]

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        return self.interval[1]

    @property
    def reach(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2

    def at(self, value: float) -> Estimated:
        """Return another estimate with this interval, widened to contain it if necessary."""
        return Estimated(value, (min(self.low, value), max(self.high, value)))


class Counted(Struct, frozen=True):
    """Effective numbers of passes and failures, which need not be whole."""

    passed: float = 0.0
    failed: float = 0.0

    @property
    def total(self) -> float:
        """Effective sample size."""
        return self.passed + self.failed

    def drawn(self, chance: np.random.Generator, draws: int = DRAWS) -> Draws:
        """Draw the share of passes from its posterior with Jeffreys' prior."""
        return chance.beta(JEFFREYS + self.passed, JEFFREYS + self.failed, draws)


class Observation(Struct, frozen=True):
    """A pass or a failure.

    Attributes:
        weight: above 0, such as the number of trials that it represents, or one over its probability of being drawn.
        cluster: observations of the same cluster are correlated; None: a cluster of its own.
    """

    passed: bool
    cluster: Hashable = None
    weight: float = 1.0


def counted(observations: Iterable[Observation]) -> Counted:
    """Return the effective numbers of passes and failures."""
    found = list(observations)
    if not found:
        return Counted()
    weights = [one.weight for one in found]
    share = sum(one.weight for one in found if one.passed) / sum(weights)
    kish = sum(weights) ** 2 / sum(weight * weight for weight in weights)
    clusters: dict[Hashable, list[bool]] = {}
    for place, one in enumerate(found):
        clusters.setdefault((place,) if one.cluster is None else one.cluster, []).append(one.passed)
    rate = estimated_rate([ClusterSum(len(members), sum(members)) for members in clusters.values()])
    # a cluster is worth at least one observation, even if all in it agree; slightly less if clusters differ in size
    fewest = len(found) ** 2 / sum(len(members) ** 2 for members in clusters.values())
    effective = max(rate.effective, fewest) * kish / len(found)
    return Counted(share * effective, (1 - share) * effective)


class JudgeCounts(Struct, frozen=True):
    """Effective counts that describe a judge.

    Attributes:
        of_passed: labels of answers that the judge passed.
        of_failed: labels of answers that the judge failed.
        verdicts: the judge's verdicts on all answers of the run.
    """

    of_passed: Counted
    of_failed: Counted
    verdicts: Counted


class JudgedAnswer(Struct, frozen=True):
    """An answer of a run with the verdicts of the judge and of people.

    Attributes:
        judge: whether the judge passes it.
        person: whether people pass it; None if it has no label.
        cluster: answers of the same cluster are correlated; None: a cluster of its own.
        weight: number of trials that it represents.
        per_label: factor that makes its label also represent the unlabelled answers of its kind and verdict.
    """

    judge: bool
    person: bool | None = None
    cluster: Hashable = None
    weight: float = 1.0
    per_label: float = 1.0

    @property
    def label_weight(self) -> float:
        """Number of trials that its label represents, up to a factor common to all labels."""
        return self.weight * self.per_label


def judge_counts(answers: Iterable[JudgedAnswer]) -> JudgeCounts:
    """Return the counts of a judge on the answers of a run.

    Within clusters, the errors of the three shares are correlated, since a cluster that people pass is often one that
    the judge passes. So each count is limited by the design effect of the corrected rate, obtained by linearization.
    """
    found = list(answers)
    return counts_within(found, design_effect([one.cluster for one in found], list(_influences(found))))


def counts_within(answers: Sequence[JudgedAnswer], effect: float) -> JudgeCounts:
    """Return the counts of a judge, each limited by a design effect."""

    def labels(verdict: bool) -> list[Observation]:
        return [
            Observation(one.person, one.cluster, one.label_weight)
            for one in answers
            if one.judge is verdict and one.person is not None
        ]

    verdicts = [Observation(one.judge, one.cluster, one.weight) for one in answers]
    return JudgeCounts(
        of_passed=counted_within(labels(True), effect),
        of_failed=counted_within(labels(False), effect),
        verdicts=counted_within(verdicts, effect),
    )


def counted_within(observations: Sequence[Observation], effect: float) -> Counted:
    """Return the effective numbers of passes and failures, limited by a design effect."""
    if not observations:
        return Counted()
    clustered = counted(observations)
    alone = counted(Observation(one.passed, None, one.weight) for one in observations)
    factor = min(clustered.total, alone.total / effect) / clustered.total
    return Counted(clustered.passed * factor, clustered.failed * factor)


def design_effect(clusters: Sequence[Hashable], influences: Sequence[tuple[float, float]]) -> float:
    """Return the ratio of an estimate's variance to that without clusters, at least 1.

    With few clusters the variance is uncertain and underestimated. It is scaled by Student's t with the effective
    number of clusters as degrees of freedom, relative to that of observations without clusters.

    Args:
        clusters: cluster of each observation; None: a cluster of its own.
        influences: influence of each observation on the estimate, and its expected square.
    """
    if all(one is None for one in clusters):
        return 1.0
    summed: dict[Hashable, float] = {}
    variances: dict[Hashable, float] = {}
    for place, (cluster, (influence, variance)) in enumerate(zip(clusters, influences, strict=True)):
        known = (place,) if cluster is None else cluster
        summed[known] = summed.get(known, 0.0) + influence
        variances[known] = variances.get(known, 0.0) + variance
    squares = fsum(influence * influence for influence, _ in influences)
    if len(summed) == len(clusters) or not squares or not any(variances.values()):
        return 1.0
    effect = fsum(one * one for one in summed.values()) / squares
    return max(
        1.0, effect * _small_sample(variances.values()) / _small_sample([variance for _, variance in influences])
    )


def _influences(answers: Sequence[JudgedAnswer]) -> Iterator[tuple[float, float]]:
    """Yield each answer's influence on the corrected rate, and its expected square.

    The rate is linearized in the judge's verdict on the answer and in its label.
    """
    total = fsum(one.weight for one in answers)
    shares: dict[bool, tuple[float, float, float]] = {}
    for verdict in (True, False):
        whole = fsum(one.weight for one in answers if one.judge is verdict)
        labelled = fsum(one.label_weight for one in answers if one.judge is verdict and one.person is not None)
        passed = fsum(one.label_weight for one in answers if one.judge is verdict and one.person)
        shares[verdict] = whole / total, labelled, passed / labelled if labelled else float(verdict)
    truth = sum(share * rate for share, _, rate in shares.values())
    for one in answers:
        share, labelled, rate = shares[one.judge]
        influence = one.weight * (rate - truth) / total
        variance = influence * influence
        if one.person is not None:
            influence += one.label_weight * share * (one.person - rate) / labelled
            variance += (one.label_weight * share / labelled) ** 2 * rate * (1 - rate)
        yield influence, variance


def _small_sample(variances: Collection[float]) -> float:
    """Return the small-sample factor for the sum of these variances, by their effective number."""
    from agentv.stats.intervals.means import t_quantile

    number = max(2.0, fsum(variances) ** 2 / fsum(one * one for one in variances))
    return number / (number - 1) * t_quantile(number - 1, LEVEL) ** 2


class JudgeDraws(Struct, frozen=True):
    """Posterior draws of the three shares.

    Attributes:
        passed: P(person passes | judge passes).
        failed: P(person passes | judge fails).
        rate: P(judge passes).
    """

    passed: Draws
    failed: Draws
    rate: Draws

    @classmethod
    def of(cls, counts: JudgeCounts, seed: int = 0, draws: int = DRAWS) -> JudgeDraws:
        """Draw the shares from a judge's counts."""
        import numpy as np  # deferred: only checks of judges need numpy

        chance = np.random.default_rng(seed)
        passed = counts.of_passed.drawn(chance, draws)
        failed = counts.of_failed.drawn(chance, draws)
        return cls(passed, failed, rate=counts.verdicts.drawn(chance, draws))

    @property
    def truth(self) -> Draws:
        """The pass rate by people, which is the corrected rate."""
        return self.rate * self.passed + (1 - self.rate) * self.failed

    @property
    def true_positives(self) -> Draws:
        """TPR: P(judge passes | person passes)."""
        return self.rate * self.passed / self.truth

    @property
    def true_negatives(self) -> Draws:
        """TNR: P(judge fails | person fails)."""
        return (1 - self.rate) * (1 - self.failed) / (1 - self.truth)

    @property
    def accuracy(self) -> Draws:
        """P(judge and person agree)."""
        return self.rate * self.passed + (1 - self.rate) * (1 - self.failed)

    @property
    def kappa(self) -> Draws:
        """Cohen's kappa: agreement beyond chance, over the largest possible.

        Source: J. Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological Measurement 20
        (1960), 37–46.
        """
        truth = self.truth
        by_chance = self.rate * truth + (1 - self.rate) * (1 - truth)
        return (self.accuracy - by_chance) / (1 - by_chance)


def estimated(draws: Draws) -> Estimated:
    """Return the median and the equal-tailed interval of draws."""
    import numpy as np

    tail = (1 - LEVEL) / 2
    low, middle, high = np.quantile(draws, (tail, 0.5, 1 - tail))
    return Estimated(float(middle), (float(low), float(high)))


def even_sizes(wanted: int, available: Sequence[int]) -> list[int]:
    """Return how many of `wanted` items to take from each stratum, taking one from each in turn until it is used up.

    A larger `wanted` takes at least as many from each stratum.
    """
    sizes, left = [0] * len(available), min(wanted, sum(available))
    while left:
        for place, most in enumerate(available):
            if left and sizes[place] < most:
                sizes[place] += 1
                left -= 1
    return sizes


def with_label_weights(answers: Sequence[JudgedAnswer], kinds: Sequence[Hashable]) -> list[JudgedAnswer]:
    """Weight the labels of one judge's answers, so that they represent all answers of their kind and verdict.

    Labels are drawn evenly from assertions, which may differ in their number of answers: without weights, an assertion
    with few answers would count as much as one with many.

    Args:
        answers: with or without labels.
        kinds: kind of each answer, such as its assertion.
    """
    placed = list(zip(answers, kinds, strict=True))
    whole: dict[tuple[Hashable, bool], float] = {}
    labelled: dict[tuple[Hashable, bool], float] = {}
    for one, kind in placed:
        stratum = (kind, one.judge)
        whole[stratum] = whole.get(stratum, 0.0) + one.weight
        if one.person is not None:
            labelled[stratum] = labelled.get(stratum, 0.0) + one.weight
    return [
        one if one.person is None else replace(one, per_label=whole[kind, one.judge] / labelled[kind, one.judge])
        for one, kind in placed
    ]


_UNUSABLE = 0.025
"""Share of draws with a judge no better than chance, above which its rates cannot be corrected."""


def corrected_rate(counts: JudgeCounts, seed: int = 0, draws: int = DRAWS) -> Estimated:
    """Estimate the pass rate by people if the labelled answers are a random sample of the run.

    Post-stratified by the judge's verdict: labels need only be random among the answers that the judge passed, and
    among those that it failed. In simulations (`benchmarks/corrected_rates.py`) the interval has its nominal coverage
    even at high pass rates and with 20 labels, where normal approximations such as prediction-powered inference do not.
    """
    return estimated(JudgeDraws.of(counts, seed, draws).truth)


def transferred_rate(
    calibration: JudgeCounts, verdicts: Counted, seed: int = 0, draws: int = DRAWS
) -> Estimated | None:
    """Estimate the pass rate by people from labels of another run, assuming that the judge errs equally often in both.

    The rate is (p + TNR − 1) / (TPR + TNR − 1), where p is the judge's pass rate in this run, with the errors of p, TPR
    and TNR. Sources: W. J. Rogan, B. Gladen, "Estimating prevalence from the results of a screening test", American
    Journal of Epidemiology 107 (1978), 71–76; C. Lee et al., "How to correctly report LLM-as-a-judge evaluations",
    arXiv 2511.21140.

    Args:
        calibration: the judge's counts in the run with labels.
        verdicts: the judge's verdicts in this run.
        seed: seed of the draws.
        draws: number of draws.

    Returns:
        The estimate, or None if the labels do not show that the judge is better than chance.
    """
    truth = transferred_draws(calibration, verdicts, seed, draws)
    return None if truth is None else estimated(truth)


def transferred_draws(calibration: JudgeCounts, verdicts: Counted, seed: int = 0, draws: int = DRAWS) -> Draws | None:
    """Return the draws of `transferred_rate`, or None as it does."""
    import numpy as np

    judge = JudgeDraws.of(calibration, seed, draws)
    chance = np.random.default_rng([seed, 1])
    rate = verdicts.drawn(chance, draws)
    better = judge.true_positives + judge.true_negatives - 1
    usable = better > 0
    if 1 - usable.mean() > _UNUSABLE:
        return None
    truth = (rate[usable] + judge.true_negatives[usable] - 1) / better[usable]
    return np.clip(truth, 0, 1)


class ConfusionMatrix(Struct, frozen=True):
    """Numbers of labelled answers by the judge's and people's verdict. A false pass is one that people fail."""

    true_passes: int = 0
    false_passes: int = 0
    false_failures: int = 0
    true_failures: int = 0

    @classmethod
    def of(cls, pairs: Iterable[tuple[bool, bool]]) -> ConfusionMatrix:
        """Count pairs (judge passes, person passes)."""
        found = Counter(pairs)
        return cls(found[True, True], found[True, False], found[False, True], found[False, False])

    @property
    def total(self) -> int:
        """Number of labelled answers."""
        return self.true_passes + self.false_passes + self.false_failures + self.true_failures


class JudgeAccuracy(Struct, frozen=True):
    """How well a judge agrees with people on the answers of the run from which labels were drawn.

    Attributes:
        tpr: share of what people pass that the judge passes; None if no labelled answer passes.
        tnr: share of what people fail that the judge fails; None if no labelled answer fails.
        accuracy: share of answers on which both agree.
        kappa: Cohen's kappa; None if people, or the judge, give all answers the same verdict: chance then explains it.
    """

    tpr: Estimated | None
    tnr: Estimated | None
    accuracy: Estimated
    kappa: Estimated | None


def judge_accuracy(counts: JudgeCounts) -> JudgeAccuracy:
    """Estimate how well a judge agrees with people, with labels weighted by the judge's pass rate.

    The accuracy is the weighted share of right verdicts, consistent with `accuracy_difference`.
    """
    of_passed, of_failed = counts.of_passed, counts.of_failed
    draws = JudgeDraws.of(counts)
    some_pass = of_passed.passed + of_failed.passed > 0
    some_fail = of_passed.failed + of_failed.failed > 0
    both_verdicts = of_passed.total > 0 and of_failed.total > 0
    accuracy, right = estimated(draws.accuracy), _share_right(counts)
    tpr = estimated(draws.true_positives) if some_pass else None
    tnr = estimated(draws.true_negatives) if some_fail else None
    kappa = estimated(draws.kappa) if some_pass and some_fail and both_verdicts else None
    return JudgeAccuracy(tpr, tnr, accuracy if right is None else accuracy.at(right), kappa)


def _share_right(counts: JudgeCounts) -> float | None:
    """Return the weighted share of labels with which the judge agrees, or None if one of its verdicts has no label."""
    verdicts = counts.verdicts
    sides = (
        (verdicts.passed, counts.of_passed, counts.of_passed.passed),
        (verdicts.failed, counts.of_failed, counts.of_failed.failed),
    )
    if any(number and not labels.total for number, labels, _ in sides):
        return None
    return sum(number * right / labels.total for number, labels, right in sides if number) / verdicts.total


def majority(labels: Iterable[bool]) -> bool | None:
    """Return the verdict of more than half of the labels, or None if there is a tie or no label."""
    found = list(labels)
    passes = sum(found)
    return None if 2 * passes == len(found) else 2 * passes > len(found)


def mean_pairwise_agreement(units: Iterable[Collection[bool]]) -> float | None:
    """Return the share of pairs of labels of one answer that agree, or None if no answer has two labels."""
    agreed = pairs = 0
    for unit in units:
        size, passes = len(unit), sum(unit)
        pairs += size * (size - 1) // 2
        agreed += (passes * (passes - 1) + (size - passes) * (size - passes - 1)) // 2
    return agreed / pairs if pairs else None
