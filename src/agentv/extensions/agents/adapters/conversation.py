"""Messages of a conversation that an agent's session has not seen."""

from __future__ import annotations

from collections.abc import Sequence

from agentv.model.values.message import Message


def new_messages(messages: Sequence[Message]) -> Sequence[Message]:
    """The messages after the agent's last answer: those that its session has not seen."""
    answers = [place for place, one in enumerate(messages) if one.role == "assistant"]
    return messages[answers[-1] + 1 :] if answers else messages
