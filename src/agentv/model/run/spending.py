"""Cost of judges and scripts over several grades."""

from __future__ import annotations

from collections.abc import Iterable

from agentv.model.run.grade import Grade
from agentv.model.values.response import TokenUsage


def spent_on(grades: Iterable[Grade]) -> tuple[float | None, TokenUsage | None]:
    """US dollars, and tokens; None where no grade says.

    The cost is None too where a part of it has no price: a sum of the others would pretend to be all of it.
    """
    cost: float | None = None
    usage: TokenUsage | None = None
    priced = True
    for grade in grades:
        if grade.cost_usd is not None:
            cost = (cost or 0.0) + grade.cost_usd
        if grade.token_usage is not None:
            usage = grade.token_usage if usage is None else usage + grade.token_usage
            priced = priced and grade.cost_usd is not None
    return cost if priced else None, usage
