from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.stats.comparison.paired import mcnemar_exact, permutation_test

# Charles Darwin's pairs of maize, in eighths of an inch; R. A. Fisher, The Design of Experiments (1935), §§17 and 21
MAIZE = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
SCORES = [0.31, -0.12, 0.05, 0.44, 0.27, -0.03, 0.18, 0.02, 0.61, -0.25]
SCORES += [0.12, 0.33, 0.08, -0.07, 0.21, 0.5, -0.18, 0.09, 0.14, 0.26]


@pytest.mark.parametrize(
    ("wins", "losses", "p_value"),
    [  # R 4.2.2: binom.test(wins, wins + losses)$p.value; (20, 10) by scipy.stats.binomtest
        (5, 0, 0.0625),
        (7, 21, 0.0125409513711929),
        (1, 1, 1),
        (4, 2, 0.6875),
        (2, 0, 0.5),
        (20, 10, 0.098737146705389),
        (300, 300, 1),
        (333, 334, 1),
        (10, 3, 0.09228515625),
        (86, 150, 3.71593613957143e-05),  # who approves of the prime minister: A. Agresti, Categorical Data Analysis
        (500, 421, 0.0101260693729817),
        (50_000, 51_000, 0.00166963045599156),
    ],
)
def test_mcnemar_agrees_with_r(wins, losses, p_value):
    assert mcnemar_exact(wins, losses) == pytest.approx(p_value, rel=1e-9)
    assert mcnemar_exact(losses, wins) == mcnemar_exact(wins, losses)


def test_mcnemar_of_nothing_that_changed_shows_nothing():
    assert mcnemar_exact(0, 0) == 1.0


def test_mcnemar_refuses_what_is_no_count():
    with pytest.raises(ValueError, match="no counts"):
        mcnemar_exact(-1, 3)


def test_all_ways_to_put_signs_agree_with_fisher():
    # Fisher counts 863 of 32,768 ways on each side; R by enumeration: 0.05267333984375
    assert permutation_test(MAIZE) == 2 * 863 / 32_768


def test_what_did_not_change_says_nothing():
    assert permutation_test([*MAIZE, 0.0, 0.0, 0.0]) == permutation_test(MAIZE)
    assert permutation_test([0.0, 0.0]) == 1.0
    assert permutation_test([]) == 1.0


def test_differences_of_verdicts_give_mcnemars_p_value():
    assert permutation_test([1.0] * 10 + [-1.0] * 3) == pytest.approx(mcnemar_exact(10, 3))


def test_drawn_ways_agree_with_all_ways_within_what_drawing_can_tell():
    exact = permutation_test(SCORES)
    assert exact == pytest.approx(np.mean(np.abs(_sums(SCORES)) >= sum(SCORES) - 1e-9), abs=1e-12)
    one_more = [*SCORES, 0.3]  # 21 differences: drawn
    expected = np.mean(np.abs(_sums(one_more)) >= sum(one_more) - 1e-9)
    found = permutation_test(one_more, rounds=40_000)
    assert found == pytest.approx(expected, abs=4 * (expected / 40_000) ** 0.5)


def test_twenty_differences_are_counted_and_twenty_one_are_drawn():
    assert (permutation_test(SCORES) * 2**19).is_integer()
    drawn = permutation_test([*SCORES, 0.3], rounds=99)
    assert (drawn * 100) % 1 == pytest.approx(0, abs=1e-9)
    assert not (drawn * 2**20).is_integer()
    assert permutation_test([*SCORES, 0.3], rounds=1) in (0.5, 1.0)


def _sums(values):
    signs = 1 - 2 * ((np.arange(2 ** len(values))[:, None] >> np.arange(len(values))) & 1).astype(np.int8)
    return signs @ np.array(values)


def test_a_drawn_p_value_is_never_zero_and_hangs_on_the_seed_alone():
    surely = [0.5] * 200
    assert permutation_test(surely, rounds=99) == 0.01
    unsure = [*SCORES, *(-value for value in SCORES), 0.3]
    assert permutation_test(unsure, seed=7, rounds=999) == permutation_test(unsure, seed=7, rounds=999)
    assert permutation_test(unsure, seed=7, rounds=999) != permutation_test(unsure, seed=8, rounds=999)


def test_a_draw_that_is_cut_into_shares_counts_every_round(monkeypatch):
    monkeypatch.setattr("agentv.stats.comparison.paired.AT_ONCE", 1000)
    assert permutation_test([0.5] * 64, rounds=99) == 0.01


def test_kinds_are_drawn_as_their_members_would_be(monkeypatch):
    verdicts = [1.0] * 630 + [-1.0] * 570 + [0.0] * 780
    by_kind = permutation_test(verdicts)
    monkeypatch.setattr("agentv.stats.comparison.paired.MANY", 10_000)
    assert by_kind == pytest.approx(permutation_test(verdicts), abs=0.01)
    assert by_kind == pytest.approx(mcnemar_exact(630, 570), abs=0.01)


def test_refuses_what_is_no_sample():
    with pytest.raises(ValueError, match="not a finite number"):
        permutation_test([0.1, float("nan")])
    with pytest.raises(ValueError, match="at least one round is required, found"):
        permutation_test([0.1], rounds=0)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=12))
def test_turning_all_signs_turns_the_answer(values):
    turned = [-value for value in values]
    assert permutation_test(turned) == permutation_test(values)
