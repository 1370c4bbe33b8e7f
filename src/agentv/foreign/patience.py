"""How long somebody waits for a call of foreign code, and what is known of why that was too short."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

LONGEST_S = 30.0
"""Seconds that calls wait for an event loop that does not respond: as long as loading a model takes in a first call."""


@dataclass(slots=True)
class Limit:
    """The time limit of one call.

    Attributes:
        seconds: what the call may take.
        reason: what held it up, where it is known by the time that the limit has passed.
    """

    seconds: float
    reason: str | None = None

    @property
    def patience_s(self) -> float:
        """Seconds that the call waits to begin before it begins elsewhere: enough of its limit has to be left."""
        return min(LONGEST_S, self.seconds / 4)


LIMIT: ContextVar[Limit | None] = ContextVar("agentv_limit", default=None)
"""The limit of the call that the current task waits for. Who waits sets it; whoever runs the call reads it."""
