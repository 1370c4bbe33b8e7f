from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.stats.intervals.means import bounded_mean_interval
from agentv.stats.samples.case_samples import disagreement, is_flaky, mean_disagreement


@given(st.integers(2, 9).flatmap(lambda number: st.tuples(st.just(number), st.integers(0, number))))
def test_counts_every_pair_of_samples(counted):
    number, passed = counted
    pairs = list(combinations([1] * passed + [0] * (number - passed), 2))
    assert disagreement(number, passed) == pytest.approx(sum(one != other for one, other in pairs) / len(pairs))
    assert is_flaky(number, passed) is any(one != other for one, other in pairs)


def test_the_mean_disagreement_has_the_interval_of_a_mean_over_cases():
    found = mean_disagreement([(5, 5), (5, 3), (5, 0), (4, 1)])
    low, high = bounded_mean_interval({(1, 0.0): 2, (1, 0.6): 1, (1, 0.5): 1}, 0.95)
    assert (found.value, found.interval) == (pytest.approx(0.275), pytest.approx((low, high)))
    assert mean_disagreement([(1, 0)]) is None
    assert mean_disagreement([(2, 1), (2, 2), (1, 1)]).value == 0.5
    sure = mean_disagreement([(5, 5), (5, 3), (5, 0), (4, 1)], 0.99)
    assert sure.interval[0] < found.interval[0] < found.interval[1] < sure.interval[1] < 1


@pytest.mark.parametrize("counted", [(1, 1), (3, 4), (3, -1)])
def test_refuses_what_cannot_disagree(counted):
    with pytest.raises(ValueError, match="no disagreement"):
        disagreement(*counted)
