"""Intervals hold the truth as often as they say: the benchmark's simulation, small, with room for its own chance."""

from __future__ import annotations

import numpy as np

from agentv.stats.clustered import mean_interval
from agentv.stats.paired import bca_interval, permutation_test
from agentv.stats.winloss import WinLoss

ROUNDS = 300
LEAST = 0.915
"""Of 300 rounds at 95 %: 2.8 standard errors below."""


def share(draw):
    chance = np.random.default_rng(3)
    return sum(draw(chance) for _ in range(ROUNDS)) / ROUNDS


def test_the_bootstrap_of_few_differences():
    def holds(chance):
        low, high = bca_interval(chance.normal(0.1, 0.2, 12).tolist(), rounds=600)
        return low <= 0.1 <= high

    assert LEAST <= share(holds) <= 0.99


def test_a_mean_of_cases_with_several_samples():
    def holds(chance):
        cases = np.repeat(np.arange(12), chance.integers(1, 6, 12))
        scores = chance.normal(0.5, 0.2, 12)[cases] + chance.normal(0, 0.1, cases.size)
        found = mean_interval(scores.tolist(), cases.tolist())
        return found.low <= 0.5 <= found.high

    assert LEAST <= share(holds) <= 0.99


def test_wins_less_losses():
    def holds(chance):
        low, high = WinLoss(*map(int, chance.multinomial(25, [0.3, 0.15, 0.55]))).interval()
        return low <= 0.15 <= high

    assert share(holds) >= LEAST


def test_the_permutation_test_sees_nothing_where_nothing_is():
    assert share(lambda chance: permutation_test(chance.normal(0, 1, 9).tolist()) <= 0.05) <= 0.09
