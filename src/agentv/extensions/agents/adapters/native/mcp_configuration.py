"""MCP servers as configuration files of agents spell them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agentv.model.suite.tools import McpServer


def mcp_servers_json(servers: Iterable[McpServer]) -> dict[str, Any]:
    """Name → server, as most agents take it under `mcpServers`."""
    return {one.name: _server(one) for one in servers}


def _server(server: McpServer) -> dict[str, Any]:
    if server.transport == "http":
        return {"type": "http", "url": server.url, **({"headers": dict(server.headers)} if server.headers else {})}
    program, *arguments = server.command
    return {
        "type": "stdio",
        "command": program,
        "args": arguments,
        **({"env": dict(server.env)} if server.env else {}),
    }
