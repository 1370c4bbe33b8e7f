from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.stats.comparison.holm import adjusted, rejection_levels


@pytest.mark.parametrize(
    ("p_values", "expected"),
    [  # R 4.2.2: p.adjust(p, "holm")
        ((0.01, 0.04, 0.03, 0.005), (0.03, 0.06, 0.06, 0.02)),
        ((0.5, 0.2, 0.011, 0.9, 0.0002, 0.03), (1.0, 0.6, 0.055, 1.0, 0.0012, 0.12)),
        ((0.04,), (0.04,)),
        ((), ()),
    ],
)
def test_agrees_with_r(p_values, expected):
    assert adjusted(p_values) == pytest.approx(expected)


@given(st.lists(st.floats(0, 1), max_size=20))
def test_raises_none_beyond_bonferroni_and_keeps_the_order(p_values):
    found = adjusted(p_values)
    assert all(p <= raised <= min(1, p * len(p_values)) for p, raised in zip(p_values, found, strict=True))
    assert [raised for _, raised in sorted(zip(p_values, found, strict=True))] == sorted(found)


def test_refuses_what_is_no_p_value():
    with pytest.raises(ValueError, match="between 0 and 1, found 5"):
        adjusted([0.1, 5])


@given(st.lists(st.floats(0, 1), max_size=20), st.sampled_from((0.01, 0.05, 0.2)))
def test_a_p_value_is_at_most_its_level_exactly_where_holm_rejects(p_values, alpha):
    levels = rejection_levels(p_values, alpha)
    assert all(alpha / max(1, len(p_values)) <= level <= alpha for level in levels)
    rejected = [p <= level for p, level in zip(p_values, levels, strict=True)]
    assert rejected == [raised <= alpha for raised in adjusted(p_values)]
