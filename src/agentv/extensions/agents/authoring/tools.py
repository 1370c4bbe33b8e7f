"""Scripted MCP tools of a case, its `solution`, which makes it pass, and its simulated `user`.

Tools are declared in the eval file, or are functions of a Python module. A case's tools override those of the suite
with the same name.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from inspect import cleandoc
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from agentv.authoring.code.fingerprints import digests_behind
from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.kinds import refuse_data
from agentv.authoring.fields.python_source import parsed
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.nearest import did_you_mean
from agentv.authoring.source.nodes import MapNode, Node, Scalar, holds_placeholder, is_empty, node_of
from agentv.authoring.targets.registry import TargetRegistry
from agentv.extensions.agents.authoring.parts import PATCHES, CopyReader, no_digest, read_commands
from agentv.extensions.agents.authoring.schema import (
    OFFERED,
    AuthoredServer,
    AuthoredSolution,
    AuthoredTool,
    AuthoredUser,
)
from agentv.model.suite.suite import SimulatedUser
from agentv.model.suite.tools import ScriptedServer, ScriptedTool, ToolFailure
from agentv.model.suite.workspace import Solution, ToolUse
from agentv.model.values.values import EMPTY, Json, JsonObject, lazy_pattern
from agentv.registry.fields import missing_extra

_STATE = "STATE"
_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array", "dict": "object"}


def _module(node: Scalar, reading: Reading) -> tuple[MapNode, JsonObject] | None:
    """Return the public functions of a module as tools, and its literal `STATE`; None after reporting a mistake.

    A function's docstring is the tool's description; its parameters are the tool's, with the types of their
    annotations. Those with a default are optional.
    """
    found = reading.find(node, "file")
    text = None if found is None else reading.text_of(found, node)
    if text is None:
        return None
    try:
        body = parsed(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reading.report.error("bad-python-file", node, f"'{node.text}' is not valid Python: {error}")
        return None
    functions = [one for one in body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    tools = {one.name: _function_tool(one, node) for one in functions if not one.name.startswith("_")}
    if not tools:
        reading.report.error("missing-value", node, f"'{node.text}' has no functions, which would be the tools")
        return None
    state: JsonObject = {}
    for one in body:
        names = [name.id for name in one.targets if isinstance(name, ast.Name)] if isinstance(one, ast.Assign) else []
        if isinstance(one, ast.Assign) and _STATE in names:
            try:
                written = ast.literal_eval(one.value)
                json.dumps(written)
            except (ValueError, TypeError):
                written = None
            if isinstance(written, dict):
                state = written
            else:
                reading.report.error("bad-value", node, f"'{_STATE}' of '{node.text}' must be a literal object of JSON")
                return None
    made = node_of(tools, node.at)
    assert isinstance(made, MapNode)  # noqa: S101  # made of a mapping
    return made, state


def _function_tool(function: ast.FunctionDef | ast.AsyncFunctionDef, node: Scalar) -> Json:
    given = function.args
    named = [*given.posonlyargs, *given.args]
    defaults = len(given.defaults)
    required = {one.arg for one in named[: len(named) - defaults]}
    required |= {one.arg for one, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value is None}
    shown = [one for one in (*named, *given.kwonlyargs) if one.arg not in OFFERED]
    params: Json = {
        "type": "object",
        "properties": {one.arg: _type(one.annotation) for one in shown},
        "required": [one.arg for one in shown if one.arg in required],
        "additionalProperties": False,
    }
    about = cleandoc(ast.get_docstring(function) or "")
    return {"description": about, "params": params, "function": f"{node.text.strip()}:{function.name}"}


def _type(annotation: ast.expr | None) -> Json:
    """Return the JSON Schema of an annotation; an empty one, which accepts everything, if it is not a type of JSON."""
    named = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    name = named.id if isinstance(named, ast.Name) else ""
    known: dict[str, Json] = {"type": _TYPES[name]} if name in _TYPES else {}
    if isinstance(annotation, ast.Subscript) and name == "list":
        known["items"] = _type(annotation.slice)
    return known


_NAME = lazy_pattern(r"[A-Za-z0-9_-]{1,64}")
"""Names of tools that the model APIs accept, and names of servers that agents accept."""

_TOOLS = "tools"


class _Server(Struct, frozen=True):
    """A server as declared in one place: the suite or a case."""

    tools: Mapping[str, ScriptedTool]
    state: JsonObject = EMPTY
    transport: Literal["stdio", "http"] | None = None


class ToolReader:
    """Reads the scripted tools of one suite. Mistakes are reported.

    Args:
        node: `tools` of the suite.
    """

    def __init__(self, node: Node | None) -> None:
        self._node = None if node is None or is_empty(node) else node
        self._has_placeholders = self._node is not None and holds_placeholder(self._node)
        self._servers: Mapping[str, _Server] | None = None
        self._reported = False

    def of_case(self, node: Node | None, reading: Reading) -> tuple[ScriptedServer, ...]:
        """Return the servers of a case.

        Args:
            node: `tools` of the case.
            reading: context of the case.
        """
        own = {} if node is None or is_empty(node) else _servers(node, reading)
        if self._node is None and not own:
            return ()
        # Report only once that the library that serves tools is not installed.
        missing = None if self._reported else missing_extra("mcp", "agents", "serving scripted tools")
        if missing is not None:
            self._reported = True
            add = reading.report.error if reading.strict_env else reading.report.warning
            add(missing.code, self._node or node, missing.message, hint=missing.hint)
        base = self._suite_servers(reading.of_suite())
        merged = {**base, **own}
        for name in base.keys() & own.keys():
            mine, theirs = own[name], base[name]
            tools, transport = {**theirs.tools, **mine.tools}, mine.transport or theirs.transport
            merged[name] = _Server(tools, {**theirs.state, **mine.state}, transport)
        return tuple(
            ScriptedServer(name, tuple(one.tools.values()), one.state, one.transport or "stdio")
            for name, one in merged.items()
        )

    def _suite_servers(self, reading: Reading) -> Mapping[str, _Server]:
        if self._node is None:
            return {}
        if self._has_placeholders:
            return _servers(self._node, reading)
        if self._servers is None:
            self._servers = _servers(self._node, reading)
        return self._servers


def _servers(node: Node, reading: Reading) -> Mapping[str, _Server]:
    if not isinstance(node, MapNode):
        reading.report.unfit(node, "'tools' must map servers to their tools")
        return {}
    found = {name: _server(name, one, node, reading) for name, one in node.items.items()}
    return {name: one for name, one in found.items() if one is not None}


def _server(name: str, node: Node, around: MapNode, reading: Reading) -> _Server | None:
    if not _is_name(name, "server", around, reading):
        return None
    written, own, transport = node, EMPTY, None
    if isinstance(node, MapNode) and _TOOLS in node.items:
        read = shape_of(AuthoredServer).decode(node.items, node, reading, f"the server '{name}'")
        if read is INVALID:
            return None
        written, transport = read.tools, read.transport
        own = read.state.value if read.state is not None else EMPTY
        if not isinstance(own, Mapping):
            reading.report.error("bad-value", node.items["state"], "'state' must be an object of JSON")
            return None
    if isinstance(written, Scalar) and written.text.strip().endswith(".py"):
        found = _module(written, reading)
        return None if found is None else _Server(_tools(name, found[0], reading), {**found[1], **own}, transport)
    if isinstance(written, MapNode) and not is_empty(written):
        return _Server(_tools(name, written, reading), own, transport)
    hint = "or name a module whose functions are the tools: tools.py"
    reading.report.unfit(written, f"'tools.{name}' must map the tools of an MCP server to what they do", hint=hint)
    return None


def _tools(server: str, node: MapNode, reading: Reading) -> Mapping[str, ScriptedTool]:
    made = {name: _tool(f"{server}.{name}", name, one, node, reading) for name, one in node.items.items()}
    return {name: one for name, one in made.items() if one is not None}


def _tool(path: str, name: str, node: Node, around: MapNode, reading: Reading) -> ScriptedTool | None:
    if not _is_name(name, "tool", around, reading):
        return None
    if not isinstance(node, MapNode):
        reading.report.unfit(node, f"the tool '{path}' must be a mapping")
        return None
    read = shape_of(AuthoredTool).decode(node.items, node, reading, f"the tool '{path}'")
    if read is INVALID:
        return None
    fails = read.fail is not None and not read.fail.calls
    if read.function is None and "returns" not in node.items and not fails:
        reading.report.error("missing-key", node, f"the tool '{path}' needs 'returns' or 'function'")
        return None
    function, digests = str(read.function) if read.function is not None else "", digests_behind(read)
    failure = ToolFailure(read.fail.error, read.fail.calls) if read.fail is not None else None
    tool = ScriptedTool(name, read.description, read.params, read.returns, function, failure)
    return replace(tool, sha256=sha256("".join(digests).encode()).hexdigest()) if digests else tool


def _is_name(name: str, what: str, node: MapNode, reading: Reading) -> bool:
    if _NAME.fullmatch(name):
        return True
    message = f"'{name}' cannot be the name of a {what}: it takes up to 64 letters, digits, '_' and '-'"
    reading.report.error("bad-value", node.keys.get(name), message)
    return False


def read_solution(node: Node, tools: Sequence[ScriptedServer], reading: Reading) -> Solution | None:
    """Return the solution, or None if it is empty or invalid. Mistakes are reported.

    Args:
        node: the path of a patch (`.patch`, `.diff`) or of files, or a mapping.
        tools: scripted tools of the case.
        reading: context of the case.
    """
    if is_empty(node):
        return None
    if not isinstance(node, MapNode):
        key = "patch" if isinstance(node, Scalar) and node.text.strip().endswith(PATCHES) else "files"
        node = MapNode({key: node}, {key: node.at}, node.at)
    read = shape_of(AuthoredSolution).decode(node.items, node, reading, "'solution'")
    if read is INVALID:
        return None
    if reading.data and read.commands is not None:
        refuse_data(node, reading.report, "run commands, as 'solution' does")
        return None
    names = [f"{server.name}.{tool.name}" for server in tools for tool in server.tools]
    for one in read.calls:
        if one.tool not in names:
            message = f"the case has no tool '{one.tool}', which its solution calls"
            reading.report.error("bad-value", node, message, hint=did_you_mean(one.tool, names))
    patch = node.items.get("patch")
    found = Solution(
        _patch(patch, reading) if isinstance(patch, Scalar) and read.patch is not None else "",
        CopyReader(no_digest).read(read.files, "solution", reading) if read.files is not None else (),
        read_commands(read.commands, "solution", reading),
        tuple(ToolUse(one.tool, one.args) for one in read.calls),
    )
    if found == Solution() and "calls" not in node.items and not reading.report.failed:
        reading.report.error("missing-value", node, "'solution' needs 'patch', 'files', 'commands' or 'calls'")
    return found


def _patch(node: Scalar, reading: Reading) -> str:
    """Return the text of a patch; empty if it cannot be read, which is reported."""
    found = reading.find(node, "file")
    text = None if found is None else reading.text_of(found, node)
    if text is not None and not text.strip():
        reading.report.error("missing-value", node, "the patch is empty")
    return text or ""


def read_user(node: Node, reading: Reading, registry: TargetRegistry) -> SimulatedUser | None:
    """Return the simulated user, or None after reporting a mistake.

    Args:
        node: the user's goal, or a mapping.
        reading: context of the case.
        registry: targets that can play the user.
    """
    if isinstance(node, Scalar) and not is_empty(node):
        node = MapNode({"goal": node}, {"goal": node.at}, node.at)
    if not isinstance(node, MapNode):
        reading.report.unfit(node, "'user' must be a goal, or a mapping")
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
        function=str(read.function) if read.function is not None else "",
        sha256=sha256("".join(digests_behind(read)).encode()).hexdigest() if read.function is not None else "",
        output=read.output,
    )
