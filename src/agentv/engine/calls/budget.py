"""Budget decisions: whether a call may be made. Pure (SPEC section 12).

Before a call its maximum cost is reserved, and settled when it has ended. So a run never exceeds its budget,
however many calls are running: a call whose worst case does not fit waits until others have ended, and is
refused if none is running.

The worst case comes from the target's settings (`ProviderSettings.ceiling`). If they do not report it, it is learnt:
the first call is made while no other is running, and from then on the largest cost of a call of this target
is reserved. Such a run exceeds its budget at most by the excess of its last calls over the largest one before.
A target that is taken to be free, such as a server on this machine, may still report a cost: until a call of it has
been answered, no second one is made.
"""

from __future__ import annotations

from http import HTTPStatus
from math import inf

from msgspec import Struct, field

from agentv.model.run.budget import Amount, Ceiling
from agentv.model.values.formatting import money
from agentv.model.values.response import CallFailure, Embeddings, Failure, TargetResponse
from agentv.model.values.usage import TokenUsage

_UNASKED = frozenset({"connection", "missing-key", "target-stopped", "interrupted"})
"""Failures of calls that no server worked for."""

_ROUNDING = 1e-12


class Budget(Struct):
    """Budget of a run. None: not limited.

    Attributes:
        spent: by calls that have ended.
        held: reserved for running calls.
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
        """Whether a call may be made that takes so much. One that takes nothing always may."""
        left = self.left
        return (not need.usd or need.usd <= left.usd + _ROUNDING) and (not need.tokens or need.tokens <= left.tokens)

    def hold(self, need: Amount) -> None:
        """Reserve it for a call that starts."""
        self.held += need
        self.underway += 1

    def settle(self, need: Amount, taken: Amount) -> None:
        """A call has ended: replace its reservation by its cost."""
        self.underway -= 1
        self.held = self.held - need if self.underway else Amount()
        self.spent += taken


class Experience(Struct):
    """Observed cost of the calls of one target whose settings do not report a ceiling.

    Attributes:
        usd, tokens: largest amount of one call; None before the first call has ended.
        silent: amounts that successful calls did not report: `usd`, `tokens`. They count as zero.
        unpriced: a call used tokens with an unknown price.
        underway: calls that are running.
    """

    usd: float | None = None
    tokens: float | None = None
    silent: set[str] = field(default_factory=set)
    unpriced: bool = False
    underway: int = 0

    def need(self, ceiling: Ceiling, budget: Budget) -> Amount:
        """Amount to reserve for a call: its ceiling, at least the largest so far; for the first, the whole rest."""
        left = budget.left
        if budget.usd is not None and ceiling.usd == 0 and self.usd is None and self.underway:
            return Amount(inf, 0)  # it is not known to be free before a call has been answered
        usd = 0.0 if budget.usd is None else _needed(ceiling.usd, self.usd, left.usd, alone=not budget.underway)
        known = 0.0 if budget.tokens is None else _needed(ceiling.tokens, self.tokens, left.tokens, not budget.underway)
        return Amount(usd, known)

    def taken(self, ceiling: Ceiling, outcome: TargetResponse | Embeddings | Failure | None) -> Amount:
        """The cost of a call, given its result; None: it was given up.

        A call that gave no answer counts in full, but where no server worked for it: it was refused with a status of
        HTTP, or no connection was made.
        """
        if isinstance(outcome, TargetResponse | Embeddings):
            return self._reported_amounts(ceiling, outcome.cost_usd, outcome.token_usage)
        if isinstance(outcome, Failure) and is_free(outcome):
            return Amount()
        return Amount(max(ceiling.usd or 0.0, self.usd or 0.0), max(ceiling.tokens or 0, self.tokens or 0))

    def _reported_amounts(self, ceiling: Ceiling, usd: float | None, usage: TokenUsage | None) -> Amount:
        tokens = _total(usage)
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
        """The reported value; else the maximum that it can be, or has been."""
        if reported is not None:
            return reported
        if most is None and not largest:
            self.silent.add(name)
        return most if most is not None else largest or 0.0


def _needed(most: float | None, largest: float | None, left: float, alone: bool) -> float:  # one caller
    if most is not None:
        return max(most, largest or 0.0)
    if largest is not None:
        return largest
    return left if alone and left > 0 else inf


def is_free(failure: Failure) -> bool:
    """Whether no server worked for a call: it was refused with a status of HTTP, or no connection was made."""
    status = failure.status if isinstance(failure, CallFailure) else None
    return (status is not None and status >= HTTPStatus.BAD_REQUEST) or failure.code in _UNASKED


def _total(usage: TokenUsage | None) -> int | None:
    if usage is None:
        return None
    parts = None if usage.input is None and usage.output is None else (usage.input or 0) + (usage.output or 0)
    return max((one for one in (usage.total, parts) if one is not None), default=None)  # a total of 0 is no gift


def exhausted(budget: Budget, need: Amount, name: str, *, limited: bool = True) -> str:
    """Why a call of the target `name` is not made, in words. `limited`: it has a setting `max_tokens`."""
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
