from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.stats.comparison.noninferiority import verdict


@pytest.mark.parametrize(
    ("low", "high", "margin", "expected"),
    [
        (0.01, 0.2, 0.0, "better"),
        (-0.2, -0.01, 0.0, "worse"),
        (-0.1, 0.1, 0.0, "inconclusive"),
        (0.0, 0.0, 0.0, "inconclusive"),
        (0.0, 0.2, 0.0, "inconclusive"),
        (-0.02, 0.02, 0.02, "equivalent"),
        (0.005, 0.015, 0.02, "equivalent"),
        (0.01, 0.2, 0.02, "non-inferior"),
        (-0.02, 0.2, 0.02, "non-inferior"),
        (-0.021, 0.2, 0.02, "inconclusive"),
        (-0.2, -0.01, 0.02, "inconclusive"),
        (0.021, 0.2, 0.02, "better"),
        (-0.2, -0.021, 0.02, "worse"),
        (-inf, inf, 0.5, "inconclusive"),
    ],
)
def test_the_whole_interval_decides(low, high, margin, expected):
    assert verdict(low, high, margin) == expected


@given(st.floats(-1, 1), st.floats(-1, 1), st.floats(0, 1))
def test_swapping_the_runs_swaps_better_and_worse(one, other, margin):
    low, high = sorted((one, other))
    swapped = {"better": "worse", "worse": "better"}
    found, turned = verdict(low, high, margin), verdict(-high, -low, margin)
    assert turned == swapped.get(found, found) or {found, turned} == {"non-inferior", "inconclusive"}


def test_refuses_what_is_no_margin_and_no_interval():
    with pytest.raises(ValueError, match="a margin must be at least 0, found -1"):
        verdict(0, 1, -1)
    with pytest.raises(ValueError, match="no interval: 1 to 0"):
        verdict(1, 0, 0.1)
