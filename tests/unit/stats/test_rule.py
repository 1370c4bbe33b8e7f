import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.stats.rule import rejection_levels


@pytest.mark.parametrize(
    ("p_values", "adjusted"),
    [  # R 4.2.2: p.adjust(p, "holm")
        ((0.01, 0.04, 0.03, 0.005), (0.03, 0.06, 0.06, 0.02)),
        ((0.5, 0.2, 0.011, 0.9, 0.0002, 0.03), (1.0, 0.6, 0.055, 1.0, 0.0012, 0.12)),
        ((0.04,), (0.04,)),
        ((), ()),
    ],
)
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.056, 0.2])
def test_rejects_what_r_rejects(p_values, adjusted, alpha):
    levels = rejection_levels(p_values, alpha)
    assert [p <= level for p, level in zip(p_values, levels, strict=True)] == [one <= alpha for one in adjusted]


@given(st.lists(st.floats(0, 1), max_size=20), st.sampled_from((0.01, 0.05, 0.2)))
def test_levels_lie_between_bonferronis_and_alpha(p_values, alpha):
    assert all(alpha / max(1, len(p_values)) <= level <= alpha for level in rejection_levels(p_values, alpha))
