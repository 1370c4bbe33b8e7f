"""Uncertainty of a rate or a mean of clustered observations. Every interval of a level comes from here.

Samples of one case, cases of one conversation or of one customer are alike, so that a hundred of them tell less than a
hundred independent ones. How much less is the design effect: the variance of the mean as the clusters show it, over the
variance that as many independent observations would have (L. Kish, "Survey Sampling", 1965, section 8.2).

1. The variance of the mean is the cluster-robust CR2, with Satterthwaite's degrees of freedom (`clustered.cr2`).
2. The effective sample size is n / design effect, times (t[n − 1] / t[degrees of freedom])², since few clusters tell
   the variance badly. It is never above n: that clusters differ by less than chance is itself chance.
3. The interval is Wilson's at that size. Source of 2 and 3: E. L. Korn, B. I. Graubard, "Confidence intervals for
   proportions with small expected number of positive counts estimated from survey data", Survey Methodology 24 (1998),
   193–201.

Near 0 and 1 clusters cannot show how much they differ: where all passed, the variance is 0 whatever it would be. So the
design effect is drawn towards the largest that these clusters could have (every cluster ends alike, Σ size² / n), with
the weight of half a cluster against those that tell: the clusters with a pass or those with a failure, whichever are
fewer. Scores other than 0 and 1 have the interval of `bounded_mean`.

Clusters of one observation each have a design effect of 1, and their rate Wilson's own interval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import fsum
from typing import NamedTuple

from msgspec import Struct

from agentv.stats.intervals.proportion import USUAL, interval_at

DRAWN = 0.5
"""Clusters' worth of weight with which the design effect is drawn towards the largest possible."""

_SAME = 1e-9
"""How far a sum of zeros and ones may be from that of its squares, by rounding."""


class ClusterSum(NamedTuple):
    """One cluster: how many observations it has, above 0, and the sum of their values, each 0..1."""

    size: int
    total: float


Sums = Iterable[ClusterSum | tuple[int, float]] | Mapping[tuple[int, float], int]
"""The clusters one by one, or how many there are of each kind: thousands often are of few."""


class Estimate(Struct, frozen=True):
    """A rate or a mean of values in 0..1.

    Attributes:
        mean: over all observations.
        interval: (low, high); None for a single cluster of several observations.
        observations, clusters: how many there are.
        effective: of a rate, the number of independent trials that would tell as much; 0 without an interval.
    """

    mean: float
    interval: tuple[float, float] | None
    observations: int
    clusters: int
    effective: float


def estimated_rate(sums: Sums, level: float = USUAL, samples: float = 1.0) -> Estimate:
    """The share of passes, with its interval.

    Args:
        sums: of each cluster how many observations, and how many of them passed; of observations that are shares of
            several samples each, the sum of these shares.
        level: the confidence, inside 0..1.
        samples: of an observation, the harmonic mean: so many independent samples would the mean of the shares be of.

    Raises:
        ValueError: no observations.
    """
    found = _Observed(sums)
    mean, clusters, count = found.mean, found.clusters, found.observations * samples
    if clusters == count:
        return Estimate(mean, interval_at(mean, count, level), found.observations, clusters, count)
    if clusters == 1:
        return Estimate(mean, None, found.observations, 1, 0.0)
    variance, freedom = found.variance()
    alone = mean * (1 - mean) / (count - 1)
    shown = max(1.0, variance / alone) if alone > 0 else 1.0
    effect = shown + max(0.0, found.largest_effect * samples - shown) * DRAWN / (DRAWN + found.telling())
    effective = count / effect * _for_few(freedom, count, level)
    return Estimate(mean, interval_at(mean, effective, level), found.observations, clusters, effective)


def estimated_mean(sums: Sums, level: float = USUAL) -> Estimate:
    """The mean of scores in 0..1, with its interval (`bounded_mean`); that of a rate if all are single zeros and ones.

    Args:
        sums: of each cluster how many observations, and the sum of their scores.
        level: the confidence, inside 0..1.

    Raises:
        ValueError: no observations.
    """
    from agentv.stats.intervals.means import bounded_mean_interval

    found = _Observed(sums)
    kinds = found.kinds
    if all(kind in ((1, 0), (1, 1)) for kind in kinds):
        return estimated_rate(kinds, level)
    mean, count, clusters = found.mean, found.observations, found.clusters
    if clusters == 1:
        return Estimate(mean, None, count, 1, 0.0)
    return Estimate(mean, bounded_mean_interval(kinds, level), count, clusters, 0.0)


def are_verdicts(total: float, squares: float) -> bool:
    """Whether scores of 0..1 with this sum, and this sum of squares, are all 0 or 1."""
    return abs(squares - total) <= _SAME * max(1.0, total)


class _Observed:
    """Clusters by their kinds, in an order that does not depend on the one in which they came."""

    def __init__(self, sums: Sums) -> None:
        counted = sums if isinstance(sums, Mapping) else Counter((size, total) for size, total in sums)
        self._kinds: list[tuple[int, float, int]] = sorted(
            (size, total, number) for (size, total), number in counted.items() if size and number
        )
        self.observations = sum(size * number for size, _, number in self._kinds)
        self.clusters = sum(number for _, _, number in self._kinds)
        if not self.observations:
            raise ValueError("nothing was observed")
        summed = fsum(total * number for _, total, number in self._kinds)
        self.mean = min(1.0, max(0.0, summed / self.observations))

    @property
    def largest_effect(self) -> float:
        """Design effect if all observations of each cluster were equal: the upper bound."""
        return sum(size * size * number for size, _, number in self._kinds) / self.observations

    def variance(self) -> tuple[float, float]:
        """The variance of the mean, and the degrees of freedom that it is known with."""
        from agentv.stats.intervals.means import cr2  # runs whose cases stand alone do not need it

        return cr2(((size, total - self.mean * size, number) for size, total, number in self._kinds), self.observations)

    def telling(self) -> int:
        """Number of clusters with a pass or with a failure, whichever is smaller."""
        passed = sum(number for _, total, number in self._kinds if total > 0)
        failed = sum(number for size, total, number in self._kinds if total < size)
        return min(passed, failed)

    @property
    def kinds(self) -> dict[tuple[int, float], int]:
        """How many clusters there are of each size and sum."""
        return {(size, total): number for size, total, number in self._kinds}


def _for_few(freedom: float, count: float, level: float) -> float:
    """How much smaller a sample is whose variance is known from few clusters; 1 at most."""
    from agentv.stats.intervals.means import t_quantile

    return min(1.0, (t_quantile(count - 1, level) / t_quantile(freedom, level)) ** 2)
