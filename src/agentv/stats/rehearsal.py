"""A comparison of few cases with several samples each, rehearsed: drawn, and tested as `compare` tests.

Their differences are few and lumpy, so that no formula tells how often the test speaks up; with less than a few dozen
cases a t test promises up to three times as much. The seed is fixed: the same plan gives the same number.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from agentv.stats.power import Drop

Numbers = NDArray[np.float64]

ROUNDS = 1000
SIGNS = 1024
ALL_SIGNS_UP_TO = 11
"""Cases of which all ways to put signs, but for turning all of them, are no more than `SIGNS`."""
GRID = 256
NEAR = 1e-9
"""Sums of the same numbers in another order differ by less."""


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
    differences = (after - before).astype(np.float64)
    fell = differences.sum(axis=1)
    as_far = (np.abs(differences @ _signs(cases)) >= np.abs(fell)[:, None] - NEAR).sum(axis=1)
    drawn = 0 if cases <= ALL_SIGNS_UP_TO else 1
    p = (as_far + drawn) / (_signs(cases).shape[1] + drawn)
    return float(np.mean((fell < 0) & (p <= alpha)))


@lru_cache(maxsize=64)
def _signs(cases: int) -> Numbers:
    """Ways to put signs, one a column: all with the first sign kept, or as many as are drawn."""
    if cases > ALL_SIGNS_UP_TO:
        return np.random.Generator(np.random.PCG64(1)).choice([-1.0, 1.0], (cases, SIGNS))
    numbers = np.arange(2 ** (cases - 1))
    return np.array([1.0 - 2 * (numbers >> place & 1) for place in range(cases)])


def _rates(mean: float, alike: float, hard: Numbers) -> Numbers:
    """The true rates of cases so hard, by how much of the variance of a verdict lies between them."""
    if mean in {0.0, 1.0} or alike == 0:
        return np.full(hard.shape, mean)
    if alike == 1:
        return (hard > 1 - mean).astype(np.float64)
    weight = 1 / alike - 1
    places = (np.arange(GRID) + 0.5) / GRID
    rates = np.nan_to_num(special.betaincinv(mean * weight, (1 - mean) * weight, places))
    found: Numbers = np.interp(hard, places, rates)
    return np.clip(found, 0.0, 1.0)
