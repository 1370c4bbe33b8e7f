"""Nodes: authored values with their positions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol, Self, TypeAlias

from msgspec import Struct

from agentv.model.values.values import Json, Span, lazy_pattern
from agentv.templating import has_placeholder


class Marked(Protocol):
    """An object with start and end marks, such as an event of the YAML parser."""

    start_mark: Any
    end_mark: Any


Place: TypeAlias = "Marked | Span"

NOWHERE = Span("", 0, 0, 0, 0)
"""Place of a value that comes from no file, such as a command-line argument."""


class Scalar(Struct, eq=False):
    """Text, a number, a boolean or null: `text` as authored, and the `value` that it resolves to."""

    value: Any
    text: str
    at: Place


class Filled(Scalar):
    """Text that is never rendered: its placeholders were already filled in, or it is data."""


class WrittenFloat(float):
    """A JSON number that keeps its digits: compared as text, 1.50 is not 1.5."""

    __slots__ = ("text",)

    text: str

    def __new__(cls, text: str) -> Self:
        """Return the number that the text spells."""
        made = super().__new__(cls, text)
        made.text = text
        return made


class ListNode(Struct, eq=False):
    """A sequence."""

    items: list[Node]
    at: Place


class MapNode(Struct, eq=False):
    """A mapping. `keys` contains the position of each key."""

    items: dict[str, Node]
    keys: dict[str, Place]
    at: Place

    def get(self, key: str) -> Node | None:
        """The value of a key, or None."""
        return self.items.get(key)


class Canonical(MapNode):
    """A mapping with canonical keys.

    Attributes:
        spelled: canonical key → the key as authored, for keys that were translated.
        not_missing: keys not to report as missing: a reported unknown key may be a misspelling of one.
        no_effect: authored keys that are ignored, with their places.
    """

    spelled: Mapping[str, str] = MappingProxyType({})
    not_missing: frozenset[str] = frozenset()
    no_effect: dict[str, Place] = {}


Node: TypeAlias = "Scalar | ListNode | MapNode"


def span_of(at: Place) -> Span:
    """The place as a span; lines and columns count from 1."""
    if isinstance(at, Span):
        return at
    start, end = at.start_mark, at.end_mark
    line = start.line + 1
    last = line if end.line == start.line else end.line + 1  # one int object for both
    return Span(start.name, line, start.column + 1, last, end.column + 1)


LINE_END = lazy_pattern(rb"\r\n|\r|\n")


def span_at(path: str, data: bytes, offset: int) -> Span:
    """The place of the byte at an offset in a file's data."""
    start = max(data.rfind(b"\n", 0, offset), data.rfind(b"\r", 0, offset)) + 1
    line = len(LINE_END.findall(data[:start])) + 1
    column = len(data[start:offset].decode(errors="replace")) + 1
    return Span(path, line, column, line, column + 1)


def file_of(at: Place) -> str:
    """Path of the file that a place is in."""
    return at.file if isinstance(at, Span) else at.start_mark.name


def plain(node: Node) -> Any:
    """The node's value without positions: dicts, lists, strings, numbers, booleans, None."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, ListNode):
        return [plain(item) for item in node.items]
    return {key: plain(item) for key, item in node.items.items()}


def node_of(value: Json, at: Place) -> Node:
    """A node for a plain value; all its parts get the same place."""
    kind = type(value)
    if kind is str:  # checked first and by exact type for speed: most values of a data file are strings
        return Scalar(value, value, at)  # type: ignore[arg-type]  # narrowed by `kind`
    if kind is dict or isinstance(value, Mapping):
        items = {str(key): node_of(item, at) for key, item in value.items()}  # type: ignore[union-attr]  # narrowed
        return MapNode(items, dict.fromkeys(items, at), at)
    if kind is list or (isinstance(value, Sequence) and not isinstance(value, str)):
        return ListNode([node_of(item, at) for item in value], at)  # type: ignore[union-attr]  # narrowed
    if type(value) is WrittenFloat:
        return Scalar(float(value), value.text, at)
    return Scalar(value, written(value), at)


def mapping(pairs: Mapping[str, Node | None], at: Place, keys: Mapping[str, Place] = MappingProxyType({})) -> MapNode:
    """A mapping of the pairs whose node is not None. A key without a place in `keys` gets its value's place."""
    items = {key: node for key, node in pairs.items() if node is not None}
    return MapNode(items, {key: keys.get(key, node.at) for key, node in items.items()}, at)


def written(value: Json) -> str:
    """Text of a scalar in YAML."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def as_data(node: Node) -> Node:
    """The node with its templates marked as `Filled`, so that they are never rendered."""
    if isinstance(node, ListNode):
        return ListNode([as_data(item) for item in node.items], node.at)
    if isinstance(node, MapNode):
        return MapNode({key: as_data(item) for key, item in node.items.items()}, node.keys, node.at)
    is_text = isinstance(node.value, str) and has_placeholder(node.value)
    return Filled(node.value, node.text, node.at) if is_text else node


def children(node: Node) -> Iterable[Node]:
    """The values directly inside a node."""
    if isinstance(node, Scalar):
        return ()
    return node.items if isinstance(node, ListNode) else node.items.values()


def holds_placeholder(node: Node) -> bool:
    """Whether rendering would change any text in the node."""
    if isinstance(node, Scalar):
        return isinstance(node.value, str) and has_placeholder(node.value) and type(node) is not Filled
    return any(holds_placeholder(child) for child in children(node))


def is_empty(node: Node | None) -> bool:
    """Whether a node is None, null, blank text, or an empty list or mapping."""
    if node is None:
        return True
    if isinstance(node, Scalar):
        return node.value is None or (isinstance(node.value, str) and not node.value.strip())
    return not node.items


def kind_of(node: Node) -> str:
    """Description of a node for error messages."""
    if isinstance(node, MapNode):
        return "a mapping" if node.items else "an empty mapping"
    if isinstance(node, ListNode):
        return "a list" if node.items else "an empty list"
    if node.value is None:
        return "nothing"
    if isinstance(node.value, bool):
        return f"the boolean {node.text}"
    if isinstance(node.value, str):
        return "text" if len(node.text) > 40 else f"'{node.text}'" if node.text else "empty text"
    return f"the number {node.text}"
