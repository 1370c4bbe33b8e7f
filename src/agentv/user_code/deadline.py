"""Deadlines for calls of code that is not agentv's (SPEC section 10), and the reasons for missing them."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from typing import TypeVar

from msgspec import Struct, field

from agentv.model.values.response import Attempt, Failure
from agentv.user_code.guard import ForeignError, describe, foreign_code

LONGEST_S = 30.0
"""Longest wait in seconds for an unresponsive event loop: enough for a first call that loads a model."""


class Deadline(Struct, eq=False):
    """The time limit of one call.

    Attributes:
        seconds: the time that the call may take.
        reason: what delayed the call, if known.
        attempts: failed attempts of a target's call that were retried.
        outer: the limit of the call that this one is a part of.
        deadline: the time at which the limit expires, by the clock of `begin`; it moves while the call is held.
    """

    seconds: float
    reason: str | None = None
    attempts: list[Attempt] = field(default_factory=list)
    outer: Deadline | None = None
    deadline: float = inf
    _move: Callable[[float | None], None] | None = None
    _holds: int = 0
    _held_at: float = 0.0
    _sharing: list[Deadline] = field(default_factory=list)

    def begin(self, now: float, move: Callable[[float | None], None]) -> None:
        """Start the limit. `move` is called with a new time of expiry, or with None to suspend it."""
        self.deadline, self._move = now + self.seconds, move

    def end(self) -> None:
        """End the limit: the call is no longer awaited."""
        self._move = None

    def left_s(self, now: float) -> float:
        """Return the seconds until this limit or an outer one expires."""
        own = inf if self._move is None else self.deadline - (self._held_at if self._holds else now)
        return own if self.outer is None else min(own, self.outer.left_s(now))

    @contextmanager
    def held(self, now: Callable[[], float]) -> Iterator[None]:
        """In the body, do not count the time, which the call did not cause, such as a wait for a rate limit."""
        self._hold(now())
        try:
            yield
        finally:
            self._release(now())

    def extend(self, since: float, now: float) -> None:
        """Extend the limit by the time between these two, in which another call delayed this one."""
        self._hold(since)
        self._release(now)

    @contextmanager
    def shared_by(self, other: Deadline, now: Callable[[], float]) -> Iterator[None]:
        """In the body, hold another limit while this one is held, because its call waits for the result of this one."""
        self._sharing.append(other)
        if self._holds:
            other._hold(now())
        try:
            yield
        finally:
            self._sharing.remove(other)
            if self._holds:
                other._release(now())

    def _hold(self, now: float) -> None:
        for other in self._linked():
            other._hold(now)  # noqa: SLF001
        self._holds += 1
        if self._holds == 1:
            self._held_at = now
            if self._move is not None:
                self._move(None)

    def _release(self, now: float) -> None:
        for other in self._linked():
            other._release(now)  # noqa: SLF001
        self._holds -= 1
        if not self._holds:
            self.deadline += now - self._held_at
            if self._move is not None:
                self._move(self.deadline)

    def _linked(self) -> Iterator[Deadline]:
        if self.outer is not None:
            yield self.outer
        yield from self._sharing

    @property
    def patience_s(self) -> float:
        """Seconds after which a call that has not begun is moved to another worker, with enough of its limit left."""
        return min(LONGEST_S, self.seconds / 4)


LIMIT: ContextVar[Deadline | None] = ContextVar("agentv_limit", default=None)
"""The limit of the call that the current task makes. `in_time` sets it, and the code that runs the call reads it."""


T = TypeVar("T")


async def in_time(given: Awaitable[T], limit: Deadline, *, code: str, what: str, missing: str) -> T | Failure:
    """Return the value of an awaitable, or a Failure if it raised, timed out, or cancelled itself.

    A value that arrives after the limit is rejected. Code that blocks the event loop, as functions passed to
    `evaluate_async` can, is not interrupted at the limit, but must not count as being in time.

    Args:
        given: the awaitable, which runs as its own task so that it cannot affect the current one.
        limit: its time limit, which starts now.
        code: code of the failure if it raises.
        what: owner of the code, for messages.
        missing: what is missing after a timeout, for the message.
    """
    loop = asyncio.get_running_loop()
    timer = asyncio.timeout_at(loop.time() + limit.seconds)
    limit.outer = LIMIT.get()
    limit.begin(loop.time(), lambda when: None if timer.expired() else timer.reschedule(when))
    outer = LIMIT.set(limit)
    task = asyncio.ensure_future(_contained(given, code, what))  # its context includes the limit
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
            given.close()  # cancelled before its first step, for which asyncio would warn that it was never awaited
    return Failure("timeout", f"no {missing} after {limit.seconds:g} s{_explanation(limit)}", retryable=True)


async def _contained(given: Awaitable[T], code: str, what: str) -> T:
    """Await a value. SystemExit and KeyboardInterrupt become a ForeignError, because they would end the event loop."""
    try:
        return await given
    except (SystemExit, KeyboardInterrupt) as error:
        raise ForeignError(Failure(code, f"{what} {describe(error)}")) from error


def _explanation(limit: Deadline) -> str:
    if limit.reason:
        return f": {limit.reason}"
    if not limit.attempts:
        return ""
    last, number = limit.attempts[-1], len(limit.attempts)
    before = "an attempt" if number == 1 else f"{number} attempts"
    return f", after {before} that failed: {last.message}"
