"""Uncertainty of a rate or a mean of clustered observations. Every interval of a rate or mean score comes from here.

Samples of one case, or cases of one conversation or one customer, are correlated, so a hundred of them carry less
information than a hundred independent ones. The design effect measures the loss: it is the variance of the mean as
estimated from the clusters, over the variance that as many independent observations would have (L. Kish, "Survey
Sampling", 1965, section 8.2).

1. The variance of the mean is the cluster-robust CR2, with Satterthwaite's degrees of freedom (`means.cr2`).
2. The effective sample size is n / design effect, times (t[n − 1] / t[degrees of freedom])², since few clusters
   estimate the variance poorly. It is never above n: clusters that differ by less than chance do so by chance.
3. The interval is Wilson's at that size. Source of 2 and 3: E. L. Korn, B. I. Graubard, "Confidence intervals for
   proportions with small expected number of positive counts estimated from survey data", Survey Methodology 24 (1998),
   193–201.

Near 0 and 1, clusters cannot show how much they differ: if everything passed, the estimated variance is 0 whatever the
true one is. So the design effect is shrunk towards the largest possible one for these clusters (all observations of a
cluster are equal, Σ size² / n). That prior weighs half a cluster, against the number of informative clusters: those
with a pass or those with a failure, whichever are fewer. Scores other than 0 and 1 use `bounded_mean_interval`.

Clusters of one observation each have a design effect of 1, and their rate has Wilson's own interval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import fsum
from typing import NamedTuple

from msgspec import Struct

from agentv.stats.intervals.proportion import USUAL, interval_at

PRIOR_CLUSTERS = 0.5
"""Weight, in clusters, with which the design effect is shrunk towards the largest possible one."""

_SAME = 1e-9
"""Rounding error allowed between a sum of zeros and ones and the sum of their squares."""


class ClusterSum(NamedTuple):
    """One cluster: its number of observations (above 0) and the sum of their values, each 0..1."""

    size: int
    total: float


Sums = Iterable[ClusterSum | tuple[int, float]] | Mapping[tuple[int, float], int]
"""The clusters one by one, or the number of clusters of each kind: thousands are often of few kinds."""


class Estimate(Struct, frozen=True):
    """A rate or a mean of values in 0..1.

    Attributes:
        mean: mean over all observations.
        interval: (low, high), or None for a single cluster of several observations.
        observations, clusters: their numbers.
        effective: effective sample size of a rate; 0 for a mean and without an interval.
    """

    mean: float
    interval: tuple[float, float] | None
    observations: int
    clusters: int
    effective: float


def estimated_rate(sums: Sums, level: float = USUAL, samples: float = 1.0) -> Estimate:
    """The share of passes, with its interval.

    Args:
        sums: number of observations and number of passes of each cluster. If an observation is itself a share of
            several samples, the sum of these shares instead of the passes.
        level: confidence level, strictly between 0 and 1.
        samples: harmonic mean of the number of samples per observation.

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
    effect = shown + max(0.0, found.largest_effect * samples - shown) * PRIOR_CLUSTERS / (
        PRIOR_CLUSTERS + found.informative_clusters()
    )
    effective = count / effect * _few_clusters_factor(freedom, count, level)
    return Estimate(mean, interval_at(mean, effective, level), found.observations, clusters, effective)


def estimated_mean(sums: Sums, level: float = USUAL) -> Estimate:
    """The mean of scores in 0..1, with its interval; treated as a rate if all clusters are a single 0 or 1.

    Args:
        sums: number of observations and sum of scores of each cluster.
        level: confidence level, strictly between 0 and 1.

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
    """Clusters by kind, sorted, so that results do not depend on the order of the input."""

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
        """Upper bound of the design effect: all observations of each cluster are equal."""
        return sum(size * size * number for size, _, number in self._kinds) / self.observations

    def variance(self) -> tuple[float, float]:
        """The variance of the mean, and its degrees of freedom."""
        from agentv.stats.intervals.means import cr2  # runs without clusters do not need it

        return cr2(((size, total - self.mean * size, number) for size, total, number in self._kinds), self.observations)

    def informative_clusters(self) -> int:
        """Number of clusters with a pass or with a failure, whichever is smaller."""
        passed = sum(number for _, total, number in self._kinds if total > 0)
        failed = sum(number for size, total, number in self._kinds if total < size)
        return min(passed, failed)

    @property
    def kinds(self) -> dict[tuple[int, float], int]:
        """Number of clusters of each size and sum."""
        return {(size, total): number for size, total, number in self._kinds}


def _few_clusters_factor(freedom: float, count: float, level: float) -> float:
    """Factor on the sample size, at most 1, for a variance that is estimated from few clusters."""
    from agentv.stats.intervals.means import t_quantile

    return min(1.0, (t_quantile(count - 1, level) / t_quantile(freedom, level)) ** 2)
