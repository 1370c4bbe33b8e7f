from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from agentv.stats.series.trend import FittedLine, theil_sen

series = st.lists(st.integers(0, 20).map(lambda one: one / 20), min_size=2, max_size=25)


@given(series)
def test_theil_sen_agrees_with_scipy(values):
    found = stats.theilslopes(values)
    line = theil_sen(values)
    assert (line.slope, line.start) == (pytest.approx(found.slope), pytest.approx(found.intercept))


def test_an_odd_run_does_not_bend_the_median():
    assert theil_sen([0.9, 0.9, 0.9, 0.0, 0.9, 0.9, 0.9, 0.9]) == FittedLine(0.0, 0.9)


def test_a_line_has_a_value_at_every_place():
    line = theil_sen((0.5, 0.7))
    assert (line.slope, line.start, line.at(1), line.at(10)) == pytest.approx((0.2, 0.5, 0.7, 2.5))


def test_refuses_what_has_no_line():
    with pytest.raises(ValueError, match="no line through 1 values"):
        theil_sen([0.5])
