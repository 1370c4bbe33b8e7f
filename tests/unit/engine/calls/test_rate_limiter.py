from __future__ import annotations

import pytest

from agentv.engine.calls.rate_limiter import RateLimiter, tokens_in
from agentv.model.suite.suite import Rate


def starts(meter: RateLimiter, number: int, tokens: float = 0.0) -> list[float]:
    """When so many calls start that would all like to start at once."""
    now, found = 0.0, []
    for _ in range(number):
        now += meter.wait_s(now, tokens)
        meter.start(now, tokens)
        found.append(round(now, 6))
    return found


def test_requests_are_spread_over_the_minute_after_a_small_burst():
    assert starts(RateLimiter(Rate(requests_per_minute=30)), 4) == [0, 2, 4, 6]
    burst = starts(RateLimiter(Rate(requests_per_minute=600)), 30)
    assert burst[:10] == [0] * 10
    assert burst[-1] == pytest.approx(2.0)


def test_tokens_are_estimated_by_characters():
    assert tokens_in("a" * 400) == 100
