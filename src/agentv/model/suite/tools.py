"""Scripted tools of a suite or a case, and MCP servers that an agent is given (AGENTS.md section 6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct, field

from agentv.model.values.span import Span
from agentv.model.values.values import EMPTY, Json, JsonObject

FIRST_SANDBOX_PORT = 61_001
"""Port of the first server over HTTP on the loopback of a sandbox with a network of its own; the others follow."""


class ToolFailure(Struct, frozen=True):
    """Failures of a scripted tool.

    Attributes:
        calls: which of its calls fail, from 1; empty: all.
        error: `timeout`, or the message of the error.
    """

    error: str
    calls: tuple[int, ...] = ()


class ScriptedTool(Struct, frozen=True):
    """One tool of a scripted server.

    Attributes:
        params: parameter → JSON type, or a JSON Schema.
        returns: what each call gives.
        function: `file.py:name` with an absolute path; gets the parameters, and `state` where it names it.
        sha256: of the function's file.
    """

    name: str
    description: str = ""
    params: JsonObject = field(default=EMPTY)
    returns: Json = None
    function: str = ""
    failure: ToolFailure | None = None
    sha256: str = ""
    span: Span | None = None

    @property
    def schema(self) -> JsonObject:
        """The JSON Schema of its arguments. In the short form each parameter is required, and no other allowed."""
        if is_schema(self.params):
            return self.params
        properties = {name: {"type": one} if isinstance(one, str) else one for name, one in self.params.items()}
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }

    @property
    def parameters(self) -> Sequence[str]:
        """The names of its parameters, as far as they are declared."""
        declared = self.params.get("properties") if is_schema(self.params) else self.params
        return tuple(declared) if isinstance(declared, Mapping) else ()


class ScriptedServer(Struct, frozen=True):
    """An MCP server that agentv provides, one instance for each trial.

    Attributes:
        state: that its functions begin with.
        transport: `stdio` works without a network too; `http` is on loopback.
    """

    name: str
    tools: tuple[ScriptedTool, ...]
    state: JsonObject = field(default=EMPTY)
    transport: Literal["stdio", "http"] = "stdio"

    def facts(self) -> list[Json]:
        """What tells it from another server, for hashes: not where its files lie, but what is in them."""
        return [self.name, self.transport, self.state, [_facts(tool) for tool in self.tools]]


def _facts(tool: ScriptedTool) -> Json:
    failure = tool.failure
    return [
        *(tool.name, tool.description, tool.params, tool.returns, tool.function.rpartition(":")[2], tool.sha256),
        *(() if failure is None else (failure.error, list(failure.calls))),
    ]


def is_schema(params: JsonObject) -> bool:
    """Whether `params` is a JSON Schema of all arguments, and not parameter → type."""
    return params.get("type") == "object" and isinstance(params.get("properties", EMPTY), Mapping)


class McpServer(Struct, frozen=True):
    """An MCP server for an agent: a program on stdio, or a URL."""

    name: str
    transport: Literal["stdio", "http"] = "stdio"
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        """The server without its environment and headers, which may hold secrets."""
        return (
            f"McpServer(name={self.name!r}, transport={self.transport!r}, command={self.command!r}, url={self.url!r})"
        )


def mcp_config(servers: Iterable[McpServer]) -> JsonObject:
    """The content of a file such as `.mcp.json`, as `claude --mcp-config` takes it."""
    return {"mcpServers": {one.name: _entry(one) for one in servers}}


def _entry(server: McpServer) -> Json:
    if server.transport == "http":
        headers: JsonObject = {"headers": dict(server.headers)} if server.headers else {}
        return {"type": "http", "url": server.url, **headers}
    env: JsonObject = {"env": dict(server.env)} if server.env else {}
    return {"command": server.command[0], "args": list(server.command[1:]), **env}
