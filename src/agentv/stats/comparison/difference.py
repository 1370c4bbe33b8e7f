"""The mean difference of two runs over the same cases: the one test behind every comparison, of scores or of verdicts.

The test reweights the clusters at random, with weights that are uniform on the simplex, and adds one cluster that was
not seen, moved against what is claimed as far as scores can move. The one-sided p-value of "the mean difference is at
most μ" is the probability that the reweighted mean is at most μ. The unseen cluster is the price for cases that a
sample does not hold: where 20 of 20 cases rise a little, up to 17 % of others may get much worse.

- Of verdicts it is McNemar's exact test.
- Where all differences are alike it is Clopper and Pearson's bound of the share of others.
- With many clusters it comes to the paired t test, corrected for skewness.
- Swapping the runs, or turning every score round (1 - score), turns the result; pairs without a difference change
  nothing; a cluster weighs as what it holds.

Sources: N. Gaffke, "Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative
variable", Mathematical Methods of Statistics 14 (2005), 451-467; E. Learned-Miller, P. S. Thomas, "A new confidence
interval for the mean of a bounded random variable" (2019), arXiv:1905.06208, who conjecture that it holds its level for
every bounded distribution; D. B. Rubin, "The Bayesian bootstrap", Annals of Statistics 9 (1981), 130-134.

Numpy is imported by what this uses, so no module of `agentv eval` may import this one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from statistics import NormalDist

import numpy as np

from agentv.model.run.matrix import Measure
from agentv.stats.comparison.gamma_sums import Numbers, not_above_zero
from agentv.stats.comparison.rule import Evidence
from agentv.stats.intervals.clustered import mean_interval

ROUNDING = 1e-9
"""Differences up to this are rounding."""
MOST_KINDS = 1000
"""Different clusters above which their means are rounded to as many steps."""
FAR = 9.0
"""Standard normal quantile beyond which a probability is as good as 0."""


@dataclass(frozen=True, slots=True)
class Clusters:
    """Clusters of paired differences, alike ones together.

    Attributes:
        sums, sizes: of each kind of cluster the sum of its differences, and its number of cases or their weight.
        counts: clusters of each kind.
        reach: how far a case that was not seen may move, 0..1.
        together: how many such cases move together.
    """

    sums: Numbers
    sizes: Numbers
    counts: Numbers
    reach: float
    together: float

    def above(self, null: float) -> float:
        """One-sided p-value of the hypothesis that the mean difference is at most `null`."""
        return self._tail(self.sums - null * self.sizes, null)

    def below(self, null: float) -> float:
        """One-sided p-value of the hypothesis that the mean difference is at least `null`."""
        return self._tail(null * self.sizes - self.sums, -null)

    def _tail(self, values: Numbers, null: float) -> float:
        if null <= -1:
            return 0.0  # no mean lies below
        unseen = -self.together * (self.reach + null)
        order = np.argsort(values, kind="stable")
        kept = order[values[order] != 0]
        return not_above_zero(np.append(values[kept], unseen), np.append(self.counts[kept], 1.0))


@dataclass(frozen=True)
class Differences:
    """One measure of paired cases, before and after.

    Attributes:
        before, after: of each case, 0..1; at least one.
        clusters: for each case, the cluster that it belongs to.
        weights: of each case; None: all weigh the same.
    """

    before: Sequence[float]
    after: Sequence[float]
    clusters: Sequence[Hashable]
    weights: Sequence[float] | None = None

    @cached_property
    def values(self) -> list[float]:
        """Differences, candidate less base; those that are only rounding are 0."""
        pairs = zip(self.before, self.after, strict=True)
        return [new - old if abs(new - old) > ROUNDING else 0.0 for old, new in pairs]

    @cached_property
    def mean(self) -> float:
        """Mean difference of all cases."""
        sums, sizes = self._sums
        return fsum(sums) / fsum(sizes)

    @property
    def independent(self) -> int:
        """Number of clusters."""
        return len(self._sums[0])

    @cached_property
    def moved(self) -> int:
        """Clusters whose differences do not sum to zero."""
        return sum(one != 0 for one in self._sums[0])

    @cached_property
    def kinds(self) -> Clusters:
        """The clusters, for tests."""
        sums, sizes = (np.array(one) for one in self._sums)
        found = Counter(zip(sums.tolist(), sizes.tolist(), strict=True))
        if len(found) > MOST_KINDS:
            sums = np.round(sums / sizes * MOST_KINDS / 2) / MOST_KINDS * 2 * sizes
            found = Counter(zip(sums.tolist(), sizes.tolist(), strict=True))
        kinds = np.array(sorted(found))
        counts = np.array([found[total, size] for total, size in kinds.tolist()], dtype=np.float64)
        ways = [fsum(column) for column in zip(*self._ways, strict=True)]
        squares, largest = fsum(one * one for one in self._sums[0]), max(self._sums[1])
        reach, together = unseen(np.array([ways]), *(np.array([one]) for one in (squares, self.moved, largest)))
        return Clusters(kinds[:, 0], kinds[:, 1], counts, float(reach[0]), float(together[0]))

    def p(self, null: float = 0.0) -> float:
        """Two-sided p-value of the hypothesis that the mean difference is `null`."""
        return min(1.0, 2 * min(self.kinds.above(null), self.kinds.below(null)))

    def interval(self, level: float) -> tuple[float, float]:
        """Confidence interval of the mean difference, within -1..1: the values that the test does not reject.

        It excludes 0 exactly if `p()` is at most 1 - level.
        """
        low = _end(self.kinds.above, self.mean, (1 - level) / 2)
        high = -_end(lambda null: self.kinds.below(-null), -self.mean, (1 - level) / 2)
        return low, high + 0.0

    def plain_interval(self, level: float) -> tuple[float, float] | None:
        """Student's interval of the mean difference, which allows for no case that was not seen; None: one cluster."""
        found = mean_interval(self.values, self.clusters, level=level)
        return (max(-1.0, found.low), min(1.0, found.high)) if found.clusters > 1 else None

    def evidence(self, measure: Measure, margin: float) -> Evidence:
        """What the differences say about a margin."""
        borders = (-margin, margin) if margin else (0.0,)
        above, below = map(self.kinds.above, borders), map(self.kinds.below, borders)
        return Evidence(measure, self.mean, self.moved, tuple(above), tuple(below))

    @cached_property
    def _sums(self) -> tuple[list[float], list[float]]:
        """Sum of the differences of each cluster, and its size, whatever the order of its cases."""
        weights = self.weights if self.weights is not None else [1.0] * len(self.values)
        members: dict[Hashable, list[tuple[float, float]]] = {}
        for value, weight, cluster in zip(self.values, weights, self.clusters, strict=True):
            members.setdefault(cluster, []).append((value * weight, weight))
        sums = [fsum(value for value, _ in of) if len(of) > 1 else of[0][0] for of in members.values()]
        sizes = [fsum(weight for _, weight in of) if len(of) > 1 else of[0][1] for of in members.values()]
        return [one if abs(one) > ROUNDING else 0.0 for one in sums], sizes

    @property
    def _ways(self) -> Iterator[tuple[float, ...]]:
        """What `unseen` sums, of each case that moved."""
        weights = self.weights if self.weights is not None else [1.0] * len(self.values)
        yield (0.0,) * 6
        for old, new, by, weight in zip(self.before, self.after, self.values, weights, strict=True):
            if by:
                yield 1.0, old, old * old, new, new * new, weight * by * by


def unseen(ways: Numbers, squares: Numbers, moved: Numbers, largest: Numbers) -> tuple[Numbers, Numbers]:
    """How far a case that was not seen may move, and how many such cases move together; of each row.

    The first is 1 for verdicts. For scores it is the mean way to the end of the range, of the cases that moved,
    weighted by the way itself: the largest of up and down, before and after, so that it is the same if runs are swapped
    or scores turned round. The second is 1 for cases that stand alone. In clusters it is the design effect of the
    differences, the sum of the squares of their clusters' sums over that of their own squares, averaged with one
    cluster that moves as a whole. Cases without a difference change neither.

    Args:
        ways: number of cases that moved, and of these the sums of the values before, of their squares, of the values
            after, of their squares, and of the squares of the differences.
        squares: sum of the squares of the clusters' sums.
        moved: number of clusters that moved.
        largest: cases, or weight, of the largest cluster.
    """
    count, *sides, own = ways.T
    reach = np.zeros(len(ways))
    for one, square in (sides[:2], sides[2:]):
        for total, way in ((one, square), (count - one, count - 2 * one + square)):
            reach = np.maximum(reach, np.divide(way, total, out=np.zeros_like(total), where=total > ROUNDING))
    shown = np.divide(squares, own, out=np.zeros_like(own), where=own > 0)
    return np.where(count > 0, reach, 1.0), (moved * shown + largest) / (moved + 1)


def _end(tail: Callable[[float], float], mean: float, alpha: float) -> float:
    """Lower end of an interval: where the one-sided p-value, which rises with the hypothesis, is `alpha`."""
    normal = NormalDist()
    wanted = normal.inv_cdf(alpha)

    def excess(null: float) -> float:
        p = tail(null)
        return (normal.inv_cdf(p) if 0 < p < 1 else FAR if p >= 1 else -FAR) - wanted

    low, high = -1.0, mean
    below, above = excess(low), excess(high)
    if below >= 0 or above <= 0:
        return low if below >= 0 else high
    if low < 0 < high:  # whether 0 is inside is known exactly
        at_zero = excess(0.0)
        low, high, below, above = (0.0, high, at_zero, above) if at_zero <= 0 else (low, 0.0, below, at_zero)
    for _ in range(100):
        found = high - above * (high - low) / (above - below)
        if min(found - low, high - found) < ROUNDING / 10 or below <= -FAR:
            found = (low + high) / 2
        value = excess(found)
        if abs(value) < 1e-9 or high - low < ROUNDING / 10:
            return found
        if value < 0:  # Illinois: an end that stays counts half
            low, below, above = found, value, above / 2
        else:
            high, above, below = found, value, below / 2
    return (low + high) / 2
