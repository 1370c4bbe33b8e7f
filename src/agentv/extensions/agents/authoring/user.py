"""The `user` of a case: a simulated user that talks with the target (AGENTS.md section 10)."""

from __future__ import annotations

from hashlib import sha256

from agentv.authoring.code.fingerprints import digests_behind
from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.nodes import MapNode, Node, Scalar, is_empty, kind_of
from agentv.authoring.targets.registry import TargetRegistry
from agentv.extensions.agents.authoring.schema import AuthoredUser
from agentv.model.suite.suite import SimulatedUser


def read_user(node: Node, reading: Reading, registry: TargetRegistry) -> SimulatedUser | None:
    """The user; None where it is wrong, which is reported.

    Args:
        node: its goal, or a mapping.
        reading: of the case.
        registry: of the targets that can play it.
    """
    if isinstance(node, Scalar) and not is_empty(node):
        node = MapNode({"goal": node}, {"goal": node.at}, node.at)
    if not isinstance(node, MapNode):
        reading.report.error("bad-value", node, f"'user' must be a goal, or a mapping, found {kind_of(node)}")
        return None
    read = shape_of(AuthoredUser).decode(node.items, node, reading, "'user'")
    if read is INVALID:
        return None
    named = registry.default_user if read.model is None and read.function is None else read.model
    model = None if named is None else registry.inline(named, reading)
    if named is not None and model is None:
        return None
    return SimulatedUser(
        read.goal.strip(),
        read.persona.strip(),
        read.knows,
        read.start.strip(),
        read.max_turns,
        model,
        str(read.function) if read.function is not None else "",
        sha256("".join(digests_behind(read)).encode()).hexdigest() if read.function is not None else "",
        read.output,
    )
