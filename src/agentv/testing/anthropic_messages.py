"""Anthropic's Messages API, with streaming and errors (https://docs.anthropic.com/en/api/messages)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import JsonObject
from agentv.testing.replies import ModelApi, Operation, ReplyStep, event, stream_pieces
from agentv.testing.steps import Answer, ContentFilter, ModelCall, usage_in

_ERRORS = {
    400: ("invalid_request_error", "Invalid request."),
    401: ("authentication_error", "invalid x-api-key"),
    403: ("permission_error", "Your API key does not have permission to use the specified resource."),
    404: ("not_found_error", "model: {model}"),
    429: ("rate_limit_error", "This request would exceed your organization's rate limit."),
    529: ("overloaded_error", "Overloaded"),
}


def message_body(call: ModelCall, step: ReplyStep, number: int) -> JsonObject:
    """The JSON of a `message` object."""
    stop = "refusal" if isinstance(step, ContentFilter) else "end_turn"
    if isinstance(step, Answer):
        called = step.tool_calls and step.refusal is None
        stop = step.finish_reason or ("tool_use" if called else stop)
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": call.model,
        "content": list(_blocks(step, number)),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": usage_of(usage_in(step) or TokenUsage()),
    }


def _blocks(step: ReplyStep, number: int) -> Iterator[dict[str, Any]]:
    if not isinstance(step, Answer):
        return
    if step.reasoning:
        yield {"type": "thinking", "thinking": step.reasoning, "signature": f"signature-{number}"}
    text = step.text if step.refusal is None else step.refusal
    if text or not step.tool_calls:
        yield {"type": "text", "text": text, "citations": None}
    for place, one in enumerate(step.tool_calls):
        identity = one.id or f"toolu_{number}_{place}"
        yield {"type": "tool_use", "id": identity, "name": one.name, "input": dict(one.arguments)}


def usage_of(usage: TokenUsage) -> dict[str, Any]:
    """The JSON of `usage`. Anthropic does not include cached tokens in `input_tokens`."""
    cached = usage.cached or 0
    return {
        "input_tokens": max(0, (usage.input or 0) - cached),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": usage.output or 0,
        "output_tokens_details": {"thinking_tokens": usage.reasoning or 0},
    }


def message_events(_call: ModelCall, body: JsonObject) -> Iterator[bytes]:
    """The events of a streamed message, from `message_start` to `message_stop`."""
    whole: dict[str, Any] = dict(body)
    started = {**whole["usage"], "output_tokens": 1}
    yield _event("message_start", message={**whole, "content": [], "stop_reason": None, "usage": started})
    for index, block in enumerate(whole["content"]):
        yield from _block_events(index, block)
        yield _event("ping")
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield _event("message_delta", delta=delta, usage=whole["usage"])
    yield _event("message_stop")


def _block_events(index: int, block: dict[str, Any]) -> Iterator[bytes]:
    deltas: list[dict[str, Any]]
    if block["type"] == "text":
        empty = {**block, "text": ""}
        deltas = [{"type": "text_delta", "text": word} for word in stream_pieces(block["text"])]
    elif block["type"] == "thinking":
        empty = {**block, "thinking": "", "signature": ""}
        deltas = [{"type": "thinking_delta", "thinking": word} for word in stream_pieces(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    else:
        empty = {**block, "input": {}}
        pieces = stream_pieces(json.dumps(block["input"]))
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    yield _event("content_block_start", index=index, content_block=empty)
    for delta in deltas:
        yield _event("content_block_delta", index=index, delta=delta)
    yield _event("content_block_stop", index=index)


def _event(kind: str, **data: Any) -> bytes:
    return event({"type": kind, **data}, kind)


def anthropic_error(call: ModelCall, status: int, message: str, _wait_s: float | None) -> JsonObject:
    """The JSON of an error: `{"type": "error", "error": {"type", "message"}, "request_id"}`."""
    unknown = ("invalid_request_error", "Invalid request.") if status < 500 else ("api_error", "Internal server error")
    kind, usual = _ERRORS.get(status, unknown)
    error = {"type": kind, "message": message or usual.format(model=call.model)}
    return {"type": "error", "error": error, "request_id": "req_0"}


MESSAGES = Operation("messages", message_body, message_events)
ANTHROPIC = ModelApi("anthropic", anthropic_error)
