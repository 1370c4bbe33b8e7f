"""Messages, their content, and the prompt that they make (SPEC section 5)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from agentv.model.values import Json, JsonObject

Role = Literal["system", "user", "assistant", "tool"]
ROLES: tuple[str, ...] = get_args(Role)


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A piece of text inside a message."""

    value: str


@dataclass(frozen=True, slots=True)
class FileBlock:
    """A text file attached to a message: `value` as written, `path` as found, `text` as read."""

    value: str
    path: str
    text: str


@dataclass(frozen=True, slots=True)
class ImageBlock:
    """A picture attached to a message: `value` as written, `path` where it lies on disk, else it is a URL."""

    value: str
    path: str | None = None


Block: TypeAlias = TextBlock | FileBlock | ImageBlock
Content: TypeAlias = "str | JsonObject | tuple[Block, ...]"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool that an assistant's message asks for; `duration_ms` is how long the tool took, where known."""

    name: str
    arguments: JsonObject
    id: str | None = None
    duration_ms: float | None = None

    def as_json(self) -> dict[str, Json]:
        """The call as it goes over the wire."""
        plain: dict[str, Json] = {"id": self.id, "name": self.name, "arguments": self.arguments}
        return plain if self.duration_ms is None else {**plain, "duration_ms": self.duration_ms}


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role
    content: Content
    name: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()

    @property
    def text(self) -> str:
        """The content as text: files inlined under their paths, objects as JSON, images by name."""
        content = self.content
        if isinstance(content, str):
            return content
        if isinstance(content, tuple):
            return "\n\n".join(_block_text(block) for block in content)
        return json.dumps(content, ensure_ascii=False, indent=2)

    def as_json(self) -> dict[str, Json]:
        """The message as it goes over the wire to scripts and into rows, snake_case."""
        plain: dict[str, Json] = {"role": self.role, "content": _content_json(self.content)}
        if self.name is not None:
            plain["name"] = self.name
        if self.tool_calls:
            plain["tool_calls"] = [call.as_json() for call in self.tool_calls]
        return plain


def _block_text(block: Block) -> str:
    if isinstance(block, TextBlock):
        return block.value
    if isinstance(block, FileBlock):
        return f'<file path="{block.value}">\n{block.text}\n</file>'
    return f"[image: {block.value}]"


def _content_json(content: Content) -> Json:
    if not isinstance(content, tuple):
        return content
    return [_block_json(block) for block in content]


def _block_json(block: Block) -> Json:
    if isinstance(block, TextBlock):
        return {"type": "text", "value": block.value}
    if isinstance(block, FileBlock):
        return {"type": "file", "value": block.value, "path": block.path, "text": block.text}
    return {"type": "image", "value": block.value}


def prompt_text(messages: Sequence[Message]) -> str:
    """The messages as one text: a lone user message is its text, several become role-labelled blocks."""
    if len(messages) == 1 and messages[0].role == "user":
        return messages[0].text
    return "\n\n".join(f"{_label(message)}:\n{message.text}" for message in messages)


def _label(message: Message) -> str:
    return f"{message.role} ({message.name})" if message.name else message.role


def attached_files(messages: Iterable[Message]) -> Iterator[str]:
    """The paths of all files and local images in the messages, in their order."""
    for message in messages:
        if isinstance(message.content, tuple):
            for block in message.content:
                if not isinstance(block, TextBlock) and block.path is not None:
                    yield block.path


def messages_from_json(rows: Iterable[Mapping[str, Json]]) -> tuple[Message, ...]:
    """Messages out of wire objects, as targets and recordings give them.

    Raises:
        ValueError: a row is no message; the text names what is wrong.
    """
    return tuple(_message_from_json(row) for row in rows)


def _message_from_json(row: Mapping[str, Json]) -> Message:
    role = row.get("role")
    for known in ROLES:
        if role == known:
            name = row.get("name")
            return Message(
                role=known,  # type: ignore[arg-type]  # ROLES holds just the literals of Role
                content=_content_from_json(row.get("content")),
                name=name if isinstance(name, str) else None,
                tool_calls=tuple(_calls_from_json(row.get("tool_calls"))),
            )
    raise ValueError(f"a message needs a role out of {', '.join(ROLES)}, found {role!r}")


def _content_from_json(content: Json) -> Content:
    if content is None:
        return ""
    if isinstance(content, str | Mapping):
        return content
    if isinstance(content, Sequence):
        return "\n\n".join(_piece_text(piece) for piece in content)
    return json.dumps(content)


def _piece_text(piece: Json) -> str:
    if isinstance(piece, Mapping):
        found = piece.get("value", piece.get("text"))
        if isinstance(found, str):
            return found
    return piece if isinstance(piece, str) else json.dumps(piece, ensure_ascii=False)


def _calls_from_json(calls: Json) -> Iterator[ToolCall]:
    if isinstance(calls, str) or not isinstance(calls, Sequence):
        return
    for call in calls:
        if not isinstance(call, Mapping):
            continue
        inner = call.get("function", call)  # OpenAI nests name and arguments one level down
        source = inner if isinstance(inner, Mapping) else call
        arguments = source.get("arguments", source.get("input", source.get("args")))
        if isinstance(arguments, str):
            arguments = _parsed(arguments)
        name, identity, took = source.get("name", source.get("tool")), call.get("id"), call.get("duration_ms")
        yield ToolCall(
            name=str(name or ""),
            arguments=arguments if isinstance(arguments, Mapping) else {},
            id=identity if isinstance(identity, str) else None,
            duration_ms=float(took) if isinstance(took, int | float) and not isinstance(took, bool) else None,
        )


def _parsed(text: str) -> Json:
    try:
        parsed: Json = json.loads(text)
    except ValueError:
        return {"text": text}
    return parsed
