"""Test doubles for users of agentv: a scripted model server on loopback. Starting a server imports aiohttp."""

from __future__ import annotations

from agentv.model.values.message import ToolCall
from agentv.model.values.usage import TokenUsage
from agentv.testing.agent_script import AgentScript
from agentv.testing.server import ModelServer
from agentv.testing.steps import (
    Answer,
    ClosedConnection,
    ContentFilter,
    EmptyChoices,
    Hang,
    MalformedJson,
    ModelCall,
    SlowDrip,
    Status,
    Step,
    StoppedStream,
    Together,
    Truncated,
    WrongType,
    use_tool,
)

__all__ = ["AgentScript", "Answer", "ClosedConnection", "ContentFilter", "EmptyChoices", "Hang", "MalformedJson"]
__all__ += ["ModelCall", "ModelServer", "SlowDrip", "Status", "Step", "StoppedStream", "Together", "TokenUsage"]
__all__ += ["ToolCall", "Truncated", "WrongType", "use_tool"]
