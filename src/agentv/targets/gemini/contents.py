"""Messages as Gemini's API takes them.

Source: ai.google.dev, `generateContent`, function calling and thought signatures.
"""

from __future__ import annotations

import base64
import mimetypes
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from agentv.model.values.message import DocumentBlock, ImageBlock, Message, ToolCall
from agentv.model.values.response import Failure
from agentv.model.values.values import Json, JsonObject
from agentv.targets.http.answers import parsed
from agentv.targets.model_api.content_parts import PDF, PartBuilders, content_parts, document_of
from agentv.targets.model_api.pictures import Picture, picture_of
from agentv.targets.model_api.tool_calls import GENERATED_ID, ToolStep, functions_in, tool_steps

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
        return [_text(f"<system>\n{message.text}\n</system>")]
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


def _text(text: str) -> dict[str, Any]:
    return {"text": text}


def _image(block: ImageBlock) -> dict[str, Any] | Failure:
    picture = picture_of(block)
    if isinstance(picture, Failure):
        return picture
    if isinstance(picture, Picture):
        return {"inline_data": {"mime_type": picture.media_type, "data": base64.b64decode(picture.base64)}}
    kind = mimetypes.guess_type(urlsplit(picture).path)[0]
    return {"file_data": {"file_uri": picture, **({"mime_type": kind} if kind else {})}}


def _document(block: DocumentBlock) -> dict[str, Any] | Failure:
    document = document_of(block)
    if isinstance(document, Failure):
        return document
    return {"inline_data": {"mime_type": PDF, "data": base64.b64decode(document.base64)}}


_PARTS = PartBuilders(_text, _image, _document)


def tools_in(tools: Sequence[Json]) -> list[Json]:
    """Tools in Gemini's own shape; functions in OpenAI's are turned into it."""
    functions, own = functions_in(tools)
    return [*own, {"function_declarations": [_function(one) for one in functions]}] if functions else own


def _function(function: JsonObject) -> JsonObject:
    declaration = {key: function[key] for key in ("name", "description") if key in function}
    return (
        {**declaration, "parameters_json_schema": function["parameters"]} if function.get("parameters") else declaration
    )


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
