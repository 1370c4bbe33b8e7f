"""Labels of suites and cases."""

from __future__ import annotations

from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, children, kind_of


def read_tags(node: Node | None, reading: Reading) -> tuple[str, ...]:
    """Labels: a word, a list of words, or a mapping, whose entries become `key:value`."""
    if node is None or (isinstance(node, Scalar) and node.value is None):
        return ()
    if isinstance(node, Scalar):
        return (node.text,)
    if isinstance(node, ListNode) and all(isinstance(item, Scalar) and item.value is not None for item in node.items):
        return tuple(item.text for item in node.items if isinstance(item, Scalar))
    if isinstance(node, MapNode) and all(isinstance(item, Scalar) for item in node.items.values()):
        return tuple(f"{key}:{item.text}" for key, item in node.items.items() if isinstance(item, Scalar))
    wrong = next((item for item in children(node) if not isinstance(item, Scalar) or item.value is None), node)
    message = f"'tags' must be a list of words, or a mapping of words, found {kind_of(wrong)}"
    reading.report.error("bad-value", wrong, message)
    return ()
