"""Replies of Anthropic's Messages API, read as data: whatever a gateway sends, nothing is raised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentv.model.values.message import Message, ToolCall
from agentv.model.values.response import CallFailure, Failure, TargetResponse
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import Json, JsonObject
from agentv.targets.anthropic.messages import texts_of
from agentv.targets.http.answers import invalid_reply
from agentv.targets.http.model_calls import unreadable_reply
from agentv.targets.http.statuses import shown
from agentv.targets.model_api.prices import cost_of


def response_of(reply: Json, model: str, prices: str = "anthropic") -> TargetResponse | Failure:
    """The answer in a `message`; a Failure if it is malformed (`bad-answer`) or the provider gave no text (`refused`).

    `output` is the text, without thoughts. Calls of tools stand in `messages`. `prices`: as `cost_of` takes a provider.
    """
    content = reply.get("content") if isinstance(reply, Mapping) else None
    if not isinstance(reply, Mapping) or not isinstance(content, list):
        return unreadable_reply("the reply is not a message of Anthropic's API: it has no list 'content'")
    blocks: list[JsonObject] = [block for block in content if isinstance(block, Mapping)]
    text, calls = texts_of(blocks), tuple(_call(block) for block in blocks if block.get("type") == "tool_use")
    reason = reply.get("stop_reason")
    if reason == "refusal":
        return _refused(reply.get("stop_details"))
    if reason == "pause_turn":
        return unreadable_reply("the API paused the turn before its answer was complete (pause_turn)")
    if not blocks and reason is None:
        return unreadable_reply("the reply is a message with neither content nor 'stop_reason'")
    usage, written = usage_of(reply.get("usage"))
    return invalid_reply(text) or TargetResponse(
        output=text or None,
        messages=(Message("assistant", text, tool_calls=calls),) if calls else (),
        token_usage=usage,
        cost_usd=cost_of(prices, model, usage, cache_written=written),
        finish_reason=reason if isinstance(reason, str) else None,
        metadata={"model": reply["model"]} if isinstance(reply.get("model"), str) else {},
    )


def _call(block: JsonObject) -> ToolCall:
    arguments, identity = block.get("input"), block.get("id")
    return ToolCall(
        str(block.get("name") or ""),
        arguments if isinstance(arguments, Mapping) else {},
        identity if isinstance(identity, str) else None,
    )


def _refused(details: Json) -> CallFailure:
    refusal = details if isinstance(details, Mapping) else {}
    why = ": ".join(str(refusal[key]) for key in ("category", "explanation") if refusal.get(key))
    return CallFailure("refused", shown(f"Anthropic refused to answer{f' ({why})' if why else ''}"))


def usage_of(usage: Json) -> tuple[TokenUsage | None, int]:
    """The tokens, and how many were written to the cache. Anthropic counts cached ones beside `input_tokens`."""
    if not isinstance(usage, Mapping):
        return None, 0
    fresh, output = _count(usage.get("input_tokens")), _count(usage.get("output_tokens"))
    if fresh is None or output is None:
        return None, 0
    read = _count(usage.get("cache_read_input_tokens"))
    written = _count(usage.get("cache_creation_input_tokens")) or 0
    details = usage.get("output_tokens_details")
    thought = _count(details.get("thinking_tokens")) if isinstance(details, Mapping) else None
    whole = fresh + (read or 0) + written
    return TokenUsage(whole, output, whole + output, read, thought), written


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
