"""A comparison of few cases with several samples each, rehearsed: drawn, and tested as `compare` tests.

Their differences are few and lumpy, so that no formula tells how often the test speaks up; with less than a few dozen
cases a t test promises up to three times as much. The seed is fixed: the same plan gives the same number.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy import special

from agentv.lazy_dataclass import dataclass
from agentv.stats.power.drop import Drop

Numbers = NDArray[np.float64]

ROUNDS = 1000
TOGETHER = 8
"""Rounds whose sums are one product of matrices: of more, threads share the work, and waiting for them takes longer."""
SIGNS = 1024
ALL_SIGNS_UP_TO = 11
"""Number of cases whose sign patterns, except for flipping all signs, are at most `SIGNS`."""
GRID = 256
FINE = 4096
NEAR = 1e-9
"""Least weight of a beta distribution."""


def rehearsed_power(cases: int, repeat: int, drop: Drop, alpha: float = 0.05) -> float:
    """How often a permutation test of the signs shows the drop, of a thousand comparisons drawn; sure to 3 points.

    The true rates of the cases have beta distributions; with the chance `drop.shared` a case is as hard in both runs.

    Args:
        cases: that both runs have, at least 1 and a few dozen.
        repeat: samples of each case in each run, at least 1.
        drop: what is truly so.
        alpha: how often a difference may be seen where there is none, inside 0..1.
    """
    chance = np.random.Generator(np.random.PCG64(0))
    hard, other = chance.random((2, ROUNDS, cases))
    also = np.where(chance.random((ROUNDS, cases)) < drop.shared, hard, other)
    before = chance.binomial(repeat, _rates(drop.rate, drop.alike, hard))
    after = chance.binomial(repeat, _rates(drop.after, drop.alike, also))
    differences = (after - before).astype(np.float32)  # whole numbers, whose sums it holds exactly
    fell = differences.sum(axis=1)
    sums = (differences.reshape(-1, TOGETHER, cases) @ _signs(cases)).reshape(ROUNDS, -1)
    as_far = (np.abs(sums) >= np.abs(fell)[:, None]).sum(axis=1)
    drawn = 0 if cases <= ALL_SIGNS_UP_TO else 1
    p = (as_far + drawn) / (_signs(cases).shape[1] + drawn)
    return float(np.mean((fell < 0) & (p <= alpha)))


@lru_cache(maxsize=64)
def _signs(cases: int) -> NDArray[np.float32]:
    """Ways to put signs, one a column: all with the last sign kept, or as many as are drawn."""
    if cases > ALL_SIGNS_UP_TO:
        return np.random.Generator(np.random.PCG64(1)).choice(np.array([-1.0, 1.0], np.float32), (cases, SIGNS))
    numbers = np.arange(2 ** (cases - 1))
    return np.array([1.0 - 2 * (numbers >> place & 1) for place in range(cases)], np.float32)


def _rates(mean: float, alike: float, hard: Numbers) -> Numbers:
    """The true rates of cases so hard, by how much of the variance of a verdict lies between them."""
    if mean in {0.0, 1.0} or alike == 0:
        return np.full(hard.shape, mean)
    if alike == 1:
        return (hard > 1 - mean).astype(np.float64)
    found: Numbers = np.interp(hard, *_quantiles(mean, alike))
    return np.clip(found, 0.0, 1.0)


@lru_cache(maxsize=8)
def _quantiles(mean: float, alike: float) -> tuple[Numbers, Numbers]:
    """Places of 0..1 and the true rates there, of the beta distribution with this mean and share between cases."""
    weight = 1 / alike - 1
    places = (np.arange(GRID) + 0.5) / GRID
    return places, np.nan_to_num(special.betaincinv(mean * weight, (1 - mean) * weight, places))


@lru_cache(maxsize=8)
def _scores(mean: float, deviation: float) -> tuple[Numbers, Numbers]:
    """Places of 0..1 and the scores there, of the beta distribution with this mean and standard deviation.

    Where no score deviates so far from the mean, as far as any does.
    """
    weight = max(NEAR, mean * (1 - mean) / deviation**2 - 1)
    places = (np.arange(FINE) + 0.5) / FINE
    return places, np.nan_to_num(special.betaincinv(mean * weight, (1 - mean) * weight, places))


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """Two drawn runs of the same cases.

    Attributes:
        before, after: of each case the mean score of its samples; the share that passed, where scores are verdicts.
        passed_before, passed_after: the share that passed.
        clusters: of each case the cluster that it belongs to.
    """

    before: list[float]
    after: list[float]
    passed_before: list[float]
    passed_after: list[float]
    clusters: list[int]


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Two runs that are planned, and what is truly so.

    Attributes:
        cases, repeat: how many cases, and samples of each in each run.
        rate: the pass rate before, or the mean score; above 0 and below 1.
        difference: how much lower it is after; 0: nothing differs.
        alike, shared: as in `Drop`.
        cluster_size: cases of one cluster.
        correlation: how alike the cases of one cluster are, 0..1.
        deviation: standard deviation of the score of one sample; None: scores are verdicts, 1 or 0.
        threshold: of a score, to pass.
    """

    cases: int
    repeat: int
    rate: float
    difference: float
    alike: float = 0.5
    shared: float = 0.5
    cluster_size: int = 1
    correlation: float = 0.0
    deviation: float | None = None
    threshold: float = 0.8

    def runs(self, rounds: int, seed: int = 0) -> Iterator[Rehearsed]:
        """So many pairs of runs; the same ones each time."""
        chance = np.random.Generator(np.random.PCG64(seed))
        clusters = [case // self.cluster_size for case in range(self.cases)]
        for _ in range(rounds):
            own, other, turns = (self._places(chance, clusters) for _ in range(3))
            before = self._sampled(chance, self.rate, own)
            after = self._sampled(chance, self.rate - self.difference, np.where(turns < self.shared, own, other))
            was, now = ((one >= self.threshold).mean(axis=1).tolist() for one in (before, after))
            yield Rehearsed(before.mean(axis=1).tolist(), after.mean(axis=1).tolist(), was, now, clusters)

    def _places(self, chance: np.random.Generator, clusters: list[int]) -> Numbers:
        """A number of 0..1 for each case, alike within clusters."""
        drawn = chance.standard_normal(self.cases)
        if not self.correlation:
            return np.asarray(special.ndtr(drawn))
        common = chance.standard_normal(clusters[-1] + 1)[clusters]
        return np.asarray(special.ndtr(sqrt(self.correlation) * common + sqrt(1 - self.correlation) * drawn))

    def _sampled(self, chance: np.random.Generator, mean: float, hard: Numbers) -> Numbers:
        """The scores of each case's samples: 1 or 0 by its rate, or of a beta distribution."""
        if self.deviation is None:
            rates = _rates(max(0.0, mean), self.alike, hard)
            return (chance.random((self.cases, self.repeat)) < rates[:, None]).astype(np.float64)
        noise = chance.standard_normal((self.cases, self.repeat))
        places = sqrt(self.alike) * special.ndtri(hard)[:, None] + sqrt(1 - self.alike) * noise
        return np.asarray(np.interp(special.ndtr(places), *_scores(mean, self.deviation)))
