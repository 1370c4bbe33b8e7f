"""Test doubles for users of agentv: a scripted model server on loopback.

Names are loaded when first used; aiohttp when a server is started.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentv.model.values.message import ToolCall
    from agentv.model.values.usage import TokenUsage
    from agentv.testing.agents.script import AgentScript
    from agentv.testing.calls import ModelCall
    from agentv.testing.server import ModelServer
    from agentv.testing.steps import (
        Answer,
        ClosedConnection,
        ContentFilter,
        EmptyChoices,
        Hang,
        MalformedJson,
        SlowDrip,
        Status,
        Step,
        StoppedStream,
        Together,
        Truncated,
        WrongType,
        use_tool,
    )

_PLACES = {
    "AgentScript": "agentv.testing.agents.script",
    "Answer": "agentv.testing.steps",
    "ClosedConnection": "agentv.testing.steps",
    "ContentFilter": "agentv.testing.steps",
    "EmptyChoices": "agentv.testing.steps",
    "Hang": "agentv.testing.steps",
    "MalformedJson": "agentv.testing.steps",
    "ModelCall": "agentv.testing.calls",
    "ModelServer": "agentv.testing.server",
    "SlowDrip": "agentv.testing.steps",
    "Status": "agentv.testing.steps",
    "Step": "agentv.testing.steps",
    "StoppedStream": "agentv.testing.steps",
    "TokenUsage": "agentv.model.values.response",
    "Together": "agentv.testing.steps",
    "ToolCall": "agentv.model.values.message",
    "Truncated": "agentv.testing.steps",
    "WrongType": "agentv.testing.steps",
    "use_tool": "agentv.testing.steps",
}

__all__ = [
    "AgentScript",
    "Answer",
    "ClosedConnection",
    "ContentFilter",
    "EmptyChoices",
    "Hang",
    "MalformedJson",
    "ModelCall",
    "ModelServer",
    "SlowDrip",
    "Status",
    "Step",
    "StoppedStream",
    "Together",
    "TokenUsage",
    "ToolCall",
    "Truncated",
    "WrongType",
    "use_tool",
]


def __getattr__(name: str) -> object:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'agentv.testing' has no attribute {name!r}")
    return getattr(import_module(place), name)


def __dir__() -> list[str]:
    return sorted(__all__)
