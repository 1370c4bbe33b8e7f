"""`judge: {min_tpr, min_tnr}` of a suite: how well its judges must agree with people."""

from __future__ import annotations

from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.schema import AuthoredJudgeMinimums
from agentv.authoring.source.nodes import MapNode, Node, Scalar
from agentv.model.suite.suite import JudgeMinimums
from agentv.registry.extensions import HOW_TO_GET, PORTS, lacking

_PREFIX = "min_"
"""No target has a setting that begins so, and a misspelt key is compared with these."""


def split_minimums(node: Node | None, reading: Reading) -> tuple[Node | None, JudgeMinimums | None]:
    """The judge without the minimums, and these. A mapping of nothing but them and a name is that name.

    Args:
        node: the suite's `judge:`.
        reading: of the suite.

    Returns:
        No judge where the suite sets only minimums: those of whichever judge is in effect.
    """
    if not isinstance(node, MapNode) or not any(key.startswith(_PREFIX) for key in node.items):
        return node, None
    own = {key: item for key, item in node.items.items() if key.startswith(_PREFIX)}
    rest = {key: item for key, item in node.items.items() if key not in own}
    if needs := lacking(PORTS, "LabelledRuns"):
        key = next(iter(own))
        reading.report.error("missing-extra", node.keys[key], f"'{key}' {needs}", hint=HOW_TO_GET)
    read = shape_of(AuthoredJudgeMinimums).decode(own, node, reading, "'judge'")
    minimums = None if read is INVALID else JudgeMinimums(read.min_tpr, read.min_tnr)
    if not rest:
        return None, minimums
    if len(rest) == 1 and isinstance(name := rest.get("name"), Scalar):
        return name, minimums
    return MapNode(rest, {key: node.keys[key] for key in rest}, node.at), minimums


def names_judge(node: Node | None) -> bool:
    """Whether the suite's `judge:` says which judge, if wrongly, and not only how good it must be."""
    only_minimums = (
        isinstance(node, MapNode) and bool(node.items) and all(key.startswith(_PREFIX) for key in node.items)
    )
    return node is not None and not only_minimums
