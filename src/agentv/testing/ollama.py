"""Ollama's own API, whole and streamed (https://github.com/ollama/ollama/blob/main/docs/api.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import JsonObject
from agentv.testing.calls import ModelCall
from agentv.testing.embeddings import vectors_of
from agentv.testing.replies import Operation, ReplyStep, encoded, stream_pieces
from agentv.testing.steps import Answer, ContentFilter, usage_in

CREATED_AT = "2025-10-09T08:53:20Z"


def chat_body(call: ModelCall, step: ReplyStep, number: int) -> JsonObject:
    """The body of a reply of `/api/chat`."""
    del number
    message = {"message": _message(step)} if isinstance(step, Answer) else {}
    return {**_head(call), **message, **_end(step)}


def generated_body(call: ModelCall, step: ReplyStep, number: int) -> JsonObject:
    """The body of a reply of `/api/generate`."""
    del number
    response = {"response": _text(step)} if isinstance(step, Answer) else {}
    return {**_head(call), **response, **_end(step)}


def _head(call: ModelCall) -> dict[str, Any]:
    return {"model": call.model, "created_at": CREATED_AT}


def _text(answer: Answer) -> str:
    return answer.text if answer.refusal is None else answer.refusal


def _message(answer: Answer) -> dict[str, Any]:
    calls = [{"function": {"name": one.name, "arguments": dict(one.arguments)}} for one in answer.tool_calls]
    thought = {"thinking": answer.reasoning} if answer.reasoning else {}
    return {"role": "assistant", "content": _text(answer), **thought, **({"tool_calls": calls} if calls else {})}


def _end(step: ReplyStep) -> dict[str, Any]:
    """Durations are nanoseconds."""
    reason = "content_filter" if isinstance(step, ContentFilter) else getattr(step, "finish_reason", None) or "stop"
    usage = usage_in(step)
    counts = {} if usage is None else _counts(usage)
    return {"done": True, "done_reason": reason, "total_duration": 5_000_000, "load_duration": 1_000_000, **counts}


def _counts(usage: TokenUsage) -> dict[str, Any]:
    durations = {"prompt_eval_duration": 1_000_000, "eval_duration": 3_000_000}
    return {"prompt_eval_count": usage.input or 0, "eval_count": usage.output or 0, **durations}


def lines(call: ModelCall, body: JsonObject) -> Iterator[bytes]:
    """The same answer as lines of JSON, a word each; the last one says that it is done, and the counts."""
    whole: dict[str, Any] = dict(body)
    head = {**_head(call), "done": False}
    if "message" in whole:
        message = {**whole["message"]}
        for word in stream_pieces(message.pop("thinking", "")):
            yield _line({**head, "message": {"role": "assistant", "content": "", "thinking": word}})
        for word in stream_pieces(message["content"]):
            yield _line({**head, "message": {"role": "assistant", "content": word}})
        whole["message"] = {**message, "content": ""}
    elif "response" in whole:
        yield from (_line({**head, "response": word}) for word in stream_pieces(whole["response"]))
        whole["response"] = ""
    yield _line(whole)


def _line(value: dict[str, Any]) -> bytes:
    return encoded(value) + b"\n"


def vectors_body(call: ModelCall, step: ReplyStep, number: int) -> JsonObject:
    """The body of a reply of `/api/embed`."""
    del number
    vectors = [list(vector) for vector in vectors_of(call, step, call.body.get("dimensions"))]
    return {"model": call.model, "embeddings": vectors, "total_duration": 5_000_000, "load_duration": 1_000_000}


def _ndjson(call: ModelCall) -> str:
    del call
    return "application/x-ndjson"


OLLAMA_CHAT = Operation("chat", chat_body, lines, _ndjson)
OLLAMA_GENERATE = Operation("generate", generated_body, lines, _ndjson)
OLLAMA_EMBED = Operation("embed", vectors_body)
