"""Messages as Gemini's API takes them, and its replies, read as data: nothing is raised.

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
"""What stands for the signature of a call of a tool that the model itself did not make; Google's own word."""

_NO_SIGNATURES = re.compile(r"gemini-[12]\b")
"""Models without signatures: those before Gemini 3, which refuses a call of a tool that has none."""


def conversation(messages: Sequence[Message], model: str) -> tuple[str, list[dict[str, Any]]] | Failure:
    """The system instruction and the contents after it; a Failure where a picture or a PDF cannot be read.

    System messages at the beginning are the instruction; where nobody else says anything, they are the user's turn. A
    later one stays where it is, within the user's turn, marked as `<system>`: the API knows no other place. Messages of
    one role in a row are one turn.
    """
    first = next((place for place, message in enumerate(messages) if message.role != "system"), None)
    if first is None:  # the API wants a turn of the user
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
    """The result of a tool; a text where no call before it asked for one, since the API takes none without a call."""
    message, call = step.message, step.result_of
    if call is None:
        return {"text": f"tool ({message.name or 'unnamed'}):\n{message.text}"}
    value = parsed(message.text)
    response = dict(value) if isinstance(value, dict) else {"result": message.text}
    return {"function_response": {"name": call.name, "response": response, **_own_id(call)}}


def _own_id(call: ToolCall) -> dict[str, str]:
    """The id of a call where the API gave it one: models before Gemini 3 give none."""
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
    """Tools in Gemini's own shape; functions in OpenAI's are turned into it."""
    functions, own = functions_in(tools)
    declared: list[Json] = []
    for function in functions:
        declaration = {key: function[key] for key in ("name", "description") if key in function}
        parameters = {"parameters_json_schema": function["parameters"]} if function.get("parameters") else {}
        declared.append(declaration | parameters)
    return [*own, {"function_declarations": declared}] if declared else own


def tool_config_in(choice: Json) -> Json:
    """`auto`, `any` (`required`), `none` or the name of a tool; an object as it stands, OpenAI's turned into ours."""
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
    texts = (part.get("text") for part in parts if not part.get("thought"))
    text = "".join(one for one in texts if isinstance(one, str))
    asked = (part.get("functionCall") for part in parts)
    calls = tuple(
        tool_call(one.get("name"), one.get("args"), one.get("id")) for one in asked if isinstance(one, Mapping)
    )
    if reason in BLOCKED:
        return _refused("the answer", reason, candidate.get("finishMessage"))
    if reason not in _ENDED:
        return unreadable_reply(f"the model gave no whole answer ({reason})")
    usage = usage_of(reply.get("usageMetadata"))
    cost = cost_of(prices, model.removeprefix("models/"), usage)
    return answer_of(text, calls, reason, reply.get("modelVersion"), usage, cost)


def _refused(what: str, reason: Json, message: Json) -> CallFailure:
    text = f"{reason}: {message}" if isinstance(message, str) and message else str(reason)
    return CallFailure("refused", shown(f"Gemini blocked {what} ({text})"))


def usage_of(usage: Json) -> TokenUsage | None:
    """The tokens. Gemini counts thoughts and what its own tools found beside the others."""
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
