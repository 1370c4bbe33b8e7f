"""Replies over aiohttp that end with an error where they are too large, however small they were before they unpacked.

Import this module in the function that needs it: aiohttp takes a quarter of a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import ClientPayloadError, ClientResponse, StreamReader

from agentv.targets.http.bodies import Size

if TYPE_CHECKING:
    from aiohttp.connector import Connection


class TooLargeReplyError(ClientPayloadError):
    """The body of a reply is larger than is read, or says more JSON than is kept."""


class BoundedResponse(ClientResponse):
    """A response whose body raises `TooLargeReplyError` for whoever reads it, whole or in pieces."""

    async def start(self, connection: Connection) -> ClientResponse:
        """Read the head, and count what comes behind it from then on."""
        await super().start(connection)
        if type(self.content) is StreamReader:
            self.content.__class__ = _counting_reader(Size())  # it exists already, and the parser holds on to it
        return self


def _counting_reader(size: Size) -> type[StreamReader]:
    """The class of the body of one response: a StreamReader has no room for what counts it."""

    class CountingReader(StreamReader):
        __slots__ = ()

        def feed_data(self, data: bytes, _: int = 0) -> bool:
            """Take in bytes as they are after unpacking."""
            if self.exception() is not None:
                return True
            if not size.takes(data):
                self.set_exception(TooLargeReplyError("the response is too large"))
                return True
            return super().feed_data(data)

    return CountingReader
