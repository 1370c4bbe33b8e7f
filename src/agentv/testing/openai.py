"""OpenAI's chat completions and Responses APIs, with streaming, and the errors of OpenAI, Azure and Ollama.

Source: https://platform.openai.com/docs/api-reference
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import count
from typing import Any

from agentv.model.values.message import ToolCall
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import JsonObject
from agentv.testing.agent_tools import OfferedTool, offered_tools
from agentv.testing.replies import ModelApi, Operation, ReplyStep, event, stream_pieces
from agentv.testing.steps import Answer, ContentFilter, ModelCall, Status, usage_in

CREATED = 1_760_000_000
"""Creation time of every reply: a fixed second in 2025, so that replies can be compared."""


def chat_body(call: ModelCall, step: ReplyStep, number: int) -> JsonObject:
    """The JSON of a `chat.completion` object."""
    body: dict[str, Any] = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": CREATED,
        "model": call.model,
        "choices": list(_choices(step, number)),
    }
    usage = usage_in(step)
    if usage is not None:
        body["usage"] = usage_of(usage)
    return body


def _choices(step: ReplyStep, number: int) -> Iterator[dict[str, Any]]:
    if isinstance(step, ContentFilter):
        yield _choice({"role": "assistant", "content": None, "refusal": None}, "content_filter")
    elif isinstance(step, Answer):
        calls: list[dict[str, Any]] = []
        for place, one in enumerate(step.tool_calls):
            function = {"name": one.name, "arguments": json.dumps(one.arguments)}
            calls.append({"id": one.id or f"call_{number}_{place}", "type": "function", "function": function})
        no_text = step.refusal is not None or (calls and not step.text)
        message: dict[str, Any] = {
            "role": "assistant",
            "content": None if no_text else step.text,
            "refusal": step.refusal,
            "annotations": [],
        }
        if step.reasoning:
            message["reasoning_content"] = step.reasoning
        if calls:
            message["tool_calls"] = calls
        yield _choice(message, step.finish_reason or ("tool_calls" if calls else "stop"))


def _choice(message: dict[str, Any], finish_reason: str) -> dict[str, Any]:
    return {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason}


def usage_of(usage: TokenUsage) -> dict[str, Any]:
    """The JSON of `usage`: prompt tokens include cached tokens, completion tokens include reasoning tokens."""
    prompt, completion = usage.input or 0, usage.output or 0
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": usage.total if usage.total is not None else prompt + completion,
        "prompt_tokens_details": {"cached_tokens": usage.cached or 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
    }


def chat_events(call: ModelCall, body: JsonObject) -> Iterator[bytes]:
    """The `chat.completion.chunk` events of a streamed answer, then the usage if requested, and `[DONE]`."""
    whole: dict[str, Any] = dict(body)
    usage = whole.pop("usage", None)
    head = {**whole, "object": "chat.completion.chunk"}
    for choice in whole["choices"]:
        part: JsonObject = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": None}
        for delta in _deltas(choice["message"]):
            yield event({**head, "choices": [{**part, "delta": delta}]})
        yield event({**head, "choices": [{**part, "finish_reason": choice["finish_reason"]}]})
    options: Any = call.body.get("stream_options") or {}
    if usage is not None and options.get("include_usage"):
        yield event({**head, "choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


def _deltas(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": "" if message["content"] is not None else None, "refusal": None}
    yield from ({"reasoning_content": word} for word in stream_pieces(message.get("reasoning_content", "")))
    yield from ({"content": word} for word in stream_pieces(message["content"] or ""))
    yield from ({"refusal": word} for word in stream_pieces(message["refusal"] or ""))
    for index, one in enumerate(message.get("tool_calls", ())):
        name, arguments = one["function"]["name"], one["function"]["arguments"]
        first = {"index": index, "id": one["id"], "type": "function", "function": {"name": name, "arguments": ""}}
        yield {"tool_calls": [first]}
        yield from (
            {"tool_calls": [{"index": index, "function": {"arguments": word}}]} for word in stream_pieces(arguments)
        )


CHAT = Operation("chat", chat_body, chat_events)


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
    """The JSON of a `response` object. A finish reason other than `stop` makes it `incomplete`, with that reason."""
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
        **({} if usage is None else {"usage": usage_of_response(usage)}),
    }


def _items(call: ModelCall, step: ReplyStep, number: int) -> Iterator[dict[str, Any]]:
    if not isinstance(step, Answer):
        return
    if step.reasoning or (step.usage is not None and step.usage.reasoning):
        summary = [{"type": "summary_text", "text": step.reasoning}] if step.reasoning else []
        yield {"id": f"rs_{number}", "type": "reasoning", "summary": summary}
    content: dict[str, Any] | None = None
    if step.refusal is not None:
        content = {"type": "refusal", "refusal": step.refusal}
    elif step.text or not step.tool_calls:
        content = {"type": "output_text", "text": step.text, "annotations": [], "logprobs": []}
    if content is not None:
        message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "status": "completed"}
        yield {**message, "content": [content]}
    tools = offered_tools(call.body) if step.tool_calls else ()
    for place, one in enumerate(step.tool_calls):
        tool = next((tool for tool in tools if one.name == tool.full_name), OfferedTool(one.name))
        yield _tool_item(one, tool, f"{number}_{place}")


def _tool_item(call: ToolCall, tool: OfferedTool, identity: str) -> dict[str, Any]:
    """The output item of a tool call: `function_call`, `custom_tool_call` or `tool_search_call`."""
    head = {"status": "completed", "call_id": call.id or f"call_{identity}", "name": tool.name}
    if tool.namespace:
        head["namespace"] = tool.namespace
    if tool.search:
        search = {"type": "tool_search_call", "status": "completed", "execution": "client"}
        return {"id": f"ts_{identity}", **search, "call_id": head["call_id"], "arguments": dict(call.arguments)}
    if tool.custom:
        text = call.arguments.get("input")
        given = text if isinstance(text, str) else ""
        return {"id": f"ctc_{identity}", "type": "custom_tool_call", **head, "input": given}
    return {"id": f"fc_{identity}", "type": "function_call", **head, "arguments": json.dumps(call.arguments)}


def usage_of_response(usage: TokenUsage) -> dict[str, Any]:
    """The JSON of `usage`: input tokens include cached tokens, output tokens include reasoning tokens."""
    taken, given = usage.input or 0, usage.output or 0
    return {
        "input_tokens": taken,
        "input_tokens_details": {"cached_tokens": usage.cached or 0, "cache_write_tokens": 0},
        "output_tokens": given,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
        "total_tokens": usage.total if usage.total is not None else taken + given,
    }


def response_events(_call: ModelCall, body: JsonObject) -> Iterator[bytes]:
    """The numbered events of a streamed response, from `response.created` to `response.completed`."""
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
            where = {"item_id": item["id"], "content_index": place}
            if part["type"] == "refusal":
                yield from _part_events("response.content", "response.refusal", part, where)
            else:
                yield from _part_events("response.content", "response.output_text", part, where, logprobs=[])
    elif item["type"] == "reasoning":
        for place, part in enumerate(item["summary"]):
            where = {"item_id": item["id"], "summary_index": place}
            name = "response.reasoning_summary"
            yield from _part_events(name, f"{name}_text", part, where)
    elif key := _TEXTS.get(item["type"]):
        kind = "response.function_call_arguments" if key == "arguments" else "response.custom_tool_call_input"
        for piece in stream_pieces(item[key]):
            yield f"{kind}.delta", {"item_id": item["id"], "delta": piece}
        named = {"name": item["name"]} if key == "arguments" else {}
        yield f"{kind}.done", {"item_id": item["id"], **named, key: item[key]}
    yield "response.output_item.done", {"item": item}


def _part_events(
    name: str, text_name: str, part: dict[str, Any], where: dict[str, Any], **more: Any
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events of one content part: added, its text as deltas, the complete text, done."""
    key = "refusal" if part["type"] == "refusal" else "text"
    yield f"{name}_part.added", {**where, "part": {**part, key: ""}}
    for piece in stream_pieces(part[key]):
        yield f"{text_name}.delta", {**where, **more, "delta": piece}
    yield f"{text_name}.done", {**where, **more, key: part[key]}
    yield f"{name}_part.done", {**where, "part": part}


RESPONSES = Operation("responses", response_body, response_events)


_KINDS = {
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    404: ("invalid_request_error", "model_not_found", "The model `{model}` does not exist."),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached for {model} on requests per min (RPM)."),
    500: ("server_error", None, "The server had an error while processing your request. Sorry about that!"),
}
_FILTERED = "The response was filtered due to the prompt triggering Azure OpenAI's content management policy."
_AZURE_CODES = {
    404: ("DeploymentNotFound", "The API deployment for this resource does not exist."),
    500: ("InternalServerError", "The server had an error while processing your request."),
}


def _kind(status: int) -> tuple[str, str | None, str]:
    if status in _KINDS:
        return _KINDS[status]
    return ("invalid_request_error", None, "Invalid request.") if status < 500 else ("server_error", None, "Overloaded")


def openai_error(call: ModelCall, status: int, message: str, _wait_s: float | None) -> JsonObject:
    """The JSON of an error: `{"error": {"message", "type", "param", "code"}}`."""
    kind, code, usual = _kind(status)
    return {"error": {"message": message or usual.format(model=call.model), "type": kind, "param": None, "code": code}}


def azure_error(call: ModelCall, status: int, message: str, wait_s: float | None) -> JsonObject:
    """The JSON of an error: `{"error": {"code", "message"}}`. The content filter's error includes its findings."""
    if message == _FILTERED:
        found = {"hate": {"filtered": True, "severity": "high"}, "violence": {"filtered": False, "severity": "safe"}}
        inner = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": found}
        where: dict[str, Any] = {"param": "prompt", "type": None, "status": 400, "innererror": inner}
        return {"error": {"code": "content_filter", "message": _FILTERED, **where}}
    if status == 400:
        return openai_error(call, status, message, wait_s)  # from the model behind Azure
    code, usual = _AZURE_CODES.get(status, (str(status), _kind(status)[2]))
    if wait_s is not None:
        usual += f" Please retry after {math.ceil(wait_s)} seconds."
    return {"error": {"code": code, "message": message or usual.format(model=call.model)}}


OPENAI = ModelApi("openai", openai_error)
AZURE = ModelApi("azure", azure_error, filtered=Status(400, _FILTERED))
OLLAMA = ModelApi("ollama", openai_error)
