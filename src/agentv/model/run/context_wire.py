"""The wire object of a context, written and read back: for workers, `agentv assert --file`, and files run by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from agentv.model.run.context import AssertionContext
from agentv.model.run.trace_summary import ToolCount, TraceSummary
from agentv.model.values.message import Message, messages_from_json
from agentv.model.values.retrieved import read_context
from agentv.model.values.trace_messages import PARTIAL
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import Json, JsonObject

T = TypeVar("T")

_BESIDE = (
    "case_id",
    "threshold",
    "finish_reason",
    "answered",
    "value",
    "target",
    "has_transcript",
    "tool_state",
    "allow_empty",
)
"""What a worker gets of a context beside the keys of section 8, under the names of its attributes."""


def wire_of_context(context: AssertionContext, config: JsonObject | None = None) -> dict[str, Json]:
    """The wire object that a worker makes the context of again.

    Args:
        context: of an answer.
        config: of the assertion; None: that of the context.
    """
    wire = {**context.payload, **{name: getattr(context, name) for name in _BESIDE}}
    if config is not None:
        wire["config"] = config
    if context.partial:
        wire["response_metadata"] = {**context.response_metadata, PARTIAL: context.partial}
    return wire


def context_from_wire(wire: JsonObject, services: Any, env: Mapping[str, str]) -> AssertionContext:
    """The context in a worker, with the services and the environment that it has there."""
    beside: dict[str, Any] = {name: wire[name] for name in _BESIDE}
    context = replace(context_from_json(wire), env=env, _services=services, **beside)
    vars(context).update(trace=wire["trace"], trace_summary=_summary(wire["trace_summary"]))  # type: ignore[arg-type]  # of `wire_of_context`
    return context


_WORDS: Mapping[type, str] = {str: "text", Mapping: "an object", list: "a list"}


def context_from_json(payload: JsonObject) -> AssertionContext:
    """The context from a wire object (SPEC section 8, "Context"). Missing values are None or empty.

    Raises:
        ValueError: a key has the wrong type; the text names it.
    """
    context = AssertionContext(
        input=_messages(payload, "input", "user"),
        output=_read(payload, "output", str),
        messages=_messages(payload, "messages", "assistant"),
        expected_output=_messages(payload, "expected_output", "assistant"),
        criteria=_read(payload, "criteria", str),
        metadata=_read(payload, "metadata", Mapping) or {},
        vars=_read(payload, "vars", Mapping) or {},
        config=_read(payload, "config", Mapping) or {},
        token_usage=_with(TokenUsage.from_json, _read(payload, "token_usage", Mapping)),
        cost_usd=_number(payload, "cost_usd"),
        duration_ms=_number(payload, "duration_ms"),
        time_to_first_token_ms=_number(payload, "time_to_first_token_ms"),
        workspace_path=_read(payload, "workspace_path", str),
        context=read_context(payload.get("context")),
        response_metadata=_read(payload, "response_metadata", Mapping) or {},
    )
    # these are worked out from the messages, unless the payload says them
    values = {
        "input_files": _with(tuple, _read(payload, "input_files", list)),
        "trace": _with(dict, _read(payload, "trace", Mapping)),
        "trace_summary": _with(_summary, _read(payload, "trace_summary", Mapping)),
    }
    vars(context).update({name: value for name, value in values.items() if value})
    return context


def _read(payload: JsonObject, key: str, cls: type) -> Any:
    value = payload.get(key)
    if value is not None and not isinstance(value, cls):
        wanted = _WORDS[cls]
        raise ValueError(f"'{key}' must be {wanted}, found {type(value).__name__}")
    return value


def _number(payload: JsonObject, key: str) -> float | None:
    value = payload.get(key)
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    raise ValueError(f"'{key}' must be a number, found {type(value).__name__}")


def _messages(payload: JsonObject, key: str, role: str) -> tuple[Message, ...]:
    value = payload.get(key)
    if value is None:
        return ()
    rows: Sequence[Json] = value if isinstance(value, list) else [value]
    return messages_from_json([row if isinstance(row, Mapping) else {"role": role, "content": row} for row in rows])


def _summary(row: Mapping[str, Json]) -> TraceSummary:
    counts = {name: _number(row, name) for name in _COUNTS}
    return TraceSummary(
        **{name: int(count) for name, count in counts.items() if count is not None},
        tools=tuple(map(_tool, _read(row, "tools", list) or ())),
        token_usage=_with(TokenUsage.from_json, _read(row, "token_usage", Mapping)),
        cost_usd=_number(row, "cost_usd"),
        duration_ms=_number(row, "duration_ms"),
    )


def _tool(row: Json) -> ToolCount:
    name = row.get("name") if isinstance(row, Mapping) else None
    if not isinstance(row, Mapping) or not isinstance(name, str):
        raise ValueError("'tools' must be a list of objects with 'name' and 'calls'")  # noqa: TRY004  # as all others
    return ToolCount(name, int(_number(row, "calls") or 0), int(_number(row, "errors") or 0))


_COUNTS = ("event_count", "tool_calls", "error_count", "llm_call_count")


def _with(make: Callable[[Any], T], value: Any) -> T | None:
    return None if value is None else make(value)
