"""Test of the mean difference between two runs over the same cases. Every comparison of scores or verdicts uses it.

The test reweights the clusters at random, with weights that are uniform on the simplex, and adds one unseen cluster
that moves against the claim as far as scores can move. The one-sided p-value of "the mean difference is at most μ" is
the probability that the reweighted mean is at most μ. The unseen cluster accounts for cases that the sample does not
contain: if 20 of 20 cases rise a little, up to 17 % of others may still get much worse.

- For verdicts, it is McNemar's exact test.
- If all differences are equal, it is Clopper and Pearson's bound on the share of cases that differ otherwise.
- With many clusters, it approaches the paired t test, corrected for skewness.
- Swapping the runs, or inverting every score (1 - score), mirrors the result. Pairs without a difference have no
  effect. A cluster weighs as much as the cases in it.

Sources: N. Gaffke, "Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative
variable", Mathematical Methods of Statistics 14 (2005), 451-467; E. Learned-Miller, P. S. Thomas, "A new confidence
interval for the mean of a bounded random variable" (2019), arXiv:1905.06208, who conjecture that it holds its level for
every bounded distribution; D. B. Rubin, "The Bayesian bootstrap", Annals of Statistics 9 (1981), 130-134.

This module imports numpy, so no module that `agentv eval` loads may import it.
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
"""Differences up to this size are rounding errors."""
MOST_KINDS = 1000
"""Number of distinct clusters above which their means are rounded to this many steps."""
FAR = 9.0
"""Standard normal quantile beyond which a probability is treated as 0."""


@dataclass(frozen=True, slots=True)
class Clusters:
    """Clusters of paired differences, with identical clusters counted together.

    Attributes:
        sums, sizes: sum of the differences and number (or weight) of the cases, for each kind of cluster.
        counts: number of clusters of each kind.
        reach: how far an unseen case may move, 0..1.
        unseen_size: how many unseen cases move together.
    """

    sums: Numbers
    sizes: Numbers
    counts: Numbers
    reach: float
    unseen_size: float

    def above(self, null: float) -> float:
        """One-sided p-value of the hypothesis that the mean difference is at most `null`."""
        return self._tail(self.sums - null * self.sizes, null)

    def below(self, null: float) -> float:
        """One-sided p-value of the hypothesis that the mean difference is at least `null`."""
        return self._tail(null * self.sizes - self.sums, -null)

    def _tail(self, values: Numbers, null: float) -> float:
        if null <= -1:
            return 0.0  # no mean is below -1
        unseen = -self.unseen_size * (self.reach + null)
        order = np.argsort(values, kind="stable")
        kept = order[values[order] != 0]
        return not_above_zero(np.append(values[kept], unseen), np.append(self.counts[kept], 1.0))


@dataclass(frozen=True)
class Differences:
    """Values of one measure for paired cases, before and after.

    Attributes:
        before, after: value of each case, 0..1; at least one case.
        clusters: cluster of each case.
        weights: weight of each case, or None if all weigh the same.
    """

    before: Sequence[float]
    after: Sequence[float]
    clusters: Sequence[Hashable]
    weights: Sequence[float] | None = None

    @cached_property
    def values(self) -> list[float]:
        """Candidate minus base for each case, with rounding errors set to 0."""
        pairs = zip(self.before, self.after, strict=True)
        return [new - old if abs(new - old) > ROUNDING else 0.0 for old, new in pairs]

    @cached_property
    def mean(self) -> float:
        """Mean difference over all cases."""
        sums, sizes = self._sums
        return fsum(sums) / fsum(sizes)

    @property
    def independent(self) -> int:
        """Number of clusters."""
        return len(self._sums[0])

    @cached_property
    def moved(self) -> int:
        """Number of clusters whose differences do not sum to zero."""
        return sum(one != 0 for one in self._sums[0])

    @cached_property
    def kinds(self) -> Clusters:
        """The clusters by kind: the input of the test."""
        sums, sizes = (np.array(one) for one in self._sums)
        found = Counter(zip(sums.tolist(), sizes.tolist(), strict=True))
        if len(found) > MOST_KINDS:
            sums = np.round(sums / sizes * MOST_KINDS / 2) / MOST_KINDS * 2 * sizes
            found = Counter(zip(sums.tolist(), sizes.tolist(), strict=True))
        kinds = np.array(sorted(found))
        counts = np.array([found[total, size] for total, size in kinds.tolist()], dtype=np.float64)
        terms = [fsum(column) for column in zip(*self._terms, strict=True)]
        squares, largest = fsum(one * one for one in self._sums[0]), max(self._sums[1])
        reach, size = unseen(np.array([terms]), *(np.array([one]) for one in (squares, self.moved, largest)))
        return Clusters(kinds[:, 0], kinds[:, 1], counts, float(reach[0]), float(size[0]))

    def p(self, null: float = 0.0) -> float:
        """Two-sided p-value of the hypothesis that the mean difference is `null`."""
        return min(1.0, 2 * min(self.kinds.above(null), self.kinds.below(null)))

    def interval(self, level: float) -> tuple[float, float]:
        """Confidence interval of the mean difference, within -1..1: the values that the test does not reject.

        The interval excludes 0 exactly if `p()` is at most 1 - level.
        """
        low = _end(self.kinds.above, self.mean, (1 - level) / 2)
        high = -_end(lambda null: self.kinds.below(-null), -self.mean, (1 - level) / 2)
        return low, high + 0.0

    def plain_interval(self, level: float) -> tuple[float, float] | None:
        """Student's t interval of the mean difference, without an allowance for unseen cases; None for one cluster."""
        found = mean_interval(self.values, self.clusters, level=level)
        return (max(-1.0, found.low), min(1.0, found.high)) if found.clusters > 1 else None

    def evidence(self, measure: Measure, margin: float) -> Evidence:
        """The evidence for and against a difference beyond the margin."""
        borders = (-margin, margin) if margin else (0.0,)
        above, below = map(self.kinds.above, borders), map(self.kinds.below, borders)
        return Evidence(measure, self.mean, self.moved, tuple(above), tuple(below))

    @cached_property
    def _sums(self) -> tuple[list[float], list[float]]:
        """Sum of the differences and size of each cluster, independent of the order of the cases."""
        weights = self.weights if self.weights is not None else [1.0] * len(self.values)
        members: dict[Hashable, list[tuple[float, float]]] = {}
        for value, weight, cluster in zip(self.values, weights, self.clusters, strict=True):
            members.setdefault(cluster, []).append((value * weight, weight))
        sums = [fsum(value for value, _ in of) if len(of) > 1 else of[0][0] for of in members.values()]
        sizes = [fsum(weight for _, weight in of) if len(of) > 1 else of[0][1] for of in members.values()]
        return [one if abs(one) > ROUNDING else 0.0 for one in sums], sizes

    @property
    def _terms(self) -> Iterator[tuple[float, ...]]:
        """The terms that `unseen` needs summed, for each case that moved."""
        weights = self.weights if self.weights is not None else [1.0] * len(self.values)
        yield (0.0,) * 6
        for old, new, by, weight in zip(self.before, self.after, self.values, weights, strict=True):
            if by:
                yield 1.0, old, old * old, new, new * new, weight * by * by


def unseen(terms: Numbers, squares: Numbers, moved: Numbers, largest: Numbers) -> tuple[Numbers, Numbers]:
    """For each row, how far an unseen case may move, and how many unseen cases move together.

    The first is 1 for verdicts. For scores, it is the mean distance to the end of the range over the cases that moved,
    weighted by that distance. It is the largest of four such means (up and down, before and after), so that swapping
    the runs or inverting the scores does not change it. The second is 1 for cases without clusters. For clustered
    cases, it is the design effect of the differences (the sum of the squared cluster sums over the sum of the squared
    differences), averaged with one cluster that moves as a whole. Cases without a difference affect neither.

    Args:
        terms: number of cases that moved, and over these the sums of the values before, of their squares, of the values
            after, of their squares, and of the squared differences.
        squares: sum of the squared cluster sums.
        moved: number of clusters that moved.
        largest: number of cases, or weight, of the largest cluster.
    """
    count, *sides, own = terms.T
    reach = np.zeros(len(terms))
    for one, square in (sides[:2], sides[2:]):
        for total, distance in ((one, square), (count - one, count - 2 * one + square)):
            reach = np.maximum(reach, np.divide(distance, total, out=np.zeros_like(total), where=total > ROUNDING))
    shown = np.divide(squares, own, out=np.zeros_like(own), where=own > 0)
    return np.where(count > 0, reach, 1.0), (moved * shown + largest) / (moved + 1)


def _end(tail: Callable[[float], float], mean: float, alpha: float) -> float:
    """Lower end of an interval: the null value whose one-sided p-value, which rises with it, is `alpha`."""
    normal = NormalDist()
    wanted = normal.inv_cdf(alpha)

    def excess(null: float) -> float:
        p = tail(null)
        return (normal.inv_cdf(p) if 0 < p < 1 else FAR if p >= 1 else -FAR) - wanted

    low, high = -1.0, mean
    below, above = excess(low), excess(high)
    if below >= 0 or above <= 0:
        return low if below >= 0 else high
    if low < 0 < high:  # start at 0, so that whether the interval excludes 0 is exact
        at_zero = excess(0.0)
        low, high, below, above = (0.0, high, at_zero, above) if at_zero <= 0 else (low, 0.0, below, at_zero)
    for _ in range(100):
        found = high - above * (high - low) / (above - below)
        if min(found - low, high - found) < ROUNDING / 10 or below <= -FAR:
            found = (low + high) / 2
        value = excess(found)
        if abs(value) < 1e-9 or high - low < ROUNDING / 10:
            return found
        if value < 0:  # Illinois method: halve the value at the end that stays
            low, below, above = found, value, above / 2
        else:
            high, above, below = found, value, below / 2
    return (low + high) / 2


Numbers = NDArray[np.float64]

STEP = 0.2
"""Step of the trapezoidal rule, in the argument of sinh."""
AT_ONCE = 16
"""Nodes to evaluate before checking whether the rest is negligible."""
NEGLIGIBLE = 1e-17
NEWTON = 60
NEAR = 0.03
"""Relative distance to a level within which an approximate p-value is computed exactly."""


def not_above_zero(values: Numbers, counts: Numbers) -> float:
    """Probability that Σ G_k · values_k is at most 0, for independent G_k with a Gamma(counts_k) distribution.

    Args:
        values: one value per kind, sorted, so that the last digit does not depend on the order of the kinds.
        counts: shape of each G_k, above 0.
    """
    lowest, highest = float(values.min()), float(values.max())
    if highest <= 0 or lowest >= 0:
        return 1.0 if highest <= 0 else 0.0
    if float((values * counts).sum()) < 0:
        return 1.0 - _below(-values, counts)
    return _below(values, counts)


def _below(values: Numbers, counts: Numbers) -> float:
    """`not_above_zero` for a sum whose mean is at least 0."""
    scaled = values / -values.min()
    lowest, highest, point = -1.0, 0.0, -0.5  # bounds of the saddle point of K(s) - log(-s), and a first guess
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
    area, begin, last = -0.5, 0, 1.0  # the first node has the value 1 and half the weight
    while last > NEGLIGIBLE:
        steps = np.arange(begin, begin + AT_ONCE) * STEP
        up = deviation * np.sinh(steps)  # distance from the saddle point
        turns = up[:, None] * parts
        away = np.log1p(turns * turns) @ counts / 2 - 1j * (np.arctan(turns) @ counts)
        heights = np.exp(-away) / (1 + 1j * up / point) * np.cosh(steps)
        area += float(np.real(heights).sum())
        begin, last = begin + AT_ONCE, float(np.abs(heights[-1]))
    height = -float((counts * np.log1p(-point * scaled)).sum())
    return float(np.exp(height) * deviation / -point / np.pi * STEP * area)


def not_above_zero_each(values: Numbers, counts: Numbers, levels: Numbers) -> Numbers:
    """`not_above_zero` for each row: exact near one of the levels, otherwise accurate to about 2 %.

    The result is 1 for sums whose mean is not above zero, since their probability is not near any level.

    Args:
        values: one row per sum, all with the same number of kinds.
        counts: count of each kind in each row; may be 0.
        levels: probabilities that the caller compares the results with.
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
    """Lugannani and Rice's approximation in Barndorff-Nielsen's form, for sums that can be below and above zero."""
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
"""Probability of any false claim in a series of runs."""
EXPONENT = 2 / 3
"""Exponent of the power law by which the level falls with the position in the series."""
CONFIDENCE = 0.95
"""Confidence level of each interval alone."""


def level_at(position: int, *, from_baseline: bool = False) -> float:
    """Significance level for a comparison of the run at this position (from 1) in a series.

    A quarter of the position's share of `ALPHA` goes to the comparison with the baseline. At position 1, the baseline
    is the run before, so the only comparison gets the whole share.
    """
    part: float = ALPHA * (position**-EXPONENT - (position + 1) ** -EXPONENT)
    return part if position == 1 else part / 4 if from_baseline else part * 3 / 4


def difference_at(
    before: str, found: Differences, level: float, bounds: tuple[Differences, Differences] | None = None
) -> RunDifference:
    """Difference between a run of a series and an earlier one.

    Args:
        before: id of the earlier run.
        found: the paired differences.
        level: significance level, from `level_at`.
        bounds: the differences in the worst and in the best case for the later run, if samples errored. A difference
            is shown only if the case that speaks against it shows it too.
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
