from __future__ import annotations

import asyncio

from agentv.engine.calls.adaptive_concurrency import AdaptiveConcurrency, Permit
from agentv.engine.calls.rate_limiter import RateLimiter
from agentv.engine.calls.server_limiter import ServerLimiter, Waiter
from agentv.model.suite.suite import Rate
from agentv.model.values.response import CallFailure, TargetResponse
from agentv.model.values.usage import TokenUsage
from doubles.virtual_time import now, run_at_once


async def turns(number: int = 5) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


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
    assert isinstance(refused, CallFailure)
    assert refused.message == "not called: the server asked an earlier call to wait 500 s longer: slow down"
    assert (at, then) == (1000, 1500)


def test_a_call_that_is_cancelled_while_it_waits_leaves_no_trace():
    async def main():
        gate = ServerLimiter(AdaptiveConcurrency(1))
        permit = gate.try_enter(Waiter())
        waiting = [asyncio.ensure_future(gate.enter(Waiter())) for _ in range(2)]
        await turns()
        waiting[0].cancel()
        await turns()
        gate.leave(permit, TargetResponse("fine"))
        return await waiting[1], gate.pace.running

    permit, running = run_at_once(main())
    assert isinstance(permit, Permit)
    assert running == 1


def test_a_call_that_is_cancelled_as_it_is_let_in_gives_its_place_back():
    async def main():
        gate = ServerLimiter(AdaptiveConcurrency(1))
        permit = gate.try_enter(Waiter())
        waiting = [asyncio.ensure_future(gate.enter(Waiter())) for _ in range(2)]
        await turns()
        gate.leave(permit, TargetResponse("fine"))  # the first is let in, and has not noticed
        waiting[0].cancel()
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
