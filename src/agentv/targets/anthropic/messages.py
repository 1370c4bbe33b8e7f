"""Conversion of messages to the format of Anthropic's Messages API and of its replies to answers.

Errors are returned as values. Source: platform.claude.com/docs, Messages API, versions 2023-06-01 and 2026-10-21, and
mid-conversation system messages.
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
"""Models that accept a system prompt but reject messages with the role `system`: all before Claude Opus 4.8."""


def conversation(messages: Sequence[Message], model: str) -> tuple[str, list[JsonObject]] | Failure:
    """Return the system prompt and the turns, or a Failure if a picture or PDF cannot be read.

    System messages at the beginning become the system prompt. Later ones stay in place: with the role `system` after a
    user's turn, if the model supports that, or else as text in the user's turn, marked as `<system>`. Consecutive
    messages of one role are one turn. Tool results belong to the user's turn.
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
    """Return a single text block as plain text, which every server with this API accepts."""
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
    if step.result_of is None:  # the API rejects a result without a call
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
    """Return the tools in Anthropic's format. Functions in OpenAI's format are converted."""
    functions, made = functions_in(tools)
    for function in functions:
        tool = {key: function[key] for key in ("name", "description", "strict") if key in function}
        made.append({**tool, "input_schema": function.get("parameters") or {"type": "object", "properties": {}}})
    return made


def tool_choice_in(choice: Json) -> Json:
    """Return Anthropic's tool choice for `auto`, `any` (`required`), `none`, the name of a tool, or OpenAI's object.

    Other objects are returned unchanged.
    """
    match choice:
        case str():
            known = {"required": "any"}.get(choice, choice)
            return {"type": known} if known in {"auto", "any", "none"} else {"type": "tool", "name": choice}
        case {"type": "function", "function": {"name": str(name)}}:
            return {"type": "tool", "name": name}
    return choice


def texts_of(blocks: Iterable[JsonObject]) -> str:
    """Return the text of a reply. Adjacent text blocks are joined, others are separated by an empty line."""
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
    """Return the answer in a `message`, or a Failure (code `bad-answer` or `refused`).

    Its `output` is the text without thoughts. Tool calls are in `messages`.

    Args:
        reply: the reply as JSON.
        model: the requested model.
        prices: the provider, as for `cost_of`.
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
        reasons = (details.get("category"), details.get("explanation")) if isinstance(details, Mapping) else ()
        why = ": ".join(str(one) for one in reasons if one)
        return CallFailure("refused", shown(f"Anthropic refused to answer{f' ({why})' if why else ''}"))
    if reason == "pause_turn":
        return unreadable_reply("the API paused the turn before its answer was complete (pause_turn)")
    if not blocks and reason is None:
        return unreadable_reply("the reply is a message with neither content nor 'stop_reason'")
    usage, written = usage_of(reply.get("usage"))
    cost = cost_of(prices, model, usage, cache_written=written)
    return answer_of(text, calls, reason, reply.get("model"), usage, cost)


def usage_of(usage: Json) -> tuple[TokenUsage | None, int]:
    """Return the usage and the tokens written to the cache. Anthropic's `input_tokens` exclude cached ones."""
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
