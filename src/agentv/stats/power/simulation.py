"""How often a comparison that is still to come shows what is true: simulated, with the rule of `compare` itself.

A population holds the clusters that may be drawn, by kind. A round draws so many of them and is decided as `compare`
decides. The seed comes from the population, so the same question gives the same number.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import inf, sqrt
from statistics import NormalDist
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from agentv.model.run.matrix import Measure, Verdict
from agentv.stats.comparison.difference import Differences, unseen
from agentv.stats.comparison.gamma_sums import Numbers, not_above_zero_each
from agentv.stats.comparison.rule import ROUNDING, Evidence, decided, fewest_moved

POWER = 0.8
"""How often a difference that is called detectable is shown."""
ROUNDS = 600
"""The standard error of a chance of 80 % is 1.6 points."""
CLOSE = 0.02
"""Tolerance for reaching the requested power."""
TRIES = 7
KINDS = 40
"""Different differences of one measure above which they are rounded to as many steps."""
MOST = 1_000_000
"""Clusters that somebody might collect."""
BETTER: frozenset[Verdict] = frozenset({"better"})
NOT_WORSE: frozenset[Verdict] = frozenset({"better", "equivalent", "non-inferior"})


Found = tuple[Numbers, Numbers, list[Numbers]]


@dataclass(frozen=True)
class Population:
    """Kinds of clusters of paired differences, and how often each occurs.

    Attributes:
        measures: one or two.
        sums: of each kind (rows) and measure, the sum of the differences.
        sizes: of each kind, its number of cases.
        ways: of each kind and measure what `unseen` sums.
        shares: how often each kind occurs; they sum to 1.
        observed: number of clusters that these are known from.
    """

    measures: tuple[Measure, ...]
    sums: Numbers
    sizes: Numbers
    ways: Numbers
    shares: Numbers
    observed: int

    @classmethod
    def of(cls, measures: Sequence[tuple[Measure, Differences]]) -> Population:
        """The clusters of a comparison, each as often as it occurs there."""
        known: dict[Hashable, int] = {}
        numbers = np.array([known.setdefault(one, len(known)) for one in measures[0][1].clusters])
        found = [_of_cases(np.array(one.before), np.array(one.after), np.array(one.values)) for _, one in measures]
        return cls.gathered(tuple(name for name, _ in measures), np.stack(found, axis=1), numbers)

    @classmethod
    def drawn(cls, measures: Sequence[tuple[Measure, Numbers, Numbers]]) -> Population:
        """Clusters of one size, given the values before and after: one row a cluster, one column a case."""
        clusters, size = measures[0][1].shape
        found = [_of_cases(before.ravel(), after.ravel(), (after - before).ravel()) for _, before, after in measures]
        numbers = np.repeat(np.arange(clusters), size)
        return cls.gathered(tuple(name for name, _, _ in measures), np.stack(found, axis=1), numbers)

    @classmethod
    def gathered(cls, measures: tuple[Measure, ...], cases: Numbers, numbers: NDArray[np.int64]) -> Population:
        """Clusters by kind: those that differ by less than a fortieth of the range are one, with their mean."""
        count = int(numbers.max()) + 1
        clusters = _summed(cases, numbers, count)
        sizes = np.bincount(numbers).astype(np.float64)
        steps = np.round(clusters[:, :, 0] / sizes[:, None], 9)
        for column in steps.T:
            if np.unique(column).size > KINDS:
                column[:] = np.round(column / (width := np.ptp(column) / KINDS)) * width
        kinds = _kinds(sizes, *steps.T)[1]
        counts = np.bincount(kinds).astype(np.float64)
        means = _summed(clusters, kinds, counts.size) / counts[:, None, None]
        for place, column in enumerate(steps.T):  # of each measure, its own kinds keep their mean
            own = _kinds(sizes, column)[1]
            of_own = np.bincount(own, weights=clusters[:, place, 0]) / np.bincount(own)
            means[kinds, place, 0] = of_own[own]
        of_kind = np.bincount(kinds, weights=sizes)
        sums: Numbers = means[:, :, 0].round(12)
        sums += 0.0  # no negative zeros: the seed comes from these bytes
        return cls(measures, sums, of_kind / counts, means[:, :, 1:], counts / count, count)

    @property
    def mean(self) -> float:
        """Mean difference of the first measure."""
        return float(self.shares @ self.sums[:, 0] / (self.shares @ self.sizes))

    @property
    def turned(self) -> Population:
        """The same with the two runs swapped."""
        order = slice(None, None, -1)
        ways = self.ways[order][:, :, [0, 3, 4, 1, 2, 5]]
        return replace(self, sums=0.0 - self.sums[order], sizes=self.sizes[order], ways=ways, shares=self.shares[order])

    def tilted(self, difference: float) -> Population:
        """The clusters that give another mean difference of the first measure with the least change.

        Source: B. Efron, "Nonparametric standard errors and confidence intervals", Canadian Journal of Statistics 9
        (1981), 139-158, section 11: exponential tilting.
        """
        away = self.sums[:, 0] - difference * self.sizes
        if not away.any():
            return self
        low, high = -700 / np.abs(away).max(), 700 / np.abs(away).max()
        for _ in range(60):
            middle = (low + high) / 2
            weights = self.shares * np.exp(middle * away)
            low, high = (middle, high) if float(weights @ away) < 0 else (low, middle)
        return replace(self, shares=weights / weights.sum())

    @property
    def spread(self) -> Population:
        """With half a cluster that gets wholly better and half one wholly worse, so that all may be tilted."""
        size, measures = self.sizes.max(), len(self.measures)
        loss, gain = [size, size, size, 0.0, 0.0, size], [size, 0.0, 0.0, size, size, size]
        down, up = (np.broadcast_to(np.array(way), (1, measures, 6)) for way in (loss, gain))
        shares = np.concatenate(([0.5], self.shares * self.observed, [0.5])) / (self.observed + 1)
        return replace(
            self,
            sums=np.vstack((np.full((1, measures), -size), self.sums, np.full((1, measures), size))),
            sizes=np.concatenate(([size], self.sizes, [size])),
            ways=np.concatenate((down, self.ways, up)),
            shares=shares,
        )

    @cached_property
    def _seed(self) -> int:
        parts = (np.round(one, 9).tobytes() for one in (self.sums, self.sizes, self.shares))
        return crc32(b"".join(parts))

    def chance(self, clusters: int, wanted: Container[Verdict], alpha: float, margin: float = 0.0) -> float:
        """How often a comparison of so many clusters ends with one of these verdicts, 0..1."""
        if clusters < 1:
            return 0.0
        counts = self._rounds(clusters)
        levels = alpha / 2 / np.arange(1, len(self.measures) + 1)
        found = [self._evidence(place, counts, levels, margin) for place in range(len(self.measures))]
        # only what lies between which levels decides, so that rounds that are alike in that are decided once
        bounds = np.sort(levels) * (1 + ROUNDING)
        alike = [np.minimum(moved, fewest_moved(alpha)) for _, moved, _ in found]
        alike += [np.searchsorted(bounds, tail) for _, _, tails in found for tail in tails]
        first, kinds = _kinds(*alike)
        rounds = np.bincount(kinds)
        shown = [decided([self._of_round(place, one, row) for place, one in enumerate(found)], alpha) for row in first]
        return float(sum(number for number, one in zip(rounds, shown, strict=True) if one in wanted)) / ROUNDS

    def _of_round(self, place: int, found: Found, row: int) -> Evidence:
        """The evidence of one measure in one round."""
        means, moved, tails = found
        half = len(tails) // 2
        above, below = (tuple(float(tail[row]) for tail in side) for side in (tails[:half], tails[half:]))
        return Evidence(self.measures[place], float(means[row]), int(moved[row]), above, below)

    def _rounds(self, clusters: int) -> Numbers:
        """Of each round (rows) how often each kind was drawn."""
        chance, kinds = np.random.Generator(np.random.PCG64(self._seed)), self.shares.size
        if clusters >= kinds:
            return chance.multinomial(clusters, self.shares, size=ROUNDS).astype(np.float64)
        drawn = chance.choice(kinds, size=(ROUNDS, clusters), p=self.shares) + np.arange(ROUNDS)[:, None] * kinds
        return np.bincount(drawn.ravel(), minlength=ROUNDS * kinds).reshape(ROUNDS, kinds).astype(np.float64)

    def _evidence(self, place: int, counts: Numbers, levels: Numbers, margin: float) -> Found:
        """Of one measure in each round: its mean, clusters that moved, and p-values, first those of above."""
        own = self.sums[:, place]
        columns = np.column_stack((own != 0, own**2, self.ways[:, place]))
        summed = np.einsum("rk,kc->rc", counts, columns)  # not @, for which BLAS would start threads
        moved, largest = summed[:, 0], np.where(counts > 0, self.sizes, 0).max(axis=1)
        reach, together = unseen(summed[:, 2:], summed[:, 1], moved, largest)
        first, kind_of = _kinds(own, self.sizes)
        sums, sizes = own[first], self.sizes[first]
        order = np.argsort(kind_of, kind="stable")
        counts = np.add.reduceat(counts[:, order], np.searchsorted(kind_of[order], np.arange(first.size)), axis=1)
        every = np.column_stack((counts, np.ones(len(counts))))
        tails = []
        for sign in (1.0, -1.0):
            for null in (-margin, margin) if margin else (0.0,):
                values = np.broadcast_to(sign * (sums - null * sizes), counts.shape)
                against = -together * (reach + sign * null)
                tails.append(not_above_zero_each(np.column_stack((values, against)), every, levels))
        return counts @ sums / (counts @ sizes), moved, tails

    def needed(self, wanted: Container[Verdict], alpha: float, margin: float = 0.0, power: float = POWER) -> int | None:
        """About how many clusters show it with this power; None: more than anybody collects."""
        distance = abs(abs(self.mean) - margin)
        deviation = sqrt(float(self.shares @ (self.sums[:, 0] - self.mean * self.sizes) ** 2))
        size = float(self.shares @ self.sizes)
        normal, fewest = NormalDist(), fewest_moved(alpha)
        wide = normal.inv_cdf(1 - alpha / 2)
        goal = wide + normal.inv_cdf(power)
        if distance * size * sqrt(MOST) <= deviation * goal or distance <= 0:
            return None
        clusters = max(fewest, round((goal * deviation / distance / size) ** 2))
        low, high = fewest - 1, MOST + 1  # too few, and enough
        while high - low > 1 and clusters <= MOST:
            found = self.chance(clusters, wanted, alpha, margin)
            if abs(found - power) <= CLOSE:
                return clusters
            low, high = (clusters, high) if found < power else (low, clusters)
            shown = wide + normal.inv_cdf(min(0.98, max(0.03, found)))
            aimed = round(clusters * (goal / max(shown, goal / 3)) ** 2)
            clusters = aimed if low < aimed < high else (low + min(high, 2 * clusters)) // 2
            clusters = max(low + 1, clusters)
        return high if high <= MOST else None

    def detectable(self, clusters: int, alpha: float, power: float = POWER) -> float:
        """The smallest difference of the first measure that so many such clusters show, up or down; inf: none."""
        found = []
        for one in (self.spread, self.spread.turned):
            deviation = sqrt(float(one.shares @ one.sums[:, 0] ** 2) / clusters) / float(one.shares @ one.sizes)
            chance = partial(_chance_tilted, one, clusters, alpha)
            found.append(least_shown(chance, 3 * deviation, 1 - CLOSE, power))
        return max(found)


def _chance_tilted(population: Population, clusters: int, alpha: float, difference: float) -> float:
    return population.tilted(difference).chance(clusters, BETTER, alpha)


def least_shown(chance: Callable[[float], float], guess: float, largest: float, power: float) -> float:
    """The smallest difference up to `largest` that is shown with this power; inf: none is."""
    normal = NormalDist()
    goal = 2 + normal.inv_cdf(power)  # about: what a claim takes, and what lies beyond it so often
    low, high = 0.0, largest
    difference = min(guess, largest)
    for _ in range(TRIES):
        found = chance(difference)
        if abs(found - power) <= CLOSE:
            return difference
        if found < power and difference >= largest:
            return inf
        low, high = (difference, high) if found < power else (low, difference)
        shown = 2 + normal.inv_cdf(min(0.98, max(0.03, found)))
        aimed = difference * goal / max(shown, goal / 3)
        difference = aimed if low < aimed < high else (low + high) / 2 if found > power or aimed < largest else largest
    return difference


def _kinds(*columns: Numbers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of rows with these columns: the first row of each kind, sorted, and the kind of each row."""
    code = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        values, numbers = np.unique(column, return_inverse=True)
        code = code * values.size + numbers
    _, first, kinds = np.unique(code, return_index=True, return_inverse=True)
    return first, kinds


def _summed(values: Numbers, numbers: NDArray[np.int64], count: int) -> Numbers:
    """Sums of the rows with each number."""
    columns = values.reshape(len(values), -1).T
    found: Numbers = np.stack(
        [np.bincount(numbers, weights=column, minlength=count) for column in columns], axis=1, dtype=np.float64
    )
    return found.reshape(count, *values.shape[1:])


def _of_cases(before: Numbers, after: Numbers, values: Numbers) -> Numbers:
    """Of each case its difference, and what `unseen` sums."""
    moved = (values != 0).astype(np.float64)
    return np.column_stack((values, moved, *(moved * one for one in (before, before**2, after, after**2)), values**2))
