"""Read spans from OTLP (JSON or protobuf), and rename their attributes to OpenTelemetry's current GenAI conventions.

OpenInference (Phoenix) uses names such as `llm.input_messages.0.message.content`, `llm.token_count.prompt` and
`tool.name`. OpenLLMetry (Traceloop) writes what LangChain's callbacks receive as JSON: the arguments of a tool under
`inputs`, its result as a serialized `ToolMessage`, and the id of the call in either. Earlier versions of the GenAI
conventions used other names.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agentv.extensions.agents.traces.values import (
    Problems,
    arguments_of,
    as_json,
    first,
    items,
    mapping,
    number,
    records_of,
    string,
    text_of,
)
from agentv.model.values.json_text import plain
from agentv.model.values.response import Failure
from agentv.model.values.values import JsonObject

_ERROR = {2, "2", "STATUS_CODE_ERROR"}
_DEEPEST = 50


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """An event of a span."""

    name: str
    attributes: JsonObject


@dataclass(frozen=True, slots=True)
class OtelSpan:
    """A span. Times are in milliseconds since the epoch; `error` is empty if the span succeeded."""

    trace_id: str
    id: str
    parent: str
    name: str
    attributes: JsonObject
    events: tuple[SpanEvent, ...]
    started_ms: float | None
    ended_ms: float | None
    error: str
    resource: JsonObject


def spans_of(data: bytes, problems: Problems) -> list[OtelSpan] | Failure:
    """Return the spans in a file, or a Failure if it has none or cannot be read.

    Args:
        data: JSON, JSON Lines, or protobuf (`TracesData`, `ExportTraceServiceRequest`).
        problems: collects what cannot be read.
    """
    if is_json(data):
        documents = list(records_of(data, problems))
    else:
        found = _from_protobuf(data)
        if isinstance(found, Failure):
            return found
        documents = [(1, found)]
    spans = [span for line, document in documents for span in _in_document(document, f"line {line}", problems)]
    if not spans:
        why = f": {problems}" if problems else ""
        return Failure("bad-trace", f"the file has no spans of OTLP{why}")
    return spans


def is_json(data: bytes) -> bool:
    """Whether the data is JSON rather than protobuf."""
    return data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[", b"")


def _from_protobuf(data: bytes) -> Any | Failure:
    try:
        from google.protobuf.json_format import MessageToDict
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
    except ImportError:
        return Failure("missing-extra", "OTLP in protobuf needs a library: pip install 'agentv[otel]'")
    try:
        message = TracesData.FromString(data)
    except DecodeError as error:
        return Failure("bad-trace", f"the file is neither JSON nor protobuf of OTLP: {error}")
    return with_ids(MessageToDict(message), lambda text: base64.b64decode(text).hex())


def with_ids(document: Any, convert: Callable[[str], str]) -> Any:
    """Return the document with its ids converted: OTLP's JSON has them in hexadecimal, protobuf's in base64."""
    if isinstance(document, list):
        return [with_ids(one, convert) for one in document]
    if not isinstance(document, Mapping):
        return document
    return {key: convert(string(one)) if key in _IDS else with_ids(one, convert) for key, one in document.items()}


_IDS = frozenset({"traceId", "spanId", "parentSpanId"})


def _in_document(document: Any, where: str, problems: Problems) -> Iterator[OtelSpan]:
    root = mapping(document)
    resources = first(root, "resourceSpans", "resource_spans")
    if resources is None:
        problems.note(f"{where} has no 'resourceSpans'")
    for resource in map(mapping, items(resources)):
        about = _attributes(mapping(resource.get("resource")).get("attributes"))
        scopes = first(resource, "scopeSpans", "scope_spans", "instrumentationLibrarySpans")
        for scope in map(mapping, items(scopes)):
            for row in items(scope.get("spans")):
                span = span_of(mapping(row), about)
                if span is None:
                    problems.note(f"{where}: a span has no 'spanId'")
                else:
                    yield span


def span_of(row: JsonObject, resource: JsonObject) -> OtelSpan | None:
    """Return the span in a row of OTLP's JSON, or None if it has no id.

    Args:
        row: the span; its attributes may also be a plain mapping.
        resource: attributes of the span's resource.
    """
    identity = string(first(row, "spanId", "span_id")).lower()
    if not identity:
        return None
    parent = string(first(row, "parentSpanId", "parent_span_id")).lower()
    status = mapping(row.get("status"))
    failed = first(status, "code") in _ERROR
    attributes = _attributes(row.get("attributes"))
    rows = map(mapping, items(row.get("events")))
    events = tuple(SpanEvent(string(one.get("name")), _attributes(one.get("attributes"))) for one in rows)
    message = string(status.get("message")).partition("Traceback (most recent call last)")[0].strip()
    raised = next((event.attributes for event in events if event.name == "exception"), {})
    message = message or string(first(raised, "exception.message", "exception.type"))
    message = message or string(attributes.get("error.type"))
    return OtelSpan(
        trace_id=string(first(row, "traceId", "trace_id")).lower(),
        id=identity,
        parent=parent if parent.strip("0") else "",
        name=string(row.get("name")),
        attributes=attributes,
        events=events,
        started_ms=_ms(first(row, "startTimeUnixNano", "start_time_unix_nano")),
        ended_ms=_ms(first(row, "endTimeUnixNano", "end_time_unix_nano")),
        error=(message or "the span ended with an error") if failed or "error.type" in attributes else "",
        resource=resource,
    )


def _ms(value: Any) -> float | None:
    found = number(value)
    return None if not found else found / 1e6


def _attributes(rows: Any) -> dict[str, Any]:
    if isinstance(rows, Mapping):
        return {str(key): plain(value, cut=True) for key, value in rows.items()}
    return {string(row.get("key")): _value(row.get("value"), 0) for row in map(mapping, items(rows)) if row.get("key")}


def _value(value: Any, depth: int) -> Any:
    if not isinstance(value, Mapping) or depth == _DEEPEST:
        return None if isinstance(value, Mapping) else value
    if (listed := first(value, "arrayValue", "array_value")) is not None:
        return [_value(one, depth + 1) for one in items(mapping(listed).get("values"))]
    if (object_ := first(value, "kvlistValue", "kvlist_value")) is not None:
        rows = map(mapping, items(mapping(object_).get("values")))
        return {string(row.get("key")): _value(row.get("value"), depth + 1) for row in rows}
    whole = first(value, "intValue", "int_value")
    if whole is not None:
        found = number(whole)
        return whole if found is None else int(found)
    return first(value, "stringValue", "string_value", "doubleValue", "double_value", "boolValue", "bool_value")


MODEL_CALLS = frozenset({"chat", "text_completion", "generate_content"})
AGENTS = frozenset({"invoke_agent", "invoke_workflow"})
TOOLS = frozenset({"execute_tool"})
_KNOWN = MODEL_CALLS | AGENTS | TOOLS

_KINDS: Mapping[str, str] = {"LLM": "chat", "TOOL": "execute_tool", "AGENT": "invoke_agent"}
"""OpenInference span kind → GenAI operation."""

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
"""Attribute name of an earlier convention, OpenInference or pydantic-ai → current name."""

_AGENT_NAMES = {**_NAMES, "traceloop.entity.name": "gen_ai.agent.name"}
_TOOL_NAMES = {
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
"""Prefix of attributes that each hold one field of one message → attribute that holds all messages."""

_WRAPPERS = frozenset({"message", "message_content", "tool_call"})
"""OpenInference keys that wrap a message, a part of a message, or a tool call."""


def operation_of(span: OtelSpan) -> str:
    """The GenAI operation of a canonical span; empty if the span does not belong in a trace."""
    return string(span.attributes.get("gen_ai.operation.name"))


def canonical(span: OtelSpan) -> OtelSpan:
    """Return the span with current GenAI attribute names; attributes that already have one take precedence."""
    given = span.attributes
    operation = _operation(span)
    names = _TOOL_NAMES if operation in TOOLS else _AGENT_NAMES if operation in AGENTS else _NAMES
    found = {names[key]: value for key, value in given.items() if key in names and value is not None}
    span = replace(span, attributes={**_messages(given), **found, **given, "gen_ai.operation.name": operation})
    return _tool(span) if operation in TOOLS else span


def _operation(span: OtelSpan) -> str:
    operation = string(span.attributes.get("gen_ai.operation.name"))
    if operation:
        return operation if operation in _KNOWN else ""
    kind = string(span.attributes.get("openinference.span.kind"))
    if kind:
        return _KINDS.get(kind.upper(), "")
    kind = string(span.attributes.get("traceloop.span.kind"))
    if kind in {"agent", "tool"}:
        return "invoke_agent" if kind == "agent" else "execute_tool"
    if "gen_ai.tool.name" in span.attributes:
        return "execute_tool"
    is_model_call = {"gen_ai.request.model", "gen_ai.system"} & span.attributes.keys()
    word = span.name.partition(" ")[0]
    return word if word in _KNOWN else "chat" if is_model_call else ""


def _messages(attributes: JsonObject) -> dict[str, Any]:
    """Collect the messages whose fields are separate attributes."""
    trees: dict[str, dict[str, Any]] = {}
    for key, value in attributes.items():
        prefix = next((one for one in _NUMBERED if key.startswith(one)), "")
        if not prefix:
            continue
        tree = trees.setdefault(_NUMBERED[prefix], {})
        *above, last = key.removeprefix(prefix).split(".", _DEEPEST_KEY)
        for step in above:
            inner = tree.get(step)
            tree = inner if isinstance(inner, dict) else tree.setdefault(step, {}) if inner is None else {}
        tree[last] = value
    return {name: _listed(tree) for name, tree in trees.items()}


_DEEPEST_KEY = 12


def _listed(tree: Any) -> Any:
    """Convert numbered keys to lists, and remove OpenInference's wrappers."""
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
    """Return a tool's span with its arguments and result unpacked from the framework's format."""
    about = dict(span.attributes)
    arguments, result = arguments_of(about.get("gen_ai.tool.call.arguments")), about.get("gen_ai.tool.call.result")
    message = _tool_message(result)
    identity = about.get("gen_ai.tool.call.id")
    identity = identity or first({**mapping(arguments.get("kwargs")), **message}, "tool_call_id")
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
    """The fields of LangChain's `ToolMessage` in a result, or {} for other results."""
    found = mapping(as_json(result))
    for inner in (mapping(found.get("output")), found):
        fields = mapping(first(inner, "kwargs", "data"))
        if fields.get("type") == "tool":
            return fields
    return {}
