"""MCP server of scripted tools, built on the official package, over a Unix socket or loopback HTTP."""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from agentv.extensions.agents.trial.tool_calls import ToolCalls
from agentv.model.suite.tools import ScriptedServer
from agentv.version import __version__

if TYPE_CHECKING:
    import uvicorn


LINE_LIMIT = 16_000_000
MOST_CONNECTIONS = 32
REQUEST_TIMEOUT = -32001
"""Error code that MCP clients report for a request that was not answered in time."""


def server_of(server: ScriptedServer, calls: ToolCalls) -> Server[Any]:
    """Create an MCP server with the tools of a scripted server, whose calls `calls` answers."""
    tools = [
        types.Tool(name=one.name, description=one.description or None, input_schema=dict(one.schema))
        for one in server.tools
    ]

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        del context, params
        calls.listed = True
        return types.ListToolsResult(tools=tools)

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        del context
        result = await calls.call(params.name, params.arguments or {})
        if result.timed_out:
            raise MCPError(REQUEST_TIMEOUT, "Request timed out")
        value = result.error if result.error is not None else result.value
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        failed, structured = result.error is not None, value if isinstance(value, dict) else None
        content: list[Any] = [types.TextContent(type="text", text=text)]
        return types.CallToolResult(content=content, structured_content=structured, is_error=failed)

    return Server(server.name, version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)


class SocketServer:
    """Serves an MCP session per connection to a Unix socket."""

    def __init__(self, server: Server[Any]) -> None:
        self._server = server
        self._listening: asyncio.Server | None = None
        self._sessions: set[asyncio.Task[None]] = set()

    async def start(self, listening: socket.socket) -> None:
        """Accept connections."""
        self._listening = await asyncio.start_unix_server(self._accept, sock=listening, limit=LINE_LIMIT)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._sessions) >= MOST_CONNECTIONS:
            writer.close()
            return
        self._sessions.add(task)
        try:
            lines: Any = _Lines(reader, writer)
            async with stdio_server(lines, lines) as (requests, replies):
                await self._server.run(requests, replies, self._server.create_initialization_options())
        except (OSError, ValueError, ExceptionGroup, asyncio.CancelledError):
            pass  # the agent disconnected, or `close` cancelled this task
        finally:
            self._sessions.discard(task)
            writer.close()

    async def close(self) -> None:
        """Stop listening, and end all sessions."""
        if self._listening is not None:
            self._listening.close()
        for task in tuple(self._sessions):
            task.cancel()
        if self._sessions:
            await asyncio.wait(tuple(self._sessions), timeout=1)


class _Lines:
    """A connection with the interface of standard streams. A line over the limit ends the session."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while line := await self._reader.readline():
            yield line

    async def write(self, text: str) -> None:
        self._writer.write(text.encode())

    async def flush(self) -> None:
        await self._writer.drain()


class HttpServer:
    """Serves streamable HTTP on loopback, at an unguessable path."""

    def __init__(self, server: Server[Any]) -> None:
        self._server = server
        self._task: asyncio.Task[None] | None = None
        self._running: uvicorn.Server | None = None

    async def start(self, listening: socket.socket | None = None, port: int = 0) -> str:
        """Start listening, and return the URL.

        Args:
            listening: socket to which connections to 127.0.0.1 are forwarded; None: listen on a free port there.
            port: port of 127.0.0.1 from which connections are forwarded.
        """
        import uvicorn

        class Quiet(uvicorn.Server):
            @contextmanager
            def capture_signals(self) -> Iterator[None]:
                yield  # the run handles signals

        path = f"/{secrets.token_urlsafe(24)}/mcp"
        if listening is None:
            listening = socket.create_server(("127.0.0.1", 0))
            port = listening.getsockname()[1]
        app = self._server.streamable_http_app(streamable_http_path=path)
        config = uvicorn.Config(
            app, log_config=None, log_level="critical", access_log=False, lifespan="on", timeout_graceful_shutdown=1
        )
        self._running = Quiet(config)
        self._task = asyncio.ensure_future(self._running.serve(sockets=[listening]))
        while not self._running.started and not self._task.done():  # noqa: ASYNC110  # uvicorn has no event for it
            await asyncio.sleep(0.005)
        return f"http://127.0.0.1:{port}{path}"

    async def close(self) -> None:
        """Stop listening."""
        if self._running is not None and self._task is not None:
            self._running.should_exit = True
            with suppress(asyncio.CancelledError):
                await asyncio.wait([self._task], timeout=5)
