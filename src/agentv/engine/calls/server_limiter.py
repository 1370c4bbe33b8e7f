"""Queue of calls to one server, first come, first served.

A thin layer around `AdaptiveConcurrency` and `RateLimiter`, which decide; this module only schedules the decisions.
"""

from __future__ import annotations

import asyncio
from math import inf

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.engine.calls.admission_queue import AdmissionQueue, QueuePlace, Wait, next_place
from agentv.engine.calls.pacing import AdaptiveConcurrency, Permit, RateLimiter
from agentv.engine.calls.retry_policy import INTERRUPTED, PROBE_S, is_limited
from agentv.model.values.response import CallFailure, Failure
from agentv.model.values.usage import TokenUsage


class Waiter(Struct):
    """A call in the queue of a server. A retry keeps the call's place.

    Attributes:
        tokens: estimated number of tokens.
        rate_limiter: limiter of the target's own rate; None if it has none.
        patience_s: the longest wait in seconds that a server may ask for; if it asks for more, the call fails.
        place: place in the queue.
    """

    tokens: float = 0.0
    rate_limiter: RateLimiter | None = None
    patience_s: float = inf
    place: QueuePlace = field(default_factory=next_place)


class ServerLimiter:
    """Limits the calls to one server. Used from one event loop.

    Attributes:
        retry_at: when the last refused call is retried, in the loop's time.
    """

    def __init__(self, pace: AdaptiveConcurrency) -> None:
        self.pace = pace
        self._queue: AdmissionQueue[Waiter, Permit | Failure] = AdmissionQueue(self._decision, self._give_back)
        self._last_refusal: CallFailure | None = None
        self._refusals = 0
        self._reported = False
        self.retry_at = 0.0

    def limits(self) -> tuple[int | None, float] | None:
        """Return the status of the last refusal and the seconds until the next call; None without a wait."""
        wait_s = max(self.pace.paused_until, self.retry_at) - _now()
        return None if self._last_refusal is None or wait_s <= 0 else (self._last_refusal.status, wait_s)

    def is_first_refusal(self) -> bool:
        """Return whether the server has just asked for a long wait for the first time; True only once."""
        first, self._reported = self._refusals == 1 and not self._reported, True
        return first

    @property
    def refused_retry(self) -> bool:
        """Whether the server asked for a long wait, and asked again when the call was retried."""
        return self._refusals > 1

    def try_enter(self, waiter: Waiter) -> Permit | None:
        """Return a permit, or None if the call has to wait."""
        now = _now()
        if self._queue.is_busy or self._wait_s(waiter, now) != 0:
            return None
        return self._admit(waiter, now)

    async def enter(self, waiter: Waiter) -> Permit | Failure:
        """Wait for a permit and return it; return a Failure as soon as none can come in time."""
        return await self._queue.wait(waiter, waiter.place)

    def leave(self, permit: Permit, given: object = None, waiter: Waiter | None = None) -> None:
        """Record that a call has ended, and admit others. `given`: its answer or failure; None: it was cancelled."""
        now, pace = _now(), self.pace
        if isinstance(given, CallFailure) and is_limited(given):
            patience_s = inf if waiter is None else waiter.patience_s
            pause_s = given.retry_after_s
            if pause_s is not None and pause_s > patience_s:
                pause_s = PROBE_S
                self._refusals += pace.is_news(permit)
            pace.limit(permit, now, pause_s)
            self._last_refusal = given
        elif given is None or isinstance(given, Failure):
            pace.abandon()
        else:
            usage = getattr(given, "token_usage", None)
            tokens = usage.total if isinstance(usage, TokenUsage) else None
            self._refusals, self._reported, self.retry_at = 0, False, 0.0
            pace.succeed(permit, now)
            if waiter is not None and waiter.rate_limiter is not None and tokens is not None:
                waiter.rate_limiter.correct(now, waiter.tokens, tokens)
        self._queue.decide_all()

    def close(self) -> None:
        """Refuse all calls, including waiting ones."""
        self._queue.close(INTERRUPTED)

    def _decision(self, waiter: Waiter) -> Permit | Failure | Wait:
        """Return a permit, or how long the call has to wait, or a Failure if that is too long."""
        now = _now()
        if self.pace.paused_until - now > waiter.patience_s:
            last_refusal, wait_s = self._last_refusal, self.pace.paused_until - now
            message = f"not called: the server asked an earlier call to wait {wait_s:.3g} s longer"
            if last_refusal is None:
                return CallFailure("http-status", message, retryable=True)
            return replace(last_refusal, message=f"{message}: {last_refusal.message}", attempts=())
        wait = self._wait_s(waiter, now)
        if wait == 0:
            return self._admit(waiter, now)
        return Wait() if wait is None else Wait(wait)

    def _give_back(self, _waiter: Waiter, found: Permit | Failure) -> None:
        """Release the permit of a call that was cancelled just after its admission."""
        if isinstance(found, Permit):
            self.pace.abandon()

    def _wait_s(self, waiter: Waiter, now: float) -> float | None:
        wait_s = self.pace.wait_s(now)
        if wait_s is None or waiter.rate_limiter is None:
            return wait_s
        return max(wait_s, waiter.rate_limiter.wait_s(now, waiter.tokens))

    def _admit(self, waiter: Waiter, now: float) -> Permit:
        if waiter.rate_limiter is not None:
            waiter.rate_limiter.start(now, waiter.tokens)
        return self.pace.start(now)


def _now() -> float:
    return asyncio.get_running_loop().time()
