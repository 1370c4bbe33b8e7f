"""Messages, their content, and their text form (SPEC section 5)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

from msgspec import Struct
from msgspec.structs import replace

from agentv.model.values.tool_names import names_of
from agentv.model.values.values import Json, JsonObject, lazy_pattern

Role = Literal["system", "user", "assistant", "tool"]
ROLES: tuple[str, ...] = get_args(Role)


SEPARATOR = "\n---\n"
"""Separates the messages of a conversation that is shown as one text."""


class TextBlock(Struct, frozen=True):
    """A piece of text inside a message."""

    value: str


class FileBlock(Struct, frozen=True):
    """A text file attached to a message: `value` is the path as written, `path` as resolved, `text` the content."""

    value: str
    path: str
    text: str


class ImageBlock(Struct, frozen=True):
    """An image attached to a message: `value` as written, `path` as resolved, or None for a URL.

    `digest` is the sha256 of a file's bytes, so that a different image at the same path is a different input.
    """

    value: str
    path: str | None = None
    digest: str = ""


class DocumentBlock(Struct, frozen=True):
    """A PDF attached to a message: `value` is the path as written, `path` as resolved, `sha256` the hash of its bytes.

    In an answer, a file of any `media_type` that the target names; it was not read, so `sha256` is empty.
    """

    value: str
    path: str
    sha256: str
    media_type: str = "application/pdf"


Block: TypeAlias = TextBlock | FileBlock | ImageBlock | DocumentBlock
Content: TypeAlias = "str | JsonObject | tuple[Block, ...]"


class ToolCall(Struct, frozen=True):
    """A tool call in an assistant message.

    Attributes:
        duration_ms: how long the tool took, if known.
        output: its result, if reported with the call; otherwise a message with the role `tool` holds it.
        native_name: the agent's name for the tool if `name` is canonical (see `tool_names`), else None.
    """

    name: str
    arguments: JsonObject
    id: str | None = None
    duration_ms: float | None = None
    output: str | None = None
    native_name: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names that an assertion may use for the tool."""
        return names_of(self.name, self.native_name)

    def as_json(self) -> dict[str, Json]:
        """Return the call as a JSON object, as sent to scripts and written to rows."""
        more = {"duration_ms": self.duration_ms, "output": self.output, "native_name": self.native_name}
        known = {key: value for key, value in more.items() if value is not None}
        return {"id": self.id, "name": self.name, "arguments": self.arguments, **known}


class Message(Struct, frozen=True, gc=False):
    """One message of a conversation."""

    role: Role
    content: Content
    name: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()

    @property
    def text(self) -> str:
        """The content as text: text files are inlined with their paths, objects are JSON, images and PDFs are named."""
        content = self.content
        if isinstance(content, str):
            return content
        if isinstance(content, tuple):
            return "\n\n".join(_block_text(block) for block in content)
        return json.dumps(content, ensure_ascii=False, indent=2)

    def as_json(self) -> dict[str, Json]:
        """Return the message as a JSON object with snake_case keys, as sent to scripts and written to rows."""
        content = self.content
        blocks = [_block_json(block) for block in content] if isinstance(content, tuple) else content
        plain: dict[str, Json] = {"role": self.role, "content": blocks}
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
    return f"[{'image' if isinstance(block, ImageBlock) else 'file'}: {block.value}]"


def _block_json(block: Block) -> Json:
    if isinstance(block, TextBlock):
        return {"type": "text", "value": block.value}
    if isinstance(block, FileBlock):
        return {"type": "file", "value": block.value, "path": block.path, "text": block.text}
    if isinstance(block, DocumentBlock):
        other = {} if block.sha256 else {"media_type": block.media_type}
        return {"type": "file", "value": block.value, "path": block.path, **other}
    return {"type": "image", "value": block.value}


def portable(messages: tuple[Message, ...], root: str) -> tuple[Message, ...]:
    """Return the messages with paths of attached files relative to `root`; files outside of it get an empty path."""
    if tuple not in {type(message.content) for message in messages}:
        return messages
    return tuple(
        replace(message, content=tuple(_portable(block, root) for block in message.content))
        if isinstance(message.content, tuple)
        else message
        for message in messages
    )


def _portable(block: Block, root: str) -> Block:
    if isinstance(block, TextBlock) or block.path is None:
        return block
    inside = f"{root.rstrip('/')}/"
    path = block.path.removeprefix(inside) if root and block.path.startswith(inside) else ""
    return replace(block, value=block.value.removeprefix(inside) if root else block.value, path=path)


def prompt_text(messages: Sequence[Message]) -> str:
    """Return the messages as one text: the text of a single user message, else blocks labelled with their roles."""
    if len(messages) == 1 and messages[0].role == "user":
        return messages[0].text
    return "\n\n".join(
        f"{one.role} ({one.name}):\n{one.text}" if one.name else f"{one.role}:\n{one.text}" for one in messages
    )


def reference_text(messages: Sequence[Message]) -> str:
    """Return the messages of a reference answer as one text, to compare with the text of an answer."""
    return "\n\n".join(message.text for message in messages)


def transcript_text(messages: Iterable[Message]) -> str:
    """Return the user and assistant messages as one text, each beginning `User: ` or `Assistant: `."""
    spoken = (one for one in messages if one.role in ("user", "assistant"))
    return SEPARATOR.join(f"{one.role.capitalize()}: {one.text}" for one in spoken)


def attached_files(messages: Iterable[Message]) -> Iterator[str]:
    """Yield the paths of all files and local images in the messages, in order."""
    for message in messages:
        if isinstance(message.content, tuple):
            for block in message.content:
                if not isinstance(block, TextBlock) and block.path is not None:
                    yield block.path


def messages_from_json(rows: Iterable[Mapping[str, Json]]) -> tuple[Message, ...]:
    """Return messages from JSON objects, as targets and recordings give them.

    Raises:
        ValueError: a row is not a message; the error says why.
    """
    return tuple(_message_from_json(row) for row in rows)


def _message_from_json(row: Mapping[str, Json]) -> Message:
    role, name = row.get("role"), row.get("name")
    if role not in ROLES:
        raise ValueError(f"a message needs one of the roles {', '.join(ROLES)}, found {role!r}")
    return Message(
        role=role,  # type: ignore[arg-type]  # ROLES holds just the literals of Role
        content=_content_from_json(row.get("content")),
        name=name if isinstance(name, str) else None,
        tool_calls=tuple(_call_from_json(call) for call in _calls_of(row)),
    )


def _content_from_json(content: Json) -> Content:
    if content is None:
        return ""
    if isinstance(content, str | Mapping):
        return content
    if isinstance(content, Sequence):
        pieces = [piece for piece in content if not _is_call(piece)]
        if any(map(_is_file, pieces)):
            return tuple(_file_block(piece) if _is_file(piece) else TextBlock(_piece_text(piece)) for piece in pieces)
        return "\n\n".join(map(_piece_text, pieces))
    return json.dumps(content)


def _is_file(piece: Json) -> bool:
    """Whether a content block names a file, as in answers of AgentV's targets."""
    if not isinstance(piece, Mapping) or piece.get("type") != "file" or not isinstance(piece.get("path"), str):
        return False
    return not any(isinstance(piece.get(key), str) for key in ("value", "text", "content"))


def _file_block(piece: Any) -> DocumentBlock:
    path, kind = piece["path"], piece.get("media_type")
    return DocumentBlock(path, path, "", kind if isinstance(kind, str) else "")


def _piece_text(piece: Json) -> str:
    if isinstance(piece, Mapping):
        found = piece.get("value", piece.get("text", piece.get("content")))
        if isinstance(found, str):
            return found
    return piece if isinstance(piece, str) else json.dumps(piece, ensure_ascii=False)


def _is_call(piece: Json) -> bool:
    """Whether a content block is a tool call in Anthropic's format."""
    return isinstance(piece, Mapping) and piece.get("type") == "tool_use"


def _calls_of(row: Mapping[str, Json]) -> Iterator[Json]:
    """Yield the tool calls of a message under any known key.

    A missed call would let assertions pass that forbid it.
    """
    for key, value in row.items():
        spelled = key.replace("_", "").lower()
        if spelled not in _CALL_KEYS or value is None:
            continue
        if spelled == "functioncall":  # OpenAI's older format for a single call
            yield value
        elif isinstance(value, Sequence) and not isinstance(value, str):
            yield from value
        else:
            raise ValueError(f"'{key}' of a message must be a list of calls, found {json.dumps(value)[:60]}")
    content = row.get("content")
    if isinstance(content, Sequence) and not isinstance(content, str):
        yield from (piece for piece in content if _is_call(piece))


_CALL_KEYS = frozenset({"toolcalls", "toolcall", "functioncall", "functioncalls"})
"""Keys that hold tool calls, in lower case and without underscores."""


def _call_from_json(call: Json) -> ToolCall:
    inner = call.get("function", call) if isinstance(call, Mapping) else call  # OpenAI nests them one level down
    source = inner if isinstance(inner, Mapping) else call
    named = source if isinstance(call, Mapping) and isinstance(source, Mapping) else {}
    name = named.get("name", named.get("tool", named.get("tool_name", named.get("toolName"))))
    if not (isinstance(call, Mapping) and isinstance(source, Mapping) and isinstance(name, str) and name):
        raise ValueError(f"a tool call must be an object with a 'name', found {json.dumps(call)[:60]}")
    arguments = source.get("arguments", source.get("input", source.get("args")))
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):  # keep the call even if its arguments are malformed
            arguments = {"text": arguments}
    identity, took, output = call.get("id"), call.get("duration_ms"), call.get("output", call.get("result"))
    return ToolCall(
        name=name,
        arguments=arguments if isinstance(arguments, Mapping) else {},
        id=identity if isinstance(identity, str) else None,
        duration_ms=float(took) if isinstance(took, int | float) and not isinstance(took, bool) else None,
        output=output if isinstance(output, str) or output is None else json.dumps(output, ensure_ascii=False),
        native_name=native if isinstance(native := call.get("native_name"), str) else None,
    )


_IMAGE_SIGNATURES = (
    (lazy_pattern(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (lazy_pattern(rb"\xff\xd8\xff"), "image/jpeg"),
    (lazy_pattern(rb"GIF8[79]a"), "image/gif"),
    (lazy_pattern(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
)
"""First bytes → media type, for the image types that all model APIs accept."""

IMAGE_EXTENSIONS = (".png", ".jpg", ".jpeg", ".gif", ".webp")
"""File name extensions of these image types."""


def media_type_in(data: bytes) -> str | None:
    """Return the media type of an image by its first bytes, such as `image/png`; None if it is of no known type."""
    return next((kind for beginning, kind in _IMAGE_SIGNATURES if beginning.match(data)), None)


def is_broken_file(name: str, data: bytes) -> bool:
    """Whether a file is empty, or has the extension of an image type but is not an image by its first bytes."""
    return not data or (name.lower().endswith(IMAGE_EXTENSIONS) and media_type_in(data) is None)
