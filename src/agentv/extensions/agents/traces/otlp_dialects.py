"""Spans of other conventions in the words of OpenTelemetry's GenAI conventions of today.

OpenInference (Phoenix) names them `llm.input_messages.0.message.content`, `llm.token_count.prompt`, `tool.name`.
OpenLLMetry (Traceloop) puts what LangChain's callbacks get into JSON: the arguments of a tool under `inputs`, its
result as a serialized `ToolMessage`, and the id of the call within either. Earlier versions of the GenAI conventions
had other names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agentv.extensions.agents.traces.messages import as_json
from agentv.extensions.agents.traces.otlp_spans import OtelSpan
from agentv.extensions.agents.traces.values import arguments_of, first, mapping, string, text_of
from agentv.model.values.values import JsonObject

MODEL_CALLS = frozenset({"chat", "text_completion", "generate_content"})
AGENTS = frozenset({"invoke_agent", "invoke_workflow"})
TOOLS = frozenset({"execute_tool"})
_KNOWN = MODEL_CALLS | AGENTS | TOOLS

_KINDS: Mapping[str, str] = {"LLM": "chat", "TOOL": "execute_tool", "AGENT": "invoke_agent"}
"""Kind of a span of OpenInference → what it is about."""

_NAMES: Mapping[str, str] = {
    "gen_ai.usage.prompt_tokens": "gen_ai.usage.input_tokens",
    "gen_ai.usage.completion_tokens": "gen_ai.usage.output_tokens",
    "gen_ai.usage.cached_tokens": "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
    "gen_ai.tool.arguments": "gen_ai.tool.call.arguments",
    "gen_ai.tool.result": "gen_ai.tool.call.result",
    "llm.token_count.prompt": "gen_ai.usage.input_tokens",
    "llm.token_count.completion": "gen_ai.usage.output_tokens",
    "llm.token_count.prompt_details.cache_read": "gen_ai.usage.cache_read.input_tokens",
    "llm.token_count.completion_details.reasoning": "gen_ai.usage.reasoning.output_tokens",
    "llm.cost.total": "gen_ai.usage.cost",
    "llm.model_name": "gen_ai.response.model",
    "llm.finish_reason": "gen_ai.response.finish_reasons",
    "agent.name": "gen_ai.agent.name",
    "session.id": "gen_ai.conversation.id",
    "tool.name": "gen_ai.tool.name",
    "tool_call.id": "gen_ai.tool.call.id",
    "tool.id": "gen_ai.tool.call.id",
    "operation.cost": "gen_ai.usage.cost",
    "tool_arguments": "gen_ai.tool.call.arguments",
    "tool_response": "gen_ai.tool.call.result",
}
"""An attribute by its earlier name, that of OpenInference or of pydantic-ai → as it is called today."""

_OF_AGENTS = {**_NAMES, "traceloop.entity.name": "gen_ai.agent.name"}
_OF_TOOLS = {
    **_NAMES,
    "traceloop.entity.name": "gen_ai.tool.name",
    "traceloop.entity.input": "gen_ai.tool.call.arguments",
    "traceloop.entity.output": "gen_ai.tool.call.result",
    "input.value": "gen_ai.tool.call.arguments",
    "output.value": "gen_ai.tool.call.result",
}

_NUMBERED: Mapping[str, str] = {
    "gen_ai.prompt.": "gen_ai.input.messages",
    "gen_ai.completion.": "gen_ai.output.messages",
    "llm.input_messages.": "gen_ai.input.messages",
    "llm.output_messages.": "gen_ai.output.messages",
}
"""How attributes begin that hold one field of one message each → the attribute that holds all messages."""

_WRAPPERS = frozenset({"message", "message_content", "tool_call"})
"""Keys of OpenInference that hold a message, a part of it or a call, and nothing beside it."""


def operation_of(span: OtelSpan) -> str:
    """What a canonical span is about; empty: nothing that belongs into a trace."""
    return string(span.attributes.get("gen_ai.operation.name"))


def canonical(span: OtelSpan) -> OtelSpan:
    """The span with the attributes of today's GenAI conventions; those that it has already win."""
    given = span.attributes
    operation = _operation(span)
    names = _OF_TOOLS if operation in TOOLS else _OF_AGENTS if operation in AGENTS else _NAMES
    found = {names[key]: value for key, value in given.items() if key in names and value is not None}
    span = replace(span, attributes={**_messages(given), **found, **given, "gen_ai.operation.name": operation})
    return _tool(span) if operation in TOOLS else span


def _operation(span: OtelSpan) -> str:
    said = string(span.attributes.get("gen_ai.operation.name"))
    if said:
        return said if said in _KNOWN else ""
    kind = string(span.attributes.get("openinference.span.kind"))
    if kind:
        return _KINDS.get(kind.upper(), "")
    kind = string(span.attributes.get("traceloop.span.kind"))
    if kind in {"agent", "tool"}:
        return "invoke_agent" if kind == "agent" else "execute_tool"
    if "gen_ai.tool.name" in span.attributes:
        return "execute_tool"
    asked = {"gen_ai.request.model", "gen_ai.system"} & span.attributes.keys()
    word = span.name.partition(" ")[0]
    return word if word in _KNOWN else "chat" if asked else ""


def _messages(attributes: JsonObject) -> dict[str, Any]:
    """The messages whose fields are attributes of their own."""
    trees: dict[str, dict[str, Any]] = {}
    for key, value in attributes.items():
        prefix = next((one for one in _NUMBERED if key.startswith(one)), "")
        if not prefix:
            continue
        tree = trees.setdefault(_NUMBERED[prefix], {})
        *above, last = key.removeprefix(prefix).split(".", _DEEPEST)
        for step in above:
            inner = tree.get(step)
            tree = inner if isinstance(inner, dict) else tree.setdefault(step, {}) if inner is None else {}
        tree[last] = value
    return {name: _listed(tree) for name, tree in trees.items()}


_DEEPEST = 12


def _listed(tree: Any) -> Any:
    """Numbered keys as a list, and what is wrapped without its wrapper."""
    if not isinstance(tree, dict):
        return tree
    if tree and all(key.isdecimal() for key in tree):
        return [_listed(tree[key]) for key in sorted(tree, key=int)]
    fields = {key: _listed(value) for key, value in tree.items()}
    wrapped = next((value for key, value in fields.items() if key in _WRAPPERS), None)
    if isinstance(wrapped, dict):
        return wrapped
    return {**fields, "content": fields["contents"]} if "contents" in fields else fields


def _tool(span: OtelSpan) -> OtelSpan:
    """The span of a tool with plain arguments and result, whatever framework wrote them into it."""
    about = dict(span.attributes)
    arguments, result = arguments_of(about.get("gen_ai.tool.call.arguments")), about.get("gen_ai.tool.call.result")
    message = _tool_message(result)
    identity = first(about, "gen_ai.tool.call.id") or first(
        {**mapping(arguments.get("kwargs")), **message}, "tool_call_id"
    )
    if message:
        result = message.get("content")
    if "input_str" in arguments:
        arguments = arguments_of(first(arguments, "inputs", "input_str"))
    error = span.error
    if message.get("status") == "error" or about.get("agentv.status") == "failed":
        error = error or text_of(result) or "the tool failed"
    name = string(about.get("gen_ai.tool.name")) or span.name.removeprefix("execute_tool ")
    facts = {"gen_ai.tool.name": name, "gen_ai.tool.call.arguments": arguments, "gen_ai.tool.call.result": result}
    if isinstance(identity, str) and identity:
        facts["gen_ai.tool.call.id"] = identity
    return replace(span, attributes={**about, **facts}, error=error)


def _tool_message(result: Any) -> JsonObject:
    """The fields of LangChain's `ToolMessage` in a result; empty for other results."""
    found = mapping(as_json(result))
    for inner in (mapping(found.get("output")), found):
        fields = mapping(first(inner, "kwargs", "data"))
        if fields.get("type") == "tool":
            return fields
    return {}
