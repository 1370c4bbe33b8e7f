from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.stats.intervals.proportion import USUAL, USUAL_QUANTILE, wilson_interval


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_agrees_with_table_i_of_newcombe_1998(successes, trials, low, high):
    assert wilson_interval(successes, trials) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


@given(st.integers(1, 10**6).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials))))
def test_holds_the_share_and_mirrors_when_successes_and_failures_change_places(counted):
    successes, trials = counted
    low, high = wilson_interval(successes, trials)
    assert 0 <= low <= successes / trials <= high <= 1
    assert low < high
    assert wilson_interval(trials - successes, trials) == (pytest.approx(1 - high), pytest.approx(1 - low))


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
