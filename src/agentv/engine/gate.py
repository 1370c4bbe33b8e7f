"""Where calls wait until a server has room for them, in the order in which they came.

A thin shell around `pace` and `rate`, which decide; here is only who waits, and when to look again.
"""

from __future__ import annotations

import asyncio
from bisect import insort
from dataclasses import dataclass, field, replace
from itertools import count
from math import inf

from agentv.engine.pace import Pace, Ticket
from agentv.engine.policy import is_limited
from agentv.engine.rate import Meter
from agentv.engine.stops import INTERRUPTED
from agentv.model.response import CallFailure, Failure, TokenUsage

_numbers = count()


@dataclass(slots=True, order=True)
class Visitor:
    """A call on its way to a server. One that comes back for another attempt keeps its place in the queue.

    Attributes:
        tokens: that it will take, about.
        meter: of its target's own rate; None: it has none.
        patience_s: seconds that it waits for a server that says how long it has no room; longer, and it gives up.
    """

    number: int = field(default_factory=lambda: next(_numbers))
    tokens: float = field(default=0.0, compare=False)
    meter: Meter | None = field(default=None, compare=False)
    patience_s: float = field(default=inf, compare=False)
    admitted: asyncio.Future[Ticket | Failure] | None = field(default=None, compare=False)


class Gate:
    """The way to one server. Used from one event loop."""

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self._waiting: list[Visitor] = []
        self._look_again: asyncio.TimerHandle | None = None
        self._closed = False
        self._said: CallFailure | None = None

    def at_once(self, visitor: Visitor) -> Ticket | None:
        """A ticket, where the call need not wait."""
        now = _now()
        if self._waiting or self._closed or self._wait_s(visitor, now) != 0:
            return None
        return self._let_in(visitor, now)

    async def enter(self, visitor: Visitor) -> Ticket | Failure:
        """Wait for a ticket, or until it is clear that there is none to be had in time."""
        if self._closed:
            return INTERRUPTED
        visitor.admitted = asyncio.get_running_loop().create_future()
        insort(self._waiting, visitor)
        self._look()
        try:
            return await visitor.admitted
        except asyncio.CancelledError:
            self._turn_away(visitor)
            raise

    def leave(self, ticket: Ticket, given: object = None, visitor: Visitor | None = None) -> None:
        """A call has ended, with an answer or a failure; without either where it was given up. Others may have room."""
        now, pace = _now(), self.pace
        if isinstance(given, CallFailure) and is_limited(given):
            pace.limit(ticket, now, given.retry_after_s, given.limits)
            self._said = given
        elif given is None or isinstance(given, Failure):
            pace.abandon(ticket)
            pace.learn(now, given.limits if isinstance(given, CallFailure) else None)
        else:
            tokens = _tokens_of(given)
            pace.succeed(ticket, now, getattr(given, "limits", None), tokens)
            if visitor is not None and visitor.meter is not None and tokens is not None:
                visitor.meter.correct(now, visitor.tokens, tokens)
        if self._waiting:
            self._look()

    def close(self) -> None:
        """Let nobody in any more, those who wait included."""
        self._closed = True
        waiting, self._waiting = self._waiting, []
        for visitor in waiting:
            if visitor.admitted is not None and not visitor.admitted.done():
                visitor.admitted.set_result(INTERRUPTED)
        self._forget_timer()

    def _turn_away(self, visitor: Visitor) -> None:
        """Nobody waits for this call any more; it may have been let in just now."""
        admitted = visitor.admitted
        if admitted is not None and admitted.done() and not admitted.cancelled():
            ticket = admitted.result()
            if isinstance(ticket, Ticket):
                self.pace.abandon(ticket)
        self._waiting = [one for one in self._waiting if one is not visitor]
        self._look()

    def _look(self) -> None:
        """Let in whoever may come in; look again when the next one may."""
        self._forget_timer()
        now, staying = _now(), []
        soonest = inf
        for visitor in self._waiting:
            wait_s = self._wait_s(visitor, now)
            if visitor.admitted is None or visitor.admitted.done():
                continue
            if self.pace.paused_until - now > visitor.patience_s:
                visitor.admitted.set_result(self._no_room(now))
            elif wait_s == 0:
                visitor.admitted.set_result(self._let_in(visitor, now))
            else:
                staying.append(visitor)
                soonest = soonest if wait_s is None else min(soonest, wait_s)
        self._waiting = staying
        if soonest < inf:
            self._look_again = asyncio.get_running_loop().call_later(soonest, self._look)

    def _no_room(self, now: float) -> Failure:
        """Why a call is not made that would have to wait for longer than it may."""
        said, wait_s = self._said, self.pace.paused_until - now
        message = f"not asked: the server has told an earlier call to wait, for {wait_s:.3g} s more"
        if said is None:
            return CallFailure("http-status", message, retryable=True)
        return replace(said, message=f"{message}: {said.message}", attempts=())

    def _wait_s(self, visitor: Visitor, now: float) -> float | None:
        wait_s = self.pace.wait_s(now)
        if wait_s is None or visitor.meter is None:
            return wait_s
        return max(wait_s, visitor.meter.wait_s(now, visitor.tokens))

    def _let_in(self, visitor: Visitor, now: float) -> Ticket:
        if visitor.meter is not None:
            visitor.meter.start(now, visitor.tokens)
        return self.pace.start(now)

    def _forget_timer(self) -> None:
        if self._look_again is not None:
            self._look_again.cancel()
            self._look_again = None


def _tokens_of(given: object) -> int | None:
    usage = getattr(given, "token_usage", None)
    return usage.total if isinstance(usage, TokenUsage) else None


def _now() -> float:
    return asyncio.get_running_loop().time()
