"""What judges and scripts spent on several grades."""

from __future__ import annotations

from collections.abc import Iterable

from agentv.model.grade import Grade


def judges_cost(grades: Iterable[Grade]) -> float | None:
    """US dollars; None where nothing was spent, and where a part of it has no price, which no sum would tell."""
    grades = tuple(grades)
    if any(grade.cost_usd is None and grade.token_usage is not None for grade in grades):
        return None
    costs = [grade.cost_usd for grade in grades if grade.cost_usd is not None]
    return sum(costs) if costs else None
