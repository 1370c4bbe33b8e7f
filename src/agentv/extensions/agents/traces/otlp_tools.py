"""What the span of a tool says of the call that it executed.

OpenTelemetry's conventions have attributes for it. OpenLLMetry puts what LangChain's callbacks get into JSON instead:
the arguments under `inputs`, the result as a serialized `ToolMessage`, and the id of the call within either.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentv.extensions.agents.traces.otlp_spans import OtelSpan
from agentv.extensions.agents.traces.values import arguments_of, first, mapping, string, text_of
from agentv.model.values.json_text import parse
from agentv.model.values.values import JsonObject


@dataclass(frozen=True, slots=True)
class Executed:
    """A call as the span of its tool describes it.

    Attributes:
        id: of the call; that of the span where it names none.
        error: why it failed; empty: it did not.
    """

    id: str
    name: str
    arguments: JsonObject
    result: Any
    error: str


def executed(span: OtelSpan) -> Executed:
    """The call that the span of a tool describes."""
    about = span.attributes
    name = string(first(about, "gen_ai.tool.name", "traceloop.entity.name")) or span.name.removeprefix("execute_tool ")
    given = first(about, "gen_ai.tool.call.arguments", "gen_ai.tool.arguments", "traceloop.entity.input")
    result = first(about, "gen_ai.tool.call.result", "gen_ai.tool.result", "traceloop.entity.output")
    arguments = arguments_of(given)
    identity, error = string(about.get("gen_ai.tool.call.id")), span.error
    if "traceloop.span.kind" in about:
        message = _tool_message(result)
        identity = identity or string(first({**mapping(arguments.get("kwargs")), **message}, "tool_call_id"))
        if message:
            result = message.get("content")
        if message.get("status") == "error":
            error = error or text_of(result) or "the tool failed"
        if "input_str" in arguments:
            arguments = arguments_of(first(arguments, "inputs", "input_str"))
    if about.get("agentv.status") == "failed":
        error = error or text_of(result) or "the tool failed"
    return Executed(identity or span.id, name, arguments, result, error)


def _tool_message(result: Any) -> JsonObject:
    """The fields of LangChain's `ToolMessage` in a result; empty where there is none."""
    found = result
    if isinstance(found, str) and found.startswith("{"):
        try:
            found = parse(found.encode())
        except (ValueError, UnicodeEncodeError):
            return {}
    output = mapping(found).get("output")
    fields = mapping(mapping(output).get("kwargs"))
    return fields if isinstance(output, Mapping) and fields.get("type") == "tool" else {}
