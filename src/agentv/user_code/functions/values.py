"""Values that users' Python gives one after the other: by a function, a generator, an async one, or a lone value."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import AsyncIterable, Callable, Generator
from contextlib import closing, redirect_stdout
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Any, TypeVar

from agentv.lazy_dataclass import dataclass
from agentv.model.values.response import Failure
from agentv.user_code.functions.guard import ForeignError, foreign_code, unable_to_exit

T = TypeVar("T")

AHEAD = 100
"""Values that wait to be taken; then whoever makes them waits."""

_LOOK_S = 0.1
"""Seconds between two looks at whether anybody still takes values."""


@dataclass(frozen=True, slots=True)
class _End:
    """Nothing follows. `failure` says why, where it went wrong."""

    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class CallRequest:
    """A request to user code.

    Attributes:
        code: the failure's slug where it raises.
        what: whose code it is, to begin messages with.
        wait_s: seconds that one value may take.
    """

    code: str
    what: str
    wait_s: float


def values_of(call: Callable[[], Any], take: Callable[[Any], T], request: CallRequest) -> Generator[T, None, None]:
    """Values that a call yields, one by one.

    It runs on a thread of its own with an event loop of its own, so that it may be called anywhere, and is left behind
    where it hangs. It cannot end the process, and what it prints goes to stderr.

    Args:
        call: returns an iterable, an async one, or an awaitable of such.
        take: makes of an item what is wanted, on that thread: items may be foreign objects.
        request: what to say when it goes wrong.

    Raises:
        ForeignError: it raised, or gave nothing for too long (`timeout`).
    """
    queue: Queue[T | _End] = Queue(AHEAD)
    left = Event()
    thread = Thread(target=_Work(call, take, request, queue, left).run, name="agentv-user-code", daemon=True)
    with redirect_stdout(sys.stderr), unable_to_exit():
        thread.start()
        try:
            while not isinstance(item := _next(queue, request), _End):
                yield item
        finally:
            left.set()
    if item.failure is not None:
        raise ForeignError(item.failure)


def value_of(call: Callable[[], Any], take: Callable[[Any], T], request: CallRequest) -> T:
    """The lone value of a call, under the same rules; an awaitable is awaited.

    Raises:
        ForeignError: as `values_of`.
    """

    async def alone() -> list[Any]:
        value = call()
        return [await value if inspect.isawaitable(value) else value]

    with closing(values_of(alone, take, request)) as values:
        return next(values)


def _next(queue: Queue[T], request: CallRequest) -> T:
    try:
        return queue.get(timeout=request.wait_s)
    except Empty:
        message = f"{request.what} returned nothing for {request.wait_s:g} seconds"
        raise ForeignError(Failure("timeout", message)) from None


class _LeftError(Exception):
    """Nobody takes values any more."""


@dataclass(frozen=True, slots=True)
class _Work:
    """What runs on the thread."""

    call: Callable[[], Any]
    take: Callable[[Any], Any]
    request: CallRequest
    queue: Queue[Any]
    left: Event

    def run(self) -> None:
        end = _End()
        try:
            with foreign_code(self.request.code, self.request.what):
                asyncio.run(self._all())
        except ForeignError as error:
            if isinstance(error.__cause__, _LeftError):
                return
            end = _End(error.failure)
        self._put_or_leave(end)

    async def _all(self) -> None:
        given = self.call()
        if inspect.isawaitable(given):
            given = await given
        if isinstance(given, AsyncIterable):
            async for item in given:
                self._put(self.take(item))
        else:
            for item in given:
                self._put(self.take(item))

    def _put(self, item: object) -> None:
        if not self._put_or_leave(item):
            raise _LeftError

    def _put_or_leave(self, item: object) -> bool:
        while not self.left.is_set():
            try:
                self.queue.put(item, timeout=_LOOK_S)
            except Full:
                continue
            return True
        return False
