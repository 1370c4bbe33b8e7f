"""One call of a target with all its attempts: admitted, timed, and retried as `retry_policy` decides."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Generic, NamedTuple, Protocol, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.engine.calls.pacing import Permit
from agentv.engine.calls.retry_policy import (
    INTERRUPTED,
    PROBE_S,
    GiveUp,
    RetryAfter,
    Tries,
    decide,
    is_limited,
    patience_s,
)
from agentv.engine.calls.server_limiter import Waiter
from agentv.engine.calls.target_channel import TargetChannel
from agentv.model.values.response import Attempt, CallFailure, Embeddings, Failure, TargetResponse
from agentv.model.values.usage import Price
from agentv.user_code.deadline import LIMIT, Deadline, in_time
from agentv.user_code.guard import attempt

A = TypeVar("A", TargetResponse, Embeddings)


class AttemptReservation(Protocol):
    """Reservation of what an attempt can cost, made before each attempt of a call."""

    def try_reserve(self) -> bool:
        """Reserve without waiting; return whether that was possible."""

    async def reserve(self, *, first: bool) -> Failure | None:
        """Wait until the next attempt may be made; return a Failure if it may not."""

    def give_back(self) -> None:
        """Release the reservation, because the attempt was not made."""

    def settle(self, outcome: TargetResponse | Embeddings | Failure | None) -> None:
        """Replace the reservation with the cost of the ended attempt."""


class AttemptAllowance(NamedTuple):
    """Limits of one attempt. `number`: number of earlier attempts; `seconds`: its timeout."""

    number: int
    seconds: float


class RetriedCall(Struct, Generic[A]):
    """One call with all its attempts.

    Attributes:
        ask: makes one attempt.
        timeout_s: timeout of one attempt.
        waiter: the call's entry in the queue of its server.
        reservation: the call's reservation in the budget; None without a budget, or if the call costs nothing.
        price: price of its tokens; None: its outcome says what it costs.
        attempts: failed attempts that were followed by another.
    """

    channel: TargetChannel
    ask: Callable[[AttemptAllowance], A | Failure | Awaitable[A | Failure]]
    timeout_s: float
    waiter: Waiter = field(default_factory=Waiter)
    reservation: AttemptReservation | None = None
    price: Price | None = None
    attempts: list[Attempt] = field(default_factory=list)
    _tries: Tries = field(default_factory=Tries)
    _ends_at: float | None = None
    _outer_deadline: Deadline | None = field(default_factory=LIMIT.get)

    async def outcome(self, first: A | Failure | Awaitable[A | Failure] | None = None) -> tuple[A | Failure, float]:
        """Return the result of the call, and the seconds of its last attempt.

        Args:
            first: result of the first attempt, if it was already made.
        """
        channel = self.channel
        failed: tuple[Failure, float, float] | None = None
        while True:
            permit = await self._admitted()
            if isinstance(permit, Failure):
                return self._final_failure(permit, GiveUp()), 0.0
            began = _now()
            if failed is not None:
                self._record_attempt(*failed, began)
            if self._ends_at is None:
                self._ends_at = began + patience_s(self.timeout_s)
            outcome = await self._attempt(first, permit)
            first, ended = None, _now()
            if not isinstance(outcome, Failure):
                return outcome, ended - began
            if isinstance(outcome, CallFailure):
                self.attempts += outcome.attempts  # retries by the target itself, after a worker died
            limited = is_limited(outcome)
            self._tries = Tries(self._tries.failed + (not limited), self._tries.limited + limited)
            outcome = self._with_limited_wait(outcome, ended)
            decision = self._decision(outcome, ended)
            if isinstance(decision, GiveUp):
                return self._final_failure(outcome, decision), ended - began
            failed = (outcome, began, ended)
            if channel.limiter is not None and is_limited(outcome):
                channel.limiter.retry_at = ended + decision.after_s
                channel.news.limit()
            with self._deadline_paused(limited=is_limited(outcome)):
                if not await channel.sleeper.sleep(decision.after_s):
                    return INTERRUPTED, 0.0

    async def _admitted(self) -> Permit | Failure | None:
        """Return a permit of the limiter, None if there is no limiter, or a Failure if the call must not be made."""
        reservation = self.reservation
        if reservation is None:
            return await self._admit()
        if not reservation.try_reserve():
            arrived = _now()
            with self._deadline_paused(limited=True):  # the wait does not use up the call's time
                refused = await reservation.reserve(first=self._outer_deadline is not None)
            if self._ends_at is not None:
                self._ends_at += _now() - arrived
            if refused is not None:
                return refused
        found: Permit | Failure | None = INTERRUPTED
        try:
            found = await self._admit()
        finally:
            if isinstance(found, Failure):
                reservation.give_back()
        return found

    async def _admit(self) -> Permit | Failure | None:
        channel, limiter = self.channel, self.channel.limiter
        stopped = channel.stop.failure_for(channel.spec.name)
        if stopped is not None or limiter is None:
            return stopped
        permit = limiter.try_enter(self.waiter)
        if permit is not None:
            return permit
        arrived = _now()
        self.waiter.patience_s = patience_s(self.timeout_s) if self._ends_at is None else self._ends_at - arrived
        with self._deadline_paused(limited=True):
            found = await limiter.enter(self.waiter)
        if self._ends_at is not None:
            self._ends_at += _now() - arrived
        stopped = channel.stop.failure_for(channel.spec.name)
        if stopped is not None and isinstance(found, Permit):
            limiter.leave(found)
        return stopped or found

    async def _attempt(self, made: A | Failure | Awaitable[A | Failure] | None, permit: Permit | None) -> A | Failure:
        channel, limiter = self.channel, self.channel.limiter
        what = f"target '{channel.spec.name}'"
        seconds = min(self.timeout_s, self._left_s(_now()))
        ended: A | Failure | None = None
        try:
            turn = AttemptAllowance(self._tries.total, seconds)
            given = attempt(self.ask, turn, "target-raised", what) if made is None else made
            if not isinstance(given, Failure | TargetResponse | Embeddings):
                given = await in_time(given, Deadline(seconds), code="target-raised", what=what, missing="answer")
            cost = None if isinstance(given, Failure) or self.price is None else self.price.cost(given.token_usage)
            ended = given if isinstance(given, Failure) or cost is None else replace(given, cost_usd=cost)
        finally:
            if limiter is not None and permit is not None:
                self.waiter.patience_s = self._left_s(_now())
                limiter.leave(permit, ended, self.waiter)
            if self.reservation is not None:
                self.reservation.settle(ended)
        return ended

    def _with_limited_wait(self, failure: Failure, now: float) -> Failure:
        """Return the failure, changed if the server asks for a longer wait than the call has left.

        The call is then retried once after `PROBE_S`; if the server asks for a long wait again, the target is stopped.
        """
        limiter, left_s = self.channel.limiter, self._left_s(now)
        if limiter is None or not isinstance(failure, CallFailure) or not is_limited(failure):
            return failure
        retry_after_s = failure.retry_after_s
        if retry_after_s is None or retry_after_s <= left_s:
            return failure
        reason = f"the server asks to wait {retry_after_s:g} s, but the call has {max(left_s, 0):.3g} s left"
        message = f"{failure.message}; {reason}"
        if limiter.refused_retry:
            return replace(failure, message=message, stops=True)
        if limiter.is_first_refusal():
            self.channel.news.pause(self.channel.spec, f"{message}; retrying once in {PROBE_S:g} s")
        return replace(failure, message=message, retry_after_s=PROBE_S)

    def _decision(self, failure: Failure, now: float) -> RetryAfter | GiveUp:
        channel = self.channel
        if isinstance(failure, CallFailure) and failure.stops:
            return GiveUp()
        if failure.code == "timeout" and not channel.networked:
            return GiveUp()  # a local target that was too slow once will be again
        left_s = self._left_s(now)
        if self._outer_deadline is not None and not is_limited(failure):
            left_s = min(left_s, self._outer_deadline.left_s(now))
        return decide(failure, self._tries, channel.spec.retry, left_s, channel.chance())

    def _left_s(self, now: float) -> float:
        return self.timeout_s if self._ends_at is None else self._ends_at - now

    def _record_attempt(self, failure: Failure, began: float, ended: float, now: float) -> None:
        """Record a failed attempt that is followed by another one."""
        took_ms, waited_ms = round((ended - began) * 1000, 3), round((now - ended) * 1000, 3)
        made = Attempt(failure.code, failure.message, took_ms, waited_ms)
        self.attempts.append(made)
        if self._outer_deadline is not None:
            self._outer_deadline.attempts.append(made)

    def _deadline_paused(self, *, limited: bool) -> AbstractContextManager[None]:
        """Return a context that pauses the caller's deadline if the call waits for a limit of the server."""
        return self._outer_deadline.held(_now) if limited and self._outer_deadline is not None else nullcontext()

    def _final_failure(self, failure: Failure, decision: GiveUp) -> Failure:
        message = f"{failure.message}; {decision.why}" if decision.why else failure.message
        if isinstance(failure, CallFailure):
            return replace(failure, message=message, attempts=tuple(self.attempts))
        if not self.attempts:
            return failure if not decision.why else replace(failure, message=message)
        return CallFailure(failure.code, message, failure.retryable, attempts=tuple(self.attempts))


def _now() -> float:
    return asyncio.get_running_loop().time()
