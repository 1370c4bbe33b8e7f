"""Budget reservations and the queue of calls waiting for them.

A thin shell around `budget`, which decides. Calls that judge an answer go before those that ask for a new one, so that
what is left goes into trials that have begun. Used from one event loop.
"""

from __future__ import annotations

import asyncio
from bisect import insort
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Literal

from agentv.engine.calls.budget import Budget, Experience, exhausted
from agentv.engine.calls.circuit_breaker import INTERRUPTED, UNAFFORDABLE
from agentv.model.run.budget import UNKNOWN, Amount, BudgetUse, Ceiling
from agentv.model.values.response import Embeddings, Failure, TargetResponse

_numbers = count()

Kind = Literal["answers", "vectors"]


@dataclass(slots=True)
class TargetSpend:
    """The calls of one kind to one target, as the budget sees them."""

    budget_limiter: BudgetLimiter
    name: str
    experience: Experience = field(default_factory=Experience)

    def reservation(self, ceiling: Ceiling) -> Reservation:
        """Of one call, whose every attempt can take so much."""
        return Reservation(self, ceiling)


@dataclass(slots=True)
class Reservation:
    """What one call has reserved: nothing, or what its attempt needs that is under way."""

    account: TargetSpend
    ceiling: Ceiling
    _held: Amount | None = None

    @property
    def need(self) -> Amount:
        """What an attempt needs, by what is known now."""
        return self.account.experience.need(self.ceiling, self.account.budget_limiter.budget)

    def at_once(self) -> bool:
        """Whether the next attempt could reserve what it needs without waiting."""
        budget_limiter, need = self.account.budget_limiter, self.need
        if budget_limiter.waits or not budget_limiter.budget.fits(need):
            return False
        self.hold(need)
        return True

    async def reserve(self, *, first: bool) -> Failure | None:
        """Wait until the next attempt may be made; why it may not.

        Args:
            first: before all those that wait and are not.
        """
        return await self.account.budget_limiter.enter(self, first=first)

    def hold(self, need: Amount) -> None:
        """Reserve it."""
        self._held = need
        self.account.budget_limiter.budget.hold(need)

    def give_back(self) -> None:
        """The attempt was not made."""
        self._settled(Amount())

    def settle(self, outcome: TargetResponse | Embeddings | Failure | None) -> None:
        """The attempt has ended, with an answer or a failure; None: it was given up."""
        account = self.account
        taken, budget = account.experience.taken(self.ceiling, outcome), account.budget_limiter.budget
        if account.experience.unpriced and budget.usd is not None and budget.tokens is None:
            account.budget_limiter.cannot_count(account.name)
        self._settled(taken)

    def _settled(self, taken: Amount) -> None:
        held, self._held = self._held, None
        if held is not None:
            self.account.budget_limiter.settle(held, taken)


@dataclass(slots=True, order=True)
class _Visitor:
    rank: int
    number: int
    reservation: Reservation = field(compare=False)
    admitted: asyncio.Future[Failure | None] = field(compare=False)


class BudgetLimiter:
    """The budget of one run.

    Attributes:
        refused: why a call was not made, in words; None as long as all were.

    Args:
        budget: what may be spent.
        largest: name of a target → the most that one call of it took, in earlier processes of the run; without a name
            that of any.
    """

    def __init__(self, budget: Budget, largest: Mapping[str, Ceiling] | None = None) -> None:
        self.budget = budget
        self._largest = largest or {}
        self.refused: str | None = None
        self._accounts: dict[Hashable, TargetSpend] = {}
        self._waiting: list[_Visitor] = []
        self._closed = False
        self._uncounted: str | None = None

    @property
    def waits(self) -> bool:
        """Whether a call waits, or none is to be made any more."""
        return bool(self._waiting) or self._closed or self._uncounted is not None

    @property
    def uncounted(self) -> bool:
        """Whether a larger limit in dollars would not help, because the cost of the calls is unknown."""
        return self._uncounted is not None

    def account(self, key: Hashable, name: str, kind: Kind) -> TargetSpend:
        """Of a target; two that say the same share one."""
        found = self._accounts.get((key, kind))
        if found is None:
            found = self._accounts[key, kind] = TargetSpend(self, name, self._experience(name, kind))
        return found

    def _experience(self, name: str, kind: Kind) -> Experience:
        """What is known of the calls of a target that this process has not made. Vectors are kept one by one."""
        known = UNKNOWN if kind == "vectors" else self._largest.get(name) or self._largest.get("", UNKNOWN)
        return Experience(known.usd, known.tokens)

    async def enter(self, reservation: Reservation, *, first: bool) -> Failure | None:
        """Wait for one's turn; why it never comes."""
        if self._closed:
            return INTERRUPTED
        waiter = _Visitor(0 if first else 1, next(_numbers), reservation, asyncio.get_running_loop().create_future())
        insort(self._waiting, waiter)
        self._look()
        try:
            return await waiter.admitted
        except asyncio.CancelledError:
            if waiter.admitted.done() and not waiter.admitted.cancelled() and waiter.admitted.result() is None:
                reservation.give_back()  # it was let in just now
            self._waiting = [one for one in self._waiting if one is not waiter]
            self._look()
            raise

    def settle(self, held: Amount, taken: Amount) -> None:
        """A call has ended."""
        self.budget.settle(held, taken)
        self._look()

    def cannot_count(self, name: str) -> None:
        """A call used tokens with an unknown price, so a limit in dollars cannot be enforced: make no more calls."""
        message = f"'{name}' does not report what its calls cost, so a budget in dollars cannot be enforced"
        self._uncounted = self._uncounted or f"{message}; use a budget in tokens (--budget-tokens)"
        self._look()

    def close(self) -> None:
        """Nobody waits any more."""
        self._closed = True
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.admitted.done():
                waiter.admitted.set_result(INTERRUPTED)

    def use(self) -> BudgetUse:
        """The usage of the budget so far."""
        budget, spent = self.budget, self.budget.spent
        return BudgetUse(budget.usd, budget.tokens, round(spent.usd, 10), int(spent.tokens), self.refused is not None)

    def silent(self) -> Iterator[tuple[str, str]]:
        """The targets whose calls did not report everything that the budget counts: name, and `usd` or `tokens`."""
        limited = [name for name in ("usd", "tokens") if getattr(self.budget, name) is not None]
        for one in self._accounts.values():
            yield from ((one.name, name) for name in limited if name in one.experience.silent)

    def _look(self) -> None:
        """Let in whoever's turn it is; turn away those that no running call can help."""
        while self._waiting:
            waiter = self._waiting[0]
            if waiter.admitted.done():
                self._waiting.pop(0)
                continue
            need = waiter.reservation.need
            if self._uncounted is None and self.budget.fits(need):
                waiter.reservation.hold(need)
                found = None
            elif self._uncounted is None and self.budget.underway:
                return
            else:
                found = self._refusal(waiter.reservation, need)
            self._waiting.pop(0)
            waiter.admitted.set_result(found)

    def _refusal(self, reservation: Reservation, need: Amount) -> Failure:
        why = self._uncounted or exhausted(self.budget, need, reservation.account.name)
        self.refused = self.refused or why
        return Failure(UNAFFORDABLE, why)
