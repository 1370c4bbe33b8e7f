from __future__ import annotations

from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.stats.intervals.proportion import USUAL, USUAL_QUANTILE, interval_at, wilson_interval


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_agrees_with_table_i_of_newcombe_1998(successes, trials, low, high):
    assert wilson_interval(successes, trials) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


def test_a_higher_confidence_is_a_wider_interval():
    assert wilson_interval(50, 100, 0.99) == (pytest.approx(0.3753, abs=5e-5), pytest.approx(0.6247, abs=5e-5))


@given(st.integers(1, 10**6).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials))))
def test_holds_the_share_and_mirrors_when_successes_and_failures_change_places(counted):
    successes, trials = counted
    low, high = wilson_interval(successes, trials)
    assert 0 <= low <= successes / trials <= high <= 1
    assert low < high
    assert wilson_interval(trials - successes, trials) == (pytest.approx(1 - high), pytest.approx(1 - low))


def test_a_sample_that_is_not_whole_has_wilsons_interval_by_its_formula():
    for share, effective, confidence in ((0.3, 12.5, 0.95), (0.9, 3.2, 0.8), (0.5, 0.4, 0.99)):
        z = NormalDist().inv_cdf((1 + confidence) / 2)
        low, high = interval_at(share, effective, confidence)
        for end in (low, high):  # the ends are where the score test of the share has the quantile
            assert abs(share - end) / (end * (1 - end) / effective) ** 0.5 == pytest.approx(z)
        assert low < share < high


def test_the_ends_are_exact():
    assert wilson_interval(0, 7)[0] == 0.0
    assert wilson_interval(7, 7)[1] == 1.0
    for trials in range(1, 60):  # the formula alone would round beyond them
        assert (interval_at(0.0, trials)[0], interval_at(1.0, trials)[1]) == (0.0, 1.0)


@pytest.mark.parametrize(("successes", "trials"), [(0, 0), (-1, 5), (6, 5)])
def test_refuses_what_is_no_proportion(successes, trials):
    with pytest.raises(ValueError, match="no proportion"):
        wilson_interval(successes, trials)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95])
def test_refuses_what_is_no_confidence(confidence):
    with pytest.raises(ValueError, match="confidence must be between 0 and 1, found"):
        wilson_interval(1, 2, confidence)


def test_the_usual_quantile_is_the_exact_one():
    assert NormalDist().inv_cdf((1 + USUAL) / 2) == USUAL_QUANTILE
