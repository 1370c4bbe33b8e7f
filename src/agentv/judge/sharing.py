"""Calls with the same question, made once: while one is on its way, and as long as its outcome is remembered."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from agentv.user_code.deadline import LIMIT, Deadline

T = TypeVar("T")


@dataclass(slots=True)
class _Flight(Generic[T]):
    """A call on its way, and the time limit of whoever made it."""

    task: asyncio.Task[T]
    limit: Deadline | None
    waiting: int = 0

    def joined(self) -> AbstractContextManager[None]:
        """What holds up whoever made the call, such as a rate limit, holds up those who wait for it beside them."""
        own = LIMIT.get()
        if own is None or self.limit is None or own is self.limit:
            return nullcontext()
        return self.limit.shared_by(own, asyncio.get_running_loop().time)


class SharedCalls(Generic[T]):
    """Outcomes of calls by key, shared by concurrent callers.

    Args:
        keeps: whether an outcome is remembered; one that is not serves those alone who waited for it.
        most: outcomes that are remembered; the one that was asked for longest ago is forgotten first.
    """

    def __init__(self, keeps: Callable[[T], bool], most: int) -> None:
        self._keeps = keeps
        self._most = most
        self._kept: OrderedDict[bytes, T] = OrderedDict()
        self._flights: dict[bytes, _Flight[T]] = {}

    async def once(self, key: bytes, call: Callable[[], Coroutine[Any, Any, T]]) -> tuple[T, bool]:
        """The outcome for a key, and whether somebody else's call gave it.

        One caller that is cancelled leaves the call to the others who wait for it; the last of them cancels it.
        """
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key], True
        flight = self._flights.get(key)
        shared = flight is not None
        if flight is None:
            flight = self._flights[key] = _Flight(asyncio.create_task(call()), LIMIT.get())
        return await self._outcome(key, flight), shared

    async def _outcome(self, key: bytes, flight: _Flight[T]) -> T:
        flight.waiting += 1
        try:
            with flight.joined():
                outcome = await asyncio.shield(flight.task)
        except asyncio.CancelledError:
            if flight.waiting == 1 and not flight.task.done():
                self._forget(key, flight)  # first, so that nobody else comes to wait for it
                flight.task.cancel()
                await asyncio.wait({flight.task})  # so that what it started has ended
            raise
        finally:
            flight.waiting -= 1
            if flight.task.done():
                self._forget(key, flight)
        if self._keeps(outcome):
            self._kept[key] = outcome
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return outcome

    def _forget(self, key: bytes, flight: _Flight[T]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]
