"""Targets and settings that stand in a file of their own: `file://providers.yaml` in the place of a value."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.files import shown
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, holds_placeholder
from agentv.authoring.source.yaml import read_shared

_FILE = "file://"
_SUFFIXES = (".yaml", ".yml", ".json")


def is_reference(node: Node | None) -> bool:
    """Whether a node is the path of a file with YAML in it."""
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        return False
    written = node.value.strip()
    return written.startswith(_FILE) and written.endswith(_SUFFIXES)


def referenced(node: Node, reading: Reading) -> Node | None:
    """The node itself, or what the file that it names holds; None where it cannot be read, which is reported."""
    found, _, _ = _followed(node, reading, ())
    return found


def entries_of(node: Node, reading: Reading) -> Iterator[tuple[Node, Reading]]:
    """The entries of a list, of which each and the list itself may stand in a file, with what they are read with."""
    yield from _entries(node, reading, ())


def _entries(node: Node, reading: Reading, chain: tuple[str, ...]) -> Iterator[tuple[Node, Reading]]:
    found, reading, chain = _followed(node, reading, chain)
    if isinstance(found, MapNode) and chain:  # a file of targets, by its key or bare
        found = next((found.items[key] for key in ("providers", "targets") if key in found.items), found)
    if isinstance(found, ListNode):
        for item in found.items:
            yield from _entries(item, reading, chain) if is_reference(item) else iter([(item, reading)])
    elif found is not None and is_reference(found):
        yield from _entries(found, reading, chain)
    elif found is not None:
        yield found, reading


def _followed(node: Node, reading: Reading, chain: tuple[str, ...]) -> tuple[Node | None, Reading, tuple[str, ...]]:
    """What a reference leads to, over files that hold nothing but another one, and the files on the way."""
    while isinstance(node, Scalar) and is_reference(node):
        beside = replace(reading, places=replace(reading.places, alone=False, _found={}))
        path = beside.find(Scalar(node.value, node.text.strip(), node.at), "file")
        if path is None:
            return None, reading, chain
        if path in chain:
            circle = " → ".join(map(shown, (*chain, path)))
            reading.report.error("target-cycle", node, f"target files refer to each other in a circle: {circle}")
            return None, reading, chain
        text = reading.text_of(path, node)
        root = read_shared(path, text, reading.report) if text is not None else None
        if root is None:
            return None, reading, chain
        chain = (*chain, path)
        node, reading = root, reading.rendering(reading.renders or holds_placeholder(root))
    return node, reading, chain
