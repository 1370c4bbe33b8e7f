"""`$ref` in a promptfoo configuration: what it names takes its place."""

from __future__ import annotations

from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar
from agentv.extensions.promptfoo.translation.source import FILE, Source

_REF = "$ref"
_DEEPEST = 30
_MOST = 10_000
"""References of one configuration, those inside what they name counted each time."""


def resolved(root: MapNode, source: Source) -> MapNode:
    """The configuration with every `$ref` replaced; one that leads nowhere stays, and is reported."""
    if not _has_reference(root):
        return root
    count = [0]
    found = _resolved(root, root, source, _DEEPEST, count)
    if count[0] > _MOST:
        source.tell(root, f"the references stand for more than {_MOST:,} others", "write out what they name")
        return root
    return found if isinstance(found, MapNode) else root


def _has_reference(node: Node) -> bool:
    if isinstance(node, MapNode):
        return _REF in node.items or any(map(_has_reference, node.items.values()))
    return isinstance(node, ListNode) and any(map(_has_reference, node.items))


def _resolved(node: Node, root: Node, source: Source, left: int, count: list[int]) -> Node:
    if isinstance(node, ListNode):
        return ListNode([_resolved(item, root, source, left, count) for item in node.items], node.at)
    if not isinstance(node, MapNode):
        return node
    said = node.get(_REF)
    if not isinstance(said, Scalar) or not isinstance(said.value, str):
        items = {key: _resolved(item, root, source, left, count) for key, item in node.items.items()}
        return MapNode(items, node.keys, node.at)
    count[0] += 1
    found = _named(said, root, source) if left and count[0] <= _MOST else None
    if found is None:
        if count[0] <= _MOST:
            source.tell(said, f"the reference '{said.text}' leads nowhere", "write its content in its place")
        return node
    target, within = found
    target = _resolved(target, within, source, left - 1, count)
    own = {key: _resolved(item, root, source, left, count) for key, item in node.items.items() if key != _REF}
    if not own or not isinstance(target, MapNode):
        return target
    return MapNode({**target.items, **own}, {**target.keys, **node.keys}, node.at)


def _named(said: Scalar, root: Node, source: Source) -> tuple[Node, Node] | None:
    """What a reference names, and the document that it is in."""
    file, _, pointer = said.value.partition("#")
    document = source.document(file.removeprefix(FILE), said) if file else root
    node: Node | None = document
    for step in pointer.strip("/").split("/") if pointer.strip("/") else []:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(node, MapNode):
            node = node.get(name)
        elif isinstance(node, ListNode) and name.isdigit() and int(name) < len(node.items):
            node = node.items[int(name)]
        else:
            return None
    return None if node is None or document is None else (node, document)
