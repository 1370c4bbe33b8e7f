"""Time, permits and budget that one call uses over all attempts, and when it is retried."""

import asyncio
import gc
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agentv.engine.calls.attempts import AttemptAllowance, RetriedCall
from agentv.engine.calls.pacing import AdaptiveConcurrency
from agentv.engine.calls.retry_policy import INTERRUPTED, GiveUp, RetryAfter, TargetStop, Tries, decide, is_limited
from agentv.engine.calls.server_limiter import ServerLimiter
from agentv.engine.calls.target_channel import CallNews, InterruptibleSleep, TargetChannel
from agentv.model.suite.suite import DEFAULT_RETRY, Retry, TargetSpec
from agentv.model.values.response import CallFailure, Failure, TargetResponse
from agentv.user_code.deadline import Deadline, in_time
from doubles.virtual_time import now, run_at_once

FINE = TargetResponse("fine")
BROKEN = CallFailure("http-status", "HTTP 500", retryable=True, status=500)
BUSY = CallFailure("http-status", "HTTP 429", retryable=True, status=429, retry_after_s=0.0)


@dataclass
class Turns:
    """A reservation that makes the attempts with these numbers wait, each for its number of seconds, and records its
    calls."""

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
    """A target that gives these outcomes, repeating the last, and records its call times and timeouts."""

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
    limiter: ServerLimiter | None = None, stop: TargetStop | None = None, news: CallNews | None = None, **given: Any
) -> TargetChannel:
    spec = TargetSpec("t", "x", None, **given)
    return TargetChannel(
        spec, limiter, True, None, stop or TargetStop(), InterruptibleSleep(), lambda: 1.0, news or CallNews()
    )


def call(server: Called, *, timeout_s: float = 10.0, turns: Turns | None = None, **given: Any) -> Any:
    return RetriedCall(channel(**given), server.ask, timeout_s, reservation=turns)


def outcome_of(make: Callable[[], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        return await make()

    return run_at_once(main())


def test_a_wait_for_the_budget_adds_no_time_beyond_itself():
    server, turns = Called([BUSY]), Turns({2: 500.0})
    found, _ = outcome_of(lambda: call(server, turns=turns).outcome())
    assert found.message.endswith("no time left for the call")
    assert 560 < server.at[-1] < 500 + 130, "patience of a call of 10 seconds is 130"


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


def test_a_server_that_has_no_room_for_longer_than_a_call_has_left_is_not_waited_for():
    server, other = Called([BROKEN, FINE]), Called([replace(BUSY, retry_after_s=5000.0), FINE])

    async def main() -> Any:
        limiter = ServerLimiter(AdaptiveConcurrency(2))
        retried = asyncio.ensure_future(call(server, limiter=limiter).outcome())
        waits = asyncio.ensure_future(call(other, limiter=limiter, timeout_s=10_000.0).outcome())
        found, _ = await retried
        return found, now() - 1000, (await waits)[0]

    found, ended, waited = run_at_once(main())
    assert found.message.startswith("not called: the server asked an earlier call to wait 5e+03 s longer")
    assert (ended, len(server.at), waited) == (2.0, 1, FINE)


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


@pytest.mark.parametrize("at_once", [True, False])
def test_what_a_target_raises_is_its_failure_whether_or_not_it_was_waited_for(at_once):
    async def later(_: AttemptAllowance) -> Any:
        raise ValueError("no")

    def now_(_: AttemptAllowance) -> Any:
        raise ValueError("no")

    found, _ = outcome_of(lambda: RetriedCall(channel(), now_ if at_once else later, 10.0).outcome())
    assert (found.code, found.retryable) == ("target-raised", False)


LIMITED = CallFailure("http-status", "HTTP 429", retryable=True, status=429)


def after(failure: Failure, tries: Tries, retry: Retry = DEFAULT_RETRY, *, left_s: float = 600.0, chance: float = 1.0):
    return decide(failure, tries, retry, left_s, chance)


def test_what_cannot_pass_is_not_tried_again():
    assert after(CallFailure("http-status", "HTTP 400", status=400), Tries(failed=1)) == GiveUp()
    assert after(Failure("bad-answer", "no JSON"), Tries(failed=1)) == GiveUp()


def test_a_limit_slows_down_and_uses_up_no_retry():
    assert is_limited(LIMITED)
    assert not is_limited(BROKEN)
    assert after(LIMITED, Tries(failed=0, limited=50), chance=0.5) == RetryAfter(30.0)


def test_a_server_is_not_asked_sooner_than_it_asks():
    assert after(replace(LIMITED, retry_after_s=7.5), Tries(limited=1), chance=0.0) == RetryAfter(7.5)
    assert after(replace(BROKEN, retry_after_s=7.5), Tries(failed=1), chance=0.0) == RetryAfter(7.5)


def test_a_wait_past_the_deadline_is_not_begun():
    found = after(replace(LIMITED, retry_after_s=3600.0), Tries(limited=1), left_s=240)
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
    if isinstance(found, RetryAfter):
        assert (asked_s or 0.0) <= found.after_s <= max(60.0, asked_s or 0.0)
        assert found.after_s < left_s


async def answer() -> str:
    return "42"


async def waiting(given: Awaitable[str]) -> str | Failure:
    return await in_time(given, Deadline(5), code="target-raised", what="f", missing="answer")


async def test_a_wait_that_is_cancelled_before_the_code_begins_leaves_no_coroutine_unawaited(recwarn):
    task = asyncio.ensure_future(waiting(answer()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gc.collect()
    assert [str(one.message) for one in recwarn] == []


async def test_code_that_has_begun_is_cancelled_with_the_wait():
    ended: list[str] = []

    async def begun() -> str:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("cancelled")
        return "late"

    task = asyncio.ensure_future(waiting(begun()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["cancelled"]
