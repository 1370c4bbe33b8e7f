"""The `solution` of a case, which makes it pass, and the simulated `user` who talks with its target."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from msgspec.structs import replace

from agentv.authoring.code.fingerprints import digests_behind
from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.kinds import refuse, refuse_data
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.nearest import did_you_mean
from agentv.authoring.source.nodes import MapNode, Node, Scalar, is_empty, kind_of
from agentv.authoring.targets.registry import TargetRegistry
from agentv.extensions.agents.authoring.parts import PATCHES, CopyReader, FileDigests, read_commands
from agentv.extensions.agents.authoring.schema import AuthoredSolution, AuthoredUser
from agentv.model.suite.suite import SimulatedUser
from agentv.model.suite.tools import ScriptedServer
from agentv.model.suite.workspace import Solution, ToolUse


def read_solution(node: Node, tools: Sequence[ScriptedServer], reading: Reading) -> Solution | None:
    """The solution; None if it is empty, or wrong, which is reported.

    Args:
        node: the path of a patch (`.patch`, `.diff`) or of files, or a mapping.
        tools: of the case.
        reading: of the case.
    """
    if is_empty(node):
        return None
    if not isinstance(node, MapNode):
        is_patch = isinstance(node, Scalar) and node.text.strip().endswith(PATCHES)
        return _solution(reading, patch=node) if is_patch else _solution(reading, files=node)
    read = shape_of(AuthoredSolution).decode(node.items, node, reading, "'solution'")
    if read is INVALID:
        return None
    if reading.data and read.commands is not None:
        refuse_data(node, reading.report, "run commands, as 'solution' does")
        return None
    found = _solution(reading, patch=node.items.get("patch"), files=read.files, commands=read.commands)
    names = [f"{server.name}.{tool.name}" for server in tools for tool in server.tools]
    for one in read.calls:
        if one.tool not in names:
            message = f"the case has no tool '{one.tool}', which its solution calls"
            reading.report.error("bad-value", node, message, hint=did_you_mean(one.tool, names))
    found = replace(found, calls=tuple(ToolUse(one.tool, one.args) for one in read.calls))
    if found == Solution() and "calls" not in node.items and not reading.report.failed:
        reading.report.error("missing-value", node, "'solution' needs 'patch', 'files', 'commands' or 'calls'")
    return found


def _solution(
    reading: Reading, *, patch: Node | None = None, files: Node | None = None, commands: Node | None = None
) -> Solution:
    copies = CopyReader(FileDigests(reads=False))
    return Solution(
        _patch(patch, reading) if patch is not None else "",
        copies.read(files, "solution", reading) if files is not None else (),
        read_commands(commands, "solution", reading),
    )


def _patch(node: Node, reading: Reading) -> str:
    """The text of a patch; empty where it cannot be read, which is reported."""
    if not isinstance(node, Scalar) or not node.text.strip():
        refuse(node, reading, "patch", "the path of a patch in git's format")
        return ""
    found = reading.find(node, "file")
    text = None if found is None else reading.text_of(found, node)
    if text is not None and not text.strip():
        reading.report.error("missing-value", node, "the patch is empty")
    return text or ""


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
