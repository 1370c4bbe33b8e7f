from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from agentv.stats.series.trend import least_squares, theil_sen

RATES = (0.82, 0.80, 0.85, 0.79, 0.78, 0.80, 0.74, 0.77, 0.73, 0.76)
series = st.lists(st.integers(0, 20).map(lambda one: one / 20), min_size=3, max_size=25)


@pytest.mark.parametrize(
    ("level", "low", "high"),
    [(0.95, -0.0154527455646973, -0.00345634534439366), (0.9, -0.0142914583955376, -0.00461763251355333)],
)
def test_least_squares_agree_with_r(level, low, high):
    # R 4.2.2: f <- lm(y ~ x) with x from 0 to 9; coef(f), confint(f, level = level)
    line = least_squares(RATES, level=level)
    assert (line.start, line.slope) == (pytest.approx(0.826545454545455), pytest.approx(-0.00945454545454546))
    assert (line.low, line.high) == (pytest.approx(low), pytest.approx(high))
    assert line.at(9) == pytest.approx(0.826545454545455 - 9 * 0.00945454545454546)


def test_places_may_lie_anywhere():
    found = stats.linregress([1, 2, 4, 8, 16], [3, 1, 4, 1, 5])
    assert least_squares([3, 1, 4, 1, 5], [1, 2, 4, 8, 16]).slope == pytest.approx(found.slope)


@given(series, st.sampled_from([0.95, 0.8]))
def test_theil_sen_agrees_with_scipy(values, level):
    found = stats.theilslopes(values, alpha=level)
    line = theil_sen(values, level=level)
    assert (line.slope, line.start) == (pytest.approx(found.slope), pytest.approx(found.intercept))
    assert (line.low, line.high) == (pytest.approx(found.low_slope), pytest.approx(found.high_slope))


def test_an_odd_run_does_not_bend_the_median():
    odd = [0.9, 0.9, 0.9, 0.0, 0.9, 0.9, 0.9, 0.9]
    assert theil_sen(odd).slope == 0.0
    assert least_squares(odd).slope > 0.01


def test_two_points_have_a_slope_and_no_interval():
    for line in (least_squares((0.5, 0.7)), theil_sen((0.5, 0.7))):
        assert (line.slope, line.low, line.high) == (pytest.approx(0.2), -inf, inf)


@pytest.mark.parametrize("line", [least_squares, theil_sen])
def test_refuses_what_has_no_line(line):
    with pytest.raises(ValueError, match="no line through 1 values"):
        line([0.5])
    with pytest.raises(ValueError, match="no line through 2 values at 1 places"):
        line([0.5, 0.6], [3, 3])
