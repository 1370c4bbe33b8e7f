from __future__ import annotations

import pytest

from agentv.engine.calls.rate_limiter import Bucket, RateLimiter, tokens_in
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


def test_tokens_are_spread_over_the_minute():
    assert starts(RateLimiter(Rate(tokens_per_minute=6000)), 3, tokens=100) == [0, 1, 2]


def test_a_call_larger_than_the_burst_passes_and_is_paid_off_after():
    assert starts(RateLimiter(Rate(tokens_per_minute=60)), 3, tokens=30) == [0, 30, 60]


def test_the_usage_corrects_the_estimate():
    meter = RateLimiter(Rate(tokens_per_minute=6000))
    meter.start(0.0, 100)
    meter.correct(0.0, estimated=100, used=400)
    assert meter.wait_s(0.0, 100) == 4
    meter.correct(0.0, estimated=400, used=0)
    assert meter.wait_s(0.0, 100) == 0


def test_both_hold():
    meter = RateLimiter(Rate(requests_per_minute=60, tokens_per_minute=600))
    assert starts(meter, 3, tokens=20) == [0, 2, 4]


def test_an_idle_bucket_holds_no_more_than_its_burst():
    bucket = Bucket(per_s=1, size=2)
    bucket.spend(0.0, 2)
    assert bucket.wait_s(1000.0, 2) == 0
    bucket.spend(1000.0, 2)
    assert bucket.wait_s(1000.0, 2) == 2


def test_tokens_are_estimated_by_characters():
    assert tokens_in("a" * 400) == 100
