"""Replies of Gemini's API, read as data: whatever a gateway sends, nothing is raised."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agentv.model.values.message import Message, ToolCall
from agentv.model.values.response import CallFailure, Embeddings, Failure, TargetResponse
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import Json, JsonObject, objects_in
from agentv.targets.http.answers import invalid_reply
from agentv.targets.http.model_calls import unreadable_reply
from agentv.targets.http.statuses import failure_of, shown
from agentv.targets.model_api.prices import cost_of

BLOCKED = frozenset(
    {
        "BLOCKLIST",
        "ESCALATION",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
        "IMAGE_SAFETY",
        "LANGUAGE",
        "MODEL_ARMOR",
        "PROHIBITED_CONTENT",
        "RECITATION",
        "SAFETY",
        "SPII",
    }
)
"""Finish reasons with which a filter, and not the model, ended the answer."""

_ENDED = frozenset({None, "CONTINUATION", "FINISH_REASON_UNSPECIFIED", "MAX_TOKENS", "STOP"})
"""Finish reasons with an answer. With others it broke off, such as MALFORMED_FUNCTION_CALL and TOO_MANY_TOOL_CALLS."""

_FINAL = ("API_KEY_INVALID", "FAILED_PRECONDITION")
"""A refused key, a project that may not call: both come as 400."""

_SECONDS = re.compile(r"([\d.]{1,12})s")


def response_of(reply: Json, model: str, prices: str = "google") -> TargetResponse | Failure:
    """The answer in a `GenerateContentResponse`; a Failure if it is malformed (`bad-answer`) or blocked (`refused`).

    `output` is the text, without thoughts. Calls of tools stand in `messages`. `prices`: as `cost_of` takes a provider.
    """
    if not isinstance(reply, Mapping):
        return unreadable_reply("the reply is not an object of Gemini's API")
    candidate = next(iter(objects_in(reply.get("candidates"))), None)
    if candidate is None:
        feedback = reply.get("promptFeedback")
        if isinstance(feedback, Mapping) and feedback.get("blockReason"):
            return _refused("the prompt", feedback.get("blockReason"), feedback.get("blockReasonMessage"))
        return unreadable_reply("the reply of Gemini's API has no candidate")
    content, reason = candidate.get("content"), candidate.get("finishReason")
    parts = objects_in(content.get("parts") if isinstance(content, Mapping) else None)
    text, calls = _text(parts), tuple(_calls(parts))
    if reason in BLOCKED:
        return _refused("the answer", reason, candidate.get("finishMessage"))
    if reason not in _ENDED:
        return unreadable_reply(f"the model gave no whole answer ({reason})")
    usage = usage_of(reply.get("usageMetadata"))
    return invalid_reply(text) or TargetResponse(
        output=text or None,
        messages=(Message("assistant", text, tool_calls=calls),) if calls else (),
        token_usage=usage,
        cost_usd=cost_of(prices, model.removeprefix("models/"), usage),
        finish_reason=reason if isinstance(reason, str) else None,
        metadata={"model": reply["modelVersion"]} if isinstance(reply.get("modelVersion"), str) else {},
    )


def _text(parts: Iterable[JsonObject]) -> str:
    return "".join(str(part["text"]) for part in parts if isinstance(part.get("text"), str) and not part.get("thought"))


def _calls(parts: Iterable[JsonObject]) -> Iterator[ToolCall]:
    for part in parts:
        call = part.get("functionCall")
        if isinstance(call, Mapping):
            arguments, identity = call.get("args"), call.get("id")
            yield ToolCall(
                str(call.get("name") or ""),
                arguments if isinstance(arguments, Mapping) else {},
                identity if isinstance(identity, str) else None,
            )


def _refused(what: str, reason: Json, message: Json) -> CallFailure:
    text = f"{reason}: {message}" if isinstance(message, str) and message else str(reason)
    return CallFailure("refused", shown(f"Gemini blocked {what} ({text})"))


def usage_of(usage: Json) -> TokenUsage | None:
    """The tokens. Gemini counts thoughts and what its own tools found beside the others."""
    if not isinstance(usage, Mapping) or _count(usage.get("promptTokenCount")) is None:
        return None
    thought = _count(usage.get("thoughtsTokenCount"))
    input_tokens = (_count(usage.get("promptTokenCount")) or 0) + (_count(usage.get("toolUsePromptTokenCount")) or 0)
    output_tokens = (_count(usage.get("candidatesTokenCount")) or 0) + (thought or 0)
    total = _count(usage.get("totalTokenCount"))
    cached = _count(usage.get("cachedContentTokenCount"))
    return TokenUsage(
        input_tokens, output_tokens, input_tokens + output_tokens if total is None else total, cached, thought
    )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def refusal_of(
    status: int, details: Json, headers: Mapping[str, str], retryable: frozenset[int], secrets: Iterable[str]
) -> CallFailure:
    """The failure in an API error. A refused key is status 400, and the details say how long to wait."""
    error = details.get("error", details) if isinstance(details, Mapping) else details
    text = error.get("message") if isinstance(error, Mapping) else None
    failure = failure_of(
        status, text if isinstance(text, str) else str(error or ""), headers, retryable, secrets=secrets
    )
    if not isinstance(error, Mapping):
        return failure
    notes = objects_in(error.get("details"))
    reasons = {error.get("status"), *(note.get("reason") for note in notes)}
    wait = failure.retry_after_s
    if wait is None:
        wait = next((seconds for note in notes if (seconds := _seconds(note.get("retryDelay"))) is not None), None)
    return replace(failure, stops=failure.stops or bool(reasons & {*_FINAL}), retry_after_s=wait)


def _seconds(delay: Json) -> float | None:
    found = _SECONDS.fullmatch(delay) if isinstance(delay, str) else None
    try:
        return float(found[1]) if found is not None else None
    except ValueError:
        return None


def embeddings_of(found: Sequence[Sequence[float] | None], wanted: int) -> Embeddings | Failure:
    """The vectors of as many texts as were sent; a Failure where some are missing or differ in length."""
    vectors = tuple(tuple(one) for one in found if one)
    if len(vectors) != wanted or len({len(one) for one in vectors}) > 1:
        return unreadable_reply(
            f"the reply of Gemini's API does not contain {wanted} vectors of equal length, found {len(vectors)}"
        )
    return Embeddings(vectors)
