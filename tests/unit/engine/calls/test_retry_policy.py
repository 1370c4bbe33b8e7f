from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agentv.engine.calls.retry_policy import Again, GiveUp, Tries, decide, is_limited
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


def test_a_limit_slows_down_and_uses_up_no_retry():
    assert is_limited(LIMITED)
    assert not is_limited(BROKEN)
    assert after(LIMITED, Tries(failed=0, limited=50), chance=0.5) == Again(30.0)
    assert Tries().and_one(LIMITED).and_one(LIMITED).and_one(BROKEN) == Tries(failed=1, limited=2)


def test_a_server_is_not_asked_sooner_than_it_asks():
    asks = replace(LIMITED, retry_after_s=7.5)
    assert after(asks, Tries(limited=1), chance=0.0) == Again(7.5)
    assert after(replace(BROKEN, retry_after_s=7.5), Tries(failed=1), chance=0.0) == Again(7.5)


def test_a_wait_past_the_deadline_is_not_begun():
    asks = replace(LIMITED, retry_after_s=3600.0)
    found = after(asks, Tries(limited=1), left_s=240)
    assert found == GiveUp("gave up after 1 attempt: the server asks to wait 3600 s, but the call has 240 s left")
    assert after(BROKEN, Tries(failed=2), left_s=1.5) == GiveUp("gave up after 2 attempts: no time left for the call")


def test_no_retries_means_one_attempt_whatever_it_comes_to():
    assert after(LIMITED, Tries(limited=1), Retry(max_retries=0)) == GiveUp()
    assert after(BROKEN, Tries(failed=1), Retry(max_retries=0)) == GiveUp()


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
