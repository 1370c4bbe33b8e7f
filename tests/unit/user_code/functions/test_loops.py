from __future__ import annotations

import asyncio
import re
import threading
import time
from contextvars import ContextVar

import pytest

from agentv.user_code.functions.deadline import LIMIT, LONGEST_S, Deadline
from agentv.user_code.functions.guard import ForeignError, foreign_code
from agentv.user_code.functions.loops import UserLoops


def run(scenario):
    """What `scenario(loops)` returns; in time, and with the loops closed."""

    async def main():
        loops = UserLoops()
        try:
            async with asyncio.timeout(10):
                return await scenario(loops)
        finally:
            await loops.aclose()

    return asyncio.run(main())


async def limited(loops, function, seconds):
    """A call as the engine makes it; its limit, once it has passed."""
    limit = Deadline(seconds)
    LIMIT.set(limit)
    try:
        async with asyncio.timeout(seconds):
            return await loops.call(function)
    except TimeoutError:
        return limit


async def its_loop():
    return asyncio.get_running_loop()


@pytest.fixture
def gate():
    """What a coroutine can block on until the test ends."""
    event = threading.Event()
    yield event
    event.set()


def blocking(gate):
    async def blocks():
        gate.wait()
        return asyncio.get_running_loop()

    return blocks


def test_calls_share_one_loop_that_is_not_ours():
    async def scenario(loops):
        return {await loops.call(its_loop) for _ in range(3)} | set(
            await asyncio.gather(*(loops.call(its_loop) for _ in range(20)))
        ), asyncio.get_running_loop()

    theirs, ours = run(scenario)
    assert len(theirs) == 1
    assert ours not in theirs


def test_many_calls_wait_side_by_side():
    async def waits():
        await asyncio.sleep(0.1)

    async def scenario(loops):
        started = time.monotonic()
        await asyncio.gather(*(loops.call(waits) for _ in range(500)))
        return time.monotonic() - started

    assert run(scenario) < 2


def test_what_a_coroutine_raises_is_raised():
    async def raises():
        raise ValueError("no")

    async def scenario(loops):
        with pytest.raises(ValueError, match="no"):
            await loops.call(raises)
        return await loops.call(its_loop)

    run(scenario)


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
def test_a_task_that_raises_what_ends_processes_ends_only_its_call(error):
    async def child():
        raise error

    async def parent():
        with foreign_code("raised", "it"):
            await asyncio.create_task(child())

    async def scenario(loops):
        before = await loops.call(its_loop)
        with pytest.raises(ForeignError):
            await loops.call(parent)
        return before is await loops.call(its_loop)

    assert run(scenario)


def test_a_coroutine_that_cancels_itself_cancels_nobody_else():
    async def cancels():
        asyncio.current_task().cancel()
        await asyncio.sleep(0)

    async def scenario(loops):
        with pytest.raises(asyncio.CancelledError):
            await loops.call(cancels)
        assert asyncio.current_task().cancelling() == 0
        return await loops.call(its_loop)

    run(scenario)


def test_the_loop_cannot_be_stopped_and_who_tries_is_told():
    async def stops():
        asyncio.get_running_loop().stop()

    async def slow():
        await asyncio.sleep(0.05)
        return "done"

    async def scenario(loops):
        neighbour = asyncio.ensure_future(loops.call(slow))
        with pytest.raises(RuntimeError, match="belongs to agentv"):
            await loops.call(stops)
        return await neighbour

    assert run(scenario) == "done"


def test_context_variables_are_the_callers():
    name = ContextVar("name", default="nobody")

    async def reads():
        said = name.get()
        name.set("somebody else")
        return said

    async def caller(loops, called):
        name.set(called)
        return [await loops.call(reads), await loops.call(reads)]

    async def scenario(loops):
        return await asyncio.gather(caller(loops, "Ann"), caller(loops, "Bob"))

    assert run(scenario) == [["Ann", "Ann"], ["Bob", "Bob"]]


def test_a_cancelled_call_is_cancelled_there_and_not_waited_for():
    noticed, left, ended = threading.Event(), threading.Event(), threading.Event()

    async def refuses():
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            noticed.set()
            for _ in range(1000):
                if left.is_set():
                    break
                await asyncio.sleep(0.005)
            ended.set()

    async def scenario(loops):
        await limited(loops, refuses, 0.05)
        assert await asyncio.to_thread(noticed.wait, 5)
        waited_for = ended.is_set()
        left.set()
        return waited_for

    assert not run(scenario)
    assert ended.is_set()  # the end of the run gave it the time to clean up


def test_a_blocked_loop_is_left_by_what_has_not_begun(gate):
    async def scenario(loops):
        hangs = asyncio.ensure_future(limited(loops, blocking(gate), 0.4))
        await asyncio.sleep(0.05)
        late = [asyncio.ensure_future(limited(loops, its_loop, 0.4)) for _ in range(5)]
        fresh = set(await asyncio.gather(*late))
        started = time.monotonic()
        fresh.add(await loops.call(its_loop))
        assert time.monotonic() - started < 0.1  # what comes later does not wait any more
        return fresh, await hangs

    fresh, limit = run(scenario)
    assert len(fresh) == 1
    assert isinstance(fresh.pop(), asyncio.AbstractEventLoop)
    assert re.fullmatch(r"the event loop is blocked \(test_loops\.py:\d+, in blocks\)", limit.reason)


def test_nothing_is_begun_twice_and_what_has_begun_goes_on_when_the_loop_comes_free(gate):
    begun = []

    async def counts():
        begun.append(asyncio.get_running_loop())
        await asyncio.sleep(0.01)
        return begun[0]

    async def scenario(loops):
        first = asyncio.ensure_future(limited(loops, counts, 5))
        await asyncio.sleep(0.005)
        hangs = asyncio.ensure_future(limited(loops, blocking(gate), 0.2))
        others = [asyncio.ensure_future(limited(loops, counts, 0.4)) for _ in range(5)]
        await asyncio.gather(*others)
        assert not first.done()
        gate.set()
        assert await first is begun[0]
        await hangs
        return await loops.call(its_loop)

    again = run(scenario)
    assert len(begun) == 6
    assert len(set(begun)) == 2
    assert again is begun[0]  # the first loop is the one in use, as soon as it responds


def test_a_call_that_was_late_before_it_began_never_begins(gate):
    begun = []

    async def counts():
        begun.append(1)

    async def scenario(loops):
        hangs = asyncio.ensure_future(loops.call(blocking(gate)))
        await asyncio.sleep(0.02)
        impatient = asyncio.ensure_future(loops.call(counts))
        await asyncio.sleep(0.02)
        impatient.cancel()
        await asyncio.wait((impatient,))
        gate.set()
        await hangs
        await loops.call(its_loop)

    run(scenario)
    assert begun == []


def test_a_loop_that_is_slow_and_gets_on_is_not_left():
    async def blocks_for_a_moment():
        time.sleep(0.05)  # noqa: ASYNC251  # the point of the test
        return asyncio.get_running_loop()

    async def scenario(loops):
        # ten steps in one turn of the loop: longer than anybody's patience, and still every call begins
        return await asyncio.gather(*(limited(loops, blocks_for_a_moment, 0.8) for _ in range(10)))

    assert len(set(run(scenario))) == 1


def test_patience_is_a_part_of_the_limit():
    assert Deadline(0.4).patience_s == 0.1
    assert Deadline(3600).patience_s == LONGEST_S


def test_what_is_left_behind_is_cancelled_at_the_end_without_a_word(caplog):
    cleaned = []

    async def background():
        try:
            await asyncio.sleep(60)
        finally:
            cleaned.append("task")

    async def numbers():
        try:
            yield 1
            yield 2
        finally:
            cleaned.append("generator")

    async def raises():
        raise ValueError("in the background")

    kept = []

    async def leaves():
        kept.extend([asyncio.create_task(background()), asyncio.create_task(raises()), numbers()])
        asyncio.get_running_loop().call_soon(lambda: 1 / 0)
        await anext(kept[2])
        await asyncio.sleep(0)

    async def scenario(loops):
        await loops.call(leaves)

    run(scenario)
    kept.clear()
    assert sorted(cleaned) == ["generator", "task"]
    assert caplog.records == []


def test_closing_does_not_wait_for_what_blocks(gate):
    async def scenario(loops):
        await limited(loops, blocking(gate), 0.05)
        return time.monotonic()

    assert time.monotonic() - run(scenario) < 2


def test_to_thread_uses_threads_that_nobody_waits_for_at_the_exit():
    async def threads():
        await asyncio.to_thread(lambda: None)
        return await asyncio.to_thread(threading.current_thread)

    async def scenario(loops):
        return await loops.call(threads)

    thread = run(scenario)
    assert thread.daemon
    assert thread.name == "agentv-user-code"  # and not one of those that Python joins


def test_a_program_is_started_and_awaited():
    async def starts():
        process = await asyncio.create_subprocess_exec("echo", "hello", stdout=asyncio.subprocess.PIPE)
        return (await process.communicate())[0]

    assert run(lambda loops: loops.call(starts)) == b"hello\n"
