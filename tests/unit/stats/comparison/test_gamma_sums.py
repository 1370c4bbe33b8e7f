from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binom

from agentv.stats.comparison.gamma_sums import not_above_zero, not_above_zero_each


def exact(values, counts):
    return not_above_zero(np.array(values, dtype=float), np.array(counts, dtype=float))


@pytest.mark.parametrize(("wins", "losses"), [(1, 1), (6, 1), (2, 9), (5, 5), (30, 11), (300, 241), (2000, 2100)])
def test_of_two_opposite_values_it_is_a_binomial_tail(wins, losses):
    assert exact([-1, 1], [losses, wins]) == pytest.approx(binom.cdf(losses - 1, wins + losses - 1, 0.5), rel=1e-9)


@pytest.mark.parametrize(("few", "many", "at"), [(1, 20, 0.1), (3, 7, 0.4), (40, 160, 0.25), (1, 1, 0.5)])
def test_of_two_values_it_is_a_beta_tail(few, many, at):
    """The share of the first of two gamma variables has a beta distribution."""
    assert exact([-(1 - at), at], [few, many]) == pytest.approx(beta.sf(at, few, many), rel=1e-9)


def test_of_several_values_it_is_what_draws_show():
    values, counts = np.array([-0.7, -0.1, 0.02, 0.3]), np.array([1.0, 6.0, 9.0, 3.0])
    drawn = np.random.default_rng(1).gamma(counts, size=(400_000, 4)) @ values
    assert not_above_zero(values, counts) == pytest.approx(np.mean(drawn <= 0), abs=0.003)


def test_values_of_one_sign_leave_no_doubt():
    assert (exact([-0.5, -0.1], [1, 3]), exact([0.5, 0.1], [1, 3])) == (1.0, 0.0)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.floats(-1, 1).filter(lambda one: abs(one) > 1e-3), st.integers(1, 9)), min_size=1, max_size=9)
)
def test_turning_the_values_gives_the_rest(kinds):
    values, counts = map(list, zip(*kinds, strict=True))
    assert exact(values, counts) + exact([-one for one in values], counts) == pytest.approx(1, abs=1e-9)


def test_many_at_once_are_nearly_exact_and_exact_near_a_level():
    chance = np.random.default_rng(2)
    values = np.column_stack((chance.normal(0.05, 0.2, (200, 25)), np.full(200, -0.8)))
    counts = np.ones_like(values)
    counts[:, 3] = 0  # what does not occur
    alone = np.array([exact(np.delete(row, 3), np.ones(25)) for row in values])
    found = not_above_zero_each(values, counts, np.array([0.025]))
    above = (values * counts).sum(axis=1) > 0
    assert 20 < above.sum() < 180
    assert found[above] == pytest.approx(alone[above], rel=0.05)
    assert (found[~above] == 1).all()
    assert (alone[~above] > 0.25).all()
    assert ((found <= 0.025) == (alone <= 0.025)).all()
    assert found[np.abs(alone / 0.025 - 1) < 0.01] == pytest.approx(alone[np.abs(alone / 0.025 - 1) < 0.01], rel=1e-9)
