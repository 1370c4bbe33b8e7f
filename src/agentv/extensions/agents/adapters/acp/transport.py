"""JSON-RPC messages between the SDK and an agent's process; keeps the stream as it came.

The SDK gets requests and responses. Notifications of the session go straight to the trace, in the order of the wire, so
that one that the SDK cannot read is not lost.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from agentv.extensions.agents.adapters.process import AgentProcess, KeptStream, TooLargeStreamError
from agentv.model.values.response import Failure

MASK = "***"
_SHOWN = 200


class AcpTransport:
    """A `Transport` of the SDK over an agent's standard streams.

    Args:
        process: the agent.
        on_update: gets the session of each `session/update`, and the update as JSON; says what is wrong with it.

    Attributes:
        broken: what the agent sent that is not the protocol; None: nothing. The stream ends there.
        ended: set when nothing more is read.
        native: the stream as it came, both directions together, a message a line.
        noise: lines that are no messages, such as logs on stdout.
    """

    def __init__(self, process: AgentProcess, on_update: Callable[[object, Mapping[str, Any]], str | None]) -> None:
        self._process = process
        self._on_update = on_update
        self.native = KeptStream()
        self.broken: Failure | None = None
        self.noise = 0
        self.ended = asyncio.Event()

    async def send(self, message: dict[str, Any]) -> None:
        """Write a message.

        Raises:
            ConnectionError: it is a request, and the agent reads no more. A response is then left unsaid.
        """
        line = json.dumps(message, separators=(",", ":"), ensure_ascii=True).encode()
        secret = message.get("method") == "session/new"
        self.native.keep(json.dumps(masked(message), separators=(",", ":")).encode() if secret else line)
        try:
            await self._process.write(line)
        except OSError as error:
            if "method" in message and "id" in message:
                raise ConnectionError("the agent reads no more") from error

    async def receive(self) -> dict[str, Any] | None:
        """The next request or response; None: the stream has ended, or is broken."""
        while self.broken is None:
            try:
                line = await self._process.line()
            except TooLargeStreamError:
                self.broken = Failure("output-too-large", "the agent printed more than is allowed")
                break
            except OSError:
                line = None
            if line is None:
                self._end()
                break
            message = self._message(line)
            if message is None:
                continue
            if "method" in message and "id" not in message:
                self._notified(message)
                continue
            return message
        self.ended.set()
        return None

    async def close(self) -> None:
        """Nothing: the process is ended by who started it."""

    def _end(self) -> None:
        rest = self._process.partial.strip()
        if rest:
            self.native.keep(rest)
            if self._message(rest) is not None or _looks_like_message(rest):
                self.broken = _not_protocol("the stream ends in the middle of a message", rest)

    def _message(self, line: bytes) -> dict[str, Any] | None:
        """The message of a line; None where it has none, which may break the stream."""
        line = line.strip()
        if not line:
            return None
        self.native.keep(line)
        value: Any = None
        with suppress(ValueError, RecursionError):
            value = json.loads(line)
        if isinstance(value, dict) and ("method" in value or "id" in value):
            return value
        if _looks_like_message(line):
            self.broken = _not_protocol("a line on stdout is malformed JSON-RPC", line)
        else:
            self.noise += 1
        return None

    def _notified(self, message: Mapping[str, Any]) -> None:
        params = message.get("params")
        if message["method"] != "session/update":
            return
        known = params if isinstance(params, Mapping) else {}
        update = known.get("update")
        fault = self._on_update(known.get("sessionId"), update) if isinstance(update, Mapping) else "has no update"
        if fault is not None:
            self.broken = _not_protocol(f"a session/update {fault}", json.dumps(message).encode())


def _looks_like_message(line: bytes) -> bool:
    return line.startswith(b"{") or b'"jsonrpc"' in line


def _not_protocol(what: str, line: bytes) -> Failure:
    shown = line[:_SHOWN].decode(errors="replace")
    return Failure("agent-protocol", f"{what}: {shown}")


def masked(message: Mapping[str, Any]) -> dict[str, Any]:
    """A `session/new` without the values of the environment and the headers of its MCP servers."""
    params = dict(message["params"])
    params["mcpServers"] = [
        {
            key: [{**pair, "value": MASK} for pair in one] if key in {"env", "headers"} else one
            for key, one in server.items()
        }
        for server in params.get("mcpServers", ())
    ]
    return {**message, "params": params}
