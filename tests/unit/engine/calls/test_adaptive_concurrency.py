from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.engine.calls.adaptive_concurrency import AdaptiveConcurrency
from agentv.model.values.response import RateLimits


def started(pace: AdaptiveConcurrency, number: int, now: float = 0.0) -> list:
    return [pace.start(now) for _ in range(number)]


def test_calls_that_were_under_way_together_make_it_narrower_once():
    pace = AdaptiveConcurrency(40)
    permits = started(pace, 40)
    for permit in permits:
        pace.limit(permit, 1.0, None)
    assert (pace.width, pace.running) == (20, 0)
    for permit in started(pace, 20):
        pace.limit(permit, 2.0, None)
    assert pace.width == 10


def test_it_falls_from_what_was_under_way_and_never_below_one():
    pace = AdaptiveConcurrency(40)
    permits = started(pace, 6)
    pace.limit(permits[0], 0.0, None)
    assert pace.width == 3
    for _ in range(5):
        for permit in started(pace, 1):
            pace.limit(permit, 0.0, None)
    assert pace.width == 1
    assert pace.wait_s(0.0) is None  # five of the first are still there


def test_a_round_of_answers_makes_room_for_one_more():
    pace = AdaptiveConcurrency(8)
    for permit in started(pace, 8):
        pace.limit(permit, 0.0, None)
    for _ in range(5):
        for permit in started(pace, int(pace.width)):
            pace.succeed(permit, 1.0)
            pace.start(1.0)
        pace.running = 0
    assert 7 < pace.width <= 8


def test_retry_after_pauses_everybody():
    pace = AdaptiveConcurrency(4)
    permit = pace.start(10.0)
    pace.limit(permit, 10.0, 2.5)
    assert pace.wait_s(10.0) == 2.5
    assert pace.wait_s(12.0) == 0.5
    assert pace.wait_s(12.5) == 0


def limits(pace: AdaptiveConcurrency, now: float, **said: float) -> None:
    pace.succeed(pace.start(now), now, RateLimits(**said))


def test_plenty_left_spaces_nothing():
    pace = AdaptiveConcurrency(2)
    limits(pace, 0.0, requests=100, requests_reset_s=60.0)
    assert pace.wait_s(0.0) == 0


def test_few_requests_are_spaced_to_fit_until_there_are_more():
    pace = AdaptiveConcurrency(10)
    limits(pace, 0.0, requests=4, requests_reset_s=20.0)
    assert pace.wait_s(0.0) == pytest.approx(5.0)
    assert pace.wait_s(20.0) == 0


def test_none_left_waits_until_there_are_some():
    pace = AdaptiveConcurrency(10)
    limits(pace, 0.0, requests=0, requests_reset_s=20.0)
    assert pace.wait_s(5.0) == 15.0


def test_a_limit_that_fills_steadily_is_used_as_it_fills():
    """As OpenAI's: 500 a minute, nearly used up. It is full again in a minute, but a request comes in every 0.12 s."""
    pace = AdaptiveConcurrency(10)
    limits(pace, 0.0, requests=499, requests_reset_s=0.12)
    limits(pace, 30.0, requests=0, requests_reset_s=60.0)
    assert pace.wait_s(30.0) == pytest.approx(0.12, rel=0.01)


@given(st.integers(1, 60), st.lists(st.tuples(st.sampled_from(["start", "ok", "limit", "drop"]), st.floats(0, 5))))
def test_it_is_never_outside_its_bounds(most, events):
    pace, permits, now = AdaptiveConcurrency(most), [], 0.0
    for what, step in events:
        now += step
        if what == "start" and pace.wait_s(now) == 0:
            permits.append(pace.start(now))
        elif permits and what != "start":
            permit = permits.pop(0)
            if what == "ok":
                pace.succeed(permit, now)
            elif what == "limit":
                pace.limit(permit, now, step)
            else:
                pace.abandon(permit)
        assert 1 <= pace.width <= most
        assert pace.running == len(permits) <= most


def test_it_is_not_believed_again_once_the_server_has_answered_all_the_same():
    pace = AdaptiveConcurrency(4)
    for now in (0.0, 60.0, 61.0):
        pace.succeed(*started(pace, 1, now), now, RateLimits(requests=0, requests_reset_s=7200.0))
    assert pace.wait_s(61.0) == 0
