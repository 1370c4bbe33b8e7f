"""Events of a stream (server-sent events), found in chunks of any size without changing a byte."""

from __future__ import annotations

import re

LONGEST_EVENT = 32_000_000
"""Bytes of one event."""

_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LINE = re.compile(rb"\r\n|\n|\r")


class TooLongEventError(Exception):
    """An event of a stream has no end."""


class EventSplitter:
    """Splits a stream into its events."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._searched = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The events that are complete now, each with the empty line that ends it.

        Raises:
            TooLongEventError: an event is longer than it may be.
        """
        rest = self._rest
        rest += chunk
        events, begin, at = [], 0, self._searched
        while (found := _END.search(rest, at)) is not None:
            events.append(bytes(rest[begin : found.end()]))
            begin = at = found.end()
        if begin:
            del rest[:begin]
        self._searched = max(0, len(rest) - 3)
        if len(rest) > LONGEST_EVENT:
            raise TooLongEventError
        return events

    def rest(self) -> bytes:
        """What follows the last complete event."""
        return bytes(self._rest)


def data_of(event: bytes) -> bytes:
    """The data of an event; empty: it has none."""
    if event.startswith(b"data:") and event.count(b"\n") == 2 and b"\r" not in event:  # most are a line
        return event[5:-2].strip()
    lines = (line for line in _LINE.split(event) if line.startswith(b"data:"))
    return b"\n".join(line[5:].removeprefix(b" ") for line in lines).strip()
