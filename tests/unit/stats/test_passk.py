from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.stats.passk import pass_at_k, pass_hat_k, usual_k

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


def test_one_sample_passes_at_the_pass_rate():
    assert pass_at_k(5, 3, 1) == pytest.approx(0.6)
    assert pass_hat_k(5, 3, 1) == pytest.approx(0.6)


@pytest.mark.parametrize("drawn", [(5, 3, 0), (5, 3, 6), (5, 6, 1), (0, 0, 1)])
def test_refuses_what_cannot_be_drawn(drawn):
    with pytest.raises(ValueError, match="no samples"):
        pass_at_k(*drawn)


def test_the_usual_k_double_and_end_with_all():
    assert [usual_k(number) for number in (0, 1, 2, 5, 8)] == [(), (1,), (1, 2), (1, 2, 4, 5), (1, 2, 4, 8)]
