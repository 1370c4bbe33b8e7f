"""Authored nodes written as YAML, JSON Lines or Python: the same values, in the words of another format.

A number keeps the digits that it was written with, since text is compared with them: 1.50 is not 1.5 (SPEC section
7.2).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from agentv.authoring.convert.literals import literal
from agentv.authoring.source.nodes import Filled, ListNode, MapNode, Node, Scalar, plain
from agentv.authoring.source.scalars import TAGS, resolve

WIDTH = 110
"""Columns of a line, where what is written can be broken."""

_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_TAG_OF = {bool: "bool", int: "int", float: "float", type(None): "null"}


def yaml_text(items: Mapping[str, Node]) -> str:
    """A mapping as a YAML file: blocks, texts of several lines as such, and quotes where YAML 1.1 would misread."""
    import yaml

    class Dumper(yaml.CSafeDumper):
        """YAML dumper: quotes texts that either the 1.2 core schema or YAML 1.1 would not read as text."""

        def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
            if kind is yaml.ScalarNode and implicit[0]:
                meant = _TAG_OF.get(type(resolve(value)))
                if meant is not None:
                    return f"{TAGS}{meant}"
            return super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]  # PyYAML has no types here

    root = _yaml_node(MapNode(dict(items), {}, next(iter(items.values())).at))
    text: str = yaml.serialize(root, Dumper=Dumper, allow_unicode=True, width=WIDTH)
    return text


def _yaml_node(node: Node) -> Any:
    import yaml

    if type(node) is Filled:
        node = literal(node)
    if isinstance(node, Scalar):
        name = _TAG_OF.get(type(node.value))
        if name is not None and type(resolve(node.text)) is type(node.value):
            return yaml.ScalarNode(f"{TAGS}{name}", node.text)
        text = node.value if isinstance(node.value, str) else node.text
        return yaml.ScalarNode(f"{TAGS}str", text, style="|" if "\n" in text else None)
    if isinstance(node, ListNode):
        return yaml.SequenceNode(f"{TAGS}seq", [_yaml_node(item) for item in node.items], flow_style=not node.items)
    pairs = [(yaml.ScalarNode(f"{TAGS}str", key), _yaml_node(item)) for key, item in node.items.items()]
    return yaml.MappingNode(f"{TAGS}map", pairs, flow_style=not pairs)


def jsonl_text(cases: Iterable[Node]) -> str:
    """A case a line."""
    encode = msgspec.json.Encoder().encode
    return "".join(f"{encode(_json_value(case)).decode()}\n" for case in cases)


def _json_value(node: Node) -> Any:
    if isinstance(node, ListNode):
        return [_json_value(item) for item in node.items]
    if isinstance(node, MapNode):
        return {key: _json_value(item) for key, item in node.items.items()}
    if type(node.value) in (int, float):
        return msgspec.Raw(node.text.encode()) if _JSON_NUMBER.fullmatch(node.text) else node.text
    return node.value


def python_text(items: Mapping[str, Node]) -> str:
    """A Python file that defines `suite` as a mapping."""
    suite = {key: plain(node) for key, node in items.items()}
    return f'"""Cases for agentv."""\n\nsuite = {_literal(suite, 0, WIDTH)}\n'


def _literal(value: Any, depth: int, room: int) -> str:
    """A value as Python is formatted by hand: on one line where it fits, else a part a line.

    Args:
        value: plain data.
        depth: levels of indentation.
        room: columns that are left on the line.
    """
    line = repr(value)
    if depth and len(line) < room and "\\n" not in line:
        return line
    inner, pad = "    " * (depth + 1), "    " * depth
    left = WIDTH - len(inner)
    if isinstance(value, dict) and value:
        pairs = ((f"{key!r}: ", item) for key, item in value.items())
        parts = [f"{start}{_literal(item, depth + 1, left - len(start))}," for start, item in pairs]
    elif isinstance(value, list) and value:
        parts = [f"{_literal(item, depth + 1, left)}," for item in value]
    elif isinstance(value, str) and len(lines := value.splitlines(keepends=True)) > 1:
        parts = [repr(one) for one in lines]
    else:
        return line
    start, end = "{}" if isinstance(value, dict) else "[]" if isinstance(value, list) else "()"
    return "\n".join((start, *(inner + part for part in parts), pad + end))
