"""Deadline of a call of user code, and the known reasons for a timeout."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf

from msgspec import Struct, field

from agentv.model.values.response import Attempt

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
