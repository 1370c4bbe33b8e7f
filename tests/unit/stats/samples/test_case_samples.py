from itertools import combinations
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.stats.intervals.means import bounded_mean_interval
from agentv.stats.intervals.proportion import wilson_interval
from agentv.stats.samples.case_samples import (
    at_k_interval,
    disagreement,
    hat_k_interval,
    is_flaky,
    mean_disagreement,
    pass_at_k,
    pass_hat_k,
    tells_at_k,
    usual_k,
)

samples = st.integers(1, 9).flatmap(
    lambda number: st.tuples(st.just(number), st.integers(0, number), st.integers(1, number))
)


@given(samples)
def test_counts_every_way_to_draw_k_samples(drawn):
    number, passed, k = drawn
    ways = list(combinations([True] * passed + [False] * (number - passed), k))
    assert pass_at_k(number, passed, k) == pytest.approx(sum(map(any, ways)) / len(ways))
    assert pass_hat_k(number, passed, k) == pytest.approx(sum(map(all, ways)) / len(ways))


def test_agrees_with_the_published_form():
    # M. Chen et al.: 1 − Π (1 − k / i) over i from samples − passed + 1 to samples
    expected = 1.0
    for one in range(200 - 30 + 1, 200 + 1):
        expected *= 1 - 10 / one
    assert pass_at_k(200, 30, 10) == pytest.approx(1 - expected, rel=1e-12)


@pytest.mark.parametrize("drawn", [(5, 3, 0), (5, 3, 6), (5, 6, 1), (0, 0, 1)])
def test_refuses_what_cannot_be_drawn(drawn):
    with pytest.raises(ValueError, match="no samples"):
        pass_at_k(*drawn)


def test_the_usual_k_double_and_end_with_all():
    assert [usual_k(number) for number in (0, 1, 2, 5, 8)] == [(), (1,), (1, 2), (1, 2, 4, 5), (1, 2, 4, 8)]


@given(samples)
def test_an_interval_holds_its_estimate_and_carries_wilsons_over(drawn):
    number, passed, k = drawn
    low, high = at_k_interval(number, passed, k)
    assert 0 <= low <= pass_at_k(number, passed, k) <= high <= 1
    own_low, own_high = wilson_interval(passed, number)
    assert low == pytest.approx(1 - (1 - own_low) ** k)
    if tells_at_k(number, passed, k):
        assert high == pytest.approx(1 - (1 - own_high) ** k)
    least, most = hat_k_interval(number, passed, k)
    assert 0 <= least <= pass_hat_k(number, passed, k) + 1e-12
    assert pass_hat_k(number, passed, k) - 1e-12 <= most <= 1
    assert most == pytest.approx(own_high**k)


@pytest.mark.parametrize("rate", [0.1, 0.6, 0.9])
@pytest.mark.parametrize(("number", "k"), [(5, 4), (10, 4), (20, 8)])
def test_the_interval_covers_what_the_estimate_misses(rate, number, k):
    truth = 1 - (1 - rate) ** k
    covered = sum(
        comb(number, passed) * rate**passed * (1 - rate) ** (number - passed)
        for passed in range(number + 1)
        for low, high in [at_k_interval(number, passed, k)]
        if low <= truth <= high
    )
    assert covered > 0.91  # the coverage of Wilson's interval for the rate itself


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
