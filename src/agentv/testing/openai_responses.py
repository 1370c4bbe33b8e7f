"""OpenAI's responses, whole and streamed (https://platform.openai.com/docs/api-reference/responses)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

from agentv.model.values.message import ToolCall
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import JsonObject
from agentv.testing.agents.offered_tools import OfferedTool, offered_tools
from agentv.testing.calls import ModelCall
from agentv.testing.openai_chat import CREATED
from agentv.testing.replies import Operation, ReplyStep, event, stream_pieces
from agentv.testing.steps import Answer, ContentFilter, usage_in

_ENDS = {None, "stop", "completed"}
_EMPTY: dict[str, dict[str, Any]] = {
    "message": {"content": []},
    "reasoning": {"summary": []},
    "function_call": {"arguments": ""},
    "custom_tool_call": {"input": ""},
}
_TEXTS = {"function_call": "arguments", "custom_tool_call": "input"}
_ECHOED = ("instructions", "metadata", "reasoning", "text", "temperature", "top_p", "max_output_tokens")


def response_body(call: ModelCall, step: ReplyStep, number: int) -> JsonObject:
    """The object `response`. A finish reason other than `stop` makes it `incomplete`, for that reason."""
    reason = "content_filter" if isinstance(step, ContentFilter) else getattr(step, "finish_reason", None)
    complete = reason in _ENDS
    usage = usage_in(step)
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": CREATED,
        "status": "completed" if complete else "incomplete",
        "error": None,
        "incomplete_details": None if complete else {"reason": reason},
        "model": call.model,
        "output": list(_items(call, step, number)),
        "parallel_tool_calls": True,
        "tool_choice": call.body.get("tool_choice", "auto"),
        "tools": call.body.get("tools", []),
        **{key: call.body.get(key) for key in _ECHOED},
        **({} if usage is None else {"usage": usage_of(usage)}),
    }


def _items(call: ModelCall, step: ReplyStep, number: int) -> Iterator[dict[str, Any]]:
    if not isinstance(step, Answer):
        return
    if step.reasoning or (step.usage is not None and step.usage.reasoning):
        summary = [{"type": "summary_text", "text": step.reasoning}] if step.reasoning else []
        yield {"id": f"rs_{number}", "type": "reasoning", "summary": summary}
    content = _content(step)
    if content is not None:
        message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "status": "completed"}
        yield {**message, "content": [content]}
    tools = offered_tools(call.body) if step.tool_calls else ()
    for place, one in enumerate(step.tool_calls):
        tool = next((tool for tool in tools if one.name == tool.full_name), OfferedTool(one.name))
        yield _tool_item(one, tool, f"{number}_{place}")


def _tool_item(call: ToolCall, tool: OfferedTool, identity: str) -> dict[str, Any]:
    """A `function_call`, with its namespace if the tool stands in one; a `custom_tool_call` of a custom tool."""
    head = {"status": "completed", "call_id": call.id or f"call_{identity}", "name": tool.name}
    if tool.namespace:
        head["namespace"] = tool.namespace
    if tool.search:
        search = {"type": "tool_search_call", "status": "completed", "execution": "client"}
        return {"id": f"ts_{identity}", **search, "call_id": head["call_id"], "arguments": dict(call.arguments)}
    if tool.custom:
        text = call.arguments.get("input")
        return {
            "id": f"ctc_{identity}",
            "type": "custom_tool_call",
            **head,
            "input": text if isinstance(text, str) else "",
        }
    return {"id": f"fc_{identity}", "type": "function_call", **head, "arguments": json.dumps(call.arguments)}


def _content(answer: Answer) -> dict[str, Any] | None:
    if answer.refusal is not None:
        return {"type": "refusal", "refusal": answer.refusal}
    if answer.text or not answer.tool_calls:
        return {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
    return None


def usage_of(usage: TokenUsage) -> dict[str, Any]:
    """`usage`: the input's tokens hold the cached ones, the output's those of reasoning."""
    taken, given = usage.input or 0, usage.output or 0
    return {
        "input_tokens": taken,
        "input_tokens_details": {"cached_tokens": usage.cached or 0, "cache_write_tokens": 0},
        "output_tokens": given,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
        "total_tokens": usage.total if usage.total is not None else taken + given,
    }


def response_events(_call: ModelCall, body: JsonObject) -> Iterator[bytes]:
    """The same response as its events, numbered, from `response.created` to `response.completed`."""
    whole: dict[str, Any] = dict(body)
    number = count()
    begun = {**whole, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    events: list[tuple[str, dict[str, Any]]] = [
        ("response.created", {"response": begun}),
        ("response.in_progress", {"response": begun}),
    ]
    for index, item in enumerate(whole["output"]):
        events += [(name, {**data, "output_index": index}) for name, data in _item_events(item)]
    events.append((f"response.{whole['status']}", {"response": whole}))
    for name, data in events:
        yield event({"type": name, "sequence_number": next(number), **data}, name)


def _item_events(item: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    empty = _EMPTY.get(item["type"], {})
    yield "response.output_item.added", {"item": {**item, "status": "in_progress", **empty}}
    if item["type"] == "message":
        for place, part in enumerate(item["content"]):
            yield from _part_events(part, {"item_id": item["id"], "content_index": place})
    elif item["type"] == "reasoning":
        for place, part in enumerate(item["summary"]):
            yield from _summary_events(part, {"item_id": item["id"], "summary_index": place})
    elif key := _TEXTS.get(item["type"]):
        kind = "response.function_call_arguments" if key == "arguments" else "response.custom_tool_call_input"
        for piece in stream_pieces(item[key]):
            yield f"{kind}.delta", {"item_id": item["id"], "delta": piece}
        named = {"name": item["name"]} if key == "arguments" else {}
        yield f"{kind}.done", {"item_id": item["id"], **named, key: item[key]}
    yield "response.output_item.done", {"item": item}


def _part_events(part: dict[str, Any], where: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    key = "refusal" if part["type"] == "refusal" else "text"
    name = "response.refusal" if key == "refusal" else "response.output_text"
    logprobs: dict[str, Any] = {} if key == "refusal" else {"logprobs": []}
    yield "response.content_part.added", {**where, "part": {**part, key: ""}}
    for piece in stream_pieces(part[key]):
        yield f"{name}.delta", {**where, **logprobs, "delta": piece}
    yield f"{name}.done", {**where, **logprobs, key: part[key]}
    yield "response.content_part.done", {**where, "part": part}


def _summary_events(part: dict[str, Any], where: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    name = "response.reasoning_summary"
    yield f"{name}_part.added", {**where, "part": {**part, "text": ""}}
    for piece in stream_pieces(part["text"]):
        yield f"{name}_text.delta", {**where, "delta": piece}
    yield f"{name}_text.done", {**where, "text": part["text"]}
    yield f"{name}_part.done", {**where, "part": part}


RESPONSES = Operation("responses", response_body, response_events)
