"""The price of a model's tokens, as a target's `price:` sets it."""

from __future__ import annotations

from msgspec import Struct

from agentv.model.values.usage import TokenUsage

MILLION = 1_000_000


class Price(Struct, frozen=True):
    """US dollars per million tokens. `cached_input`: of input read from a cache; None: as other input."""

    input: float
    output: float
    cached_input: float | None = None

    def cost(self, usage: TokenUsage | None) -> float | None:
        """The cost of a call in US dollars; None if its tokens are not known."""
        if usage is None or (usage.input is None and usage.output is None):
            return None
        taken = usage.input or 0
        cached = min(usage.cached or 0, taken)
        of_cached = self.input if self.cached_input is None else self.cached_input
        return ((taken - cached) * self.input + cached * of_cached + (usage.output or 0) * self.output) / MILLION

    def at_most(self, tokens: int | None) -> float | None:
        """The highest cost of a call that takes so many tokens; None if that is not known."""
        dearest = max(self.input, self.output, self.cached_input or 0.0)
        return None if tokens is None else tokens * dearest / MILLION
