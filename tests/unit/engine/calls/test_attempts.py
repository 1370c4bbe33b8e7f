"""What one call takes of time, permits and budget over all its attempts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
from msgspec.structs import replace

from agentv.engine.calls.adaptive_concurrency import AdaptiveConcurrency
from agentv.engine.calls.attempts import AttemptAllowance, RetriedCall
from agentv.engine.calls.circuit_breaker import INTERRUPTED, TargetStop
from agentv.engine.calls.interruptible_sleep import InterruptibleSleep
from agentv.engine.calls.server_limiter import ServerLimiter
from agentv.engine.calls.target_channel import TargetChannel
from agentv.model.suite.suite import Retry, TargetSpec
from agentv.model.values.response import CallFailure, Failure, TargetResponse
from agentv.user_code.functions.deadline import LIMIT, Deadline
from doubles.virtual_time import now, run_at_once

FINE = TargetResponse("fine")
BROKEN = CallFailure("http-status", "HTTP 500", retryable=True, status=500)
BUSY = CallFailure("http-status", "HTTP 429", retryable=True, status=429, retry_after_s=0.0)


@dataclass
class Turns:
    """A reservation that the attempts of these numbers wait for, each so many seconds; it writes down what it gets."""

    waits_s: dict[int, float] = field(default_factory=dict)
    refused: Failure | None = None
    got: list[Any] = field(default_factory=list)
    number: int = 0

    def try_reserve(self) -> bool:
        self.number += 1
        return self.number not in self.waits_s

    async def reserve(self, *, first: bool) -> Failure | None:
        await asyncio.sleep(self.waits_s[self.number])
        self.got.append("first" if first else "in turn")
        return self.refused

    def give_back(self) -> None:
        self.got.append("given back")

    def settle(self, outcome: Any) -> None:
        self.got.append(outcome)


@dataclass
class Called:
    """A target that gives these outcomes, the last one for ever, and notes when it was called and what it was allowed."""

    given: Sequence[Any] = (FINE,)
    takes_s: float = 1.0
    at: list[float] = field(default_factory=list)
    allowed: list[AttemptAllowance] = field(default_factory=list)
    began_at: ClassVar[float] = 1000.0

    async def ask(self, allowance: AttemptAllowance) -> Any:
        self.at.append(now() - self.began_at)
        self.allowed.append(allowance)
        await asyncio.sleep(self.takes_s)
        return self.given[min(len(self.at), len(self.given)) - 1]


def channel(
    limiter: ServerLimiter | None = None,
    stop: TargetStop | None = None,
    pauses: list[str] | None = None,
    **given: Any,
) -> TargetChannel:
    spec = TargetSpec("t", "x", None, **given)
    stop, reasons = stop or TargetStop(), [] if pauses is None else pauses
    return TargetChannel(
        spec,
        limiter,
        True,
        None,
        stop,
        InterruptibleSleep(),
        lambda: 1.0,
        lambda *_: None,
        lambda _spec, why: reasons.append(why),
        lambda: None,
    )


def call(server: Called, *, timeout_s: float = 10.0, turns: Turns | None = None, **given: Any) -> Any:
    return RetriedCall(channel(**given), server.ask, timeout_s, reservation=turns)


def outcome_of(make: Callable[[], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        return await make()

    return run_at_once(main())


def test_a_wait_for_the_budget_between_two_attempts_is_not_the_calls_time():
    server, turns = Called([BROKEN, FINE]), Turns({2: 500.0})
    found, seconds = outcome_of(lambda: call(server, turns=turns).outcome())
    assert (found, seconds) == (FINE, 1.0)
    assert server.at == [0.0, 502.0]
    assert [one.seconds for one in server.allowed] == [10.0, 10.0]
    assert [one.number for one in server.allowed] == [0, 1]


def test_a_wait_for_the_budget_adds_no_time_beyond_itself():
    server, turns = Called([BUSY]), Turns({2: 500.0})
    found, _ = outcome_of(lambda: call(server, turns=turns).outcome())
    assert found.message.endswith("no time left for the call")
    assert 560 < server.at[-1] < 500 + 130, "patience of a call of 10 seconds is 130"


def test_a_wait_for_the_budget_before_the_first_attempt_takes_none_of_its_time():
    server, turns = Called([BUSY]), Turns({1: 500.0})
    outcome_of(lambda: call(server, turns=turns).outcome())
    assert server.at[0] == 500.0
    assert 560 < server.at[-1] < 500 + 130


@pytest.mark.parametrize("waits", [{}, {1: 3.0}])
def test_every_attempt_is_settled_with_what_it_came_to(waits):
    server, turns = Called([BROKEN, BROKEN, FINE]), Turns(waits)
    outcome_of(lambda: call(server, turns=turns).outcome())
    assert [one for one in turns.got if one != "in turn"] == [BROKEN, BROKEN, FINE]


def test_a_call_that_the_budget_refuses_is_not_made():
    refused = Failure("budget-spent", "too much")
    server, turns = Called(), Turns({1: 3.0}, refused)
    found, seconds = outcome_of(lambda: call(server, turns=turns).outcome())
    assert (found, seconds, server.at) == (refused, 0.0, [])
    assert turns.got == ["in turn"]


def test_a_reservation_is_given_back_where_the_call_is_not_made():
    stop = TargetStop(CallFailure("http-status", "HTTP 401", status=401, stops=True))
    server, turns = Called(), Turns()
    found, _ = outcome_of(lambda: call(server, turns=turns, stop=stop).outcome())
    assert (found.code, server.at, turns.got) == ("target-stopped", [], ["given back"])


def test_a_target_that_is_stopped_while_a_call_waits_for_its_server_is_not_called_and_the_permit_is_free_again():
    stop, refused = TargetStop(), CallFailure("http-status", "HTTP 401", status=401, stops=True)
    first, second, other = Called([refused]), Called(), Called()
    turns = Turns()

    async def main() -> list[Any]:
        limiter = ServerLimiter(AdaptiveConcurrency(1))
        busy = asyncio.ensure_future(call(first, limiter=limiter, stop=stop).outcome())
        await asyncio.sleep(0)
        waiting = asyncio.ensure_future(call(second, turns=turns, limiter=limiter, stop=stop).outcome())
        await asyncio.sleep(0.5)
        stop.note(refused)
        return [(await busy)[0], (await waiting)[0], (await call(other, limiter=limiter).outcome())[0]]

    found = run_at_once(main())
    assert [found[0].code, found[1].code, found[2]] == ["http-status", "target-stopped", FINE]
    assert (second.at, turns.got, other.at) == ([], ["given back"], [1.0])


def test_a_wait_for_the_server_between_two_attempts_is_not_the_calls_time_and_adds_none():
    for given, ends in (([BROKEN, FINE], 1), ([BROKEN, *[BUSY] * 200], 200)):
        server, slow = Called(given), Called(takes_s=500.0)

        async def main(server: Called = server, slow: Called = slow) -> Any:
            limiter = ServerLimiter(AdaptiveConcurrency(1))
            retried = asyncio.ensure_future(call(server, limiter=limiter).outcome())
            await asyncio.sleep(1.5)  # the first attempt has failed, and waits a second
            await call(slow, limiter=limiter, timeout_s=600.0).outcome()
            return (await retried)[0]

        found = run_at_once(main())
        assert server.at[:2] == [0.0, 501.5]
        assert server.allowed[1].seconds == 10.0
        assert server.at[-1] < 500 + 130 + 1
        assert found == FINE if ends == 1 else found.message.endswith("no time left for the call")


def test_a_server_that_has_no_room_for_longer_than_a_call_has_left_is_not_waited_for():
    server, other = Called([BROKEN, FINE]), Called([replace(BUSY, retry_after_s=5000.0), FINE])

    async def main() -> Any:
        limiter = ServerLimiter(AdaptiveConcurrency(2))
        retried = asyncio.ensure_future(call(server, limiter=limiter).outcome())
        waits = asyncio.ensure_future(call(other, limiter=limiter, timeout_s=10_000.0).outcome())
        found, _ = await retried
        ended = now() - 1000
        return found, ended, (await waits)[0]

    found, ended, waited = run_at_once(main())
    assert found.message.startswith("not called: the server asked an earlier call to wait 5e+03 s longer")
    assert (ended, len(server.at), waited) == (2.0, 1, FINE)


def test_a_queue_before_a_server_is_not_the_time_of_who_waits_for_the_judge():
    first, second = Called(takes_s=100.0), Called(takes_s=5.0)

    async def main() -> float:
        limiter = ServerLimiter(AdaptiveConcurrency(1))
        busy = asyncio.ensure_future(call(first, limiter=limiter, timeout_s=200.0).outcome())
        await asyncio.sleep(0)
        limit = Deadline(8.0)
        limit.begin(now(), lambda _when: None)
        LIMIT.set(limit)
        await call(second, limiter=limiter).outcome()
        await busy
        return limit.left_s(now())

    assert run_at_once(main()) == pytest.approx(3.0)


def test_every_call_with_a_budget_leaves_its_server_to_the_next():
    server = Called([FINE])

    async def main() -> None:
        limiter = ServerLimiter(AdaptiveConcurrency(1))
        await asyncio.gather(*(call(server, limiter=limiter, turns=Turns()).outcome() for _ in range(3)))

    run_at_once(main())
    assert server.at == [0.0, 1.0, 2.0]


def test_the_first_reply_that_asks_for_too_long_a_wait_is_reported_and_no_later_one():
    server, pauses = Called([replace(BUSY, retry_after_s=3600.0)]), []
    limited = outcome_of(lambda: call(server, limiter=ServerLimiter(AdaptiveConcurrency(1)), pauses=pauses).outcome())
    assert (limited[0].stops, server.at) == (True, [0.0, 31.0])
    said = "HTTP 429; the server asks to wait 3600 s, but the call has 129 s left; retrying once in 30 s"
    assert pauses == [said]


def test_a_call_that_is_interrupted_between_attempts_ends_as_interrupted():
    server = Called([BROKEN])

    async def main() -> Any:
        one = call(server)
        running = asyncio.ensure_future(one.outcome())
        await asyncio.sleep(1.5)
        one.channel.sleeper.end()
        return await running, now() - 1000

    (found, seconds), ended = run_at_once(main())
    assert (found, seconds, ended, len(server.at)) == (INTERRUPTED, 0.0, 1.5, 1)


def test_an_outcome_that_is_there_already_is_the_first_attempt():
    server = Called([FINE])
    one = call(server)
    found, _ = outcome_of(lambda: one.outcome(BROKEN))
    assert (found, server.at, len(one.attempts)) == (FINE, [1.0], 1)
    assert server.allowed[0].number == 1


@pytest.mark.parametrize(
    ("failure", "code"), [(BROKEN, "http-status"), (Failure("lost", "gone", retryable=True), "lost")]
)
def test_a_failure_has_the_attempts_before_it_and_says_why_no_other_follows(failure, code):
    found, seconds = outcome_of(lambda: call(Called([failure]), retry=Retry(max_retries=2)).outcome())
    assert seconds == 1.0
    assert (found.code, found.retryable) == (code, True)
    assert found.message == f"{failure.message}; gave up after 3 attempts"
    assert [(one.code, one.duration_ms, one.waited_ms) for one in found.attempts] == [
        (code, 1000.0, 1000.0),
        (code, 1000.0, 2000.0),
    ]


def test_a_failure_after_which_no_time_is_left_says_so_though_there_was_one_attempt():
    patient = Retry(initial_delay_ms=200_000, max_delay_ms=300_000)
    found, _ = outcome_of(lambda: call(Called([Failure("lost", "gone", retryable=True)]), retry=patient).outcome())
    assert found == Failure("lost", "gone; gave up after 1 attempt: no time left for the call", retryable=True)


@pytest.mark.parametrize("at_once", [True, False])
def test_what_a_target_raises_is_its_failure_whether_or_not_it_was_waited_for(at_once):
    async def later(_: AttemptAllowance) -> Any:
        raise ValueError("no")

    def now_(_: AttemptAllowance) -> Any:
        raise ValueError("no")

    found, _ = outcome_of(lambda: RetriedCall(channel(), now_ if at_once else later, 10.0).outcome())
    assert (found.code, found.retryable) == ("target-raised", False)


def test_a_failure_that_is_final_at_once_comes_back_as_it_is():
    final = Failure("refused", "no")
    assert outcome_of(lambda: call(Called([final])).outcome())[0] is final
