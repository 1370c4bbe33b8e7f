"""Interval of the mean of scores in 0..1, which allows for scores that the sample does not hold.

Twenty scores near 0.9 do not show that no case scores 0, and one such case in twenty lowers the mean by 0.045. So the
lower end takes one more cluster into account, with the score 0, and the upper end one with the score 1. The clusters
are reweighted at random, with weights that are uniform on the simplex; the lower end is the mean that the reweighted
one is below with the chance (1 - level) / 2. A cluster weighs as what it holds, the one that was not seen as the
cluster of an observation does on average.

- Where all scores are alike, and where all are 0 or 1, it is Clopper and Pearson's interval.
- With many clusters it comes to Student's.
- Of scores turned round (1 - score) it is the same turned round.

Betting intervals (I. Waudby-Smith, A. Ramdas, "Estimating means of bounded random variables by betting", Journal of the
Royal Statistical Society B 86 (2024), 1-27) allow for the same and are proven to hold; they are 15 to 50 % wider at
every number of cases (`benchmarks/coverage_levels.py scores`).

Sources: N. Gaffke, "Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative
variable", Mathematical Methods of Statistics 14 (2005), 451-467, which `stats.comparison.difference` uses, too;
R. Lugannani, S. Rice, "Saddle point approximation for the distribution of the sum of independent random variables",
Advances in Applied Probability 12 (1980), 475-490, in Barndorff-Nielsen's form.

Plain Python: every run with scores sums up with it, and importing numpy would take longer than that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import copysign, fsum, log, sqrt

from agentv.stats.intervals.proportion import quantile

MOST_KINDS = 128
"""Different clusters above which those with nearly the same mean are taken together."""
FAR = 9.0
"""Standard normal quantile beyond which a chance is as good as 0 or 1."""

NOTHING = 1e-9
"""Of a mean."""

Kinds = Sequence[tuple[float, float, float]]
"""Size, sum and number of clusters that are alike."""


def bounded_mean_interval(clusters: Mapping[tuple[int, float], int], level: float) -> tuple[float, float]:
    """Confidence interval of the mean of all observations.

    Args:
        clusters: (size, sum of the values, each 0..1) → how many clusters are like that.
        level: the confidence, inside 0..1.
    """
    kinds = _gathered(sorted((size, total, float(number)) for (size, total), number in clusters.items()))
    count = fsum(size * number for size, _, number in kinds)
    unseen = fsum(size * size * number for size, _, number in kinds) / count
    mean = fsum(total * number for _, total, number in kinds) / count
    turned = [(size, size - total, number) for size, total, number in kinds]
    wanted = -quantile(level)
    return _lower(kinds, unseen, mean, wanted), 1 - _lower(turned, unseen, 1 - mean, wanted)


def _gathered(kinds: Kinds) -> Kinds:
    """At most about `MOST_KINDS` kinds of each size, with the same sum."""
    if len(kinds) <= MOST_KINDS:
        return kinds
    found: dict[tuple[float, int], list[tuple[float, float]]] = {}
    for size, total, number in kinds:
        found.setdefault((size, round(total / size * MOST_KINDS)), []).append((total * number, number))
    gathered = []
    for (size, _), alike in found.items():
        number = fsum(one for _, one in alike)
        gathered.append((size, fsum(total for total, _ in alike) / number, number))
    return gathered


def _lower(kinds: Kinds, unseen: float, mean: float, wanted: float) -> float:
    """The mean at which the chance that the reweighted one is not above it is that of a normal quantile."""
    counts = [*(number for _, _, number in kinds), 1.0]

    def excess(null: float) -> float:
        return _chance([*(total - null * size for size, total, _ in kinds), -null * unseen], counts) - wanted

    if mean <= NOTHING:
        return 0.0
    count = fsum(size * number for size, _, number in kinds)
    spread = sqrt(fsum((total - mean * size) ** 2 * number for size, total, number in kinds))
    step = 2 * (spread + mean * unseen) / count
    low, below, high, above = mean, excess(mean), mean, FAR
    while below > 0:
        high, above = low, below
        low -= step
        if low <= 0:
            low, below = 0.0, -FAR
        else:
            below = excess(low)
        step *= 2
    before = 0.0
    while high - low > NOTHING:
        steep = below > -FAR and above < FAR
        null = high - above * (high - low) / (above - below) if steep else (low + high) / 2
        found = excess(null)
        if abs(found) < 1e-6:
            return null
        again = steep and found * before > 0  # Illinois: an end that stays twice counts half
        if found < 0:
            low, below, above = null, found, above / 2 if again else above
        else:
            high, above, below = null, found, below / 2 if again else below
        before = found
    return low


def _chance(values: Sequence[float], counts: Sequence[float]) -> float:
    """The normal quantile of the chance that Σ G · value is at most 0, where G is Gamma(count)."""
    lowest, highest = min(values), max(values)
    if lowest >= 0 or highest <= 0:
        return -FAR if lowest >= 0 else FAR
    left, right, point = 1 / lowest, 1 / highest, 0.0
    for _ in range(60):
        slope = curve = 0.0
        for value, count in zip(values, counts, strict=True):
            part = value / (1 - point * value)
            slope += count * part
            curve += count * part * part
        left, right = (point, right) if slope < 0 else (left, point)
        found = point - slope / curve
        if not left < found < right:
            found = (left + right) / 2
        before, point = point, found
        if abs(point - before) <= 1e-7 * abs(point):
            break
    height = curve = 0.0
    for value, count in zip(values, counts, strict=True):
        rest = 1 - point * value
        height += count * log(rest)
        curve += count * (value / rest) ** 2
    root = copysign(sqrt(max(0.0, 2 * height)), point)
    if abs(root) < 1e-4:  # the mean of the sum is 0
        return 0.0
    return max(-FAR, min(FAR, root + log(point * sqrt(curve) / root) / root))
