from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.stats.samples.flakiness import disagreement, is_flaky, mean_disagreement


@given(st.integers(2, 9).flatmap(lambda number: st.tuples(st.just(number), st.integers(0, number))))
def test_counts_every_pair_of_samples(counted):
    number, passed = counted
    pairs = list(combinations([1] * passed + [0] * (number - passed), 2))
    assert disagreement(number, passed) == pytest.approx(sum(one != other for one, other in pairs) / len(pairs))
    assert is_flaky(number, passed) is any(one != other for one, other in pairs)


def test_the_mean_disagreement_has_students_interval_over_cases():
    # R: t.test(c(0, 0.6, 0, 0.5))$conf.int is -0.234439976792 to 0.784439976792; there is nothing below 0
    found = mean_disagreement([(5, 5), (5, 3), (5, 0), (4, 1)])
    assert (found.value, found.low) == (pytest.approx(0.275), 0.0)
    assert found.high == pytest.approx(0.784439976792)
    assert mean_disagreement([(1, 0)]) is None
    assert mean_disagreement([(2, 1), (2, 2), (1, 1)]).value == 0.5
    sure = mean_disagreement([(5, 5), (5, 3), (5, 0), (4, 1)], 0.99)
    assert sure.low == 0.0
    assert found.high < sure.high == 1.0


def test_cases_that_never_disagreed_may_yet():
    found = mean_disagreement([(5, 5)] * 40)
    assert (found.value, found.low) == (0.0, 0.0)
    assert found.high == pytest.approx(0.0880973028788024)


@pytest.mark.parametrize("counted", [(1, 1), (3, 4), (3, -1)])
def test_refuses_what_cannot_disagree(counted):
    with pytest.raises(ValueError, match="no disagreement"):
        disagreement(*counted)
