"""Queue of calls to one server, first come, first served.

A thin shell around `pace` and `rate`, which decide; here is only who waits, and when to look again.
"""

from __future__ import annotations

import asyncio
from bisect import insort
from dataclasses import dataclass, field, replace
from itertools import count
from math import inf

from agentv.engine.calls.adaptive_concurrency import AdaptiveConcurrency, Permit
from agentv.engine.calls.circuit_breaker import INTERRUPTED
from agentv.engine.calls.rate_limiter import RateLimiter
from agentv.engine.calls.retry_policy import PROBE_S, is_limited
from agentv.model.values.response import CallFailure, Failure, TokenUsage

_numbers = count()


@dataclass(slots=True, order=True)
class Waiter:
    """A call on its way to a server. One that comes back for another attempt keeps its place in the queue.

    Attributes:
        tokens: that it will take, about.
        meter: of its target's own rate; None: it has none.
        patience_s: seconds that it waits for a server that says how long it has no room; longer, and it gives up.
    """

    number: int = field(default_factory=lambda: next(_numbers))
    tokens: float = field(default=0.0, compare=False)
    meter: RateLimiter | None = field(default=None, compare=False)
    patience_s: float = field(default=inf, compare=False)
    admitted: asyncio.Future[Permit | Failure] | None = field(default=None, compare=False)


class ServerLimiter:
    """The way to one server. Used from one event loop."""

    def __init__(self, pace: AdaptiveConcurrency) -> None:
        self.pace = pace
        self._waiting: list[Waiter] = []
        self._look_again: asyncio.TimerHandle | None = None
        self._closed = False
        self._said: CallFailure | None = None
        self._refusals = 0
        self._told = False

    def is_first_refusal(self) -> bool:
        """Whether the server has just asked for a long wait for the first time; True once."""
        first, self._told = self._refusals == 1 and not self._told, True
        return first

    @property
    def is_shut(self) -> bool:
        """Whether the server has said twice, the second time when it was asked again, that it has no room for long."""
        return self._refusals > 1

    def at_once(self, waiter: Waiter) -> Permit | None:
        """A permit, where the call need not wait."""
        now = _now()
        if self._waiting or self._closed or self._wait_s(waiter, now) != 0:
            return None
        return self._let_in(waiter, now)

    async def enter(self, waiter: Waiter) -> Permit | Failure:
        """Wait for a permit, or until it is clear that there is none to be had in time."""
        if self._closed:
            return INTERRUPTED
        waiter.admitted = asyncio.get_running_loop().create_future()
        insort(self._waiting, waiter)
        self._look()
        try:
            return await waiter.admitted
        except asyncio.CancelledError:
            self._turn_away(waiter)
            raise

    def leave(self, permit: Permit, given: object = None, waiter: Waiter | None = None) -> None:
        """A call has ended, with an answer or a failure; without either where it was given up. Others may have room."""
        now, pace = _now(), self.pace
        if isinstance(given, CallFailure) and is_limited(given):
            patience_s = inf if waiter is None else waiter.patience_s
            pause_s = given.retry_after_s
            if pause_s is not None and pause_s > patience_s:
                pause_s = PROBE_S
                self._refusals += pace.is_news(permit)
            pace.limit(permit, now, pause_s, given.limits)
            self._said = given
        elif given is None or isinstance(given, Failure):
            pace.abandon(permit)
            pace.learn(now, given.limits if isinstance(given, CallFailure) else None)
        else:
            tokens = _tokens_of(given)
            self._refusals, self._told = 0, False
            pace.succeed(permit, now, getattr(given, "limits", None), tokens)
            if waiter is not None and waiter.meter is not None and tokens is not None:
                waiter.meter.correct(now, waiter.tokens, tokens)
        if self._waiting:
            self._look()

    def close(self) -> None:
        """Refuse all calls, including waiting ones."""
        self._closed = True
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if waiter.admitted is not None and not waiter.admitted.done():
                waiter.admitted.set_result(INTERRUPTED)
        self._forget_timer()

    def _turn_away(self, waiter: Waiter) -> None:
        """Nobody waits for this call any more; it may have been let in just now."""
        admitted = waiter.admitted
        if admitted is not None and admitted.done() and not admitted.cancelled():
            permit = admitted.result()
            if isinstance(permit, Permit):
                self.pace.abandon(permit)
        self._waiting = [one for one in self._waiting if one is not waiter]
        self._look()

    def _look(self) -> None:
        """Admit calls that may start; check again when the next one may."""
        self._forget_timer()
        now, staying = _now(), []
        soonest = inf
        for waiter in self._waiting:
            wait_s = self._wait_s(waiter, now)
            if waiter.admitted is None or waiter.admitted.done():
                continue
            if self.pace.paused_until - now > waiter.patience_s:
                waiter.admitted.set_result(self._no_room(now))
            elif wait_s == 0:
                waiter.admitted.set_result(self._let_in(waiter, now))
            else:
                staying.append(waiter)
                soonest = soonest if wait_s is None else min(soonest, wait_s)
        self._waiting = staying
        if soonest < inf:
            self._look_again = asyncio.get_running_loop().call_later(soonest, self._look)

    def _no_room(self, now: float) -> Failure:
        """Why a call is not made that would have to wait for longer than it may."""
        said, wait_s = self._said, self.pace.paused_until - now
        message = f"not called: the server asked an earlier call to wait {wait_s:.3g} s longer"
        if said is None:
            return CallFailure("http-status", message, retryable=True)
        return replace(said, message=f"{message}: {said.message}", attempts=())

    def _wait_s(self, waiter: Waiter, now: float) -> float | None:
        wait_s = self.pace.wait_s(now)
        if wait_s is None or waiter.meter is None:
            return wait_s
        return max(wait_s, waiter.meter.wait_s(now, waiter.tokens))

    def _let_in(self, waiter: Waiter, now: float) -> Permit:
        if waiter.meter is not None:
            waiter.meter.start(now, waiter.tokens)
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
