"""Activity of an agent that is still working, for the progress display."""

from __future__ import annotations

from msgspec import Struct


class AgentActivity(Struct, frozen=True):
    """What an agent has done so far in its trial.

    Attributes:
        last_tool: canonical name of the last tool that it called; empty: none yet.
        turns: calls of its model.
        tokens: of all calls so far; None where unknown.
        cost_usd: of all calls so far; None where unknown.
    """

    last_tool: str = ""
    turns: int = 0
    tool_calls: int = 0
    tokens: int | None = None
    cost_usd: float | None = None
