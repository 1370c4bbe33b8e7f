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
from numpy.typing import NDArray

from agentv.model.run.matrix import Measure
from agentv.model.run.runs import Direction, RunDifference
from agentv.stats.intervals.means import mean_interval
from agentv.stats.rule import Evidence

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


Numbers = NDArray[np.float64]

STEP = 0.2
"""Of the trapezoidal rule, in the argument of sinh."""
AT_ONCE = 16
"""Nodes that are evaluated before a look at whether the rest matters."""
NOTHING = 1e-17
NEWTON = 60
NEAR = 0.03
"""Relative distance to a level within which an approximation decides nothing."""


def not_above_zero(values: Numbers, counts: Numbers) -> float:
    """The probability that Σ G_k · values_k is at most 0, G_k being independent and Gamma(counts_k).

    Args:
        values: one a kind; sort them, so that the same kinds in another order give the same last digit.
        counts: above 0.
    """
    lowest, highest = float(values.min()), float(values.max())
    if highest <= 0 or lowest >= 0:
        return 1.0 if highest <= 0 else 0.0
    if float((values * counts).sum()) < 0:
        return 1.0 - _below(-values, counts)
    return _below(values, counts)


def _below(values: Numbers, counts: Numbers) -> float:
    """As `not_above_zero`, where the mean of the sum is at least 0."""
    scaled = values / -values.min()
    lowest, highest, point = -1.0, 0.0, -0.5  # the saddle point of K(s) - log(-s) lies between
    for _ in range(NEWTON):
        parts = scaled / (1 - point * scaled)
        slope = float((counts * parts).sum()) - 1 / point
        curve = float((counts * parts * parts).sum()) + 1 / point**2
        lowest, highest = (lowest, point) if slope > 0 else (point, highest)
        found = point - slope / curve
        before, point = point, found if lowest < found < highest else (lowest + highest) / 2
        if abs(point - before) <= 1e-12 * abs(point):
            break
    deviation = curve**-0.5
    parts = scaled / (1 - point * scaled)
    area, begin, last = -0.5, 0, 1.0  # the first node counts half, and is 1
    while last > NOTHING:
        steps = np.arange(begin, begin + AT_ONCE) * STEP
        up = deviation * np.sinh(steps)  # from the saddle point
        turns = up[:, None] * parts
        away = np.log1p(turns * turns) @ counts / 2 - 1j * (np.arctan(turns) @ counts)
        heights = np.exp(-away) / (1 + 1j * up / point) * np.cosh(steps)
        area += float(np.real(heights).sum())
        begin, last = begin + AT_ONCE, float(np.abs(heights[-1]))
    height = -float((counts * np.log1p(-point * scaled)).sum())
    return float(np.exp(height) * deviation / -point / np.pi * STEP * area)


def not_above_zero_each(values: Numbers, counts: Numbers, levels: Numbers) -> Numbers:
    """As `not_above_zero` for each row; exact where it is near one of the levels, else right to about 2 %.

    Where the mean of the sum is not above zero it is 1: that probability is not near any level.

    Args:
        values: one row a sum, with as many kinds in each.
        counts: of each kind; may be 0.
        levels: probabilities that somebody compares the results with.
    """
    values = np.where(counts > 0, values, 0.0)
    lowest, highest = values.min(axis=1), values.max(axis=1)
    found = np.where((lowest >= 0) & (highest > 0), 0.0, 1.0)
    rows = np.flatnonzero((lowest < 0) & ((values * counts).sum(axis=1) > 0))
    if rows.size:
        found[rows] = _approximated(values[rows], counts[rows], lowest[rows], highest[rows])
    near = np.abs(found[rows, None] / levels - 1).min(axis=1) <= NEAR
    for row in rows[near]:
        there = values[row] != 0
        found[row] = not_above_zero(values[row][there], counts[row][there])
    return found


def _approximated(values: Numbers, counts: Numbers, lowest: Numbers, highest: Numbers) -> Numbers:
    """Lugannani and Rice's approximation in Barndorff-Nielsen's form; each sum may be below and above zero."""
    from scipy.special import ndtr

    left, right = 1 / lowest, 1 / highest
    point = np.zeros(len(values))
    for _ in range(30):
        parts = values / (1 - point[:, None] * values)
        slope = (counts * parts).sum(axis=1)
        left, right = np.where(slope < 0, point, left), np.where(slope > 0, point, right)
        found = point - slope / (counts * parts * parts).sum(axis=1)
        found = np.where((found <= left) | (found >= right), (left + right) / 2, found)
        settled = np.abs(found - point) <= 1e-4 * np.abs(found)
        point = found
        if settled.all():
            break
    shares = values / (1 - point[:, None] * values)
    curve = (counts * shares * shares).sum(axis=1)
    height = (counts * np.log1p(-point[:, None] * values)).sum(axis=1)
    root = np.sign(point) * np.sqrt(np.maximum(2 * height, 0))
    middle = np.abs(root) < 1e-4  # the mean of the sum is 0
    safe = np.where(middle, 1.0, root)
    ratio = np.where(middle, 1.0, point * np.sqrt(curve) / safe)
    return np.where(middle, 0.5, ndtr(safe + np.log(ratio) / safe))


ALPHA = 0.05
"""The chance of any false claim in a series."""
EXPONENT = 2 / 3
"""How fast the parts fall."""
CONFIDENCE = 0.95
"""Of each interval alone."""


def level_at(position: int, *, from_baseline: bool = False) -> float:
    """The level of a comparison of the run at this position, from 1 on.

    A quarter is for the comparison with the baseline. At position 1 that is the one with the run before.
    """
    part: float = ALPHA * (position**-EXPONENT - (position + 1) ** -EXPONENT)
    return part if position == 1 else part / 4 if from_baseline else part * 3 / 4


def difference_at(
    before: str, found: Differences, level: float, bounds: tuple[Differences, Differences] | None = None
) -> RunDifference:
    """The difference of a run of the series from an earlier one.

    Args:
        before: id of the earlier run.
        found: the paired differences.
        level: of `level_at`.
        bounds: the differences in the worst and in the best case for the later run, if samples errored. A difference
            is shown only if it is shown in the case that speaks against it, too.
    """
    seen = _shown(found, level)
    direction = seen
    if bounds is not None and seen is not None and _shown(bounds[seen == "lower"], level) != seen:
        direction = None
    interval = found.interval(CONFIDENCE)
    cases = len(found.values)
    return RunDifference(before, cases, found.mean, interval, found.p(), level, direction, direction != seen)


def _shown(found: Differences, level: float) -> Direction | None:
    claim = found.evidence("pass rate", 0.0).claim(level)
    return "higher" if claim == "better" else "lower" if claim == "worse" else None
