"""One call of a target, over all its attempts: admitted, timed, and made again as `policy` decides."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Generic, NamedTuple, TypeVar

from agentv.engine.gate import Visitor
from agentv.engine.limits import in_time
from agentv.engine.line import Line
from agentv.engine.pace import Ticket
from agentv.engine.policy import Again, GiveUp, Tries, decide, is_limited, patience_s
from agentv.engine.purse import Fare
from agentv.engine.stops import INTERRUPTED
from agentv.foreign.guard import attempt
from agentv.foreign.patience import LIMIT, Limit
from agentv.model.response import Attempt, CallFailure, Embeddings, Failure, TargetResponse

A = TypeVar("A", TargetResponse, Embeddings)


class Turn(NamedTuple):
    """What one attempt may take. `number`: how many were made before it."""

    number: int
    seconds: float


@dataclass(slots=True)
class Call(Generic[A]):
    """One call.

    Attributes:
        ask: makes one attempt.
        timeout_s: that one may take.
        visitor: the call as the gate sees it.
        fare: as the budget sees it; None: there is none, or the call costs nothing.
        attempts: those that failed and were followed by another.
    """

    line: Line
    ask: Callable[[Turn], A | Failure | Awaitable[A | Failure]]
    timeout_s: float
    visitor: Visitor = field(default_factory=Visitor)
    fare: Fare | None = None
    attempts: list[Attempt] = field(default_factory=list)
    _tries: Tries = field(default_factory=Tries)
    _ends_at: float | None = None
    _asker: Limit | None = field(default_factory=LIMIT.get)

    async def outcome(self, first: A | Failure | Awaitable[A | Failure] | None = None) -> tuple[A | Failure, float]:
        """What the call comes to, and how many seconds its last attempt took.

        Args:
            first: what the first attempt gave, where it is made already.
        """
        line = self.line
        failed: tuple[Failure, float, float] | None = None
        while True:
            ticket = await self._admitted()
            if isinstance(ticket, Failure):
                return self._given_up(ticket, GiveUp()), 0.0
            began = _now()
            if failed is not None:
                self._note(*failed, began)
            if self._ends_at is None:
                self._ends_at = began + patience_s(self.timeout_s)
            outcome = await self._attempt(first, ticket)
            first, ended = None, _now()
            if not isinstance(outcome, Failure):
                return outcome, ended - began
            self._tries = self._tries.and_one(outcome)
            decision = self._decision(outcome, ended)
            if isinstance(decision, GiveUp):
                return self._given_up(outcome, decision), ended - began
            failed = (outcome, began, ended)
            with self._unhurried(limited=is_limited(outcome)):
                if not await line.naps.sleep(decision.after_s):
                    return INTERRUPTED, 0.0

    async def _admitted(self) -> Ticket | Failure | None:
        """A ticket of the gate, or why the call is not to be made; None where there is no gate."""
        fare = self.fare
        if fare is None:
            return await self._let_in()
        refused = await self._afforded(fare)
        if refused is not None:
            return refused
        found: Ticket | Failure | None = INTERRUPTED
        try:
            found = await self._let_in()
        finally:
            if isinstance(found, Failure):
                fare.give_back()
        return found

    async def _afforded(self, fare: Fare) -> Failure | None:
        """Reserve what the attempt can cost, or why it is not to be made. The wait is not the call's time."""
        if fare.at_once():
            return None
        came = _now()
        with self._unhurried(limited=True):
            refused = await fare.reserve(first=self._asker is not None)
        if self._ends_at is not None:
            self._ends_at += _now() - came
        return refused

    async def _let_in(self) -> Ticket | Failure | None:
        line, gate = self.line, self.line.gate
        stopped = line.stop.failure_for(line.spec.name)
        if stopped is not None or gate is None:
            return stopped
        ticket = gate.at_once(self.visitor)
        if ticket is not None:
            return ticket
        came = _now()
        self.visitor.patience_s = patience_s(self.timeout_s) if self._ends_at is None else self._ends_at - came
        with self._unhurried(limited=True):
            found = await gate.enter(self.visitor)
        if self._ends_at is not None:
            self._ends_at += _now() - came
        stopped = line.stop.failure_for(line.spec.name)
        if stopped is not None and isinstance(found, Ticket):
            gate.leave(found)
        return stopped or found

    async def _attempt(self, made: A | Failure | Awaitable[A | Failure] | None, ticket: Ticket | None) -> A | Failure:
        line, gate = self.line, self.line.gate
        what = f"target '{line.spec.name}'"
        seconds = min(self.timeout_s, self._left_s(_now()))
        ended: A | Failure | None = None
        try:
            turn = Turn(self._tries.total, seconds)
            given = attempt(self.ask, turn, "target-raised", what) if made is None else made
            if not isinstance(given, Failure | TargetResponse | Embeddings):
                given = await in_time(given, Limit(seconds), code="target-raised", what=what, missing="answer")
            ended = given
        finally:
            if gate is not None and ticket is not None:
                gate.leave(ticket, ended, self.visitor)
            if self.fare is not None:
                self.fare.settle(ended)
        return ended

    def _decision(self, failure: Failure, now: float) -> Again | GiveUp:
        line = self.line
        if failure.code == "timeout" and not line.networked:
            return GiveUp()  # what runs here and took too long once takes too long again
        left_s = self._left_s(now)
        if self._asker is not None and not is_limited(failure):
            left_s = min(left_s, self._asker.left_s(now))
        return decide(failure, self._tries, line.spec.retry, left_s, line.chance())

    def _left_s(self, now: float) -> float:
        return self.timeout_s if self._ends_at is None else self._ends_at - now

    def _note(self, failure: Failure, began: float, ended: float, now: float) -> None:
        """Keep an attempt that is followed by another one."""
        made = Attempt(failure.code, failure.message, _ms(ended - began), _ms(now - ended))
        self.attempts.append(made)
        if self._asker is not None:
            self._asker.attempts.append(made)

    def _unhurried(self, *, limited: bool) -> AbstractContextManager[None]:
        """Whoever waits for the judge does not blame it for what the server's limits take."""
        return self._asker.held(_now) if limited and self._asker is not None else nullcontext()

    def _given_up(self, failure: Failure, decision: GiveUp) -> Failure:
        message = f"{failure.message}; {decision.why}" if decision.why else failure.message
        if isinstance(failure, CallFailure):
            return replace(failure, message=message, attempts=tuple(self.attempts))
        if not self.attempts:
            return failure if not decision.why else replace(failure, message=message)
        return CallFailure(failure.code, message, failure.retryable, attempts=tuple(self.attempts))


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)


def _now() -> float:
    return asyncio.get_running_loop().time()
