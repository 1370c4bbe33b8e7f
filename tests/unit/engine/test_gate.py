from __future__ import annotations

import asyncio

from agentv.engine.gate import Gate, Visitor
from agentv.engine.pace import Pace, Ticket
from agentv.engine.rate import Meter
from agentv.model.response import CallFailure, Failure, TargetResponse, TokenUsage
from agentv.model.suite import Rate
from doubles.virtual_time import now, run_at_once

LIMITED = CallFailure("http-status", "HTTP 429", retryable=True, status=429)


async def turns(number: int = 5) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


def test_who_comes_first_is_served_first():
    async def main():
        gate, order = Gate(Pace(1)), []

        async def visit(name: str, visitor: Visitor) -> None:
            ticket = gate.at_once(visitor) or await gate.enter(visitor)
            order.append((name, now()))
            await asyncio.sleep(1)
            gate.leave(ticket, TargetResponse("fine"))

        first = Visitor()
        await asyncio.gather(*(visit(str(number), Visitor()) for number in range(3)), visit("returned", first))
        return order

    assert run_at_once(main()) == [("0", 1000), ("returned", 1001), ("1", 1002), ("2", 1003)]


def test_a_pause_holds_everybody_up_for_as_long_as_was_asked():
    async def main():
        gate = Gate(Pace(2))
        tickets = [gate.at_once(Visitor()) for _ in range(2)]
        waiting = asyncio.ensure_future(gate.enter(Visitor()))
        await turns()
        gate.leave(tickets[0], CallFailure("http-status", "no", status=429, retry_after_s=30.0))
        gate.leave(tickets[1], TargetResponse("fine"))
        await waiting
        return now()

    assert run_at_once(main()) == 1030


def test_nobody_waits_for_longer_than_it_may():
    async def main():
        gate = Gate(Pace(1))
        ticket = gate.at_once(Visitor())
        patient, hasty = Visitor(patience_s=1000), Visitor(patience_s=100)
        calls = [asyncio.ensure_future(gate.enter(one)) for one in (hasty, patient)]
        await turns()
        gate.leave(ticket, CallFailure("http-status", "slow down", retryable=True, status=429, retry_after_s=500.0))
        refused = await calls[0]
        at = now()
        await calls[1]
        return refused, at, now()

    refused, at, then = run_at_once(main())
    assert isinstance(refused, CallFailure)
    assert refused.message == "not asked: the server has told an earlier call to wait, for 500 s more: slow down"
    assert (at, then) == (1000, 1500)


def test_a_call_that_is_cancelled_while_it_waits_leaves_no_trace():
    async def main():
        gate = Gate(Pace(1))
        ticket = gate.at_once(Visitor())
        waiting = [asyncio.ensure_future(gate.enter(Visitor())) for _ in range(2)]
        await turns()
        waiting[0].cancel()
        await turns()
        gate.leave(ticket, TargetResponse("fine"))
        return await waiting[1], gate.pace.running

    ticket, running = run_at_once(main())
    assert isinstance(ticket, Ticket)
    assert running == 1


def test_a_call_that_is_cancelled_as_it_is_let_in_gives_its_place_back():
    async def main():
        gate = Gate(Pace(1))
        ticket = gate.at_once(Visitor())
        waiting = [asyncio.ensure_future(gate.enter(Visitor())) for _ in range(2)]
        await turns()
        gate.leave(ticket, TargetResponse("fine"))  # the first is let in, and has not noticed
        waiting[0].cancel()
        return await waiting[1], gate.pace.running

    ticket, running = run_at_once(main())
    assert isinstance(ticket, Ticket)
    assert running == 1


def test_closed_it_turns_everybody_away():
    async def main():
        gate = Gate(Pace(1))
        gate.at_once(Visitor())
        waiting = asyncio.ensure_future(gate.enter(Visitor()))
        await turns()
        gate.close()
        return await waiting, await gate.enter(Visitor()), gate.at_once(Visitor())

    inside, later, at_once = run_at_once(main())
    assert isinstance(inside, Failure)
    assert inside.code == later.code == "interrupted"
    assert at_once is None


def test_one_target_that_waits_for_its_own_rate_holds_up_no_other():
    async def main():
        gate, meter = Gate(Pace(4)), Meter(Rate(requests_per_minute=1))
        gate.at_once(Visitor(meter=meter))
        slow = asyncio.ensure_future(gate.enter(Visitor(meter=meter)))
        await turns()
        quick = Visitor()
        ticket = gate.at_once(quick) or await gate.enter(quick)
        at = now()
        await slow
        return ticket, at, now()

    ticket, at, then = run_at_once(main())
    assert isinstance(ticket, Ticket)
    assert (at, then) == (1000, 1060)


def test_an_answer_corrects_what_was_taken_for_its_tokens():
    async def main():
        gate, meter = Gate(Pace(4)), Meter(Rate(tokens_per_minute=6000))
        one = Visitor(tokens=100, meter=meter)
        gate.leave(gate.at_once(one), TargetResponse("fine", token_usage=TokenUsage(total=400)), one)
        await gate.enter(Visitor(tokens=100, meter=meter))
        return now()

    assert run_at_once(main()) == 1004
