"""Conversion of messages to Gemini's format and of its replies to answers. Errors are returned as values.

Source: ai.google.dev, `generateContent`, function calling and thought signatures.
"""

from __future__ import annotations

import base64
import mimetypes
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from agentv.model.values.message import Message, ToolCall
from agentv.model.values.response import CallFailure, Embeddings, Failure, TargetResponse
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import Json, JsonObject, objects_in
from agentv.targets.http.answers import parsed
from agentv.targets.http.failures import failure_of, shown, unreadable_reply
from agentv.targets.model_api.content import (
    GENERATED_ID,
    Attached,
    PartBuilders,
    ToolStep,
    answer_of,
    content_parts,
    count_of,
    functions_in,
    tool_call,
    tool_steps,
)
from agentv.targets.model_api.prices import cost_of

UNSIGNED = b"skip_thought_signature_validator"
"""Google's placeholder for the thought signature of a tool call that the model did not make itself."""

_NO_SIGNATURES = re.compile(r"gemini-[12]\b")
"""Models without signatures. Gemini 3 and later reject a tool call without one."""


def conversation(messages: Sequence[Message], model: str) -> tuple[str, list[dict[str, Any]]] | Failure:
    """Return the system instruction and the contents, or a Failure if a picture or PDF cannot be read.

    System messages at the beginning become the instruction, or the user's turn if there are no other messages. Later
    ones stay in place as text in the user's turn, marked as `<system>`, because the API has no role for them.
    Consecutive messages of one role are one turn.
    """
    first = next((place for place, message in enumerate(messages) if message.role != "system"), None)
    if first is None:  # the API requires a user's turn
        messages, first = [Message("user", message.text) for message in messages], 0
    turns: list[dict[str, Any]] = []
    for step in tool_steps(messages[first:]):
        parts = _parts(step, signed=_NO_SIGNATURES.search(model) is None)
        if isinstance(parts, Failure):
            return parts
        role = "model" if step.message.role == "assistant" else "user"
        if not turns or turns[-1]["role"] != role:
            turns.append({"role": role, "parts": []})
        turns[-1]["parts"] += parts
    return "\n\n".join(message.text for message in messages[:first]), [turn for turn in turns if turn["parts"]]


def _parts(step: ToolStep, *, signed: bool) -> list[dict[str, Any]] | Failure:
    message = step.message
    if message.role == "tool":
        return [_result(step)]
    if message.role == "system":
        return [_text_part(f"<system>\n{message.text}\n</system>")]
    parts = content_parts(message, _PARTS)
    if isinstance(parts, Failure):
        return parts
    for place, call in enumerate(step.calls):
        part: dict[str, Any] = {"function_call": {"name": call.name, "args": dict(call.arguments), **_own_id(call)}}
        parts.append({**part, "thought_signature": UNSIGNED} if signed and place == 0 else part)
    return parts


def _result(step: ToolStep) -> dict[str, Any]:
    """Return a tool result, as text if it answers no call, because the API rejects a result without a call."""
    message, call = step.message, step.result_of
    if call is None:
        return {"text": f"tool ({message.name or 'unnamed'}):\n{message.text}"}
    value = parsed(message.text)
    response = dict(value) if isinstance(value, dict) else {"result": message.text}
    return {"function_response": {"name": call.name, "response": response, **_own_id(call)}}


def _own_id(call: ToolCall) -> dict[str, str]:
    """Return the id of a call if the API assigned it. Models before Gemini 3 assign none."""
    return {"id": call.id} if call.id and not call.id.startswith(GENERATED_ID) else {}


def _text_part(text: str) -> dict[str, Any]:
    return {"text": text}


def _picture(picture: Attached | str) -> dict[str, Any]:
    if isinstance(picture, Attached):
        return _inline(picture)
    kind = mimetypes.guess_type(urlsplit(picture).path)[0]
    return {"file_data": {"file_uri": picture, **({"mime_type": kind} if kind else {})}}


def _inline(attached: Attached) -> dict[str, Any]:
    return {"inline_data": {"mime_type": attached.media_type, "data": base64.b64decode(attached.base64)}}


_PARTS = PartBuilders(_text_part, _picture, _inline)


def tools_in(tools: Sequence[Json]) -> list[Json]:
    """Return the tools in Gemini's format. Functions in OpenAI's format are converted."""
    functions, own = functions_in(tools)
    declared: list[Json] = []
    for function in functions:
        declaration = {key: function[key] for key in ("name", "description") if key in function}
        parameters = {"parameters_json_schema": function["parameters"]} if function.get("parameters") else {}
        declared.append(declaration | parameters)
    return [*own, {"function_declarations": declared}] if declared else own


def tool_config_in(choice: Json) -> Json:
    """Return Gemini's tool config for `auto`, `any` (`required`), `none`, the name of a tool, or OpenAI's object.

    Other objects are returned unchanged.
    """
    match choice:
        case str():
            mode = {"required": "ANY"}.get(choice, choice.upper())
            known = mode in {"AUTO", "ANY", "NONE", "VALIDATED"}
            calling: JsonObject = {"mode": mode} if known else {"mode": "ANY", "allowed_function_names": [choice]}
        case {"type": "function", "function": {"name": str(name)}}:
            calling = {"mode": "ANY", "allowed_function_names": [name]}
        case _:
            return choice
    return {"function_calling_config": calling}


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
"""Finish reasons if a filter, not the model, ended the answer."""

_ANSWER_REASONS = frozenset({None, "CONTINUATION", "FINISH_REASON_UNSPECIFIED", "MAX_TOKENS", "STOP"})
"""Finish reasons with an answer. With others, such as MALFORMED_FUNCTION_CALL, the answer is incomplete."""

_STOPPING_REASONS = ("API_KEY_INVALID", "FAILED_PRECONDITION")
"""Error reasons with status 400 after which every call fails: invalid key, project without permission."""

_SECONDS = re.compile(r"([\d.]{1,12})s")


def response_of(reply: Json, model: str, prices: str = "google") -> TargetResponse | Failure:
    """Return the answer in a `GenerateContentResponse`, or a Failure (code `bad-answer` or `refused`).

    Its `output` is the text without thoughts. Tool calls are in `messages`.

    Args:
        reply: the reply as JSON.
        model: the requested model.
        prices: the provider, as for `cost_of`.
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
    texts = (part.get("text") for part in parts if not part.get("thought"))
    text = "".join(one for one in texts if isinstance(one, str))
    asked = (part.get("functionCall") for part in parts)
    calls = tuple(
        tool_call(one.get("name"), one.get("args"), one.get("id")) for one in asked if isinstance(one, Mapping)
    )
    if reason in BLOCKED:
        return _refused("the answer", reason, candidate.get("finishMessage"))
    if reason not in _ANSWER_REASONS:
        return unreadable_reply(f"the model gave no whole answer ({reason})")
    usage = usage_of(reply.get("usageMetadata"))
    cost = cost_of(prices, model.removeprefix("models/"), usage)
    return answer_of(text, calls, reason, reply.get("modelVersion"), usage, cost)


def _refused(what: str, reason: Json, message: Json) -> CallFailure:
    text = f"{reason}: {message}" if isinstance(message, str) and message else str(reason)
    return CallFailure("refused", shown(f"Gemini blocked {what} ({text})"))


def usage_of(usage: Json) -> TokenUsage | None:
    """Return the token usage. Gemini counts thoughts and its own tools' results separately; they are added."""
    counts = {name: count_of(value) for name, value in usage.items()} if isinstance(usage, Mapping) else {}
    prompt = counts.get("promptTokenCount")
    if prompt is None:
        return None
    thought = counts.get("thoughtsTokenCount")
    input_tokens = prompt + (counts.get("toolUsePromptTokenCount") or 0)
    output_tokens = (counts.get("candidatesTokenCount") or 0) + (thought or 0)
    total = counts.get("totalTokenCount")
    total = input_tokens + output_tokens if total is None else total
    return TokenUsage(input_tokens, output_tokens, total, counts.get("cachedContentTokenCount"), thought)


def refusal_of(
    status: int, details: Json, headers: Mapping[str, str], retryable: frozenset[int], secrets: Iterable[str]
) -> CallFailure:
    """Return the failure for an API error. An invalid key has status 400, and the details contain the retry delay."""
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
    return replace(failure, stops=failure.stops or bool(reasons & {*_STOPPING_REASONS}), retry_after_s=wait)


def _seconds(delay: Json) -> float | None:
    found = _SECONDS.fullmatch(delay) if isinstance(delay, str) else None
    try:
        return float(found[1]) if found is not None else None
    except ValueError:
        return None


def embeddings_of(found: Sequence[Sequence[float] | None], wanted: int) -> Embeddings | Failure:
    """Return the vectors, or a Failure if there are not `wanted` of them or they differ in length."""
    vectors = tuple(tuple(one) for one in found if one)
    if len(vectors) != wanted or len({len(one) for one in vectors}) > 1:
        return unreadable_reply(
            f"the reply of Gemini's API does not contain {wanted} vectors of equal length, found {len(vectors)}"
        )
    return Embeddings(vectors)
