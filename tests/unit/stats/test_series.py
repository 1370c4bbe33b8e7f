from __future__ import annotations

import pytest

from agentv.stats.series import Point, Trend


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
def test_the_interval_of_the_slope_says_where_it_goes(values, direction):
    assert trend(*values).direction == direction


def test_one_run_has_no_line_and_two_have():
    assert trend(0.5).theil_sen is None
    assert trend(0.5, 0.9).least_squares.slope == pytest.approx(0.4)
