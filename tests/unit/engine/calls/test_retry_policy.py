from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agentv.engine.calls.retry_policy import Again, GiveUp, Tries, backoff_s, decide, is_limited, patience_s
from agentv.model.suite.suite import DEFAULT_RETRY, Retry
from agentv.model.values.response import CallFailure, Failure

BROKEN = CallFailure("http-status", "HTTP 500", retryable=True, status=500)
LIMITED = CallFailure("http-status", "HTTP 429", retryable=True, status=429)


def after(failure: Failure, tries: Tries, retry: Retry = DEFAULT_RETRY, *, left_s: float = 600.0, chance: float = 1.0):
    return decide(failure, tries, retry, left_s, chance)


def test_what_cannot_pass_is_not_tried_again():
    refused = CallFailure("http-status", "HTTP 400", status=400)
    assert after(refused, Tries(failed=1)) == GiveUp()
    assert after(Failure("bad-answer", "no JSON"), Tries(failed=1)) == GiveUp()


def test_the_defaults_are_agentvs():
    assert [after(BROKEN, Tries(failed=number)) for number in (1, 2, 3)] == [Again(1.0), Again(2.0), Again(4.0)]
    assert after(BROKEN, Tries(failed=4)) == GiveUp("gave up after 4 attempts")


def test_jitter_is_full():
    assert after(BROKEN, Tries(failed=3), chance=0.0) == Again(0.0)
    assert after(BROKEN, Tries(failed=3), chance=0.25) == Again(1.0)


def test_the_wait_is_bounded():
    retry = Retry(max_retries=100, initial_delay_ms=500, max_delay_ms=3000, backoff_factor=3)
    assert [backoff_s(number, retry) for number in (1, 2, 3, 100_000)] == [0.5, 1.5, 3.0, 3.0]
    assert backoff_s(100_000, replace(retry, backoff_factor=1)) == 0.5


def test_a_limit_slows_down_and_uses_up_no_retry():
    assert is_limited(LIMITED)
    assert not is_limited(BROKEN)
    assert after(LIMITED, Tries(failed=0, limited=50), chance=0.5) == Again(30.0)
    assert Tries().and_one(LIMITED).and_one(LIMITED).and_one(BROKEN) == Tries(failed=1, limited=2)


@pytest.mark.parametrize(
    ("status", "retry_after_s", "limited"),
    [(529, None, True), (503, 2.0, True), (503, None, False), (None, 2.0, False)],
)
def test_overload_is_a_limit(status, retry_after_s, limited):
    failure = CallFailure("http-status", "busy", retryable=True, status=status, retry_after_s=retry_after_s)
    assert is_limited(failure) is limited


def test_a_server_is_not_asked_sooner_than_it_asks():
    asks = replace(LIMITED, retry_after_s=7.5)
    assert after(asks, Tries(limited=1), chance=0.0) == Again(7.5)
    assert after(replace(BROKEN, retry_after_s=7.5), Tries(failed=1), chance=0.0) == Again(7.5)


def test_a_server_that_asks_for_no_wait_is_not_asked_for_ever():
    asks = replace(LIMITED, retry_after_s=0.0)
    waits = [after(asks, Tries(limited=number)) for number in range(1, 8)]
    assert waits == [Again(0.0), Again(0.0), Again(0.0), Again(1.0), Again(2.0), Again(4.0), Again(8.0)]


def test_a_wait_past_the_deadline_is_not_begun():
    asks = replace(LIMITED, retry_after_s=3600.0)
    found = after(asks, Tries(limited=1), left_s=240)
    assert found == GiveUp("gave up after 1 attempt: the server asks to wait 3600 s, but the call has 240 s left")
    assert after(BROKEN, Tries(failed=2), left_s=1.5) == GiveUp("gave up after 2 attempts: no time left for the call")


def test_a_wait_that_takes_all_the_time_that_is_left_is_not_begun():
    asks = replace(LIMITED, retry_after_s=240.0)
    assert after(asks, Tries(limited=1), left_s=240.0) == GiveUp(
        "gave up after 1 attempt: the server asks to wait 240 s, but the call has 240 s left"
    )
    assert after(BROKEN, Tries(failed=2), left_s=2.0).why.endswith("no time left for the call")
    assert after(asks, Tries(limited=1), left_s=-3.0).why.endswith("the call has 0 s left")
    assert after(asks, Tries(limited=1), left_s=240.1) == Again(240.0)


def test_no_retries_means_one_attempt_whatever_it_comes_to():
    assert after(LIMITED, Tries(limited=1), Retry(max_retries=0)) == GiveUp()
    assert after(BROKEN, Tries(failed=1), Retry(max_retries=0)) == GiveUp()


def test_there_is_time_for_a_second_attempt_and_for_the_limits_of_a_minute():
    assert patience_s(300) == 600
    assert patience_s(1) == 121


@given(
    st.floats(0, 1),
    st.integers(1, 30),
    st.floats(0, 1000),
    st.one_of(st.none(), st.floats(0, 1000)),
    st.sampled_from([429, 500, 503, 529]),
)
def test_no_wait_leaves_its_bounds(chance, number, left_s, asked_s, status):
    failure = CallFailure("http-status", "no", retryable=True, status=status, retry_after_s=asked_s)
    found = decide(failure, Tries(number, number), Retry(), left_s, chance)
    if isinstance(found, Again):
        assert (asked_s or 0.0) <= found.after_s <= max(60.0, asked_s or 0.0)
        assert found.after_s < left_s
