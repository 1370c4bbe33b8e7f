"""Calls of tools in messages, with the ids that model APIs join a call and its result by, and the tools themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from agentv.model.values.message import Message, ToolCall
from agentv.model.values.values import Json, JsonObject
from agentv.registry.fields import Issue

GENERATED_ID = "call_agentv_"
"""How the ids begin that calls get here. No API has given them."""


@dataclass(frozen=True, slots=True)
class ToolStep:
    """A message with what it says of tools.

    Attributes:
        calls: those that it asks for; each has an id.
        result_of: the call whose result a message of the role `tool` holds; None: no call before it is open.
    """

    message: Message
    calls: tuple[ToolCall, ...] = ()
    result_of: ToolCall | None = None


def tool_steps(messages: Iterable[Message]) -> Iterator[ToolStep]:
    """The messages in their order, calls and results joined.

    A result belongs to the open call that its `name` names by id, else by tool, else to the first open one: messages
    of the role `tool` come in the order of the calls. A call without an id gets one, beginning with `MADE`.
    """
    pending: list[ToolCall] = []
    for number, message in enumerate(messages):
        if message.role == "tool":
            yield ToolStep(message, result_of=_answered(message.name, pending))
        else:
            calls = tuple(
                _with_id(call, f"{GENERATED_ID}{number}_{place}") for place, call in enumerate(message.tool_calls)
            )
            pending += calls
            yield ToolStep(message, calls)


def _with_id(call: ToolCall, identity: str) -> ToolCall:
    return call if call.id else replace(call, id=identity)


def _answered(name: str | None, pending: list[ToolCall]) -> ToolCall | None:
    """The open call that a result answers; it is open no more."""
    named = next((call for call in pending if name is not None and call.id == name), None)
    named = named or next((call for call in pending if call.name == name), None)
    found = named or next(iter(pending), None)
    if found is not None:
        pending.remove(found)
    return found


def tool_issues(tools: Sequence[Json]) -> Iterator[Issue]:
    """Reports tools that are not objects, which no API accepts."""
    for place, tool in enumerate(tools):
        if not isinstance(tool, Mapping):
            yield Issue(("tools", place), "a tool must be an object: {type: function, function: {name, parameters}}")


def functions_in(tools: Sequence[Json]) -> tuple[list[JsonObject], list[Json]]:
    """The functions that tools in OpenAI's shape declare (`name`, `description`, `parameters`), and all other tools.

    So that one list of tools serves every provider; the others are in the provider's own shape.
    """
    functions: list[JsonObject] = []
    others: list[Json] = []
    for tool in tools:
        inner = tool.get("function") if isinstance(tool, Mapping) and tool.get("type") == "function" else None
        if isinstance(inner, Mapping):
            functions.append(inner)
        else:
            others.append(tool)
    return functions, others
