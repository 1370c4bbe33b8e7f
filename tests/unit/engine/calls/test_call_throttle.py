import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.engine.calls.admission_queue import AdmissionQueue, Wait, next_place
from agentv.engine.calls.call_throttle import CallThrottle
from agentv.engine.calls.pacing import AdaptiveConcurrency
from agentv.model.suite.suite import Rate, Retry
from agentv.model.values.response import Attempt, CallFailure, Failure, TargetResponse
from agentv.model.values.usage import UNKNOWN, Price, TokenUsage
from agentv.ports import TargetRequest
from agentv.user_code.deadline import LIMIT, Deadline, in_time
from doubles.servers import Server, spec
from doubles.virtual_time import now, run_at_once
from doubles.waiting import turns

FINE = TargetResponse("fine")
BROKEN = CallFailure("http-status", "HTTP 500", retryable=True, status=500)
REFUSED = CallFailure("http-status", "HTTP 401 Unauthorized", status=401, stops=True)


def limited(after_s: float | None = None) -> CallFailure:
    return CallFailure("http-status", "HTTP 429", retryable=True, status=429, retry_after_s=after_s)


def request(timeout_s: float = 300.0, prompt: str = "hi") -> TargetRequest:
    return TargetRequest("case", prompt, (), timeout_s=timeout_s)


def asked(server: Any, *, timeout_s: float = 300.0, calls: int = 1, **given: Any) -> Any:
    """Return the outcome of a call without jitter, so that every wait has its maximum length."""

    async def main() -> Any:
        target = CallThrottle(50, lambda: 1.0).wrap(spec(**given), server)
        found = await asyncio.gather(*(waited(target, request(timeout_s)) for _ in range(calls)))
        return found if calls > 1 else found[0]

    return run_at_once(main())


async def waited(target: Any, one: TargetRequest) -> Any:
    given = target.answer(one)
    return given if isinstance(given, TargetResponse | Failure) else await given


def test_what_broke_is_asked_again_and_the_attempts_are_kept():
    server = Server([BROKEN, BROKEN, FINE], takes_s=0.5)
    found = asked(server)
    assert found.output == "fine"
    assert found.duration_ms == 500
    assert found.attempts == (
        Attempt("http-status", "HTTP 500", 500.0, 1000.0),
        Attempt("http-status", "HTTP 500", 500.0, 2000.0),
    )
    assert server.asked_at == [0, 1.5, 4]
    assert [one.attempt for one in server.requests] == [1, 2, 3]


def test_a_price_replaces_what_a_target_says_and_not_what_the_api_of_an_agent_says():
    server = Server([TargetResponse("fine", token_usage=TokenUsage(1_000_000, 0), cost_usd=0.5)])
    priced = spec(price=Price(2.0, 2.0))

    async def main():
        throttle = CallThrottle()
        calls = throttle.model_calls(priced, "x http://x", None)
        of_agent = await calls.call(lambda: server.answer(request()), UNKNOWN, 0)
        return (await waited(throttle.wrap(priced, server), request())).cost_usd, of_agent.cost_usd

    assert run_at_once(main()) == (2.0, 0.5)


def test_limits_use_up_no_retry():
    assert len(asked(Server([limited()] * 6 + [FINE]), retry=Retry(max_retries=1)).attempts) == 6


def test_a_server_that_asks_for_an_hour_twice_is_asked_no_more_and_says_so_once():
    async def main():
        throttle = CallThrottle(2, lambda: 1.0)
        server = Server([limited(3600.0)])
        target = throttle.wrap(spec("a"), server)
        return await asyncio.gather(*(waited(target, request(300.0)) for _ in range(6))), throttle, server

    found, throttle, server = run_at_once(main())
    assert len(server.asked_at) <= 4
    assert {one.code for one in found} == {"http-status", "target-stopped"}
    calls = sum(1 + len(getattr(one, "attempts", ())) for one in found if one.code == "http-status")
    assert calls <= len(server.asked_at)
    assert len(throttle.news.stopped) == 1
    ((name, why),) = throttle.news.paused
    assert (name, why) == (
        "a",
        "HTTP 429; the server asks to wait 3600 s, but the call has 600 s left; retrying once in 30 s",
    )


def test_targets_of_one_endpoint_share_their_room():
    async def main():
        throttle = CallThrottle(1)
        server = Server([FINE], takes_s=1.0)
        others = [throttle.wrap(spec(name), server) for name in "ab"]
        await asyncio.gather(*(waited(one, request()) for one in others))
        elsewhere = throttle.wrap(spec("c", "x http://y"), Server([FINE], takes_s=1.0))
        before = now()
        await asyncio.gather(waited(elsewhere, request()), waited(others[0], request()))
        return server.asked_at[:2], now() - before

    assert run_at_once(main()) == ([0, 1], 1)


def test_a_rate_of_its_own_is_kept_by_any_target():
    server = Server([FINE])
    asked(server, calls=4, place=None, rate=Rate(requests_per_minute=30))
    assert server.asked_at == [0, 2, 4, 6]


def test_a_target_that_refuses_everything_is_asked_no_more():
    async def main():
        throttle = CallThrottle()
        server = Server([REFUSED], takes_s=1.0)
        target = throttle.wrap(spec(), server)
        found = await asyncio.gather(*(waited(target, request()) for _ in range(3)))
        return server, found, await waited(target, request()), list(throttle.news.stopped)

    server, found, later, told = run_at_once(main())
    assert len(server.requests) == 3
    assert found[0] == REFUSED
    assert {one.code for one in (*found[1:], later)} == {"target-stopped"}
    assert later.message == "'t' is stopped: HTTP 401 Unauthorized"
    assert told == [("t", REFUSED)]


@pytest.mark.parametrize("given", [limited(60.0), BROKEN])
def test_an_interrupt_ends_every_wait(given):
    async def main():
        throttle = CallThrottle(1, lambda: 1.0)
        server = Server([given])
        target = throttle.wrap(spec(), server)
        calls = [asyncio.ensure_future(waited(target, request())) for _ in range(3)]
        await asyncio.sleep(0.1)
        throttle.interrupt()
        found = await asyncio.gather(*calls)
        return found, now() - 1000

    found, took = run_at_once(main())
    assert {one.code for one in found} == {"interrupted"}
    assert took == pytest.approx(0.1)


# -- limits set by callers -------------------------------------------------------------------------------------------


def judged(server: Server, limit_s: float, *, timeout_s: float = 120.0, inner_s: float | None = None) -> Any:
    """Return what an assertion with a time limit gets from its judge, and what it records."""
    limit = Deadline(limit_s)

    async def main() -> Any:
        target = CallThrottle(1, lambda: 1.0).wrap(spec(), server)

        async def ask() -> Any:
            asking = waited(target, request(timeout_s))
            if inner_s is None:
                return await asking
            return await in_time(asking, Deadline(inner_s), code="assertion-raised", what="rubric", missing="grade")

        return await in_time(ask(), limit, code="assertion-raised", what="llm-rubric", missing="grade")

    return run_at_once(main()), limit


def test_an_answer_that_takes_too_long_is_the_judges_time():
    found, _ = judged(Server([FINE], takes_s=200.0), 120.0, timeout_s=300.0)
    assert found == Failure("timeout", "no grade after 120 s", retryable=True)


def test_a_limit_that_passes_in_a_later_attempt_tells_of_those_before():
    found, _ = judged(Server([BROKEN, FINE], takes_s=5.0), 8.0)
    assert found.message == "no grade after 8 s, after an attempt that failed: HTTP 500"


def test_who_shares_a_call_does_not_blame_it_for_a_rate_limit_either():
    async def main():
        target = CallThrottle(1, lambda: 1.0).wrap(spec(), Server([limited(60.0), FINE], takes_s=5.0))
        shared: list[Any] = []

        async def first() -> Any:
            shared.append((LIMIT.get(), asyncio.ensure_future(waited(target, request(120.0)))))
            return await asyncio.shield(shared[0][1])

        async def second(after_s: float) -> Any:
            await asyncio.sleep(after_s)
            leader, call = shared[0]
            with leader.shared_by(LIMIT.get(), asyncio.get_running_loop().time):
                return await asyncio.shield(call)

        told = {"code": "assertion-raised", "what": "rubric", "missing": "grade"}
        asks = [first(), second(1.0)]
        found = [in_time(one, Deadline(20.0), **told) for one in asks]
        late = asyncio.ensure_future(asyncio.sleep(30.0))
        joined = asyncio.gather(*found)
        await late
        third = await in_time(second(0.0), Deadline(20.0), **told)  # it starts while the call is paused
        return [*await joined, third]

    assert [one.output for one in run_at_once(main())] == ["fine"] * 3


# -- vectors ----------------------------------------------------------------------------------------------------------


def nothing(_call: object, _outcome: object) -> None:
    pass


def waiting(queue: AdmissionQueue[Any, Any], calls: Sequence[tuple[str, int]]) -> list[asyncio.Future[Any]]:
    return [asyncio.ensure_future(queue.wait(name, next_place(rank))) for name, rank in calls]


def admitted(open_to: set[str], *, in_order: bool) -> list[str]:
    """Return the admitted calls in order, of three of which the first came last and has the best rank."""
    order: list[str] = []

    def decide(call: str) -> str | Wait:
        if call not in open_to:
            return Wait()
        order.append(call)
        return call

    async def main() -> None:
        blocked = set(open_to)
        open_to.clear()
        queue = AdmissionQueue(decide, nothing, in_order=in_order)
        tasks = waiting(queue, [("a", 1), ("b", 1), ("c", 0)])
        await turns()
        open_to.update(blocked)
        queue.decide_all()
        await turns()
        for task in tasks:
            task.cancel()

    asyncio.run(main())
    return order


@pytest.mark.parametrize(("in_order", "found"), [(True, ["c"]), (False, ["c", "b"])])
def test_a_call_that_has_to_wait_is_overtaken_only_where_that_is_allowed(in_order, found):
    assert admitted({"b", "c"}, in_order=in_order) == found


async def test_closed_it_lets_nobody_in_any_more():
    queue: AdmissionQueue[str, str] = AdmissionQueue(lambda _: Wait(60), nothing)
    tasks = waiting(queue, [("a", 0), ("b", 0)])
    await turns()
    busy = queue.is_busy
    queue.close("closed")
    assert [busy, *[await task for task in tasks], await queue.wait("c", next_place()), queue.is_busy] == [
        True,
        "closed",
        "closed",
        "closed",
        True,
    ]


def started(pace: AdaptiveConcurrency, number: int, now: float = 0.0) -> list:
    return [pace.start(now) for _ in range(number)]


def test_calls_that_were_under_way_together_make_it_narrower_once():
    pace = AdaptiveConcurrency(40)
    for permit in started(pace, 40):
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
    assert pace.wait_s(0.0) is None  # five calls of the first second still count


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
                pace.abandon()
        assert 1 <= pace.width <= most
        assert pace.running == len(permits) <= most
