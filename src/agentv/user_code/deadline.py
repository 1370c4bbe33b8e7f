"""Deadlines of calls of code that is not ours (SPEC section 10): how long they may take, and why they were late."""

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
"""Seconds that calls wait for an event loop that does not respond: as long as loading a model takes in a first call."""


class Deadline(Struct, eq=False):
    """The time limit of one call.

    Attributes:
        seconds: what the call may take.
        reason: what held it up, where it is known by the time that the limit has passed.
        attempts: calls of a target that were made for it, gave no answer and were made again.
        outer: the limit of the call that this one is a part of.
        deadline: when it has passed, by the clock that `begin` got; it moves on while the call is held.
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
        """The call starts. `move` puts off when it is given up; None: until it is set again."""
        self.deadline, self._move = now + self.seconds, move

    def end(self) -> None:
        """Note that the call is no longer awaited."""
        self._move = None

    def left_s(self, now: float) -> float:
        """Seconds until the call, or one that it is a part of, is given up."""
        own = inf if self._move is None else self.deadline - (self._held_at if self._holds else now)
        return own if self.outer is None else min(own, self.outer.left_s(now))

    @contextmanager
    def held(self, now: Callable[[], float]) -> Iterator[None]:
        """What happens in the body takes time that the call is not to blame for, such as waiting for a rate limit."""
        self._hold(now())
        try:
            yield
        finally:
            self._release(now())

    def put_off(self, since: float, now: float) -> None:
        """Give back the time between the two: another call held this one up."""
        self._hold(since)
        self._release(now)

    @contextmanager
    def shared_by(self, other: Deadline, now: Callable[[], float]) -> Iterator[None]:
        """In the body another call waits for this one, which was to be made for both: what holds one holds both."""
        self._sharing.append(other)
        if self._holds:
            other._hold(now())  # one of its own kind
        try:
            yield
        finally:
            self._sharing.remove(other)
            if self._holds:
                other._release(now())

    def _hold(self, now: float) -> None:
        for other in self._with_it():
            other._hold(now)  # noqa: SLF001
        self._holds += 1
        if self._holds == 1:
            self._held_at = now
            if self._move is not None:
                self._move(None)

    def _release(self, now: float) -> None:
        for other in self._with_it():
            other._release(now)  # noqa: SLF001
        self._holds -= 1
        if not self._holds:
            self.deadline += now - self._held_at
            if self._move is not None:
                self._move(self.deadline)

    def _with_it(self) -> Iterator[Deadline]:
        if self.outer is not None:
            yield self.outer
        yield from self._sharing

    @property
    def patience_s(self) -> float:
        """Seconds that the call waits to begin before it begins elsewhere: enough of its limit has to be left."""
        return min(LONGEST_S, self.seconds / 4)


LIMIT: ContextVar[Deadline | None] = ContextVar("agentv_limit", default=None)
"""The limit of the call that the current task waits for. Who waits sets it; whoever runs the call reads it."""


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
