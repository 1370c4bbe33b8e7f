"""The tools that a request offers to the model, and the translation of a script's tool calls to them.

A script uses names such as `shell`, `write`, `edit`, `read` or `shop.get_order`; each agent has its own names and
arguments.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from agentv.model.values.message import ToolCall
from agentv.model.values.tool_names import TOOLS, canonical_name
from agentv.model.values.values import EMPTY, Json, JsonObject, objects_in

_SCHEMAS = ("parameters", "input_schema", "parametersJsonSchema")


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool that the model may call.

    Attributes:
        name: name in the request.
        namespace: its namespace (OpenAI's Responses API); "" for none.
        custom: whether its input is text rather than an object (OpenAI's custom tools).
        search: whether it finds further tools, which later requests then offer (Codex).
        schema: JSON Schema of its arguments.
    """

    name: str
    namespace: str = ""
    custom: bool = False
    search: bool = False
    description: str = ""
    schema: JsonObject = field(default=EMPTY)

    @property
    def full_name(self) -> str:
        """`NAMESPACE.NAME`, or the name alone without a namespace."""
        return f"{self.namespace}.{self.name}" if self.namespace else self.name

    @property
    def arguments(self) -> Mapping[str, Json]:
        """The schema of each argument."""
        found = self.schema.get("properties")
        return found if isinstance(found, Mapping) else EMPTY

    @property
    def required(self) -> Sequence[str]:
        """Names of the required arguments."""
        found = self.schema.get("required")
        return [str(one) for one in found] if isinstance(found, Sequence) and not isinstance(found, str) else []


def offered_tools(body: JsonObject) -> tuple[OfferedTool, ...]:
    """The tools of a request that the client runs. Those that the provider runs are left out."""
    found = [*_tools(body.get("tools"), "")]
    for item in objects_in(body.get("input")):
        if item.get("type") in ("additional_tools", "tool_search_output"):
            found += _tools(item.get("tools"), "")
    return tuple(found)


def _tools(value: Json, namespace: str) -> Iterator[OfferedTool]:
    for tool in objects_in(value):
        kind, name = tool.get("type"), tool.get("name")
        if kind == "tool_search" and tool.get("execution") == "client":
            yield OfferedTool("tool_search", search=True)
            continue
        if kind == "namespace" and isinstance(name, str):
            yield from _tools(tool.get("tools"), f"{namespace}.{name}" if namespace else name)
            continue
        declared = tool.get("functionDeclarations", tool.get("function_declarations"))
        if declared is not None:
            yield from _tools(declared, namespace)
            continue
        inner = tool.get("function", tool.get("custom"))
        said = inner if isinstance(inner, Mapping) else tool
        if isinstance(named := said.get("name"), str):
            schema = next((said[key] for key in _SCHEMAS if isinstance(said.get(key), Mapping)), EMPTY)
            yield OfferedTool(
                named,
                namespace,
                custom=kind == "custom" and "input_schema" not in tool,
                description=str(said.get("description", "")),
                schema=schema if isinstance(schema, Mapping) else EMPTY,
            )


ALIASES: Mapping[str, tuple[str, ...]] = {
    "command": ("cmd",),
    "path": ("file_path", "filePath", "dir_path", "target_file"),
    "content": ("file_text", "contents"),
    "old": ("old_string", "oldString", "old_str", "oldText"),
    "new": ("new_string", "newString", "new_str", "newText"),
    "prompt": ("message",),
    "agent": ("subagent_type", "agent_type", "agent_name"),
    "name": ("skill",),
}
"""Argument in a script → its names in agents' tools."""

_NO_FILE_TOOLS = frozenset({"view_image"})
_REQUIRED = {"agent_type": "general-purpose", "subagent_type": "general", "agent_name": "generalist"}
_DIRECTORY = re.compile(r"(?:<cwd>|[Ww]orking directory: ?|Workspace Directories:\*\*\s+- )(?P<path>/[^\n<]*)")
_REPLACE = (
    "import pathlib,sys;p=pathlib.Path(sys.argv[1]);t=p.read_text();"
    "sys.exit('not found: '+sys.argv[2]) if sys.argv[2] not in t else p.write_text(t.replace(*sys.argv[2:4],1))"
)


class NotOfferedError(Exception):
    """The request offers no tool for a call."""


SEARCH_ID = "search_"
"""Prefix of the id of a tool search that the server adds to the script."""


def as_offered(call: ToolCall, tools: Sequence[OfferedTool], text: str) -> ToolCall:
    """A script's call, translated to a tool of the agent.

    Args:
        call: call by a canonical name or the agent's own.
        tools: tools that the request offers.
        text: text of the request, which names the working directory.

    Raises:
        NotOfferedError: no tool fits.
    """
    own = next((tool for tool in tools if call.name in (tool.name, tool.full_name)), None)
    tool = own or _tool_of(call.name, tools)
    if tool is None:
        return _substitute(call, tools, text)
    known = call.name in TOOLS or canonical_name(call.name) in TOOLS
    arguments = _arguments(call.arguments, tool, text) if known else dict(call.arguments)
    return ToolCall(tool.full_name, arguments, call.id)


def _tool_of(name: str, tools: Sequence[OfferedTool]) -> OfferedTool | None:
    """The first offered tool that `TOOLS` lists for a canonical name, or else the MCP server's tool of that name."""
    natives = [native for agent in TOOLS.get(name, {}).values() for native in agent if native not in _NO_FILE_TOOLS]
    fitting = {tool.name: tool for tool in tools if not tool.custom}
    found = next((fitting[native] for native in natives if native in fitting), None)
    if found is not None or name in TOOLS:
        return found
    plain = _plain(name)
    return next((tool for tool in tools if plain in (_plain(tool.full_name), _plain(tool.name))), None)


def _plain(name: str) -> str:
    """`mcp__shop__get_order`, `mcp_shop_get_order`, `shop-get_order` → `shop_get_order`."""
    return re.sub(r"\W+|_+", "_", name).strip("_").removeprefix("mcp_")


def _arguments(given: Mapping[str, Json], tool: OfferedTool, text: str) -> dict[str, Json]:
    """The arguments renamed to the tool's, with absolute paths and with placeholders for missing required arguments."""
    offered = tool.arguments
    given = dict(given)
    directory, path = _DIRECTORY.search(text), given.get("path")
    if directory is not None and isinstance(path, str):
        given["path"] = str(PurePosixPath(directory["path"].strip()) / path)
    if "edits" in offered and {"old", "new"} <= given.keys():
        inner = {"oldText": given.pop("old"), "newText": given.pop("new")}
        given["edits"] = [inner]
    found: dict[str, Json] = {}
    for key, value in given.items():
        other = next((one for one in ALIASES.get(key, ()) if one in offered), key)
        found[key if key in offered else other] = value
    command = found.get("command")
    if isinstance(command, str) and _type(offered.get("command")) == "array":
        found["command"] = ["bash", "-lc", command]
    return {**found, **{key: _filler(key, offered.get(key)) for key in tool.required if key not in found}}


def _type(schema: Json) -> Json:
    return schema.get("type") if isinstance(schema, Mapping) else None


def _filler(key: str, schema: Json) -> Json:
    """A placeholder for a required argument that the script omits."""
    choices = schema.get("enum") if isinstance(schema, Mapping) else None
    if isinstance(choices, Sequence) and choices:
        return _REQUIRED[key] if _REQUIRED.get(key) in choices else choices[0]
    fillers: dict[Json, Json] = {"boolean": False, "number": 0, "integer": 0, "array": [], "object": {}}
    kind = _type(schema)
    return fillers[kind] if isinstance(kind, str) and kind in fillers else _REQUIRED.get(key, "step")


def _substitute(call: ToolCall, tools: Sequence[OfferedTool], text: str) -> ToolCall:
    """Translate a call without a matching tool: files by a patch or the shell, commands by JavaScript (Codex)."""
    patch = next((tool for tool in tools if tool.custom and tool.name == "apply_patch"), None)
    if patch is not None and call.name in ("write", "edit"):
        return ToolCall(patch.full_name, {"input": _patch(call)}, call.id)
    shell = _tool_of("shell", tools)
    if shell is not None and call.name in ("write", "edit", "read"):
        command = _command(call, codex="cmd" in shell.arguments)
        return ToolCall(shell.full_name, _arguments({"command": command}, shell, text), call.id)
    script = next((tool for tool in tools if tool.custom and "tools.exec_command" in tool.description), None)
    if script is None:
        search = _search(call, tools)
        if search is not None:
            return search
        offered = ", ".join(tool.full_name for tool in tools) or "none"
        raise NotOfferedError(f"the request offers no tool for '{call.name}'; its tools: {offered}")
    if call.name in ("write", "edit"):
        asked = f"tools.apply_patch({json.dumps(_patch(call))})"
    elif call.name in ("shell", "read"):
        command = _text(call, "command") if call.name == "shell" else _command(call, codex=True)
        asked = f"tools.exec_command({json.dumps({'cmd': command})})"
    else:
        name = "mcp__" + call.name.replace(".", "__") if "." in call.name else call.name
        asked = f"tools.{name}({json.dumps(dict(call.arguments))})"
    return ToolCall(script.full_name, {"input": f"text(await {asked})"}, call.id)


def _search(call: ToolCall, tools: Sequence[OfferedTool]) -> ToolCall | None:
    """A search for a tool that the agent has not declared yet (Claude Code, Codex); None if it has no tool search."""
    identity = SEARCH_ID + _plain(call.name)
    if any(tool.search for tool in tools):
        return ToolCall("tool_search", {"query": call.name.replace(".", " ").replace("_", " "), "limit": 8}, identity)
    if any(tool.name == "ToolSearch" for tool in tools):
        natives = TOOLS[call.name].get("claude", ()) if call.name in TOOLS else ()
        names = ",".join(natives) or ("mcp__" + call.name.replace(".", "__") if "." in call.name else call.name)
        return ToolCall("ToolSearch", {"query": f"select:{names}", "max_results": 5}, identity)
    return None


def _text(call: ToolCall, key: str) -> str:
    return str(call.arguments.get(key, ""))


def _command(call: ToolCall, *, codex: bool) -> str:
    path = _text(call, "path")
    if call.name == "read":
        return f"cat {shlex.quote(path)}"
    if codex:
        return f"apply_patch <<'PATCH'\n{_patch(call)}PATCH"
    if call.name == "edit":
        return shlex.join(["python3", "-c", _REPLACE, path, _text(call, "old"), _text(call, "new")])
    folder = shlex.quote(str(PurePosixPath(path).parent))
    return f"mkdir -p {folder} && printf %s {shlex.quote(_text(call, 'content'))} > {shlex.quote(path)}"


def _patch(call: ToolCall) -> str:
    """The change in Codex's patch format. An edit replaces whole lines."""

    def lines(mark: str, key: str) -> str:
        return "".join(f"{mark}{line}\n" for line in _text(call, key).splitlines())

    path = _text(call, "path")
    if call.name == "write":
        change = f"*** Add File: {path}\n{lines('+', 'content')}"
    else:
        change = f"*** Update File: {path}\n@@\n{lines('-', 'old')}{lines('+', 'new')}"
    return f"*** Begin Patch\n{change}*** End Patch\n"
