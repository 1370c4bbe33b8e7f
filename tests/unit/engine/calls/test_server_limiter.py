import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.engine.calls.pacing import AdaptiveConcurrency, LearnedRate, Permit, RateLimiter
from agentv.engine.calls.server_limiter import ServerLimiter, Waiter
from agentv.model.suite.suite import Rate
from agentv.model.values.response import CallFailure, TargetResponse
from agentv.model.values.usage import TokenUsage
from doubles.virtual_time import now, run_at_once
from doubles.waiting import turns


def test_nobody_waits_for_longer_than_it_may():
    async def main():
        gate = ServerLimiter(AdaptiveConcurrency(1))
        permit = gate.try_enter(Waiter())
        patient, hasty = Waiter(patience_s=1000), Waiter(patience_s=100)
        calls = [asyncio.ensure_future(gate.enter(one)) for one in (hasty, patient)]
        await turns()
        gate.leave(permit, CallFailure("http-status", "slow down", retryable=True, status=429, retry_after_s=500.0))
        refused = await calls[0]
        at = now()
        await calls[1]
        return refused, at, now()

    refused, at, then = run_at_once(main())
    assert refused.message == "not called: the server asked an earlier call to wait 500 s longer: slow down"
    assert (at, then) == (1000, 1500)


@pytest.mark.parametrize("is_let_in", [False, True])
def test_a_call_that_is_cancelled_while_it_waits_or_as_it_is_let_in_gives_its_place_to_the_next(is_let_in):
    async def main():
        gate = ServerLimiter(AdaptiveConcurrency(1))
        permit = gate.try_enter(Waiter())
        waiting = [asyncio.ensure_future(gate.enter(Waiter())) for _ in range(2)]
        await turns()
        if not is_let_in:
            waiting[0].cancel()
            await turns()
        gate.leave(permit, TargetResponse("fine"))
        waiting[0].cancel()  # admitted, but not yet notified
        return await waiting[1], gate.pace.running

    permit, running = run_at_once(main())
    assert isinstance(permit, Permit)
    assert running == 1


def test_an_answer_corrects_what_was_taken_for_its_tokens():
    async def main():
        gate, meter = ServerLimiter(AdaptiveConcurrency(4)), RateLimiter(Rate(tokens_per_minute=6000))
        one = Waiter(tokens=100, rate_limiter=meter)
        gate.leave(gate.try_enter(one), TargetResponse("fine", token_usage=TokenUsage(total=400)), one)
        await gate.enter(Waiter(tokens=100, rate_limiter=meter))
        return now()

    assert run_at_once(main()) == 1004


def starts(meter: RateLimiter, number: int, tokens: float = 0.0) -> list[float]:
    """Return the start times of this many calls that are all ready at once."""
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


def answered(rate: LearnedRate, *, per_s: float, seconds: float, start: float = 100.0) -> float:
    """Record evenly spaced answers; return the time of the last one."""
    number = int(per_s * seconds)
    for place in range(number + 1):
        rate.answer(start + place / per_s)
    return start + number / per_s


def test_it_falls_below_what_was_answered_grows_back_and_then_doubles():
    rate = LearnedRate()
    now = answered(rate, per_s=10, seconds=2)
    rate.limit(now)
    assert [rate.rate(now + seconds) for seconds in (0, 5, 10, 15, 20)] == pytest.approx([8, 9, 10, 20, 40])


def test_without_answers_meanwhile_it_falls_further():
    rate = LearnedRate()
    now = answered(rate, per_s=10, seconds=2)
    rate.limit(now)
    rate.limit(now + 50)
    assert rate.rate(now + 50) == pytest.approx(10 * 0.8 * 0.8)


def test_a_server_of_ten_calls_a_second_is_asked_about_so_much():
    """Bucket of one: 300 seconds of calls as soon as the pace allows, each answered at once."""
    pace, now, level, at = AdaptiveConcurrency(50), 0.0, 1.0, 0.0
    answered_, refused = 0, 0
    while now < 300:
        now += max(pace.wait_s(now) or 0.0, 0.001)
        level, at = min(1.0, level + (now - at) * 10), now
        permit = pace.start(now)
        if level >= 1:
            level -= 1
            answered_ += 1
            pace.succeed(permit, now)
        else:
            refused += 1
            pace.limit(permit, now, None)
    assert answered_ > 2500
    assert refused < 0.2 * answered_


@given(st.lists(st.tuples(st.booleans(), st.floats(0.001, 20)), max_size=50))
def test_it_never_stands_still(events):
    rate, now = LearnedRate(), 0.0
    for limited, step in events:
        now += step
        (rate.limit if limited else rate.answer)(now)
        found = rate.rate(now)
        assert found is None or found > 0
