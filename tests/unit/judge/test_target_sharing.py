import asyncio

import pytest

from agentv.judge.target import SharedCalls


class Calls:
    """Calls that end when a test ends them."""

    def __init__(self, *outcomes):
        self.outcomes = list(outcomes)
        self.made = 0
        self.cancelled = 0
        self.go = asyncio.Event()

    async def __call__(self):
        self.made += 1
        outcome = self.outcomes[min(self.made, len(self.outcomes)) - 1]
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            for _ in range(5):  # as cleaning up takes
                await asyncio.sleep(0)
            self.cancelled += 1
            raise
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def sharing(most=10):
    return SharedCalls(lambda outcome: outcome != "failed", most)


async def soon(*coroutines):
    tasks = [asyncio.create_task(one) for one in coroutines]
    for _ in range(3):
        await asyncio.sleep(0)
    return tasks


async def test_those_who_ask_meanwhile_wait_for_the_first():
    calls, shared = Calls("yes"), sharing()
    tasks = await soon(*(shared.once(b"k", calls) for _ in range(3)))
    calls.go.set()
    assert (await asyncio.gather(*tasks), calls.made) == ([("yes", False), ("yes", True), ("yes", True)], 1)


async def test_what_failed_is_asked_again_but_for_those_who_waited():
    calls, shared = Calls("failed", "yes"), sharing()
    tasks = await soon(shared.once(b"k", calls), shared.once(b"k", calls))
    calls.go.set()
    assert ([*await asyncio.gather(*tasks), await shared.once(b"k", calls)], calls.made) == (
        [("failed", False), ("failed", True), ("yes", False)],
        2,
    )


async def test_one_who_leaves_does_not_take_the_call_along():
    calls, shared = Calls("yes"), sharing()
    first, second = await soon(shared.once(b"k", calls), shared.once(b"k", calls))
    first.cancel()
    await asyncio.wait({first})
    calls.go.set()
    assert (first.cancelled(), await second, calls.made, calls.cancelled) == (True, ("yes", True), 1, 0)


async def test_the_last_who_leaves_ends_the_call_and_sees_it_ended():
    calls, shared = Calls("yes"), sharing()
    tasks = await soon(shared.once(b"k", calls), shared.once(b"k", calls))
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    ended = calls.cancelled
    calls.go.set()
    assert (ended, await shared.once(b"k", calls), calls.made) == (1, ("yes", False), 2)


async def test_one_who_comes_while_a_call_is_being_ended_makes_its_own():
    calls, shared = Calls("yes"), sharing()
    (first,) = await soon(shared.once(b"k", calls))
    first.cancel()
    await asyncio.sleep(0)
    calls.go.set()
    assert (await shared.once(b"k", calls), calls.made) == (("yes", False), 2)


async def test_a_call_that_raises_raises_for_all_and_is_forgotten():
    calls, shared = Calls(ValueError("broken"), "yes"), sharing()
    tasks = await soon(shared.once(b"k", calls), shared.once(b"k", calls))
    calls.go.set()
    for task in tasks:
        with pytest.raises(ValueError, match="broken"):
            await task
    assert (await shared.once(b"k", calls), shared._flights) == (("yes", False), {})
