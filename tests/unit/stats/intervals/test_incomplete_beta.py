"""The incomplete beta function is scipy's."""

from __future__ import annotations

import pytest
from scipy.special import betainc

from agentv.stats.intervals.incomplete_beta import incomplete_beta


def test_it_is_scipys():
    for a, b in ((1, 1), (0.5, 3), (40, 7), (500, 501), (50_000, 49_800), (4, 2_000_000)):
        for x in (0.0, 1e-9, 0.02, 0.3, 0.5, 0.77, 1.0):
            assert incomplete_beta(a, b, x, 1 - x) == pytest.approx(betainc(a, b, x), rel=1e-7, abs=1e-12), (a, b, x)
