"""OpenAI's chat completions, whole and streamed (https://platform.openai.com/docs/api-reference/chat)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from agentv.model.values.message import ToolCall
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import JsonObject
from agentv.testing.calls import ModelCall
from agentv.testing.replies import Operation, ReplyStep, event, stream_pieces
from agentv.testing.steps import Answer, ContentFilter, usage_in

CREATED = 1_760_000_000
"""When every reply was made: a fixed second of the year 2025, so that replies can be compared."""


def chat_body(call: ModelCall, step: ReplyStep, number: int) -> JsonObject:
    """The object `chat.completion`."""
    body: dict[str, Any] = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": CREATED,
        "model": call.model,
        "choices": list(_choices(step, number)),
        "service_tier": "default",
        "system_fingerprint": "fp_0",
    }
    usage = usage_in(step)
    if usage is not None:
        body["usage"] = usage_of(usage)
    return body


def _choices(step: ReplyStep, number: int) -> Iterator[dict[str, Any]]:
    if isinstance(step, ContentFilter):
        yield _choice({"role": "assistant", "content": None, "refusal": None}, "content_filter")
    elif isinstance(step, Answer):
        calls = [_tool_call(one, f"call_{number}_{place}") for place, one in enumerate(step.tool_calls)]
        no_text = step.refusal is not None or (calls and not step.text)
        message: dict[str, Any] = {
            "role": "assistant",
            "content": None if no_text else step.text,
            "refusal": step.refusal,
            "annotations": [],
        }
        if step.reasoning:
            message["reasoning_content"] = step.reasoning
        if calls:
            message["tool_calls"] = calls
        yield _choice(message, step.finish_reason or ("tool_calls" if calls else "stop"))


def _choice(message: dict[str, Any], finish_reason: str) -> dict[str, Any]:
    return {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason}


def _tool_call(call: ToolCall, identity: str) -> dict[str, Any]:
    function = {"name": call.name, "arguments": json.dumps(call.arguments)}
    return {"id": call.id or identity, "type": "function", "function": function}


def usage_of(usage: TokenUsage) -> dict[str, Any]:
    """`usage`: the prompt's tokens hold the cached ones, the completion's those of reasoning."""
    prompt, completion = usage.input or 0, usage.output or 0
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": usage.total if usage.total is not None else prompt + completion,
        "prompt_tokens_details": {"cached_tokens": usage.cached or 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning or 0,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def chat_events(call: ModelCall, body: JsonObject) -> Iterator[bytes]:
    """The same answer as `chat.completion.chunk`s, with the usage at the end if requested, and `[DONE]`."""
    whole: dict[str, Any] = dict(body)
    usage = whole.pop("usage", None)
    head = {**whole, "object": "chat.completion.chunk"}
    for choice in whole["choices"]:
        for delta in _deltas(choice["message"]):
            yield event({**head, "choices": [_part(delta, None)]})
        yield event({**head, "choices": [_part({}, choice["finish_reason"])]})
    options: Any = call.body.get("stream_options") or {}
    if usage is not None and options.get("include_usage"):
        yield event({**head, "choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


def _part(delta: dict[str, Any], finish_reason: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}


def _deltas(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": "" if message["content"] is not None else None, "refusal": None}
    yield from ({"reasoning_content": word} for word in stream_pieces(message.get("reasoning_content", "")))
    yield from ({"content": word} for word in stream_pieces(message["content"] or ""))
    yield from ({"refusal": word} for word in stream_pieces(message["refusal"] or ""))
    for index, one in enumerate(message.get("tool_calls", ())):
        name, arguments = one["function"]["name"], one["function"]["arguments"]
        first = {"index": index, "id": one["id"], "type": "function", "function": {"name": name, "arguments": ""}}
        yield {"tool_calls": [first]}
        yield from (
            {"tool_calls": [{"index": index, "function": {"arguments": word}}]} for word in stream_pieces(arguments)
        )


CHAT = Operation("chat", chat_body, chat_events)
