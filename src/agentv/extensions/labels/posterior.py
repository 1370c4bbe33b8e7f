"""Draws of a judge's rates from their posterior, given labels by people. Everything said of a judge comes from them.

Three shares describe a judge and the people beside it: how often a person passes what the judge passes, how often a
person passes what the judge fails, and how often the judge passes. Each has Jeffreys' prior, Beta(½, ½), and counts of
its own, so that labels may be drawn with other probabilities from what the judge passed and from what it failed. Every
other number is a function of the three, and its interval that of the function over the draws: no normal approximation,
which fails at high pass rates and with few labels, and no division by zero.

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
"""Draws of each share: the ends of an interval are then exact to about 0.1 points."""

LEVEL = 0.95
JEFFREYS = 0.5


class Estimated(Struct, frozen=True):
    """A number with its interval."""

    value: float
    interval: tuple[float, float]

    @property
    def low(self) -> float:
        """Where the interval begins."""
        return self.interval[0]

    @property
    def high(self) -> float:
        """Where it ends."""
        return self.interval[1]

    @property
    def reach(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2

    def at(self, value: float) -> Estimated:
        """The same interval around another estimate, which it holds."""
        return Estimated(value, (min(self.low, value), max(self.high, value)))


class Counted(Struct, frozen=True):
    """How many passed and how many failed, as effective sample sizes: they need not be whole."""

    passed: float = 0.0
    failed: float = 0.0

    @property
    def total(self) -> float:
        """Both together."""
        return self.passed + self.failed

    def drawn(self, chance: np.random.Generator, draws: int = DRAWS) -> Draws:
        """Draws of the share that passes, which has Jeffreys' prior."""
        return chance.beta(JEFFREYS + self.passed, JEFFREYS + self.failed, draws)


class Observation(Struct, frozen=True):
    """A pass or a failure.

    Attributes:
        weight: above 0, such as how many trials it stands for, or one over its probability of being drawn.
        cluster: observations with the same one are alike.
    """

    passed: bool
    cluster: Hashable = None
    weight: float = 1.0


def counted(observations: Iterable[Observation]) -> Counted:
    """The effective number of passes and failures. An observation without a cluster is one of its own."""
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
    # clusters that each end alike still tell as much as one observation each, or less where some are larger
    fewest = len(found) ** 2 / sum(len(members) ** 2 for members in clusters.values())
    effective = max(rate.effective, fewest) * kish / len(found)
    return Counted(share * effective, (1 - share) * effective)


class JudgeCounts(Struct, frozen=True):
    """What is known of a judge.

    Attributes:
        of_passed: labels of answers that the judge passed.
        of_failed: labels of answers that the judge failed.
        verdicts: of the judge, on all answers of the run.
    """

    of_passed: Counted
    of_failed: Counted
    verdicts: Counted


class JudgedAnswer(Struct, frozen=True):
    """An answer of a run.

    Attributes:
        judge: whether the judge passes it.
        person: whether people pass it; None: it has no label.
        cluster: answers with the same one are alike; None: it is one of its own.
        weight: how many trials it stands for.
        per_label: trials that its label speaks for, for each of its own: more where fewer answers like it are labelled.
    """

    judge: bool
    person: bool | None = None
    cluster: Hashable = None
    weight: float = 1.0
    per_label: float = 1.0

    @property
    def label_weight(self) -> float:
        """How many trials its label speaks for, up to a factor that all labels share."""
        return self.weight * self.per_label


def judge_counts(answers: Iterable[JudgedAnswer]) -> JudgeCounts:
    """What the answers of a run tell of a judge.

    In clusters the three shares err together, since a cluster that people pass is also one that the judge passes. So no
    count is larger than the design effect of the corrected rate, by its linearization, leaves it.
    """
    found = list(answers)
    return counts_within(found, design_effect([one.cluster for one in found], list(_influences(found))))


def counts_within(answers: Sequence[JudgedAnswer], effect: float) -> JudgeCounts:
    """What answers tell of a judge, where no count is larger than a design effect leaves it."""

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
    """Effective numbers of passes and failures, none larger than a design effect leaves it."""
    if not observations:
        return Counted()
    clustered = counted(observations)
    alone = counted(Observation(one.passed, None, one.weight) for one in observations)
    factor = min(clustered.total, alone.total / effect) / clustered.total
    return Counted(clustered.passed * factor, clustered.failed * factor)


def design_effect(clusters: Sequence[Hashable], influences: Sequence[tuple[float, float]]) -> float:
    """How much more an estimate varies than that of observations without clusters; at least 1.

    The variance of few clusters is known badly and is too small: it counts with Student's t and as many degrees of
    freedom as there are clusters that matter, against those of observations without clusters.

    Args:
        clusters: of each observation; None: it is one of its own.
        influences: by how much each observation moves the estimate, and the expected square of that.
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
    return max(1.0, effect * _for_few(variances.values()) / _for_few([variance for _, variance in influences]))


def _influences(answers: Sequence[JudgedAnswer]) -> Iterator[tuple[float, float]]:
    """By how much each answer moves the corrected rate, and the expected square of that.

    It is the linearization of the rate, by the judge's verdict on the answer and by its label.
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


def _for_few(variances: Collection[float]) -> float:
    """By what to multiply a variance that is the sum of these: they are as good as some number of equal ones."""
    from agentv.stats.intervals.means import t_quantile

    number = max(2.0, fsum(variances) ** 2 / fsum(one * one for one in variances))
    return number / (number - 1) * t_quantile(number - 1, LEVEL) ** 2


class JudgeDraws(Struct, frozen=True):
    """Draws of the three shares.

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
        """Draws of what is known of a judge; the same seed gives the same draws."""
        import numpy as np  # only what checks judges needs it

        chance = np.random.default_rng(seed)
        passed = counts.of_passed.drawn(chance, draws)
        failed = counts.of_failed.drawn(chance, draws)
        return cls(passed, failed, rate=counts.verdicts.drawn(chance, draws))

    @property
    def truth(self) -> Draws:
        """The pass rate by people: the corrected one."""
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
    """The median and the equal-tailed interval of draws."""
    import numpy as np

    tail = (1 - LEVEL) / 2
    low, middle, high = np.quantile(draws, (tail, 0.5, 1 - tail))
    return Estimated(float(middle), (float(low), float(high)))


def even_sizes(wanted: int, available: Sequence[int]) -> list[int]:
    """How many of `wanted` to take from each stratum: one from each in turn, as long as it has one left.

    A larger sample takes at least as many from each.
    """
    sizes, left = [0] * len(available), min(wanted, sum(available))
    while left:
        for place, most in enumerate(available):
            if left and sizes[place] < most:
                sizes[place] += 1
                left -= 1
    return sizes


def with_label_weights(answers: Sequence[JudgedAnswer], kinds: Sequence[Hashable]) -> list[JudgedAnswer]:
    """The answers of one judge, whose labels speak for all answers of their kind and verdict.

    Labels are drawn evenly from assertions, which need not have equally many answers: without weights, an assertion of
    few answers would count as much as one of many.

    Args:
        answers: with or without labels.
        kinds: of each answer, such as its assertion.
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
"""Share of draws in which the judge is no better than chance, from which nothing can be corrected by it."""


def corrected_rate(counts: JudgeCounts, seed: int = 0, draws: int = DRAWS) -> Estimated:
    """The pass rate by people, where the labelled answers are a random part of the run's.

    Post-stratified by the judge's verdict: labels need only be random among the answers that the judge passed, and
    among those that it failed. By simulation (`benchmarks/corrected_rates.py`) it covers what it promises, also at high
    pass rates and with 20 labels, where normal approximations such as prediction-powered inference do not.
    """
    return estimated(JudgeDraws.of(counts, seed, draws).truth)


def transferred_rate(
    calibration: JudgeCounts, verdicts: Counted, seed: int = 0, draws: int = DRAWS
) -> Estimated | None:
    """The pass rate by people, where the labels are of another run: it assumes that the judge errs as often in both.

    The rate is (p + TNR − 1) / (TPR + TNR − 1), p being the judge's pass rate in this run, with the errors of p, TPR
    and TNR. Sources: W. J. Rogan, B. Gladen, "Estimating prevalence from the results of a screening test", American
    Journal of Epidemiology 107 (1978), 71–76; C. Lee et al., "How to correctly report LLM-as-a-judge evaluations",
    arXiv 2511.21140.

    Args:
        calibration: the judge in the run with labels.
        verdicts: of the judge in this run.
        seed: of the draws.
        draws: how many.

    Returns:
        None: the labels do not show that the judge is better than chance.
    """
    truth = transferred_draws(calibration, verdicts, seed, draws)
    return None if truth is None else estimated(truth)


def transferred_draws(calibration: JudgeCounts, verdicts: Counted, seed: int = 0, draws: int = DRAWS) -> Draws | None:
    """The draws that `transferred_rate` describes; None as there."""
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
    """Labelled answers by what the judge and what people say. A false pass: the judge passes what people fail."""

    true_passes: int = 0
    false_passes: int = 0
    false_failures: int = 0
    true_failures: int = 0

    @classmethod
    def of(cls, pairs: Iterable[tuple[bool, bool]]) -> ConfusionMatrix:
        """The matrix of (judge passes, person passes)."""
        found = Counter(pairs)
        return cls(found[True, True], found[True, False], found[False, True], found[False, False])

    @property
    def total(self) -> int:
        """Number of labelled answers."""
        return self.true_passes + self.false_passes + self.false_failures + self.true_failures


class JudgeAccuracy(Struct, frozen=True):
    """How well a judge agrees with people, for the answers of the run that the labels were drawn from.

    Attributes:
        tpr: share of what people pass that the judge passes; None: no labelled answer passes.
        tnr: share of what people fail that the judge fails; None: no labelled answer fails.
        accuracy: share of answers on which both agree.
        kappa: Cohen's; None where people, or the judge, say the same of all answers: chance then explains everything.
    """

    tpr: Estimated | None
    tnr: Estimated | None
    accuracy: Estimated
    kappa: Estimated | None


def judge_accuracy(counts: JudgeCounts) -> JudgeAccuracy:
    """How well a judge agrees with people. Weighted by the judge's rate: labels need not be drawn in proportion to it.

    The accuracy is the weighted share of labels, as that of every judge beside it, of which differences are taken.
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
    """Weighted share of labels that the judge agrees with; None: a verdict that it gave has no label."""
    verdicts = counts.verdicts
    sides = (
        (verdicts.passed, counts.of_passed, counts.of_passed.passed),
        (verdicts.failed, counts.of_failed, counts.of_failed.failed),
    )
    if any(number and not labels.total for number, labels, _ in sides):
        return None
    return sum(number * right / labels.total for number, labels, right in sides if number) / verdicts.total


def majority(labels: Iterable[bool]) -> bool | None:
    """What more than half of the labels say; None: a tie, or no label."""
    found = list(labels)
    passes = sum(found)
    return None if 2 * passes == len(found) else 2 * passes > len(found)


def mean_pairwise_agreement(units: Iterable[Collection[bool]]) -> float | None:
    """Share of pairs of labels of one answer that agree; None: no answer has two labels."""
    agreed = pairs = 0
    for unit in units:
        size, passes = len(unit), sum(unit)
        pairs += size * (size - 1) // 2
        agreed += (passes * (passes - 1) + (size - passes) * (size - passes - 1)) // 2
    return agreed / pairs if pairs else None
