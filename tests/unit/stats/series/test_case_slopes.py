from __future__ import annotations

import random
from math import inf

import numpy as np
import pytest
from scipy import stats

from agentv.stats.series.case_slopes import SharedCases
from agentv.stats.series.serial import serial_fit, shape

DICE = random.Random(4)
RUNS = [{case: DICE.random() for case in range(9)} for _ in range(6)]


def test_of_runs_with_the_same_cases_it_is_the_t_interval_of_the_cases_own_slopes():
    found = SharedCases(RUNS).effect(shape(6, None))
    slopes = [stats.linregress(range(6), [run[case] for run in RUNS]).slope for case in range(9)]
    low, high = stats.t.interval(0.95, 8, np.mean(slopes), stats.sem(slopes))
    assert (found.effect, found.low, found.high) == pytest.approx((np.mean(slopes), low, high))


@pytest.mark.parametrize("cases", [2, 3, 9])
def test_of_two_runs_it_is_the_t_interval_of_the_differences_of_their_cases(cases):
    runs = [{case: run[case] for case in range(cases)} for run in RUNS[:2]]
    found = SharedCases(runs).effect(shape(2, None), 0.9)
    differences = [runs[1][case] - runs[0][case] for case in range(cases)]
    low, high = stats.t.interval(0.9, cases - 1, np.mean(differences), stats.sem(differences))
    assert (found.effect, found.low, found.high) == pytest.approx((np.mean(differences), low, high))


def test_of_runs_with_other_cases_it_is_the_slope_of_least_squares_with_a_level_for_each_case():
    dice = random.Random(8)
    runs = [{case: one for case, one in run.items() if dice.random() < 0.7} for run in RUNS]
    shared = SharedCases(runs)
    cells = [(number, case, one) for number, run in enumerate(runs) for case, one in run.items()]
    by_case = np.array([[case == other for other in range(9)] for _, case, _ in cells], dtype=float)
    step = np.array([[float(number >= 3)] for number, _, _ in cells])
    values = np.array([one for _, _, one in cells])
    assert shared.effect(shape(6, 3)).effect == pytest.approx(np.linalg.lstsq(np.hstack([step, by_case]), values)[0][0])
    by_run = np.array([[number == other for other in range(1, 6)] for number, _, _ in cells], dtype=float)
    fitted = np.linalg.lstsq(np.hstack([by_run, by_case]), values)[0][:5]
    effects = shared.run_effects()
    assert [one - effects[0] for one in effects[1:]] == pytest.approx(fitted, abs=1e-6)


def test_cases_that_only_one_run_has_tell_nothing_and_one_cluster_has_no_interval():
    shared = SharedCases([{"a": 0.0, "b": 1.0}, {"a": 1.0, "c": 0.0}])
    found = shared.effect(shape(2, None))
    assert (shared.count, found.effect, found.low, found.high) == (1, 1.0, -inf, inf)
    assert SharedCases([{"a": 1.0}, {"b": 1.0}]).effect(shape(2, None)).low == -inf


def test_the_line_is_that_of_least_squares_and_its_interval_is_wider_where_neighbours_are_alike():
    waves = [0.1, 0.2, 0.3, 0.3, 0.2, 0.1, 0.0, 0.0, 0.1, 0.2, 0.3, 0.3]
    apart = [0.1, 0.3, 0.0, 0.2, 0.1, 0.3, 0.0, 0.3, 0.2, 0.1, 0.2, 0.3]
    for values in (waves, apart):
        assert serial_fit(values).line.effect == pytest.approx(stats.linregress(range(12), values).slope)
    wide, narrow = (serial_fit(values).line for values in (waves, apart))
    ordinary = [stats.linregress(range(12), values).stderr for values in (waves, apart)]
    assert (wide.high - wide.effect) / ordinary[0] > 2 * (narrow.high - narrow.effect) / ordinary[1]
    with pytest.raises(ValueError, match="no trend of 2 values"):
        serial_fit([0.1, 0.2])
