"""Suites moved to another file: rebased paths, and inputs that came from elsewhere.

A path in an eval file is relative to the file that contains it (SPEC section 5). Cases that were gathered from several
files are written into one, so their paths change.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct, field

from agentv.authoring.fields.agentv.spellings import CASE, SUITE
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, is_empty, span_of
from agentv.model.values.span import Span

_SCHEME = "file://"


class FoundPaths(Struct):
    """The paths that a suite was found to mention, with the files that they mean.

    Attributes:
        elsewhere: paths are not relative to the file that mentions them, as in the tests of a skill.
    """

    elsewhere: bool = False
    _found: dict[tuple[str, Span], str] = field(default_factory=dict)

    def add(self, written: str, at: Span, found: str) -> None:
        """Remember one; a path from the repository's root is the same everywhere."""
        bare = written.removeprefix(_SCHEME)
        if not bare.startswith("/"):
            self._found[bare, at] = found

    def moved(self, node: Node, to: Path) -> Node:
        """The node with its paths rewritten for a file in another directory."""
        if isinstance(node, ListNode):
            return ListNode([self.moved(item, to) for item in node.items], node.at)
        if isinstance(node, MapNode):
            return MapNode({key: self.moved(item, to) for key, item in node.items.items()}, node.keys, node.at)
        at = span_of(node.at)
        stays = Path(at.file).parent == to and not self.elsewhere
        if not isinstance(node.value, str) or not at.file or stays:
            return node
        for path, rest in _paths_in(node.value):
            found = self._found.get((path, at))
            if found is not None:
                text = node.value.replace(f"{path}{rest}", f"{_relative(found, to)}{rest}")
                return Scalar(text, text, node.at)
        return node


def _paths_in(text: str) -> Iterator[tuple[str, str]]:
    """What of a text may be a path, and what follows it: `file.py:function` names a function behind one."""
    bare = text.strip().removeprefix(_SCHEME)
    yield bare, ""
    path, colon, name = bare.rpartition(":")
    if colon:
        yield path, f":{name}"


def _relative(found: str, to: Path) -> str:
    path = Path(os.path.relpath(found, to)).as_posix()
    return path if path.startswith("../") else f"./{path}"


_TURNS = frozenset({"turns", "mode"})
"""Keys of a case that says in its turns what is asked."""


def with_inputs(head: Mapping[str, Node], cases: list[MapNode]) -> tuple[Mapping[str, Node], list[MapNode]]:
    """The suite with the suite's `input` copied into every case, if its rows of variables use it.

    The suite's `input` is then removed from the header, because it would precede each.
    """
    key = next((key for key in SUITE.spelled("input") if key in head), None)
    if key is None or is_empty(head[key]) or "prompts" in head or all(_has_own(case) for case in cases):
        return head, cases
    inputs = head[key]
    rest = {name: node for name, node in head.items() if name != key}
    return rest, [_asking(case, inputs) for case in cases]


def _asking(case: MapNode, inputs: Node) -> MapNode:
    own = _own_input(case)
    if own is None:
        identity = {key: node for key, node in case.items.items() if key in CASE.spelled("id")}
        items = {**identity, "input": inputs, **case.items}
        return MapNode(items, {**case.keys, "input": inputs.at}, case.at)
    if _skips(case):
        return case
    joined = ListNode([*messages_of(inputs), *messages_of(case.items[own])], case.items[own].at)
    return MapNode({**case.items, own: joined}, case.keys, case.at)


def _has_own(case: MapNode) -> bool:
    return _own_input(case) is not None or not _TURNS.isdisjoint(case.items)


def _own_input(case: MapNode) -> str | None:
    return next((key for key in CASE.spelled("input") if not is_empty(case.items.get(key))), None)


def _skips(case: MapNode) -> bool:
    inside = case.items.get("execution")
    places = [case, inside] if isinstance(inside, MapNode) else [case]
    values = (place.items.get("skip_defaults") for place in places)
    return any(isinstance(one, Scalar) and one.value is True for one in values)


def messages_of(node: Node) -> list[Node]:
    """An input as a list of messages."""
    if isinstance(node, ListNode):
        return node.items
    if isinstance(node, MapNode) and "role" in node.items:
        return [node]
    items: dict[str, Node] = {"role": Scalar("user", "user", node.at), "content": node}
    return [MapNode(items, dict.fromkeys(items, node.at), node.at)]
