from __future__ import annotations

from dataclasses import replace

import pytest

from agentv.stats.series import Point, Trend, error_of_mean, error_of_rate


def trend(*values):
    return Trend.of("s", "pass rate", [Point(f"r{place}", value, None, 10, 10) for place, value in enumerate(values)])


@pytest.mark.parametrize(
    ("values", "direction"),
    [
        ((0.5, 0.52, 0.61, 0.64, 0.7), "rises"),
        ((0.7, 0.64, 0.61, 0.52, 0.5), "falls"),
        ((0.5, 0.7, 0.5, 0.7, 0.5), "no trend is shown"),
        ((0.5, 0.5, 0.5), "no trend is shown"),
        ((0.6, 0.7, 0.5, 0.7, 0.5), "no trend is shown"),
        ((0.5, 0.7, 0.5, 0.7, 0.6), "no trend is shown"),
        ((0.5, 0.9), "too few runs"),
        ((0.5,), "too few runs"),
    ],
)
def test_the_intervals_of_the_slopes_say_where_it_goes(values, direction):
    assert trend(*values).direction == direction


def test_one_run_has_no_line_and_two_have():
    assert trend(0.5).theil_sen is None
    assert trend(0.5, 0.9).least_squares.slope == pytest.approx(0.4)


def counted(*passed, cases=10):
    points = [
        Point(f"r{place}", one / cases, None, cases, cases, error_of_rate(one / cases, cases))
        for place, one in enumerate(passed)
    ]
    return Trend.of("s", "pass rate", points)


def test_points_on_a_line_are_no_surer_than_their_cases():
    shown = counted(8, 7, 6)
    assert shown.direction == "no trend is shown"
    assert shown.least_squares.low < -0.25
    assert shown.theil_sen.high > 0.05
    alike = counted(10, 10, 10, 10)
    assert alike.least_squares.low < 0 < alike.least_squares.high
    assert counted(800, 700, 600, cases=1000).direction == "falls"


def test_a_slope_that_only_one_line_shows_cannot_be_told():
    falls = trend(0.7, 0.64, 0.61, 0.52, 0.5)
    held = replace(falls.theil_sen, high=0.0)
    assert replace(falls, theil_sen=held).direction == "cannot tell"
    risen = replace(falls.theil_sen, low=0.1, high=0.2)
    assert replace(falls, theil_sen=risen).direction == "cannot tell"


def test_the_error_of_a_point():
    assert error_of_rate(0.8, 100) == pytest.approx((0.797 * 0.203 / 100) ** 0.5, rel=1e-3)
    assert error_of_rate(1.0, 10) == pytest.approx((10.5 * 0.5 / 121 / 10) ** 0.5)
    assert error_of_mean([0.2, 0.4, 0.6]) == pytest.approx(0.2 / 3**0.5)
    assert error_of_mean([0.7, 0.7]) == pytest.approx(error_of_rate(0.7, 2))
    assert error_of_mean([0.7]) == pytest.approx(error_of_rate(0.7, 1))
