"""`input`, `expected_output` and the files in them, as messages (SPEC sections 4 and 5)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from agentv.model.message import (
    ROLES,
    Block,
    Content,
    FileBlock,
    ImageBlock,
    Message,
    Role,
    TextBlock,
    messages_from_json,
)
from agentv.spec.nearest import did_you_mean
from agentv.spec.nodes import ListNode, MapNode, Node, Scalar, kind_of, plain
from agentv.spec.reading import Reading

_KEYS = ("role", "content", "name", "tool_calls")
_IMAGE = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".svg")


def read_messages(node: Node, lone: Role, reading: Reading) -> tuple[Message, ...] | None:
    """Messages out of a string, an object or a list; None when something is wrong, which is then reported.

    Args:
        node: the value of `input` or `expected_output`.
        reading: of the suite, or of the case.
        lone: whose message a string, or an object without a role, is.
    """
    if type(node) is Scalar and reading.scope is None and type(node.value) is str:
        return (Message(lone, node.value),)  # by far the most common
    node = reading.rendered(node)
    if isinstance(node, Scalar):
        if node.value is None:
            reading.report.error("missing-value", node, "a message is expected, found nothing")
            return None
        return (Message(lone, node.value if isinstance(node.value, str) else node.text),)
    if isinstance(node, MapNode):
        if "role" not in node.items:
            return (Message(lone, plain(node)),)
        message = _message(node, reading)
        return None if message is None else (message,)
    messages = [_item(item, reading) for item in node.items]
    return tuple(one for one in messages if one is not None) if None not in messages else None


def with_files(messages: Sequence[Message], files: Iterable[Block]) -> tuple[Message, ...]:
    """The messages, with files put before the text of a lone user message."""
    blocks = tuple(files)
    if not blocks or len(messages) != 1 or not isinstance(messages[0].content, str):
        return tuple(messages)
    return (Message(messages[0].role, (*blocks, TextBlock(messages[0].content))),)


def read_files(node: Node, reading: Reading) -> list[Block]:
    """The blocks of an `input_files` list."""
    node = reading.rendered(node)
    items = node.items if isinstance(node, ListNode) else [node]
    blocks = (_file(item, reading) for item in items)
    return [block for block in blocks if block is not None]


def _item(node: Node, reading: Reading) -> Message | None:
    if isinstance(node, MapNode) and "role" in node.items:
        return _message(node, reading)
    hint = "begin each with 'role:'" if isinstance(node, MapNode) else "write a single text without the list"
    reading.report.error("bad-message", node, f"a message needs a role, found {kind_of(node)}", hint=hint)
    return None


def _message(node: MapNode, reading: Reading) -> Message | None:
    unknown = [key for key in node.items if key not in _KEYS and not key.startswith("x-")]
    for key in unknown:
        reading.unknown_key(key, node, _KEYS, "a message")
    role = node.get("role")
    said = role.value if isinstance(role, Scalar) else None
    if said not in ROLES:
        hint = did_you_mean(str(said), ROLES)
        wanted = f"'role' must be one of {', '.join(ROLES)}, found {kind_of(role) if role else 'nothing'}"
        reading.report.error("bad-message", role or node, wanted, hint=hint)
        return None
    body = node.get("content")
    content = _content(body, reading) if body is not None else ""
    if content is None or unknown:
        return None
    calls = node.get("tool_calls")
    (wire,) = messages_from_json([{"role": said, "content": "", "tool_calls": plain(calls) if calls else None}])
    name = node.get("name")
    return Message(wire.role, content, name.text if isinstance(name, Scalar) else None, wire.tool_calls)


def _content(node: Node, reading: Reading) -> Content | None:
    if isinstance(node, Scalar):
        return "" if node.value is None else str(node.value) if isinstance(node.value, str) else node.text
    if isinstance(node, MapNode):
        content: Content = plain(node)
        return content
    blocks = [_block(item, reading) for item in node.items]
    return tuple(block for block in blocks if block is not None) if None not in blocks else None


def _block(node: Node, reading: Reading) -> Block | None:
    if isinstance(node, Scalar) and isinstance(node.value, str):
        return TextBlock(node.value)
    if not isinstance(node, MapNode):
        reading.report.error("bad-block", node, f"a block of content must be a mapping, found {kind_of(node)}")
        return None
    kind, value = node.get("type"), node.get("value")
    said = kind.value if isinstance(kind, Scalar) else None
    if said not in _BLOCKS:
        hint = did_you_mean(str(said), _BLOCKS)
        reading.report.error("bad-block", kind or node, f"'type' of a block must be {' or '.join(_BLOCKS)}", hint=hint)
        return None
    for key in node.items:
        if key not in {"type", "value"} and not key.startswith("x-"):
            reading.unknown_key(key, node, ("type", "value"), f"a {said} block")
    if value is None:
        reading.report.error("missing-key", node, f"a {said} block needs 'value'")
        return None
    return _BLOCKS[said](value, reading)


def _text(node: Node, _reading: Reading) -> Block:
    return TextBlock(node.text if isinstance(node, Scalar) else json.dumps(plain(node), ensure_ascii=False))


def _file(node: Node, reading: Reading) -> Block | None:
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        reading.report.error("bad-value", node, f"the path of a file is expected, found {kind_of(node)}")
        return None
    found = reading.find(node, "file")
    if found is None:
        return None
    if found.lower().endswith(_IMAGE):
        return ImageBlock(node.value, found)
    text = reading.text_of(found, node)
    return None if text is None else FileBlock(node.value, found, text)


def _image(node: Node, reading: Reading) -> Block | None:
    if (
        isinstance(node, Scalar)
        and isinstance(node.value, str)
        and node.value.startswith(("http://", "https://", "data:"))
    ):
        return ImageBlock(node.value)
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        reading.report.error("bad-value", node, f"the path or URL of a picture is expected, found {kind_of(node)}")
        return None
    found = reading.find(node, "picture")
    return None if found is None else ImageBlock(node.value, found)


_BLOCKS = {"text": _text, "file": _file, "image": _image}
