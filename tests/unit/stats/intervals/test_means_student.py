import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import betainc

from agentv.stats.intervals.means import incomplete_beta, t_quantile, t_tails

FREEDOMS = (0.3, 1, 1.5, 2, 2.7, 5, 9, 30, 199.5, 399.9, 400, 1000, 1e5, 1e8)


@pytest.mark.parametrize("freedom", FREEDOMS)
@pytest.mark.parametrize("value", [0, 0.01, -0.5, 1.96, 5, 40, 1e200])
def test_the_p_value_is_scipys(freedom, value):
    digits = 1e-5 if freedom > 1e6 else 1e-7
    assert t_tails(value, freedom) == pytest.approx(2 * stats.t.sf(abs(value), freedom), rel=digits, abs=1e-14)


@given(st.floats(0.5, 390), st.floats(0.01, 0.999))
def test_the_two_are_inverse(freedom, level):
    assert t_tails(t_quantile(freedom, level), freedom) == pytest.approx(1 - level, rel=1e-7)


@pytest.mark.parametrize(("freedom", "level"), [(0, 0.95), (-1, 0.95), (float("nan"), 0.95), (3, 0), (3, 1)])
def test_what_is_no_distribution(freedom, level):
    with pytest.raises(ValueError, match=r"freedom|confidence"):
        t_quantile(freedom, level)


def test_it_is_scipys():
    for a, b in ((1, 1), (0.5, 3), (40, 7), (500, 501), (50_000, 49_800), (4, 2_000_000)):
        for x in (0.0, 1e-9, 0.02, 0.3, 0.5, 0.77, 1.0):
            assert incomplete_beta(a, b, x, 1 - x) == pytest.approx(betainc(a, b, x), rel=1e-7, abs=1e-12), (a, b, x)
