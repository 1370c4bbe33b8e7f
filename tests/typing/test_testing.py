"""The public types of agentv.testing as mypy sees them; pytest runs this module too, to check its imports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_type

from agentv.testing import Answer, ModelCall, ModelServer, Status, Step, ToolCall


def reply(call: ModelCall) -> str | Step:
    return Status(429, retry_after=1.5) if call.model == "busy" else Answer(call.text, tool_calls=(ToolCall("a", {}),))


def check_types() -> None:
    told = [ModelServer("a"), ModelServer(Answer("a")), ModelServer(reply), ModelServer(["a", Status(500)])]
    with told[0] as server:
        assert_type(server, ModelServer)
        assert_type(server.openai, str)
        assert_type(server.calls, list[ModelCall])
        assert_type(server.statuses, Mapping[int, int])
        assert_type(server.most_at_once, int)


async def check_types_of_coroutines() -> None:
    async with ModelServer(lambda call: call.prompt, rate=10, delay_s=0.1, keys=["k"]) as server:
        assert_type(server, ModelServer)


def test_the_types_are_those_of_what_runs() -> None:
    check_types()
