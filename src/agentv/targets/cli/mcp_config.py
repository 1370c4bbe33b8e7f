"""The MCP servers of a case, in the JSON that programs of agents read: `{"mcpServers": {NAME: …}}`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from agentv.model.suite.tools import McpServer
from agentv.model.values.values import Json


def mcp_config(servers: Iterable[McpServer]) -> str:
    """The content of a file such as `.mcp.json`, as `claude --mcp-config` takes it."""
    return json.dumps({"mcpServers": {one.name: _entry(one) for one in servers}}, indent=2)


def _entry(server: McpServer) -> Mapping[str, Json]:
    if server.transport == "http":
        headers = {"headers": dict(server.headers)} if server.headers else {}
        return {"type": "http", "url": server.url, **headers}
    env = {"env": dict(server.env)} if server.env else {}
    return {"command": server.command[0], "args": list(server.command[1:]), **env}
