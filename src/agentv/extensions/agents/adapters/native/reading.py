"""Reading of an agent's stream: one JSON event a line, kept as it came, whatever else it holds."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from agentv.extensions.agents.adapters.native.stream import StreamReader
from agentv.extensions.agents.adapters.process import AgentProcess, TooLargeStreamError
from agentv.model.values.response import Failure

NATIVE_LIMIT = 32_000_000
"""Bytes of the stream that are kept; what follows is left out, and the trace says so."""

MASK = b"***"
_SHORTEST_SECRET = 6


class StreamLines:
    """The lines of one turn.

    Args:
        reader: gets each event.
        discarded: how lines begin that are neither read nor kept.
        secrets: texts that are masked in what is kept.

    Attributes:
        broken: why reading stopped before the end; None: it did not.
        cut: the stream ends in the middle of an event.
        count: lines so far.
        noise: lines that are no events, such as logs.
        unread: events that the adapter could not read: of another shape than it knows.
        truncated: not all of the stream is kept.
    """

    def __init__(self, reader: StreamReader, secrets: Iterable[str], discarded: tuple[bytes, ...] = ()) -> None:
        self._reader = reader
        self._discarded = discarded
        self._secrets = [one.encode() for one in secrets if len(one) >= _SHORTEST_SECRET]
        self._native = bytearray()
        self.broken: Failure | None = None
        self.cut = False
        self.count = 0
        self.noise = 0
        self.unread = 0
        self.truncated = False

    async def read(self, process: AgentProcess) -> None:
        """Read until the stream ends, or cannot be read any further."""
        try:
            while (line := await process.line()) is not None:
                if self._discarded and line.startswith(self._discarded):
                    process.discount(len(line))
                else:
                    self.take(line)
        except TooLargeStreamError:
            self.broken = Failure("output-too-large", "the agent printed more than is allowed")
            return
        except OSError as error:
            self.broken = Failure("agent-stopped", f"the agent's stream cannot be read: {error}")
            return
        rest = process.partial.strip()
        if rest:
            self.cut = rest.startswith(b"{") and not _is_event(_parsed(rest))
            self.take(rest)

    def take_report(self, data: bytes) -> None:
        """Take what stands in a file: one JSON document, or the lines of a stream."""
        document = _parsed(data)
        if _is_event(document):
            self.take(json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode(errors="replace"))
            return
        for line in data.splitlines():
            self.take(line)

    def take(self, line: bytes) -> None:
        """Take a line."""
        line = line.strip()
        if not line:
            return
        self._keep(line)
        self.count += 1
        event = _parsed(line)
        if not _is_event(event):
            self.noise += 1
            return
        try:
            self._reader.read(event)
        except (LookupError, TypeError, ValueError, AttributeError):  # an event of a version that is not known
            self.unread += 1

    def native(self) -> bytes:
        """The stream as it came, secrets masked."""
        return bytes(self._native)

    def masked(self, data: bytes) -> bytes:
        """Data without the secrets."""
        for secret in self._secrets:
            data = data.replace(secret, MASK)
        return data

    def _keep(self, line: bytes) -> None:
        if len(self._native) + len(line) < NATIVE_LIMIT:
            self._native += self.masked(line) + b"\n"
        else:
            self.truncated = True


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line.decode(errors="replace"))
    except (ValueError, RecursionError):
        return None


def _is_event(value: object) -> bool:
    return isinstance(value, dict)
