"""Budget of a run, and what its calls spend."""

from __future__ import annotations

from msgspec import Struct


class Ceiling(Struct, frozen=True):
    """Maximum cost of one call, known before it is made; None: unknown.

    Attributes:
        usd: US dollars.
        tokens: of the question and the answer together.
    """

    usd: float | None = None
    tokens: int | None = None

    def at_least(self, usd: float | None, tokens: int | None) -> Ceiling:
        """This ceiling, raised to the reported cost of a call."""
        return Ceiling(
            max((one for one in (self.usd, usd) if one is not None), default=None),
            max((one for one in (self.tokens, tokens) if one is not None), default=None),
        )


UNKNOWN = Ceiling()


class Amount(Struct, frozen=True):
    """Cost of calls: US dollars, and tokens of input and output together."""

    usd: float = 0.0
    tokens: float = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.usd + other.usd, self.tokens + other.tokens)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.usd - other.usd, self.tokens - other.tokens)


class BudgetUse(Struct, frozen=True):
    """Usage of a budget.

    Attributes:
        usd, tokens: limits of the run; None: not limited.
        spent_usd, spent_tokens: upper bounds: a call without an answer counts with the amount that was reserved for it.
        used_up: a call was not made because the budget was used up.
    """

    usd: float | None
    tokens: int | None
    spent_usd: float
    spent_tokens: int
    used_up: bool
