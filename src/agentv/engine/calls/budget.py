"""The budget of a run: whether a call may be made, and the queue of calls that wait for their turn (SPEC section 12).

Before a call its maximum cost is reserved, and settled when the call has ended. So a run never exceeds its budget,
however many calls are running: a call whose worst case does not fit waits until others have ended, and is
refused if none is running.

The worst case comes from the target's settings (`ProviderSettings.ceiling`). If they do not report it, it is learnt:
the first call is made while no other is running, and from then on the largest cost of a call of this target
is reserved. Such a run exceeds its budget at most by the excess of its last calls over the largest one before.
A target that is assumed to be free, such as a local server, may still report a cost: until one call of it has been
answered, no second one is made.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from http import HTTPStatus
from math import inf
from typing import Literal

from msgspec import Struct, field

from agentv.engine.calls.admission_queue import AdmissionQueue, Wait, next_place
from agentv.engine.calls.retry_policy import INTERRUPTED, UNAFFORDABLE
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.formatting import money
from agentv.model.values.response import CallFailure, Embeddings, Failure, TargetResponse
from agentv.model.values.usage import UNKNOWN, Amount, BudgetUse, Ceiling, TokenUsage

_UNPROCESSED = frozenset({"connection", "missing-key", "target-stopped", "interrupted"})
"""Codes of failed calls that no server processed."""

_ROUNDING = 1e-12


class Budget(Struct):
    """Budget of a run. None: not limited.

    Attributes:
        spent: amount used by calls that have ended.
        held: amount reserved for running calls.
        underway: number of running calls.
    """

    usd: float | None = None
    tokens: int | None = None
    spent: Amount = field(default_factory=Amount)
    held: Amount = field(default_factory=Amount)
    underway: int = 0

    @property
    def left(self) -> Amount:
        """The amount neither spent nor reserved; infinite if there is no limit."""
        used = self.spent + self.held
        return Amount(
            inf if self.usd is None else self.usd - used.usd, inf if self.tokens is None else self.tokens - used.tokens
        )

    def fits(self, need: Amount) -> bool:
        """Return whether a call that needs this amount may be made. A free call always may."""
        left = self.left
        return (not need.usd or need.usd <= left.usd + _ROUNDING) and (not need.tokens or need.tokens <= left.tokens)

    def hold(self, need: Amount) -> None:
        """Reserve the amount for a call that starts."""
        self.held += need
        self.underway += 1

    def settle(self, need: Amount, taken: Amount) -> None:
        """Replace the reservation of an ended call with its cost."""
        self.underway -= 1
        self.held = self.held - need if self.underway else Amount()
        self.spent += taken


class ObservedCost(Struct):
    """Observed cost of the calls of one target whose settings do not report a ceiling.

    Attributes:
        usd, tokens: largest amount of one call; None before the first call has ended.
        silent: which of `usd` and `tokens` successful calls did not report; these amounts count as zero.
        unpriced: whether a call used tokens with an unknown price.
        underway: number of running calls.
    """

    usd: float | None = None
    tokens: float | None = None
    silent: set[str] = field(default_factory=set)
    unpriced: bool = False
    underway: int = 0

    def need(self, ceiling: Ceiling, budget: Budget) -> Amount:
        """Return the amount to reserve for a call.

        Its ceiling, or the largest amount of a call so far if that is more. With neither, all that is left.
        """
        left = budget.left
        if budget.usd is not None and ceiling.usd == 0 and self.usd is None and self.underway:
            return Amount(inf, 0)  # not known to be free until a call has been answered
        usd = 0.0 if budget.usd is None else _needed(ceiling.usd, self.usd, left.usd, alone=not budget.underway)
        known = 0.0 if budget.tokens is None else _needed(ceiling.tokens, self.tokens, left.tokens, not budget.underway)
        return Amount(usd, known)

    def taken(self, ceiling: Ceiling, outcome: TargetResponse | Embeddings | Failure | None) -> Amount:
        """Return the cost of a call, given its outcome; None: it was cancelled.

        A call that gave no answer counts in full, unless no server processed it (`is_free`).
        """
        if isinstance(outcome, Failure) and is_free(outcome):
            return Amount()
        if outcome is None or isinstance(outcome, Failure):
            return Amount(max(ceiling.usd or 0.0, self.usd or 0.0), max(ceiling.tokens or 0, self.tokens or 0))
        usd, tokens = outcome.cost_usd, _total(outcome.token_usage)
        if usd is None and ceiling.usd is None and tokens and not self.usd:
            self.unpriced = True
        amount = Amount(
            self._counted("usd", usd, ceiling.usd, self.usd),
            self._counted("tokens", tokens, ceiling.tokens, self.tokens),
        )
        self.usd = max(self.usd or 0.0, amount.usd)
        self.tokens = max(self.tokens or 0, amount.tokens)
        return amount

    def _counted(self, name: str, reported: float | None, most: float | None, largest: float | None) -> float:
        """Return the reported value, or else the maximum that it can be or has been."""
        if reported is not None:
            return reported
        if most is None and not largest:
            self.silent.add(name)
        return most if most is not None else largest or 0.0


def _needed(most: float | None, largest: float | None, left: float, alone: bool) -> float:
    if most is not None:
        return max(most, largest or 0.0)
    if largest is not None:
        return largest
    return left if alone and left > 0 else inf


def is_free(failure: Failure) -> bool:
    """Return whether no server processed a call: it was refused with an HTTP error, or no connection was made."""
    status = failure.status if isinstance(failure, CallFailure) else None
    return (status is not None and status >= HTTPStatus.BAD_REQUEST) or failure.code in _UNPROCESSED


def _total(usage: TokenUsage | None) -> int | None:
    if usage is None:
        return None
    parts = None if usage.input is None and usage.output is None else (usage.input or 0) + (usage.output or 0)
    return max((one for one in (usage.total, parts) if one is not None), default=None)  # a total of 0 may be wrong


def refusal_message(budget: Budget, need: Amount, name: str, *, limited: bool = True) -> str:
    """Return why a call of the target `name` is not made. `limited`: the target has a setting `max_tokens`."""
    of_usd = budget.usd is not None and need.usd > budget.left.usd + _ROUNDING
    if of_usd:
        whole, spent, most = (money(one) for one in (budget.usd or 0.0, budget.spent.usd, need.usd))
        limit, unit = need.usd < inf, f"{spent} of the budget of {whole} is spent"
    else:
        limit, most = need.tokens < inf, f"{need.tokens:,.0f} tokens"
        unit = f"{budget.spent.tokens:,.0f} of the budget of {budget.tokens or 0:,} tokens are spent"
    if not limit:
        return unit
    advice = ": lower its 'max_tokens', or raise the budget" if limited else ": raise the budget"
    hint = advice if not budget.spent.usd and not budget.spent.tokens else ""
    return f"{unit}, and a call of '{name}' may take up to {most}{hint}"


Kind = Literal["answers", "vectors"]


class TargetSpend(Struct):
    """Budget accounting of one target's calls of one kind. `limited`: the target has a setting `max_tokens`."""

    budget_limiter: BudgetLimiter
    name: str
    observed: ObservedCost = field(default_factory=ObservedCost)
    limited: bool = True


class Reservation(Struct):
    """Reservation of one call: the amount held for its running attempt, if any."""

    target_spend: TargetSpend
    ceiling: Ceiling
    _held: Amount | None = None

    @property
    def need(self) -> Amount:
        """The amount that an attempt needs, as far as known now."""
        return self.target_spend.observed.need(self.ceiling, self.target_spend.budget_limiter.budget)

    def try_reserve(self) -> bool:
        """Reserve the amount for the next attempt if possible without waiting; return whether it was."""
        budget_limiter, need = self.target_spend.budget_limiter, self.need
        if budget_limiter.waits or not budget_limiter.budget.fits(need):
            return False
        self.hold(need)
        return True

    async def reserve(self, *, first: bool) -> Failure | None:
        """Wait until the next attempt may be made; return a Failure if it may not.

        Args:
            first: go before all waiting calls without this flag.
        """
        return await self.target_spend.budget_limiter.enter(self, first=first)

    def hold(self, need: Amount) -> None:
        """Hold this amount for the running attempt."""
        self._held = need
        self.target_spend.observed.underway += 1
        self.target_spend.budget_limiter.budget.hold(need)

    def give_back(self) -> None:
        """Release the reservation, because the attempt was not made."""
        self._settled(Amount())

    def settle(self, outcome: TargetResponse | Embeddings | Failure | None) -> None:
        """Replace the reservation with the cost of the ended attempt; None: it was cancelled."""
        target_spend = self.target_spend
        taken, budget = target_spend.observed.taken(self.ceiling, outcome), target_spend.budget_limiter.budget
        if target_spend.observed.unpriced and budget.usd is not None and budget.tokens is None:
            target_spend.budget_limiter.cannot_count(target_spend.name)
        self._settled(taken)

    def settle_in_full(self) -> None:
        """Count the whole reservation as spent, because the attempt broke off and its cost is unknown."""
        self._settled(self._held or Amount())

    def _settled(self, taken: Amount) -> None:
        reserved, self._held = self._held, None
        if reserved is not None:
            self.target_spend.observed.underway -= 1
            self.target_spend.budget_limiter.settle(reserved, taken)


class BudgetLimiter:
    """Admits calls as far as a budget allows.

    Attributes:
        refused: message that says why a call was refused; None if none was.

    Args:
        budget: what may be spent.
        largest: target name → largest amounts of one call in earlier processes of the run; "" → those of any target.
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
        """Whether calls are waiting, or no more may be made."""
        return self._queue.is_busy or self._uncounted is not None

    @property
    def uncounted(self) -> bool:
        """Whether a larger limit in dollars would not help, because the cost of the calls is unknown."""
        return self._uncounted is not None

    def target_spend(self, key: Hashable, spec: TargetSpec, kind: Kind) -> TargetSpend:
        """Return the accounting of a target's calls; targets with the same key share it."""
        found = self._spends.get((key, kind))
        if found is None:
            known = UNKNOWN  # from earlier processes; not for embeddings, which are stored one text at a time
            if kind == "answers":
                known = self._largest.get(spec.name) or self._largest.get("", UNKNOWN)
            observed = ObservedCost(known.usd, known.tokens)
            found = TargetSpend(self, spec.name, observed, hasattr(spec.settings, "max_tokens"))
            self._spends[key, kind] = found
        return found

    async def enter(self, reservation: Reservation, *, first: bool) -> Failure | None:
        """Wait until the call is admitted; return a Failure if it is refused."""
        found = await self._queue.wait(reservation, next_place(0 if first else 1))
        return found if isinstance(found, Failure) else None

    def settle(self, reserved: Amount, taken: Amount) -> None:
        """Replace the reservation of an ended call with its cost, and decide about waiting calls."""
        self.budget.settle(reserved, taken)
        self._queue.decide_all()

    def cannot_count(self, name: str) -> None:
        """Make no more calls: one used tokens of unknown price, so that a limit in dollars cannot be enforced."""
        message = f"'{name}' does not report what its calls cost, so a budget in dollars cannot be enforced"
        self._uncounted = self._uncounted or f"{message}; use a budget in tokens (--budget-tokens)"
        self._queue.decide_all()

    def close(self) -> None:
        """Release all waiting calls."""
        self._queue.close(INTERRUPTED)

    def use(self) -> BudgetUse:
        """Return how much of the budget has been used."""
        budget, spent = self.budget, self.budget.spent
        return BudgetUse(budget.usd, budget.tokens, round(spent.usd, 10), int(spent.tokens), self.refused is not None)

    def silent(self) -> Iterator[tuple[str, str]]:
        """Yield targets whose calls did not report what the budget counts: name, and `usd` or `tokens`."""
        limited = [name for name in ("usd", "tokens") if getattr(self.budget, name) is not None]
        for one in self._spends.values():
            yield from ((one.name, name) for name in limited if name in one.observed.silent)

    def _decision(self, reservation: Reservation) -> Amount | Failure | Wait:
        """Return the amount reserved for a call, or Wait while others are running, or else a Failure."""
        need = reservation.need
        if self._uncounted is None and self.budget.fits(need):
            reservation.hold(need)
            return need
        if self._uncounted is None and self.budget.underway:
            return Wait()
        spend = reservation.target_spend
        why = self._uncounted or refusal_message(self.budget, need, spend.name, limited=spend.limited)
        self.refused = self.refused or why
        return Failure(UNAFFORDABLE, why)


def _give_back(reservation: Reservation, found: Amount | Failure) -> None:
    """Release the reservation of a call that was cancelled just after its admission."""
    if not isinstance(found, Failure):
        reservation.give_back()
