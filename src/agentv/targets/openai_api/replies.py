"""Conversion of replies of OpenAI's APIs to answers. They are read leniently, because servers omit and add keys."""

from __future__ import annotations

import base64
import json
import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agentv.model.values.message import ToolCall, messages_from_json
from agentv.model.values.response import STRUCTURED, CallFailure, Embeddings, Failure, TargetResponse
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import Json, JsonObject, objects_in
from agentv.targets.http.failures import failure_of, shown
from agentv.targets.model_api.content import answer_of, count_of
from agentv.targets.model_api.streams import text_in

FILTERED = "content_filter"
REFUSAL = "refusal"
_ANSWER_STATUSES = (None, "completed", "incomplete")  # statuses of a response with an answer
BROKEN = frozenset({"error", "abort", "insufficient_system_resource", "network_error"})
"""Finish reasons if the server, not the model, ended the answer: of gateways, vLLM, DeepSeek and GLM."""

_RETRYABLE_CODES = frozenset({"server_error", "rate_limit_exceeded", "overloaded", "timeout"})


def bad_answer(message: str) -> CallFailure:
    """Return the failure for a reply that breaks the API's protocol. A retry may help: often a proxy failed."""
    return CallFailure("bad-answer", message, retryable=True)


def filtered() -> CallFailure:
    """Return the failure for an answer that the content filter stopped, perhaps after a part of it."""
    return CallFailure("refused", "the provider's content filter refused this")


def chat_answer(body: JsonObject) -> TargetResponse | Failure:
    """Return the answer in a chat completion. The caller adds its cost."""
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(first, Mapping) or not isinstance(first.get("message"), Mapping):
        what = "no choices" if choices == [] else "no message"
        return reported_error(body) or bad_answer(f"the response contains {what}, so there is no answer")
    finish = first.get("finish_reason")
    finish = finish if isinstance(finish, str) else None
    if body.get("error") or first.get("error") or finish in BROKEN:
        return _incomplete(body.get("error"), first.get("error"), f"its finish reason is {finish!r}")
    message: Any = first["message"]
    text, refusal = text_in(message.get("content")), message.get("refusal")
    calls = message.get("tool_calls") or ()
    if isinstance(message.get("function_call"), Mapping):  # OpenAI's tool calls before 2024
        calls = [message["function_call"]]
    if not text and isinstance(refusal, str) and refusal and finish != FILTERED:
        text, finish = refusal, REFUSAL
    return _answer(text, calls, finish, usage_of(body), body)


def with_calls_as_output(found: TargetResponse, body: JsonObject) -> TargetResponse:
    """Return the answer. If it calls tools, its output is the JSON of the calls, or of the message if it has text."""
    reply: Any = body
    message = reply["choices"][0]["message"]  # `chat_answer` has checked that it is there
    calls = message.get("function_call") or message.get("tool_calls")
    if not calls:
        return found
    output = json.dumps(message if message.get("content") else calls, ensure_ascii=False, separators=(",", ":"))
    return replace(found, output=output, metadata={**found.metadata, STRUCTURED: True})


def _incomplete(*error: Json) -> CallFailure:
    """Return the failure for an incomplete answer with the first of these errors, as when a gateway lost its server."""
    found = next(filter(None, error))
    message = found.get("message") if isinstance(found, Mapping) else None
    return bad_answer(shown(f"the answer was cut off: {message or found}"))


def response_answer(body: JsonObject) -> TargetResponse | Failure:
    """Return the answer in a reply of the responses API, from the texts and tool calls of its output items."""
    output = body.get("output")
    if body.get("status") == "failed" or not isinstance(output, list):
        return reported_error(body) or bad_answer("the response contains no output, so there is no answer")
    if body.get("error") or body.get("status") not in _ANSWER_STATUSES:
        return _incomplete(body.get("error"), f"its status is {body.get('status')!r}")
    finish = _finish(body)
    if not output and finish != FILTERED:
        return reported_error(body) or bad_answer("the response contains no output, so there is no answer")
    texts, refusals, calls = [], [], []
    for item in objects_in(output):
        if item.get("type") == "function_call":
            calls.append({"id": item.get("call_id"), "name": item.get("name"), "arguments": item.get("arguments")})
        for part in objects_in(item.get("content") if item.get("type") == "message" else None):
            if part.get("type") == REFUSAL:
                refusals.append(str(part.get(REFUSAL, "")))
            elif part.get("type") == "output_text":
                texts.append(str(part.get("text", "")))
    text = "".join(texts)
    if not text and refusals and finish != FILTERED:
        text, finish = "".join(refusals), REFUSAL
    return _answer(text, calls, finish, usage_of(body), body)


def _finish(body: JsonObject) -> str | None:
    """Return why a response ended: the reason if it is incomplete, or else its status."""
    details, status = body.get("incomplete_details"), body.get("status")
    reason = details.get("reason") if isinstance(details, Mapping) else None
    return reason if isinstance(reason, str) else status if isinstance(status, str) else None


def _answer(
    text: str, calls: Any, finish: str | None, usage: TokenUsage | None, body: JsonObject
) -> TargetResponse | Failure:
    if finish == FILTERED:
        return filtered()
    made: tuple[ToolCall, ...] = ()
    if calls:
        row: Any = {"role": "assistant", "content": text, "tool_calls": calls}
        try:
            made = messages_from_json([row])[0].tool_calls
        except ValueError as error:
            return bad_answer(shown(str(error)))
    return answer_of(text, made, finish, body.get("model"), usage, None)


def reported_error(body: JsonObject) -> CallFailure | None:
    """Return the failure for an error in a reply with status 200, as gateways send it; None if there is no error."""
    error = body.get("error")
    if not error:
        return None
    inner = error if isinstance(error, Mapping) else {"message": str(error)}
    code, message = inner.get("code"), str(inner.get("message") or inner)
    if isinstance(code, int) and 400 <= code < 600:
        return failure_of(code, message, {})
    return CallFailure("target-error", shown(message), retryable=str(code) in _RETRYABLE_CODES)


def usage_of(body: JsonObject) -> TokenUsage | None:
    """Return the token usage in a reply of either API, or None if it reports none."""
    usage = body.get("usage")
    if not isinstance(usage, Mapping):
        return None
    sent = _count(usage, "prompt_tokens", "input_tokens")
    made = _count(usage, "completion_tokens", "output_tokens")
    total = _count(usage, "total_tokens")
    if sent is None and made is None and total is None:
        return None
    before = _object(usage, "prompt_tokens_details", "input_tokens_details")
    after = _object(usage, "completion_tokens_details", "output_tokens_details")
    return TokenUsage(
        input=sent,
        output=made,
        total=(sent or 0) + (made or 0) if total is None else total,
        cached=_count(before, "cached_tokens"),
        reasoning=_count(after, "reasoning_tokens"),
    )


def cost_in(body: JsonObject) -> float | None:
    """Return the cost in US dollars that the server reports (OpenRouter: `usage.cost`), or None."""
    usage = body.get("usage")
    cost = usage.get("cost") if isinstance(usage, Mapping) else None
    if isinstance(cost, int | float) and not isinstance(cost, bool) and math.isfinite(cost) and cost >= 0:
        return float(cost)
    return None


def _object(row: Mapping[str, Json], *names: str) -> Mapping[str, Json]:
    found = next((row[name] for name in names if isinstance(row.get(name), Mapping)), None)
    return found if isinstance(found, Mapping) else {}


def _count(row: Mapping[str, Json], *names: str) -> int | None:
    return count_of(next((row[name] for name in names if row.get(name) is not None), None))


MOST_TEXTS = 1024
"""Most texts per call, so that a reply stays below LARGEST_BODY. OpenAI accepts 2,048."""

MOST_UNPACKED = 128
"""Most texts per call if the vectors are sent as decimal numbers."""

MOST_BYTES = 300_000
"""Most bytes of text per call. OpenAI accepts 300,000 tokens, and a token has at least one byte."""


def batches(texts: Sequence[str], *, packed: bool) -> Iterator[list[str]]:
    """Split the texts into batches for one call each, in order. A long text is a batch of its own."""
    most = MOST_TEXTS if packed else MOST_UNPACKED
    batch: list[str] = []
    size = 0
    for text in texts:
        length = len(text.encode(errors="replace"))
        if batch and (len(batch) == most or size + length > MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += length
    if batch:
        yield batch


def vectors_of(body: JsonObject, wanted: int) -> Embeddings | Failure:
    """Return the vectors in a reply in the order of their `index`, or a Failure if they are not `wanted` in number."""
    data = body.get("data")
    rows = [row for row in data if isinstance(row, Mapping)] if isinstance(data, list) else []
    if len(rows) != wanted:
        error: CallFailure | None = reported_error(body)
        return error or bad_answer(f"received {len(rows)} vectors for {wanted} texts")
    try:
        places: Any = {row.get("index", place): row.get("embedding") for place, row in enumerate(rows)}
        vectors = tuple(_vector(places[place]) for place in range(wanted))
    except (ArithmeticError, KeyError, TypeError, ValueError):
        return bad_answer("the response contains vectors that cannot be read")
    if not all(vectors) or not all(math.isfinite(sum(vector)) for vector in vectors):
        return bad_answer("the response contains an empty vector or an invalid number")
    usage = usage_of(body)  # embeddings have no output tokens
    return Embeddings(vectors, usage and TokenUsage(input=usage.input, total=usage.total))


def _vector(value: Any) -> tuple[float, ...]:
    """Return the vector in a list of numbers or in the base64 of little-endian floats.

    Raises:
        TypeError, ValueError: it is neither.
    """
    if not isinstance(value, str):
        return tuple(map(float, value))
    packed = array("f")
    packed.frombytes(base64.b64decode(value, validate=True))
    return tuple(packed)
