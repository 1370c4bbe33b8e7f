"""Queue of calls that wait until they are admitted or refused. The owner of the queue makes the decisions."""

from __future__ import annotations

import asyncio
from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from math import inf
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct

C = TypeVar("C")
T = TypeVar("T")

_numbers = count()


QueuePlace = tuple[int, int]
"""A place in a queue: lower ranks come first, and within a rank calls keep their order of arrival."""


class Wait(NamedTuple):
    """The decision that a call waits. `seconds`: time until the next decision; infinite: until something changes."""

    seconds: float = inf


def next_place(rank: int = 0) -> QueuePlace:
    """Return the place after all others of its rank."""
    return rank, next(_numbers)


@dataclass(slots=True, order=True)
class _Entry(Generic[C, T]):
    place: QueuePlace
    call: C = field(compare=False)
    outcome: asyncio.Future[T] = field(compare=False)


class AdmissionQueue(Struct, Generic[C, T]):
    """Queue of waiting calls, in the order of their places. Used from one event loop.

    Attributes:
        decide: returns a permit or a refusal, or that the call has to wait.
        give_back: takes back the permit of a call that was cancelled just after its admission.
        in_order: no call overtakes another: if one has to wait, so do all after it.
    """

    decide: Callable[[C], T | Wait]
    give_back: Callable[[C, T], None]
    in_order: bool = False
    _entries: list[_Entry[C, T]] = []
    _closed: T | None = None
    _timer: asyncio.TimerHandle | None = None

    @property
    def is_busy(self) -> bool:
        """Whether calls are waiting, or the queue is closed."""
        return bool(self._entries) or self._closed is not None

    async def wait(self, call: C, place: QueuePlace) -> T:
        """Wait for the decision on a call and return it."""
        if self._closed is not None:
            return self._closed
        entry: _Entry[C, T] = _Entry(place, call, asyncio.get_running_loop().create_future())
        insort(self._entries, entry)
        self.decide_all()
        try:
            return await entry.outcome
        except asyncio.CancelledError:
            if entry.outcome.done() and not entry.outcome.cancelled():
                self.give_back(call, entry.outcome.result())
            self._entries = [one for one in self._entries if one is not entry]
            self.decide_all()
            raise

    def decide_all(self) -> None:
        """Decide about all waiting calls, because something has changed."""
        self._forget_timer()
        staying: list[_Entry[C, T]] = []
        soonest = inf
        for number, entry in enumerate(self._entries):
            if entry.outcome.done():
                continue
            found = self.decide(entry.call)
            if not isinstance(found, Wait):
                entry.outcome.set_result(found)
                continue
            staying.append(entry)
            soonest = min(soonest, found.seconds)
            if self.in_order:
                staying += self._entries[number + 1 :]
                break
        self._entries = staying
        if soonest < inf:
            self._timer = asyncio.get_running_loop().call_later(soonest, self.decide_all)

    def close(self, outcome: T) -> None:
        """Admit no more calls: all waiting and future ones get this outcome."""
        self._closed = outcome
        self._forget_timer()
        entries, self._entries = self._entries, []
        for entry in entries:
            if not entry.outcome.done():
                entry.outcome.set_result(outcome)

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
