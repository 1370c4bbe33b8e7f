from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.stats.rule import confirmed_count, evidence_needed, rejection_levels


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


def test_where_all_cases_are_decided_all_are_kept():
    assert confirmed_count([20.0, 25.0, 31.0], 3, 0.05) == 3


def test_of_few_decisions_on_many_cases_only_those_with_much_evidence_are_kept():
    # 4 of 100 cases at 0.05: one alone needs 2000, two together 1000 each, three 667, four 500
    assert evidence_needed([900.0, 700.0, 670.0, 21.0], 100, 0.05) == pytest.approx(100 / (3 * 0.05))
    assert confirmed_count([900.0, 700.0, 670.0, 21.0], 100, 0.05) == 3
    assert confirmed_count([900.0, 21.0, 22.0], 100, 0.05) == 0
    assert evidence_needed([900.0, 21.0, 22.0], 100, 0.05) == inf
    assert confirmed_count([inf, 21.0], 100, 0.05) == 1
    assert confirmed_count([], 100, 0.05) == 0


def test_the_worked_example_of_the_base_procedure_by_hand():
    # the definition, evaluated for every k
    evidence = [400.0, 90.0, 80.0, 61.0, 30.0, 20.0]
    by_hand = max(k for k in range(1, 7) if sorted(evidence, reverse=True)[k - 1] >= 12 / (k * 0.05))
    assert confirmed_count(evidence, 12, 0.05) == by_hand == 4


@pytest.mark.parametrize(("evidence", "cases", "level"), [([1.0, 2.0], 1, 0.05), ([], 1, 0.0), ([], 1, 1.0)])
def test_what_makes_no_sense_is_refused(evidence, cases, level):
    with pytest.raises(ValueError, match="decisions on"):
        evidence_needed(evidence, cases, level)
