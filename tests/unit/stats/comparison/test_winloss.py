from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def test_more_pairs_tell_more_even_where_nothing_changed():
    widths = [high - low for low, high in (WinLoss(0, 0, ties).interval() for ties in (5, 50, 500))]
    assert all(one > other for one, other in pairwise(widths))


@pytest.mark.parametrize("counted", [(0, 0, 0), (-1, 3, 3)])
def test_refuses_what_are_no_pairs(counted):
    with pytest.raises(ValueError, match="no pairs"):
        WinLoss(*counted).interval()
