"""Messages in the formats of OpenAI's two APIs, chat completions and responses."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agentv.model.values.message import DocumentBlock, ImageBlock, Message, ToolCall
from agentv.model.values.response import Failure
from agentv.targets.model_api.content import (
    Attached,
    PartBuilders,
    ToolStep,
    content_parts,
    tool_steps,
)

_NO_NAME = re.compile(r"[\s<|\\/>]+")
"""Characters that are not allowed in a `name`."""


@dataclass(frozen=True, slots=True)
class _Form:
    """The functions that write content parts and messages for one of the two APIs."""

    parts: PartBuilders[dict[str, Any]]
    rows: Callable[[ToolStep, str | list[Any]], Iterator[dict[str, Any]]]


def with_system(system: str | None, messages: Sequence[Message], prompt: str) -> Sequence[Message]:
    """Return the messages, or else the prompt as a user message, after the target's system message if it has one."""
    prompted = messages or (Message("user", prompt),)
    return prompted if system is None else (Message("system", system), *prompted)


def chat_messages(messages: Iterable[Message]) -> list[Any] | Failure:
    """Return messages for chat completions, or a Failure if a picture or PDF cannot be read."""
    return _rows(messages, _CHAT)


def response_items(messages: Iterable[Message]) -> list[Any] | Failure:
    """Return input items for the responses API, where tool calls and their results are separate items."""
    return _rows(messages, _RESPONSES)


def _rows(messages: Iterable[Message], form: _Form) -> list[Any] | Failure:
    made: list[Any] = []
    for step in tool_steps(messages):
        content = _content(step.message, form)
        if isinstance(content, Failure):
            return content
        made.extend(form.rows(step, content))
    return made


def _content(message: Message, form: _Form) -> str | list[Any] | Failure:
    """Return the content as text, which every server accepts, or as parts if it has a picture or PDF."""
    blocks = message.content if isinstance(message.content, tuple) else ()
    if not any(isinstance(block, ImageBlock | DocumentBlock) for block in blocks):
        return message.text
    return content_parts(message, form.parts)


def _chat_rows(step: ToolStep, content: str | list[Any]) -> Iterator[dict[str, Any]]:
    message = step.message
    row: dict[str, Any] = {"role": message.role, "content": content}
    if message.role == "tool":
        row["tool_call_id"] = _result_of(step)
    elif message.name is not None:
        row["name"] = _NO_NAME.sub("_", message.name)
    if step.calls:
        row["content"] = content or None
        row["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _arguments(call)}}
            for call in step.calls
        ]
    yield row


def _response_rows(step: ToolStep, content: str | list[Any]) -> Iterator[dict[str, Any]]:
    if step.message.role == "tool":
        yield {"type": "function_call_output", "call_id": _result_of(step), "output": content}
        return
    if content or not step.calls:
        yield {"role": step.message.role, "content": content}
    for call in step.calls:
        yield {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": _arguments(call)}


def _result_of(step: ToolStep) -> str | None:
    """Return the id of the call that a tool result answers, or else the `name` in the message."""
    return step.message.name if step.result_of is None else step.result_of.id


def _arguments(call: ToolCall) -> str:
    return json.dumps(call.arguments, ensure_ascii=False)


def _url(picture: Attached | str) -> str:
    return picture if isinstance(picture, str) else picture.data_url


_CHAT = _Form(
    PartBuilders(
        lambda text: {"type": "text", "text": text},
        lambda picture: {"type": "image_url", "image_url": {"url": _url(picture)}},
        lambda document: {"type": "file", "file": {"filename": document.name, "file_data": document.data_url}},
    ),
    _chat_rows,
)
_RESPONSES = _Form(
    PartBuilders(
        lambda text: {"type": "input_text", "text": text},
        lambda picture: {"type": "input_image", "image_url": _url(picture)},
        lambda document: {"type": "input_file", "filename": document.name, "file_data": document.data_url},
    ),
    _response_rows,
)
