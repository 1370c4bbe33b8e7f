"""Waiting for code that is not ours, no longer than it may take (SPEC section 10)."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable
from typing import TypeVar

from agentv.model.values.response import Failure
from agentv.user_code.deadline import LIMIT, Deadline
from agentv.user_code.guard import ForeignError, describe, foreign_code

T = TypeVar("T")


async def in_time(given: Awaitable[T], limit: Deadline, *, code: str, what: str, missing: str) -> T | Failure:
    """The value of an awaitable, or a Failure if it raised, was late, or cancelled itself.

    A value that arrives after the limit does not count: code that blocks our loop, as functions that are passed to
    `evaluate_async` can, is not stopped in time, and must not count as fast.

    Args:
        given: runs as its own task, so that it cannot affect ours.
        limit: its time limit; it begins now.
        code: of the failure if it raises.
        what: owner of the code.
        missing: what is missing when the time is up, for the message.
    """
    loop = asyncio.get_running_loop()
    timer = asyncio.timeout_at(loop.time() + limit.seconds)
    limit.outer = LIMIT.get()
    limit.begin(loop.time(), lambda when: None if timer.expired() else timer.reschedule(when))
    outer = LIMIT.set(limit)
    task = asyncio.ensure_future(_contained(given, code, what))  # it takes the limit along
    LIMIT.reset(outer)
    try:
        with foreign_code(code, what):
            async with timer:
                value = await task
        if loop.time() <= limit.deadline:
            return value
    except ForeignError as error:
        if not timer.expired():
            return error.failure
    except asyncio.CancelledError:
        ours = asyncio.current_task()
        if ours is None or ours.cancelling() or not task.cancelled():
            raise
        return Failure(code, f"{what} cancelled itself")
    finally:
        limit.end()
        if inspect.iscoroutine(given) and inspect.getcoroutinestate(given) == inspect.CORO_CREATED:
            given.close()  # cancelled before its first step: asyncio would warn that nobody awaited it
    return Failure("timeout", f"no {missing} after {limit.seconds:g} s{_because(limit)}", retryable=True)


async def _contained(given: Awaitable[T], code: str, what: str) -> T:
    """The value; what would end the event loop on its way out of a task is a failure before it gets there."""
    try:
        return await given
    except (SystemExit, KeyboardInterrupt) as error:
        raise ForeignError(Failure(code, f"{what} {describe(error)}")) from error


def _because(limit: Deadline) -> str:
    if limit.reason:
        return f": {limit.reason}"
    if not limit.attempts:
        return ""
    last, number = limit.attempts[-1], len(limit.attempts)
    before = "an attempt" if number == 1 else f"{number} attempts"
    return f", after {before} that failed: {last.message}"
