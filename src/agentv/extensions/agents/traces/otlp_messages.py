"""Messages of a model call, in the forms that OpenTelemetry's GenAI conventions have had.

Today: the attributes `gen_ai.system_instructions`, `gen_ai.input.messages`, `gen_ai.output.messages`, on the span or
on the event `gen_ai.client.inference.operation.details`. Until version 1.36: one event a message, `gen_ai.user.message`
and so on, and `gen_ai.choice`. Before: `gen_ai.content.prompt` and `gen_ai.content.completion`. OpenLLMetry's:
`gen_ai.prompt.0.content`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agentv.extensions.agents.traces.otlp_spans import OtelSpan
from agentv.extensions.agents.traces.values import arguments_of, first, items, mapping, string, text_of
from agentv.model.values.json_text import parse
from agentv.model.values.lazy_pattern import lazy_pattern
from agentv.model.values.message import Role
from agentv.model.values.values import JsonObject

_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "model": "assistant",
    "tool": "tool",
}
_DETAILS = "gen_ai.client.inference.operation.details"
_EVENTS: Mapping[str, Role] = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_NUMBERED = lazy_pattern(r"gen_ai\.(prompt|completion)\.(\d{1,6})\.(role|content|tool_calls\.(\d{1,6})\.(\w+))")


@dataclass(frozen=True, slots=True)
class SpokenCall:
    """A call that a model asked for."""

    id: str
    name: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class Spoken:
    """A message that a model was given, or gave.

    Attributes:
        result_of: the id of the call whose result it is.
        result: of that call.
    """

    role: Role
    text: str = ""
    reasoning: str = ""
    calls: tuple[SpokenCall, ...] = ()
    result_of: str = ""
    result: Any = None


def given_and_said(span: OtelSpan) -> tuple[list[Spoken], list[Spoken]]:
    """What a model was given, and what it answered."""
    holders = [span.attributes, *(event.attributes for event in span.events if event.name == _DETAILS)]
    given: list[Spoken] = []
    said: list[Spoken] = []
    for holder in holders:
        system = _json(holder.get("gen_ai.system_instructions"))
        given += [Spoken("system", text_of(system))] if system else []
        given += _messages(holder.get("gen_ai.input.messages"), "user")
        said += _messages(holder.get("gen_ai.output.messages"), "assistant")
    for event in span.events:
        role = _EVENTS.get(event.name)
        if role is not None:
            given += _messages([{"role": role, **_unfolded(event.attributes)}], role)
        elif event.name == "gen_ai.choice":
            said += _choice(event.attributes)
        elif event.name == "gen_ai.content.prompt":
            given += _messages(event.attributes.get("gen_ai.prompt"), "user")
        elif event.name == "gen_ai.content.completion":
            said += _messages(event.attributes.get("gen_ai.completion"), "assistant")
    numbered = _numbered(span.attributes)
    return given or numbered[0], said or numbered[1]


def _json(value: Any) -> Any:
    """A value that some write as JSON text."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return parse(value.encode())
        except ValueError:
            return value
    return value


def _unfolded(attributes: JsonObject) -> dict[str, Any]:
    return {key.removeprefix("gen_ai.event."): _json(value) for key, value in attributes.items()}


def _choice(attributes: JsonObject) -> Iterator[Spoken]:
    row = _unfolded(attributes)
    message = row.get("message")
    inner = message if isinstance(message, Mapping) else {"content": message} if message is not None else row
    yield from _messages(
        [{"role": "assistant", **inner, **({"tool_calls": row["tool_calls"]} if "tool_calls" in row else {})}],
        "assistant",
    )


def _messages(value: Any, role: Role) -> Iterator[Spoken]:
    found = _json(value)
    if isinstance(found, str):
        yield Spoken(role, found)
        return
    for row in [found] if isinstance(found, Mapping) else items(found):
        if isinstance(row, str):
            yield Spoken(role, row)
        elif isinstance(row, Mapping):
            yield from _message(row, role)


def _message(row: JsonObject, default: Role) -> Iterator[Spoken]:
    role = _ROLES.get(string(row.get("role")), default)
    parts = _json(first(row, "parts", "content"))
    blocks = [mapping(part) for part in items(parts)]
    for part in blocks:
        if part.get("type") in {"tool_call_response", "tool_result"}:
            result = first(part, "response", "result", "content")
            yield Spoken("tool", result_of=string(first(part, "id", "tool_use_id")), result=result)
    if role == "tool":
        identity = string(first(row, "id", "tool_call_id"))
        if identity:
            yield Spoken("tool", result_of=identity, result=text_of(parts))
        return
    asked = [part for part in blocks if part.get("type") in {"tool_call", "tool_use"}]
    calls = tuple(_call(mapping(one)) for one in (*asked, *items(_json(row.get("tool_calls")))))
    thoughts = [text_of(part) for part in blocks if part.get("type") in {"reasoning", "thinking"}]
    rest = [part for part in items(parts) if not _is_special(part)] if isinstance(parts, list) else parts
    text = text_of(rest)
    if text or calls or thoughts:
        yield Spoken(role, text, "\n".join(thoughts), calls)


def _is_special(part: Any) -> bool:
    kinds = {"tool_call", "tool_use", "tool_call_response", "tool_result", "reasoning", "thinking"}
    return isinstance(part, Mapping) and part.get("type") in kinds


def _call(row: JsonObject) -> SpokenCall:
    inner = {**row, **mapping(_json(row.get("function")))}
    return SpokenCall(
        string(first(inner, "id", "call_id")),
        string(inner.get("name")),
        arguments_of(first(inner, "arguments", "input", "args")),
    )


def _numbered(attributes: JsonObject) -> tuple[list[Spoken], list[Spoken]]:
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for key, value in attributes.items():
        match = _NUMBERED.fullmatch(key)
        if match is None:
            continue
        row = rows.setdefault((match[1], int(match[2])), {})
        if match[4] is None:
            row[match[3]] = value
        else:
            row.setdefault("calls", {}).setdefault(int(match[4]), {})[match[5]] = value
    given: list[Spoken] = []
    said: list[Spoken] = []
    for (kind, _), row in sorted(rows.items()):
        calls = [call for _, call in sorted(row.pop("calls", {}).items())]
        message = {**row, "tool_calls": calls}
        (given if kind == "prompt" else said).extend(_message(message, "user" if kind == "prompt" else "assistant"))
    return given, said
