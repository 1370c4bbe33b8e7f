from __future__ import annotations

from itertools import pairwise
from math import log, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from agentv.stats.comparison.winloss import WinLoss

counts = st.integers(0, 60)


@pytest.mark.parametrize(
    ("counted", "level", "low", "high"),
    [  # R 4.2.2: the score test inverted by uniroot, the likelihood maximised by optimize for every difference tried
        ((40, 20, 100), 0.95, 0.0308645334753665, 0.218064243377092),
        ((7, 21, 72), 0.95, -0.243746763542991, -0.0385652525571672),
        ((5, 0, 35), 0.95, 0.0264256982544338, 0.261121198388699),
        ((12, 2, 30), 0.9, 0.0969823004035371, 0.359916302737236),
    ],
)
def test_agrees_with_a_likelihood_maximised_in_r(counted, level, low, high):
    assert WinLoss(*counted).interval(level) == (pytest.approx(low, abs=1e-7), pytest.approx(high, abs=1e-7))


@given(counts, counts, counts)
def test_holds_the_difference_and_turns_with_the_runs(wins, losses, ties):
    if not wins + losses + ties:
        return
    found = WinLoss(wins, losses, ties)
    low, high = found.interval()
    assert -1 <= low <= found.difference <= high <= 1
    assert low < high
    assert WinLoss(losses, wins, ties).interval() == (pytest.approx(-high, abs=1e-9), pytest.approx(-low, abs=1e-9))


def score_of(wins, losses, ties, null):
    """Tango's statistic with the share of losses that maximises the likelihood, found by search."""
    pairs = wins + losses + ties

    def unlikely(share):
        chances = (share + null, share, 1 - 2 * share - null)
        return -sum(count * log(chance) for count, chance in zip((wins, losses, ties), chances, strict=True) if count)

    low, high = max(0.0, -null), (1 - null) / 2
    share = optimize.minimize_scalar(unlikely, bounds=(low + 1e-12, high - 1e-12), method="bounded").x
    return (wins - losses - pairs * null) / sqrt(pairs * (2 * share + null * (1 - null)))


@pytest.mark.parametrize("counted", [(40, 20, 100), (7, 21, 72), (12, 2, 30)])
def test_p_values_are_those_of_the_score_at_every_difference_and_of_mcnemar_at_none(counted):
    found = WinLoss(*counted)
    wins, losses, _ = counted
    assert found.p() == pytest.approx(2 * stats.norm.sf(abs(wins - losses) / sqrt(wins + losses)))
    for null in (-0.3, -0.1, 0.05, 0.2):
        assert found.p(null) == pytest.approx(2 * stats.norm.sf(abs(score_of(*counted, null))), rel=1e-4, abs=1e-15)
    assert found.p(found.difference) == pytest.approx(1.0)


def test_clusters_make_a_score_smaller_by_the_root_of_their_design_effect_and_have_students_t():
    alone, score = WinLoss(40, 20, 100), 20 / sqrt(60)
    assert WinLoss(40, 20, 100, 2.0).p() == pytest.approx(2 * stats.norm.sf(score / sqrt(2)))
    clustered = WinLoss(40, 20, 100, 2.0, 7)
    assert clustered.p() == pytest.approx(2 * stats.t.sf(score / sqrt(2), 7))
    for one, level in ((alone, 0.95), (clustered, 0.95), (clustered, 0.8)):
        for end in one.interval(level):
            assert one.p(end) == pytest.approx(1 - level, rel=1e-6)


def test_where_all_were_won_or_all_lost_an_interval_ends_there():
    low, high = WinLoss(9, 0, 0).interval()
    assert (WinLoss(9, 0, 0).difference, high) == (1.0, 1.0)
    assert 0.3 < low < 1.0
    assert WinLoss(0, 9, 0).interval() == (-1.0, pytest.approx(-low))
    assert WinLoss(9, 0, 0).p(1.0) == 1.0
    assert WinLoss(9, 0, 0).p(-1.0) == 0.0


def test_shares_of_weighted_pairs_need_not_be_whole():
    assert (WinLoss(0.5, 0.25, 0.25).pairs, WinLoss(0.5, 0.25, 0.25).difference) == (1.0, 0.25)
    assert WinLoss(0.0, 0.0, 0.5).p() == 1.0


def test_more_pairs_tell_more_even_where_nothing_changed():
    widths = [high - low for low, high in (WinLoss(0, 0, ties).interval() for ties in (5, 50, 500))]
    assert all(one > other for one, other in pairwise(widths))


@pytest.mark.parametrize("counted", [(0, 0, 0), (-1, 3, 3)])
def test_refuses_what_are_no_pairs(counted):
    with pytest.raises(ValueError, match="no pairs"):
        WinLoss(*counted).interval()
