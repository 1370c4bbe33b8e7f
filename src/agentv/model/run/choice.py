"""A judge's choice among several answers (SPEC section 7.2, `select-best`)."""

from __future__ import annotations

from dataclasses import dataclass

from agentv.model.values.response import TokenUsage


@dataclass(frozen=True, slots=True)
class Choice:
    """What a judge chose, shown the answers in two orders.

    Attributes:
        best: the place, from 0, of the answer that was chosen in each order; two that differ are a tie.
        reasons: what it said in each order, None where it gave no reason.
    """

    best: tuple[int, int]
    reasons: tuple[str | None, str | None] = (None, None)
    token_usage: TokenUsage | None = None
    cost_usd: float | None = None
