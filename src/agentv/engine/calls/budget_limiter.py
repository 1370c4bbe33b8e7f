"""Budget reservations and the queue of calls waiting for them.

A thin shell around `budget`, which decides. Calls that grade an answer have priority over those that request a new one,
so that the rest of the budget finishes trials that have started. Used from one event loop.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Literal

from msgspec import Struct, field

from agentv.engine.calls.admission_queue import AdmissionQueue, Wait, next_place
from agentv.engine.calls.budget import Budget, Experience, exhausted
from agentv.engine.calls.circuit_breaker import INTERRUPTED, UNAFFORDABLE
from agentv.model.run.budget import UNKNOWN, Amount, BudgetUse, Ceiling
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.response import Embeddings, Failure, TargetResponse

Kind = Literal["answers", "vectors"]


class TargetSpend(Struct):
    """The calls of one kind to one target, as the budget sees them. `limited`: it has a setting `max_tokens`."""

    budget_limiter: BudgetLimiter
    name: str
    experience: Experience = field(default_factory=Experience)
    limited: bool = True

    def reservation(self, ceiling: Ceiling) -> Reservation:
        """Of one call, whose every attempt can take so much."""
        return Reservation(self, ceiling)


class Reservation(Struct):
    """Reservation of one call: empty, or the amount for its running attempt."""

    target_spend: TargetSpend
    ceiling: Ceiling
    _held: Amount | None = None

    @property
    def need(self) -> Amount:
        """Amount that an attempt needs, as currently known."""
        return self.target_spend.experience.need(self.ceiling, self.target_spend.budget_limiter.budget)

    def try_reserve(self) -> bool:
        """Reserve the amount for the next attempt if possible without waiting; returns whether it was."""
        budget_limiter, need = self.target_spend.budget_limiter, self.need
        if budget_limiter.waits or not budget_limiter.budget.fits(need):
            return False
        self.hold(need)
        return True

    async def reserve(self, *, first: bool) -> Failure | None:
        """Wait until the next attempt may be made; returns a failure if it may not.

        Args:
            first: before all waiting calls without this flag.
        """
        return await self.target_spend.budget_limiter.enter(self, first=first)

    def hold(self, need: Amount) -> None:
        """Reserve it."""
        self._held = need
        self.target_spend.experience.underway += 1
        self.target_spend.budget_limiter.budget.hold(need)

    def give_back(self) -> None:
        """The attempt was not made."""
        self._settled(Amount())

    def settle(self, outcome: TargetResponse | Embeddings | Failure | None) -> None:
        """The attempt has ended, with an answer or a failure; None: it was given up."""
        target_spend = self.target_spend
        taken, budget = target_spend.experience.taken(self.ceiling, outcome), target_spend.budget_limiter.budget
        if target_spend.experience.unpriced and budget.usd is not None and budget.tokens is None:
            target_spend.budget_limiter.cannot_count(target_spend.name)
        self._settled(taken)

    def settle_in_full(self) -> None:
        """The attempt broke off, and may have taken all that was reserved for it."""
        self._settled(self._held or Amount())

    def _settled(self, taken: Amount) -> None:
        reserved, self._held = self._held, None
        if reserved is not None:
            self.target_spend.experience.underway -= 1
            self.target_spend.budget_limiter.settle(reserved, taken)


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
        self._spends: dict[Hashable, TargetSpend] = {}
        self._queue: AdmissionQueue[Reservation, Amount | Failure] = AdmissionQueue(
            self._decision, _give_back, in_order=True
        )
        self._uncounted: str | None = None

    @property
    def waits(self) -> bool:
        """Whether a call waits, or none is to be made any more."""
        return self._queue.is_busy or self._uncounted is not None

    @property
    def uncounted(self) -> bool:
        """Whether a larger limit in dollars would not help, because the cost of the calls is unknown."""
        return self._uncounted is not None

    def target_spend(self, key: Hashable, spec: TargetSpec, kind: Kind) -> TargetSpend:
        """Of a target; two that say the same share one."""
        found = self._spends.get((key, kind))
        if found is None:
            found = self._spends[key, kind] = TargetSpend(
                self, spec.name, self._experience(spec.name, kind), hasattr(spec.settings, "max_tokens")
            )
        return found

    def _experience(self, name: str, kind: Kind) -> Experience:
        """What is known of the calls of a target that this process has not made. Vectors are kept one by one."""
        known = UNKNOWN if kind == "vectors" else self._largest.get(name) or self._largest.get("", UNKNOWN)
        return Experience(known.usd, known.tokens)

    async def enter(self, reservation: Reservation, *, first: bool) -> Failure | None:
        """Wait for one's turn; why it never comes."""
        found = await self._queue.wait(reservation, next_place(0 if first else 1))
        return found if isinstance(found, Failure) else None

    def settle(self, reserved: Amount, taken: Amount) -> None:
        """A call has ended."""
        self.budget.settle(reserved, taken)
        self._queue.look()

    def cannot_count(self, name: str) -> None:
        """A call used tokens with an unknown price, so a limit in dollars cannot be enforced: make no more calls."""
        message = f"'{name}' does not report what its calls cost, so a budget in dollars cannot be enforced"
        self._uncounted = self._uncounted or f"{message}; use a budget in tokens (--budget-tokens)"
        self._queue.look()

    def close(self) -> None:
        """Release all waiting calls."""
        self._queue.close(INTERRUPTED)

    def use(self) -> BudgetUse:
        """The usage of the budget so far."""
        budget, spent = self.budget, self.budget.spent
        return BudgetUse(budget.usd, budget.tokens, round(spent.usd, 10), int(spent.tokens), self.refused is not None)

    def silent(self) -> Iterator[tuple[str, str]]:
        """The targets whose calls did not report everything that the budget counts: name, and `usd` or `tokens`."""
        limited = [name for name in ("usd", "tokens") if getattr(self.budget, name) is not None]
        for one in self._spends.values():
            yield from ((one.name, name) for name in limited if name in one.experience.silent)

    def _decision(self, reservation: Reservation) -> Amount | Failure | Wait:
        """What is reserved for a call; a refusal where no running call can help it."""
        need = reservation.need
        if self._uncounted is None and self.budget.fits(need):
            reservation.hold(need)
            return need
        if self._uncounted is None and self.budget.underway:
            return Wait()
        return self._refusal(reservation, need)

    def _refusal(self, reservation: Reservation, need: Amount) -> Failure:
        spend = reservation.target_spend
        why = self._uncounted or exhausted(self.budget, need, spend.name, limited=spend.limited)
        self.refused = self.refused or why
        return Failure(UNAFFORDABLE, why)


def _give_back(reservation: Reservation, found: Amount | Failure) -> None:
    """Nobody waits any more for the call that was let in just now."""
    if not isinstance(found, Failure):
        reservation.give_back()
