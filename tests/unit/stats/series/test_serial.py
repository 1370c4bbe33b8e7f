from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from scipy import stats

from agentv.stats.series.serial import LEAST, Effect, _Null, serial_fit, shape

WAVY = [0.61, 0.64, 0.58, 0.66, 0.6, 0.63, 0.57, 0.62]


def test_a_shape_is_a_line_or_a_step_from_a_run_on():
    assert shape(4, None) == [0.0, 1.0, 2.0, 3.0]
    assert shape(4, 2) == [0.0, 0.0, 1.0, 1.0]


@pytest.mark.parametrize(("count", "places"), [(3, []), (5, []), (6, [2, 3, 4]), (8, [2, 3, 4, 5, 6])])
def test_steps_are_looked_for_from_six_runs_on_with_two_runs_on_either_side(count, places):
    assert _Null(count).places == places


def test_of_long_series_steps_are_looked_for_at_so_many_places_evenly_apart(monkeypatch):
    monkeypatch.setattr("agentv.stats.series.serial.PLACES", 5)
    assert [_Null(count).places for count in (8, 9, 15)] == [[2, 3, 4, 5, 6], [2, 4, 6], [2, 5, 8, 11]]


def test_effects_and_errors_are_those_of_least_squares():
    null = _Null(8)
    effects, errors = null.fitted(np.array([WAVY]))
    for place, x in enumerate([shape(8, None), *(shape(8, since) for since in null.places)]):
        line = stats.linregress(x, WAVY)
        assert (effects[0, place], errors[0, place]) == (pytest.approx(line.slope), pytest.approx(line.stderr))


def test_the_best_shape_is_the_one_with_the_largest_effect_in_standard_errors():
    null = _Null(8)
    step = [0.5, 0.52, 0.49, 0.51, 0.5, 0.8, 0.81, 0.79]
    statistics, best, alike = null.largest(np.array([step, WAVY]))
    assert null.places[best[0] - 1] == 5
    effects, errors = null.fitted(np.array([step, WAVY]))
    assert statistics.tolist() == pytest.approx(np.abs(effects / errors).max(axis=1).tolist())
    line = stats.linregress(shape(8, 5), step)
    left = np.array(step) - line.intercept - line.slope * np.array(shape(8, 5))
    assert alike[0] == pytest.approx((left[1:] * left[:-1]).sum() / (left**2).sum())


def test_a_step_has_the_run_that_it_begins_with_and_its_interval_is_as_wide_as_the_lines_in_errors():
    step = [0.5, 0.52, 0.49, 0.51, 0.5, 0.8, 0.81, 0.79]
    found = serial_fit(step)
    by_step, by_line = (stats.linregress(x, step) for x in (shape(8, 5), shape(8, None)))
    assert (found.since, found.step.effect) == (5, pytest.approx(by_step.slope))
    assert found.line.effect == pytest.approx(by_line.slope)
    reaches = [(found.step, by_step), (found.line, by_line)]
    in_errors = [(one.high - one.effect) / line.stderr for one, line in reaches]
    assert in_errors[0] == pytest.approx(in_errors[1])
    for one, _ in reaches:
        assert one.high - one.effect == pytest.approx(one.effect - one.low)
    assert in_errors[0] > stats.t.ppf(0.975, 6)


def test_a_line_has_no_step():
    line = [0.5 + 0.03 * place + (0.001 if place % 2 else 0.0) for place in range(9)]
    assert (serial_fit(line).step, serial_fit(line).since) == (None, None)


def test_a_higher_level_reaches_further_and_noise_that_goes_on_too():
    usual, sure = serial_fit(WAVY), serial_fit(WAVY, 0.99)
    assert sure.line.high > usual.line.high
    null = _Null(8)
    reaches = [null.reach(alike, 0.95) for alike in (-0.9, -0.5, 0.0, 0.3)]
    assert reaches == sorted(reaches)
    assert reaches[-1] > 1.3 * reaches[0]


def test_noise_that_goes_on_has_the_variance_and_the_correlation_that_are_assumed():
    from agentv.stats.series.serial import _autoregressive

    noise = np.random.default_rng(3).standard_normal((20_000, 6))
    before = noise.copy()
    series = _autoregressive(noise, 0.6)
    assert np.array_equal(noise, before)
    for place in range(6):
        assert series[:, place].std() == pytest.approx(1 / sqrt(1 - 0.36), rel=0.03)
    for place in range(5):
        assert np.corrcoef(series[:, place], series[:, place + 1])[0, 1] == pytest.approx(0.6, abs=0.03)


def test_values_that_are_all_alike_have_no_effect_and_no_error_of_computation():
    found = serial_fit([0.5] * 7)
    assert (found.line.effect, found.step) == (0.0, None)
    assert found.line.low <= 0 <= found.line.high
    assert found.line.high < 1e-9


def test_a_trend_needs_three_runs():
    assert isinstance(serial_fit([0.1, 0.2, 0.4]).line, Effect)
    with pytest.raises(ValueError, match="no trend of 2 values"):
        serial_fit([0.1] * (LEAST - 1))
