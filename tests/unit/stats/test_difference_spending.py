"""Comparisons in a series of runs."""

import numpy as np
import pytest

from agentv.stats.difference import ALPHA, Differences, difference_at, level_at


def test_all_comparisons_of_a_series_spend_the_error_rate_and_no_more():
    spent = level_at(1) + sum(level_at(at) + level_at(at, from_baseline=True) for at in range(2, 1_000_000))
    assert spent == pytest.approx(ALPHA, rel=1e-3)
    assert spent <= ALPHA


def test_a_series_without_a_change_seldom_shows_one_and_a_step_is_shown_at_once():
    chance = np.random.default_rng(3)
    alone = list(range(100))
    rounds, wrong, right = 3, 0, 0
    for _ in range(rounds):
        flaky = chance.uniform(0, 0.5, 100)
        runs = (chance.random((30, 100)) >= flaky).astype(float).tolist()
        wrong += any(
            difference_at("r", Differences(runs[base], runs[at], alone), level_at(at)).direction
            for at in range(1, 30)
            for base in {at - 1, 0}
        )
        before, after = (chance.random((2, 100)) >= 0.03).astype(float)
        after[:30] = 1 - after[:30]
        right += (
            difference_at("r", Differences(before.tolist(), after.tolist(), alone), level_at(29)).direction == "lower"
        )
    assert (wrong, right) == (0, rounds)  # the chance of each is above 0.95


def test_a_difference_that_errors_could_undo_is_not_shown():
    before, after = [1.0] * 40, [0.0] * 20 + [1.0] * 20
    alone = list(range(40))
    found = Differences(before, after, alone)
    assert difference_at("r", found, 0.005).direction == "lower"
    best = Differences(before, [1.0] * 40, alone)
    kept = difference_at("r", found, 0.005, (found, best))
    assert (kept.direction, kept.errors_decide) == (None, True)
    assert difference_at("r", found, 0.005, (best, found)).direction == "lower"
