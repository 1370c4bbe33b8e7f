from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from agentv.engine.calls.admission_queue import AdmissionQueue, Wait, next_place


def nothing(_call: object, _outcome: object) -> None:
    """Nothing to give back."""


async def turns(number: int = 3) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


def waiting(queue: AdmissionQueue[Any, Any], calls: Sequence[tuple[str, int]]) -> list[asyncio.Future[Any]]:
    return [asyncio.ensure_future(queue.wait(name, next_place(rank))) for name, rank in calls]


def admitted(open_to: set[str], *, in_order: bool) -> list[str]:
    """Who is let in, of three calls of which the first came last and has the best rank, and in which order."""
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
        queue.look()
        await turns()
        for task in tasks:
            task.cancel()

    asyncio.run(main())
    return order


@pytest.mark.parametrize(("in_order", "found"), [(True, ["c"]), (False, ["c", "b"])])
def test_a_call_that_has_to_wait_is_overtaken_only_where_that_is_allowed(in_order, found):
    assert admitted({"b", "c"}, in_order=in_order) == found


def cancelled(decide: Callable[[str], str | Wait], *, as_it_is_let_in: bool) -> tuple[list[tuple[str, str]], str]:
    """What a cancelled call gives back, and what the one behind it comes to."""
    back: list[tuple[str, str]] = []
    free: list[bool] = []

    async def main() -> str:
        queue: AdmissionQueue[str, str] = AdmissionQueue(
            lambda call: decide(call) if free else Wait(), lambda call, got: back.append((call, got)), in_order=True
        )
        first, second = waiting(queue, [("a", 0), ("b", 0)])
        await turns()
        if as_it_is_let_in:
            free.append(True)
            queue.look()
        first.cancel()
        await turns()
        free.append(True)
        queue.look()
        return await second

    return back, asyncio.run(main())


def test_a_call_that_is_cancelled_as_it_is_let_in_gives_back_what_it_got():
    back: list[tuple[str, str]]
    back, second = cancelled(lambda call: f"permit of {call}", as_it_is_let_in=True)
    assert back == [("a", "permit of a")]
    assert second == "permit of b"


def test_closed_it_lets_nobody_in_any_more():
    async def main() -> list[Any]:
        queue: AdmissionQueue[str, str] = AdmissionQueue(lambda _: Wait(60), nothing)
        tasks = waiting(queue, [("a", 0), ("b", 0)])
        await turns()
        busy = queue.is_busy
        queue.close("closed")
        return [busy, *[await task for task in tasks], await queue.wait("c", next_place()), queue.is_busy]

    assert asyncio.run(main()) == [True, "closed", "closed", "closed", True]
