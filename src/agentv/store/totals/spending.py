"""What calls cost, of targets, judges and simulated users, for each combination of target, prompt and variant."""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from agentv.model.run.row import Row
from agentv.model.values.usage import TokenUsage


class Cell(NamedTuple):
    """A combination that trials ran with."""

    target: str
    prompt: str | None
    variant: str | None


class Spent:
    """Costs of some rows. `reused`: how many have an answer that was paid for elsewhere."""

    def __init__(self) -> None:
        self.targets = Spending()
        self.judges = Spending()
        self.users = Spending()
        self.reused = 0

    def add(self, row: Row) -> None:
        """Take in a row."""
        if row.reused:  # another run paid for the answer
            self.reused += 1
        else:
            self.targets.add(row.cost_usd, row.token_usage)
        self.judges.add(row.judge_cost_usd, row.judge_token_usage)
        self.users.add(row.user_cost_usd, row.user_token_usage)

    def merge(self, other: Spent) -> None:
        """Take in other rows."""
        self.targets.merge(other.targets)
        self.judges.merge(other.judges)
        self.users.merge(other.users)
        self.reused += other.reused


class Spending:
    """Sums over rows; None as long as none says. `unpriced` counts those that tell tokens and no price."""

    def __init__(self) -> None:
        self._cost: float | None = None
        self.tokens: TokenUsage | None = None
        self.unpriced = 0

    def add(self, cost_usd: float | None, tokens: TokenUsage | None) -> None:
        """Take in what one row says."""
        if cost_usd is not None:
            self._cost = (self._cost or 0.0) + cost_usd
        if tokens is not None:
            self.tokens = tokens if self.tokens is None else self.tokens + tokens
            self.unpriced += cost_usd is None

    def merge(self, other: Spending) -> None:
        """Take in the sums of other rows."""
        if other._cost is not None:
            self._cost = (self._cost or 0.0) + other._cost
        if other.tokens is not None:
            self.tokens = other.tokens if self.tokens is None else self.tokens + other.tokens
        self.unpriced += other.unpriced

    @property
    def cost_usd(self) -> float | None:
        """US dollars."""
        return None if self._cost is None else round(self._cost, 10)


class SpentByCell:
    """Costs of the rows of a run, by what their trials ran with."""

    def __init__(self) -> None:
        self._cells: dict[tuple[str, str | None, str | None], Spent] = {}

    def add(self, row: Row) -> None:
        """Take in a row."""
        cell = (row.target, row.prompt_id, row.variant)
        found = self._cells.get(cell)
        if found is None:
            found = self._cells[cell] = Spent()
        found.add(row)

    def of(self, cells: Container[tuple[str, str | None, str | None]] | None = None) -> Spent:
        """The costs of some cells; None: of all rows."""
        whole = Spent()
        for cell, spent in self._cells.items():
            if cells is None or cell in cells:
                whole.merge(spent)
        return whole
