"""Messages as OpenAI's APIs take them. Chat completions and responses call the same things by other names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentv.model.message import ImageBlock, Message, ToolCall
from agentv.model.response import Failure
from agentv.targets.pictures import Picture, picture_of

_NO_NAME = re.compile(r"[\s<|\\/>]+")
"""What a `name` must not hold."""


@dataclass(slots=True)
class CallIds:
    """Which call of a tool a message of the role `tool` answers.

    A message says the tool's name, or the id of the call, or nothing; the API wants the id. The first call that fits
    and that has no answer yet is the one.
    """

    _open: list[tuple[str, str]] = field(default_factory=list)
    _given: int = 0

    def of_call(self, call: ToolCall) -> str:
        """The id of a call; a new one where it has none."""
        self._given += 1
        identity = call.id or f"call_{self._given}"
        self._open.append((identity, call.name))
        return identity

    def of_answer(self, message: Message) -> str:
        """The id of the call that a message answers."""
        fits = [one for one in self._open if message.name in one] or self._open
        if not fits:
            return message.name or "call_1"
        self._open.remove(fits[0])
        return fits[0][0]


def with_system(system: str | None, messages: Sequence[Message], prompt: str) -> Sequence[Message]:
    """The messages with the target's own system message before them; without any, the prompt is one."""
    said = messages or (Message("user", prompt),)
    return said if system is None else (Message("system", system), *said)


def arguments_of(call: ToolCall) -> str:
    """The arguments of a call as JSON text."""
    return json.dumps(call.arguments, ensure_ascii=False)


def chat_messages(messages: Iterable[Message], *, by_url: bool) -> list[Any] | Failure:
    """For chat completions. A Failure is a picture that cannot be sent.

    Args:
        messages: files stand in their text, under their paths.
        by_url: the server fetches pictures.
    """
    ids = CallIds()
    made: list[Any] = []
    for message in messages:
        content = content_of(message, by_url=by_url, text=_CHAT_TEXT, picture=_chat_picture)
        if isinstance(content, Failure):
            return content
        made.append(_chat_message(message, content, ids))
    return made


def _chat_message(message: Message, content: str | list[Any], ids: CallIds) -> dict[str, Any]:
    row: dict[str, Any] = {"role": message.role, "content": content}
    if message.role == "tool":
        return {**row, "tool_call_id": ids.of_answer(message)}
    if message.name is not None:
        row["name"] = _NO_NAME.sub("_", message.name)
    if message.tool_calls:
        row["content"] = content or None
        row["tool_calls"] = [
            {
                "id": ids.of_call(call),
                "type": "function",
                "function": {"name": call.name, "arguments": arguments_of(call)},
            }
            for call in message.tool_calls
        ]
    return row


def response_items(messages: Iterable[Message], *, by_url: bool) -> list[Any] | Failure:
    """For the responses API, where calls of tools and their answers are items beside the messages."""
    ids = CallIds()
    made: list[Any] = []
    for message in messages:
        content = content_of(message, by_url=by_url, text=_RESPONSE_TEXT, picture=_response_picture)
        if isinstance(content, Failure):
            return content
        made.extend(_response_items(message, content, ids))
    return made


def _response_items(message: Message, content: str | list[Any], ids: CallIds) -> Iterator[dict[str, Any]]:
    if message.role == "tool":
        yield {"type": "function_call_output", "call_id": ids.of_answer(message), "output": content}
        return
    if content or not message.tool_calls:
        yield {"role": message.role, "content": content}
    for call in message.tool_calls:
        identity = ids.of_call(call)
        yield {"type": "function_call", "call_id": identity, "name": call.name, "arguments": arguments_of(call)}


_CHAT_TEXT, _RESPONSE_TEXT = "text", "input_text"


def _chat_picture(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def _response_picture(url: str) -> dict[str, Any]:
    return {"type": "input_image", "image_url": url}


def content_of(message: Message, *, by_url: bool, text: str, picture: Any) -> str | list[Any] | Failure:
    """The content as text, which every server takes; as parts only where there is a picture."""
    blocks = message.content if isinstance(message.content, tuple) else ()
    if not any(isinstance(block, ImageBlock) for block in blocks):
        return message.text
    parts: list[Any] = []
    for block in blocks:
        if not isinstance(block, ImageBlock):
            parts.append({"type": text, "text": Message(message.role, (block,)).text})
            continue
        found = picture_of(block)
        if isinstance(found, Failure):
            return found
        if isinstance(found, str) and not by_url:
            return Failure("bad-picture", f"this API fetches no pictures, so '{block.value}' must be a local file")
        parts.append(picture(found.data_url if isinstance(found, Picture) else found))
    return parts
