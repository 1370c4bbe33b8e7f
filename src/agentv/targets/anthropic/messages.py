"""Messages as Anthropic's Messages API takes them, and its replies, read as data: nothing is raised.

Source: platform.claude.com/docs, Messages API of the versions 2023-06-01 and 2026-10-21, and mid-conversation system
messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from agentv.model.values.message import Message
from agentv.model.values.response import CallFailure, Failure, TargetResponse
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import Json, JsonObject
from agentv.targets.http.failures import shown, unreadable_reply
from agentv.targets.model_api.content import (
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

SYSTEM_ONLY_FIRST = re.compile(r"claude-(?:instant|[123]\b|(?:sonnet|haiku)-4|opus-4(?!-[89]))")
"""Models that refuse messages of the role `system`, and take the system prompt alone: all before Claude Opus 4.8."""


def conversation(messages: Sequence[Message], model: str) -> tuple[str, list[JsonObject]] | Failure:
    """The system prompt and the turns after it; a Failure where a picture or a PDF cannot be read.

    System messages at the beginning are the system prompt. A later one stays where it is: as a message of the role
    `system` behind a user's turn, where the model takes that; else within the user's turn, marked as `<system>`.
    Messages of one role in a row are one turn; results of tools belong to the user.
    """
    first = next((place for place, message in enumerate(messages) if message.role != "system"), len(messages))
    system = "\n\n".join(message.text for message in messages[:first])
    turns: list[tuple[str, list[Json]]] = []  # role and blocks
    for step in tool_steps(messages[first:]):
        blocks = _blocks(step)
        if isinstance(blocks, Failure):
            return blocks
        role = "assistant" if step.message.role == "assistant" else "user"
        if step.message.role == "system":
            behind_user = bool(turns) and turns[-1][0] in {"user", "system"}
            if behind_user and SYSTEM_ONLY_FIRST.search(model) is None:
                role = "system"
            else:
                blocks = [_text(f"<system>\n{step.message.text}\n</system>")]
        if not turns or turns[-1][0] != role:
            turns.append((role, []))
        turns[-1][1].extend(blocks)
    return system, [{"role": role, "content": _content(blocks)} for role, blocks in turns if blocks]


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
    if step.message.role != "tool":
        return [*parts, *({"type": "tool_use", "id": c.id, "name": c.name, "input": c.arguments} for c in step.calls)]
    if step.result_of is None:  # the API takes no result without a call
        return [_text(f"tool ({step.message.name or 'unnamed'}):\n{step.message.text}")]
    return [{"type": "tool_result", "tool_use_id": step.result_of.id, "content": _content([*parts])}]


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _picture(picture: Attached | str) -> JsonObject:
    if isinstance(picture, str):
        source = {"type": "url", "url": picture}
    else:
        source = {"type": "base64", "media_type": picture.media_type, "data": picture.base64}
    return {"type": "image", "source": source}


def _document(document: Attached) -> JsonObject:
    source = {"type": "base64", "media_type": document.media_type, "data": document.base64}
    return {"type": "document", "source": source, "title": document.name}


_PARTS = PartBuilders(_text, _picture, _document)


def tools_in(tools: Sequence[Json]) -> list[Json]:
    """Tools in Anthropic's own shape; those in OpenAI's are turned into it."""
    functions, made = functions_in(tools)
    for function in functions:
        tool = {key: function[key] for key in ("name", "description", "strict") if key in function}
        made.append({**tool, "input_schema": function.get("parameters") or {"type": "object", "properties": {}}})
    return made


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


def response_of(reply: Json, model: str, prices: str = "anthropic") -> TargetResponse | Failure:
    """The answer in a `message`; a Failure if it is malformed (`bad-answer`) or the provider gave no text (`refused`).

    `output` is the text, without thoughts. Calls of tools stand in `messages`. `prices`: as `cost_of` takes a provider.
    """
    content = reply.get("content") if isinstance(reply, Mapping) else None
    if not isinstance(reply, Mapping) or not isinstance(content, list):
        return unreadable_reply("the reply is not a message of Anthropic's API: it has no list 'content'")
    blocks: list[JsonObject] = [block for block in content if isinstance(block, Mapping)]
    text = texts_of(blocks)
    asked = (block for block in blocks if block.get("type") == "tool_use")
    calls = tuple(tool_call(block.get("name"), block.get("input"), block.get("id")) for block in asked)
    reason, details = reply.get("stop_reason"), reply.get("stop_details")
    if reason == "refusal":
        said = (details.get("category"), details.get("explanation")) if isinstance(details, Mapping) else ()
        why = ": ".join(str(one) for one in said if one)
        return CallFailure("refused", shown(f"Anthropic refused to answer{f' ({why})' if why else ''}"))
    if reason == "pause_turn":
        return unreadable_reply("the API paused the turn before its answer was complete (pause_turn)")
    if not blocks and reason is None:
        return unreadable_reply("the reply is a message with neither content nor 'stop_reason'")
    usage, written = usage_of(reply.get("usage"))
    cost = cost_of(prices, model, usage, cache_written=written)
    return answer_of(text, calls, reason, reply.get("model"), usage, cost)


def usage_of(usage: Json) -> tuple[TokenUsage | None, int]:
    """The tokens, and how many were written to the cache. Anthropic counts cached ones beside `input_tokens`."""
    if not isinstance(usage, Mapping):
        return None, 0
    fresh, output = count_of(usage.get("input_tokens")), count_of(usage.get("output_tokens"))
    if fresh is None or output is None:
        return None, 0
    read = count_of(usage.get("cache_read_input_tokens"))
    written = count_of(usage.get("cache_creation_input_tokens")) or 0
    details = usage.get("output_tokens_details")
    thought = count_of(details.get("thinking_tokens")) if isinstance(details, Mapping) else None
    whole = fresh + (read or 0) + written
    return TokenUsage(whole, output, whole + output, read, thought), written
