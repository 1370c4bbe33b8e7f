"""Token counts, prices, costs and budgets."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from agentv.model.values.values import Json

MILLION = 1_000_000


class Price(Struct, frozen=True):
    """US dollars per million tokens. `cached_input` is the price of input read from a cache; None if it is the same."""

    input: float
    output: float
    cached_input: float | None = None

    def cost(self, usage: TokenUsage | None) -> float | None:
        """Return the cost of a call in US dollars; None if its tokens are unknown."""
        if usage is None or (usage.input is None and usage.output is None):
            return None
        input_tokens = usage.input or 0
        cached = min(usage.cached or 0, input_tokens)
        of_cached = self.input if self.cached_input is None else self.cached_input
        return ((input_tokens - cached) * self.input + cached * of_cached + (usage.output or 0) * self.output) / MILLION

    def at_most(self, tokens: int | None) -> float | None:
        """Return the maximum cost of a call with this many tokens; None if the number is unknown."""
        dearest = max(self.input, self.output, self.cached_input or 0.0)
        return None if tokens is None else tokens * dearest / MILLION


class TokenUsage(Struct, frozen=True):
    """Token counts of a call; None if not reported."""

    input: int | None = None
    output: int | None = None
    total: int | None = None
    cached: int | None = None
    reasoning: int | None = None

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(*(_sum(getattr(self, name), getattr(other, name)) for name in self.__struct_fields__))

    @classmethod
    def from_json(cls, row: Mapping[str, Json]) -> TokenUsage:
        """Return the counts in a JSON object; a missing total becomes input + output.

        Raises:
            ValueError: a count is not a whole number ≥ 0.
        """
        counts: dict[str, int | None] = {}
        for name in cls.__struct_fields__:
            value = row.get(name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
                raise ValueError(f"token_usage.{name} must be a whole number, found {value!r}")
            counts[name] = value
        if counts["total"] is None and (counts["input"] is not None or counts["output"] is not None):
            counts["total"] = (counts["input"] or 0) + (counts["output"] or 0)
        return cls(**counts)


def total_tokens(usage: TokenUsage) -> int:
    """Return the total of the known counts."""
    return usage.total or (usage.input or 0) + (usage.output or 0)


def total_cost(*costs: float | None) -> float | None:
    """Return the sum of the known costs in US dollars, or None if none is known."""
    known = [cost for cost in costs if cost is not None]
    return round(sum(known), 10) if known else None


def _sum(one: int | None, other: int | None) -> int | None:
    if one is None:
        return other
    return one if other is None else one + other


class Ceiling(Struct, frozen=True):
    """Maximum cost of a call, known before it is made; None if unknown.

    Attributes:
        usd: US dollars.
        tokens: tokens of input and output together.
    """

    usd: float | None = None
    tokens: int | None = None

    def at_least(self, usd: float | None, tokens: int | None) -> Ceiling:
        """Return this ceiling, raised to the reported cost of a call if that is higher."""
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
    """How much of a run's budget was used.

    Attributes:
        usd, tokens: limits of the run; None for no limit.
        spent_usd, spent_tokens: upper bounds; a call without an answer counts as the amount reserved for it.
        used_up: whether a call was not made because the budget was used up.
    """

    usd: float | None
    tokens: int | None
    spent_usd: float
    spent_tokens: int
    used_up: bool
