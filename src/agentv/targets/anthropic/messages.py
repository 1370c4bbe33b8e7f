"""Messages as Anthropic's Messages API takes them.

Source: platform.claude.com/docs, Messages API of the versions 2023-06-01 and 2026-10-21, and mid-conversation system
messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from agentv.model.values.message import DocumentBlock, ImageBlock, Message
from agentv.model.values.response import Failure
from agentv.model.values.values import Json, JsonObject
from agentv.targets.model_api.content_parts import PDF, PartBuilders, content_parts, document_of
from agentv.targets.model_api.pictures import Picture, picture_of
from agentv.targets.model_api.tool_calls import ToolStep, functions_in, tool_steps

SYSTEM_ONLY_FIRST = re.compile(r"claude-(?:instant|[123]\b|(?:sonnet|haiku)-4|opus-4(?!-[89]))")
"""Models that refuse messages of the role `system`, and take the system prompt alone: all before Claude Opus 4.8."""


@dataclass(slots=True)
class _Turn:
    role: str
    blocks: list[Json] = field(default_factory=list)


def conversation(messages: Sequence[Message], model: str) -> tuple[str, list[JsonObject]] | Failure:
    """The system prompt and the turns after it; a Failure where a picture or a PDF cannot be read.

    System messages at the beginning are the system prompt. A later one stays where it is: as a message of the role
    `system` behind a user's turn, where the model takes that; else within the user's turn, marked as `<system>`.
    Messages of one role in a row are one turn; results of tools belong to the user.
    """
    first = next((place for place, message in enumerate(messages) if message.role != "system"), len(messages))
    system = "\n\n".join(message.text for message in messages[:first])
    turns: list[_Turn] = []
    for step in tool_steps(messages[first:]):
        blocks = _blocks(step)
        if isinstance(blocks, Failure):
            return blocks
        role = _role(step.message, turns, model)
        if step.message.role == "system" and role == "user":
            blocks = [_text(f"<system>\n{step.message.text}\n</system>")]
        if not turns or turns[-1].role != role:
            turns.append(_Turn(role))
        turns[-1].blocks += blocks
    return system, [{"role": turn.role, "content": _content(turn.blocks)} for turn in turns if turn.blocks]


def _role(message: Message, turns: Sequence[_Turn], model: str) -> str:
    if message.role != "system":
        return "assistant" if message.role == "assistant" else "user"
    behind_user = bool(turns) and turns[-1].role in {"user", "system"}
    return "system" if behind_user and SYSTEM_ONLY_FIRST.search(model) is None else "user"


def _content(blocks: list[Json]) -> Json:
    """A lone text as text, which is the form that every server of this protocol takes."""
    match blocks:
        case [{"type": "text", "text": str(text)}]:
            return text
    return blocks


def _blocks(step: ToolStep) -> list[Json] | Failure:
    parts = content_parts(step.message, _PARTS)
    if isinstance(parts, Failure):
        return parts
    if step.message.role == "tool":
        return _result(step, [*parts])
    return [*parts, *({"type": "tool_use", "id": c.id, "name": c.name, "input": c.arguments} for c in step.calls)]


def _result(step: ToolStep, blocks: list[Json]) -> list[Json]:
    """The result of a tool; a text where no call before it asked for one, since the API takes none without a call."""
    if step.result_of is None:
        return [_text(f"tool ({step.message.name or 'unnamed'}):\n{step.message.text}")]
    return [{"type": "tool_result", "tool_use_id": step.result_of.id, "content": _content(blocks)}]


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _image(block: ImageBlock) -> JsonObject | Failure:
    picture = picture_of(block)
    if isinstance(picture, Failure):
        return picture
    if isinstance(picture, Picture):
        source = {"type": "base64", "media_type": picture.media_type, "data": picture.base64}
    else:
        source = {"type": "url", "url": picture}
    return {"type": "image", "source": source}


def _document(block: DocumentBlock) -> JsonObject | Failure:
    document = document_of(block)
    if isinstance(document, Failure):
        return document
    source = {"type": "base64", "media_type": PDF, "data": document.base64}
    return {"type": "document", "source": source, "title": document.name}


_PARTS = PartBuilders(_text, _image, _document)


def tools_in(tools: Sequence[Json]) -> list[Json]:
    """Tools in Anthropic's own shape; those in OpenAI's are turned into it."""
    functions, own = functions_in(tools)
    return [*own, *map(_tool, functions)]


def _tool(function: JsonObject) -> JsonObject:
    tool = {key: function[key] for key in ("name", "description", "strict") if key in function}
    return {**tool, "input_schema": function.get("parameters") or {"type": "object", "properties": {}}}


def tool_choice_in(choice: Json) -> Json:
    """`auto`, `any` (`required`), `none` or the name of a tool; an object as it stands, OpenAI's turned into ours."""
    match choice:
        case str():
            known = {"required": "any"}.get(choice, choice)
            return {"type": known} if known in {"auto", "any", "none"} else {"type": "tool", "name": choice}
        case {"type": "function", "function": {"name": str(name)}}:
            return {"type": "tool", "name": name}
    return choice


def texts_of(blocks: Iterable[JsonObject]) -> str:
    """The words of a reply: the pieces of one text joined, texts apart where something else stands between them."""
    pieces: list[str] = []
    apart = True
    for block in blocks:
        if block.get("type") != "text" or not isinstance(block.get("text"), str):
            apart = True
            continue
        text = str(block["text"])
        if apart or not pieces:
            pieces.append(text)
        else:
            pieces[-1] += text
        apart = False
    return "\n\n".join(piece for piece in pieces if piece)
