"""Intervals cover the truth as often as they claim: a small version of the benchmark's simulation, with tolerance."""

from functools import cache

import numpy as np

from agentv.stats.difference import Differences
from agentv.stats.intervals.means import mean_interval

ROUNDS = 300
LEAST = 0.915
"""Lowest accepted coverage of 95% intervals in 300 rounds, 2.8 standard errors below."""


def share(draw):
    chance = np.random.default_rng(3)
    return sum(draw(chance) for _ in range(ROUNDS)) / ROUNDS


def test_a_win_that_hides_disasters_is_not_shown_to_be_better():
    """The base scores 0.9 on every case; the candidate scores 1.0, or 0 with probability 0.1: no gain on average."""

    @cache
    def better(disasters, cases):
        found = Differences([0.9] * cases, [0.0] * disasters + [1.0] * (cases - disasters), range(cases))
        return found.kinds.above(0.0) <= 0.025

    for cases in (8, 12, 20, 50):
        assert share(lambda chance, cases=cases: better(sum(chance.random(cases) < 0.1), cases)) <= 0.05


def test_a_mean_of_cases_with_several_samples():
    def holds(chance):
        cases = np.repeat(np.arange(12), chance.integers(1, 6, 12))
        scores = chance.normal(0.5, 0.2, 12)[cases] + chance.normal(0, 0.1, cases.size)
        found = mean_interval(scores.tolist(), cases.tolist())
        return found.low <= 0.5 <= found.high

    assert LEAST <= share(holds) <= 0.99
