"""The provider of embeddings for all assertions: each `similar` names it, since there is no such setting here."""

from __future__ import annotations

from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar
from agentv.extensions.promptfoo.translation.source import mapping

_KIND = "embedding"


def with_named_embedder(root: MapNode) -> MapNode:
    """The configuration with `defaultTest.options.provider.embedding` in every assertion that compares embeddings.

    Where tests stand in files, it stays: their assertions are not seen here.
    """
    default, tests = root.get("defaultTest"), root.get("tests")
    listed = tests.items if isinstance(tests, ListNode) else []
    options = default.get("options") if isinstance(default, MapNode) else None
    provider = options.get("provider") if isinstance(options, MapNode) else None
    embedder = provider.get(_KIND) if isinstance(provider, MapNode) and "id" not in provider.items else None
    if embedder is None or not isinstance(options, MapNode) or not isinstance(provider, MapNode):
        return root
    seen = (tests is None or isinstance(tests, ListNode)) and all(isinstance(one, MapNode) for one in listed)
    if "scenarios" in root.items or not seen:
        return root
    left = _less(provider, _KIND)
    kept = _less(options, "provider")
    options = mapping(options, {**kept.items, "provider": left}) if left.items else kept
    made = _named(
        mapping(default, {**default.items, "options": options}) if isinstance(default, MapNode) else root, embedder
    )
    found: list[Node] = [_named(one, embedder) for one in listed]
    return mapping(root, {**root.items, "defaultTest": made, **({"tests": ListNode(found, root.at)} if listed else {})})


def _less(node: MapNode, key: str) -> MapNode:
    return mapping(node, {name: item for name, item in node.items.items() if name != key})


def _named(node: Node, embedder: Node) -> Node:
    """A test or a set, with the embedder in its assertions that name none."""
    entries = node.get("assert") if isinstance(node, MapNode) else None
    if not isinstance(node, MapNode) or not isinstance(entries, ListNode):
        return node
    return mapping(
        node, {**node.items, "assert": ListNode([_entry(one, embedder) for one in entries.items], entries.at)}
    )


def _entry(node: Node, embedder: Node) -> Node:
    if not isinstance(node, MapNode):
        return node
    kind = node.get("type")
    name = kind.text.removeprefix("not-").partition(":")[0] if isinstance(kind, Scalar) else ""
    if name == "similar" and "provider" not in node.items:
        return mapping(node, {**node.items, "provider": embedder})
    return _named(node, embedder)
