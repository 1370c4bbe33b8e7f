"""Gemini's content generation API, with streaming and errors (https://ai.google.dev/api/generate-content)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import JsonObject
from agentv.testing.replies import ModelApi, Operation, ReplyStep, event, stream_pieces
from agentv.testing.steps import Answer, ContentFilter, ModelCall, Status, usage_in

_BAD_KEY = "API key not valid. Please pass a valid API key."
_ERRORS = {
    400: ("INVALID_ARGUMENT", "Request contains an invalid argument."),
    403: ("PERMISSION_DENIED", "The caller does not have permission"),
    404: ("NOT_FOUND", "models/{model} is not found for API version v1beta."),
    429: ("RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
    500: ("INTERNAL", "An internal error has occurred. Please retry."),
    503: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
}


def generated_body(call: ModelCall, step: ReplyStep, number: int) -> JsonObject:
    """The JSON of a `GenerateContentResponse`."""
    body: dict[str, Any] = {"modelVersion": call.model, "responseId": f"response-{number}"}
    if isinstance(step, ContentFilter):
        body["promptFeedback"] = {"blockReason": "SAFETY"}
    elif isinstance(step, Answer):
        content = {"parts": list(_parts(step)), "role": "model"}
        body["candidates"] = [{"content": content, "finishReason": step.finish_reason or "STOP", "index": 0}]
    usage = usage_in(step)
    if usage is not None:
        body["usageMetadata"] = usage_of(usage)
    return body


def _parts(answer: Answer) -> Iterator[dict[str, Any]]:
    if answer.reasoning:
        yield {"text": answer.reasoning, "thought": True}
    text = answer.text if answer.refusal is None else answer.refusal
    if text or not answer.tool_calls:
        yield {"text": text}
    for one in answer.tool_calls:
        identity = {} if one.id is None else {"id": one.id}
        yield {"functionCall": {"name": one.name, "args": dict(one.arguments), **identity}}


def usage_of(usage: TokenUsage) -> dict[str, Any]:
    """The JSON of `usageMetadata`. Gemini does not include tokens of thoughts in those of candidates."""
    prompt, output, thoughts = usage.input or 0, usage.output or 0, usage.reasoning or 0
    counts = {
        "promptTokenCount": prompt,
        "candidatesTokenCount": max(0, output - thoughts),
        "totalTokenCount": usage.total if usage.total is not None else prompt + output,
    }
    optional = {"cachedContentTokenCount": usage.cached, "thoughtsTokenCount": thoughts}
    return {**counts, **{name: count for name, count in optional.items() if count}}  # Gemini omits counts of 0


def generated_events(_call: ModelCall, body: JsonObject) -> Iterator[bytes]:
    """The events of a streamed answer, as sent with `alt=sse`."""
    for part in _partial(body):
        yield event(part)


def _partial(body: JsonObject) -> Iterator[dict[str, Any]]:
    whole: dict[str, Any] = dict(body)
    if not whole.get("candidates"):
        yield whole
        return
    candidate = whole["candidates"][0]
    pieces: list[dict[str, Any]] = []
    for part in candidate["content"]["parts"]:
        pieces += [{**part, "text": word} for word in stream_pieces(part.get("text", ""))] or [part]
    head = {key: value for key, value in whole.items() if key != "usageMetadata"}
    for piece in pieces[:-1]:
        yield {**head, "candidates": [{"content": {"parts": [piece], "role": "model"}, "index": 0}]}
    yield {**whole, "candidates": [{**candidate, "content": {"parts": pieces[-1:], "role": "model"}}]}


def gemini_error(call: ModelCall, status: int, message: str, wait_s: float | None) -> JsonObject:
    """The JSON of an error: `{"error": {"code", "message", "status", "details"}}`, the details with the retry delay."""
    name, usual = _ERRORS.get(
        status, ("INVALID_ARGUMENT", "Invalid request.") if status < 500 else ("UNKNOWN", "Error")
    )
    error: dict[str, Any] = {"code": status, "message": message or usual.format(model=call.model), "status": name}
    if message == _BAD_KEY:
        info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
        error["details"] = [{**info, "domain": "googleapis.com"}]
    if wait_s is not None:
        delay = f"{wait_s:.3f}".rstrip("0").rstrip(".")
        error["details"] = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{delay}s"}]
    return {"error": error}


GENERATE = Operation("generate", generated_body, generated_events)
GEMINI = ModelApi("gemini", gemini_error, bad_key=Status(400, _BAD_KEY))
