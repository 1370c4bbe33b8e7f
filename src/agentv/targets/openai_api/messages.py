"""Messages as OpenAI's APIs take them. Chat completions and responses call the same things by other names."""

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
"""What a `name` must not hold."""


@dataclass(frozen=True, slots=True)
class _Form:
    """How one of the two APIs writes content and what it makes of a message."""

    parts: PartBuilders[dict[str, Any]]
    rows: Callable[[ToolStep, str | list[Any]], Iterator[dict[str, Any]]]


def with_system(system: str | None, messages: Sequence[Message], prompt: str) -> Sequence[Message]:
    """The messages with the target's own system message before them; without any, the prompt is one."""
    prompted = messages or (Message("user", prompt),)
    return prompted if system is None else (Message("system", system), *prompted)


def chat_messages(messages: Iterable[Message]) -> list[Any] | Failure:
    """For chat completions; text files stand in their text, under their paths.

    A Failure is a picture or a PDF that cannot be read.
    """
    return _rows(messages, _CHAT)


def response_items(messages: Iterable[Message]) -> list[Any] | Failure:
    """For the responses API, where calls of tools and their answers are items beside the messages."""
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
    """The content as text, which every server takes; as parts only where there is a picture or a PDF."""
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
    """The id of the call whose result this is; of one that answers no call, what it says itself."""
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
