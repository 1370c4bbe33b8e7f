"""Read `input` and `expected_output` as messages, their files, and `criteria` (SPEC sections 4 and 5)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from agentv.authoring.fields.kinds import with_content
from agentv.authoring.fields.reading import NO_EXTRA_KEYS, ExtraKeys, Reading
from agentv.authoring.source.nearest import did_you_mean
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, children, is_empty, kind_of, plain
from agentv.authoring.source.report import Result
from agentv.model.values.message import (
    ROLES,
    Block,
    Content,
    DocumentBlock,
    FileBlock,
    ImageBlock,
    Message,
    Role,
    TextBlock,
    ToolCall,
    messages_from_json,
)
from agentv.templating import has_placeholder

_KEYS = ("role", "content", "name", "tool_calls")
_PDF = ".pdf"
_BINARY = "save text as UTF-8; the other supported files are PDFs (.pdf) and pictures"
_IMAGE = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".svg")


_FILE = "file://"


def read_messages(node: Node, lone: Role, reading: Reading) -> tuple[Message, ...] | None:
    """Read messages from a string, an object or a list; None if they are invalid, which is reported.

    Args:
        node: the value of `input` or `expected_output`.
        reading: the `Reading` of the suite or the case.
        lone: role of a string, or of an object without a role.
    """
    if type(node) is Scalar and type(node.value) is str and node.value.startswith(_FILE):
        path = node.value.removeprefix(_FILE)
        hint = f"for what is in it: [{{role: {lone}, content: [{{type: file, value: {path}}}]}}]"
        reading.report.warning("bad-message", node, f"'{node.value}' is taken as text, not as a file", hint=hint)
    if type(node) is Scalar and not reading.renders and type(node.value) is str:
        return (Message(lone, node.value),)  # by far the most common
    found = reading.rendered(node)
    if found is None:
        return None
    if not isinstance(found, ListNode):
        if isinstance(found, MapNode):
            message = _message(found, reading) if "role" in found.items else Message(lone, plain(found))
        elif found.value is None:
            reading.report.error("missing-value", found, "a message cannot be empty")
            message = None
        else:
            message = Message(lone, found.value if isinstance(found.value, str) else found.text)
        return None if message is None else (message,)
    if found.items and all(isinstance(item, Scalar) for item in found.items):
        _item(found.items[0], reading)  # the others are wrong in the same way
        return None
    messages = [_item(item, reading) for item in found.items]
    return tuple(one for one in messages if one is not None) if None not in messages else None


def with_files(messages: Sequence[Message], files: Iterable[Block]) -> tuple[Message, ...]:
    """The messages, with files put before the text of a single message."""
    blocks = tuple(files)
    if not blocks or len(messages) != 1 or not isinstance(messages[0].content, str):
        return tuple(messages)
    return (Message(messages[0].role, (*blocks, TextBlock(messages[0].content))),)


def read_files(node: Node, reading: Reading) -> Result[list[Block]]:
    """The blocks of an `input_files` list."""
    found = reading.rendered(node)
    if found is None:
        return Result([], valid=False)
    items = found.items if isinstance(found, ListNode) else [found]
    blocks = [block for item in items if (block := _file(item, reading)) is not None]
    return Result(blocks, len(blocks) == len(items))


def read_criteria(node: Node | None, reading: Reading) -> Result[str | None]:
    """The text of `criteria`, or None if none exists.

    Text with an unfilled placeholder is valid if that is only a warning.
    """
    if node is None or is_empty(node):
        return Result(None)
    if not isinstance(node, Scalar):
        hint = "for a list, use 'rubrics'" if isinstance(node, ListNode) else None
        reading.report.unfit(node, "'criteria' must be text", hint=hint)
        return Result(None, valid=False)
    read = with_content(node, reading, "criteria")
    if not isinstance(read, Scalar):
        return Result(None, valid=False)
    node = read
    if not reading.renders or not has_placeholder(node.text):
        return Result(node.value if isinstance(node.value, str) else node.text)
    reading = reading.part()
    rendered = reading.render_text(node)
    return Result(node.text if rendered is None else rendered, not reading.report.failed)


def _item(node: Node, reading: Reading) -> Message | None:
    if isinstance(node, MapNode) and "role" in node.items:
        return _message(node, reading)
    hint = "start each with 'role:'" if isinstance(node, MapNode) else "for a single text, omit the list"
    reading.report.unfit(node, "a message needs a role", "bad-message", hint=hint)
    return None


def _message(node: MapNode, reading: Reading) -> Message | None:
    unknown = [key for key in node.items if key not in _KEYS and not key.startswith("x-")]
    for key in unknown:
        reading.unknown_key(key, node, _KEYS, "a message")
    role = _role(node, reading)
    content = _content(node, reading)
    calls = _tool_calls(node.get("tool_calls"), reading)
    name = node.get("name")
    named = name is None or (isinstance(name, Scalar) and name.value is not None)
    if name is not None and not named:
        reading.report.unfit(name, "'name' must be text")
    if role is None or content is None or calls is None or unknown or not named:
        return None
    return Message(role, content, name.text if isinstance(name, Scalar) else None, calls)


def _role(node: MapNode, reading: Reading) -> Role | None:
    role = node.get("role")
    text = role.value if isinstance(role, Scalar) else None
    for known in ROLES:
        if text == known:
            return known  # type: ignore[return-value]  # ROLES holds just the literals of Role
    hint = did_you_mean(text, ROLES) if isinstance(text, str) else None
    found = "nothing" if role is None else kind_of(role)
    message = f"'role' must be {', '.join(ROLES[:-1])} or {ROLES[-1]}, found {found}"
    reading.report.error("bad-message", role or node, message, hint=hint)
    return None


def _content(message: MapNode, reading: Reading) -> Content | None:
    """The content of a message, or None if it is invalid, which is reported.

    Only a message with tool calls may lack content, and that of a user must not be empty.
    """
    node, role = message.get("content"), message.get("role")
    if node is None or (isinstance(node, Scalar) and node.value is None):
        if message.get("tool_calls") is not None:
            return ""
        reading.report.error("missing-key", node or message, "a message needs 'content'")
        return None
    if is_empty(node) and isinstance(role, Scalar) and role.value == "user":
        reading.report.error("missing-value", node, "'content' of a user message is empty")
        return None
    if isinstance(node, Scalar):
        return node.value if isinstance(node.value, str) else node.text
    if isinstance(node, MapNode):
        content: Content = plain(node)
        return content
    blocks = [_block(item, reading) for item in node.items]
    return tuple(block for block in blocks if block is not None) if None not in blocks else None


def _tool_calls(node: Node | None, reading: Reading) -> tuple[ToolCall, ...] | None:
    """The tool calls of a message; None if one is invalid, which is reported."""
    if node is None or (isinstance(node, Scalar) and node.value is None):
        return ()
    if not isinstance(node, ListNode) or not all(isinstance(item, MapNode) for item in node.items):
        wrong = next((item for item in children(node) if not isinstance(item, MapNode)), node)
        reading.report.unfit(wrong, "'tool_calls' must be a list of mappings")
        return None
    calls = [_tool_call(item, reading) for item in node.items]
    return None if None in calls else tuple(call for found in calls for call in found or ())


def _tool_call(node: Node, reading: Reading) -> tuple[ToolCall, ...] | None:
    try:
        (wire,) = messages_from_json([{"role": "assistant", "content": "", "tool_calls": [plain(node)]}])
    except ValueError:
        reading.report.error("missing-key", node, "a tool call needs 'name'")
        return None
    return wire.tool_calls


def _block(node: Node, reading: Reading) -> Block | None:
    if isinstance(node, Scalar) and isinstance(node.value, str):
        return TextBlock(node.value)
    if not isinstance(node, MapNode):
        reading.report.unfit(node, "a block of content must be a mapping", "bad-block")
        return None
    kind, value = node.get("type"), node.get("value")
    text = kind.value if isinstance(kind, Scalar) else None
    if not isinstance(text, str) or text not in _BLOCKS:
        hint = did_you_mean(text, _BLOCKS) if isinstance(text, str) else None
        found = "nothing" if kind is None else kind_of(kind)
        message = f"'type' of a block must be text, file or image, found {found}"
        reading.report.error("bad-block", kind or node, message, hint=hint)
        return None
    unknown = [key for key in node.items if key not in {"type", "value"} and not key.startswith("x-")]
    others = ExtraKeys(meant="value") if value is None and len(unknown) == 1 else NO_EXTRA_KEYS
    what = f"{'an' if text == 'image' else 'a'} {text} block"
    for key in unknown:
        reading.unknown_key(key, node, ("type", "value"), what, others)
    if others.meant is not None:
        return None
    if value is None or (isinstance(value, Scalar) and value.value is None):
        reading.report.error("missing-key", value or node, f"{what} needs 'value'")
        return None
    block = _BLOCKS[text](value, reading)
    return None if unknown else block


def _text(node: Node, _reading: Reading) -> Block:
    return TextBlock(node.text if isinstance(node, Scalar) else json.dumps(plain(node), ensure_ascii=False))


def _file(node: Node, reading: Reading) -> Block | None:
    if not isinstance(node, Scalar) or not isinstance(node.value, str) or not node.value.strip():
        reading.report.unfit(node, "expected the path of a file")
        return None
    found = reading.find(node, "file")
    if found is None:
        return None
    if found.lower().endswith(_IMAGE):
        return _picture(node, found, reading)
    is_pdf = found.lower().endswith(_PDF)
    digest, begins_as_pdf = reading.digest_of(found) if is_pdf else ("", False)
    if begins_as_pdf:
        return DocumentBlock(node.value, found, digest)
    text = reading.text_of(found, node, hint=_BINARY)
    if text is not None and is_pdf:
        reading.report.error("bad-value", node, f"'{node.value}' is not a PDF: it does not start with '%PDF-'")
        return None
    return None if text is None else FileBlock(node.value, found, text)


def _image(node: Node, reading: Reading) -> Block | None:
    if (
        isinstance(node, Scalar)
        and isinstance(node.value, str)
        and node.value.startswith(("http://", "https://", "data:"))
    ):
        return ImageBlock(node.value)
    if not isinstance(node, Scalar) or not isinstance(node.value, str) or not node.value.strip():
        reading.report.unfit(node, "expected the path or URL of a picture")
        return None
    found = reading.find(node, "picture")
    return None if found is None else _picture(node, found, reading)


def _picture(node: Scalar, path: str, reading: Reading) -> ImageBlock | None:
    return ImageBlock(node.value, path, reading.digest_of(path)[0]) if reading.is_picture(path, node) else None


_BLOCKS = {"text": _text, "file": _file, "image": _image}
