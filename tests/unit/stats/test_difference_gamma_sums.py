import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from agentv.stats.difference import not_above_zero


def exact(values, counts):
    return not_above_zero(np.array(values, dtype=float), np.array(counts, dtype=float))


@pytest.mark.parametrize(("few", "many", "at"), [(1, 20, 0.1), (3, 7, 0.4), (40, 160, 0.25), (1, 1, 0.5)])
def test_of_two_values_it_is_a_beta_tail(few, many, at):
    """The share of the first of two gamma variables has a beta distribution."""
    assert exact([-(1 - at), at], [few, many]) == pytest.approx(beta.sf(at, few, many), rel=1e-9)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.floats(-1, 1).filter(lambda one: abs(one) > 1e-3), st.integers(1, 9)), min_size=1, max_size=9)
)
def test_turning_the_values_gives_the_rest(kinds):
    values, counts = map(list, zip(*kinds, strict=True))
    assert exact(values, counts) + exact([-one for one in values], counts) == pytest.approx(1, abs=1e-9)
