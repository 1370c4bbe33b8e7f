"""Signs of differences."""

from __future__ import annotations

import pytest

from agentv.reports.text.signs import signed


@pytest.mark.parametrize(
    ("number", "places", "shown"),
    [
        (8.0, 1, "+8.0"),
        (-0.04, 2, "-0.04"),
        (-0.04, 1, "0.0"),
        (0.004, 2, "0.00"),
        (-0.0, 2, "0.00"),
        (0.05, 1, "+0.1"),
    ],
)
def test_what_rounds_to_nothing_has_no_sign(number, places, shown):
    assert signed(number, places) == shown
