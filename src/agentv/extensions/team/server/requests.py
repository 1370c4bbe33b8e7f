"""Requests as endpoints get them: from a known sender, and with a body within limits."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.requests import Request

from agentv.extensions.team.server.identity import Identity
from agentv.web.answers import RefusedError

SMALL_BODY = 4 << 20
"""Bytes of a body that is no upload of rows or artifacts, decompressed."""

_PACKED = 1 << 16
"""Bytes by which gzip may make a body longer."""


@dataclass(frozen=True, slots=True)
class TeamCall:
    """A request whose sender was checked.

    Attributes:
        project: that its address names; None: it names none.
        names: the variable parts of its path.
        query: its parameters, converted.
        body: decompressed.
    """

    identity: Identity
    project: str | None
    names: dict[str, str]
    query: Any
    body: bytes

    @property
    def actor(self) -> str:
        """Who sent it."""
        return self.identity.actor

    @property
    def of_project(self) -> str:
        """The project, of an address that names one."""
        assert self.project is not None  # noqa: S101  # its route has one
        return self.project

    def decoded(self, into: Any) -> Any:
        """The body as JSON.

        Raises:
            RefusedError: the body is not JSON, or of another type.
        """
        try:
            return msgspec.json.decode(self.body, type=into)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise RefusedError(400, "bad-request", f"the body is not what this address takes: {error}") from error


async def read_body(request: Request, limit: int) -> bytes:
    """The body, decompressed.

    Raises:
        RefusedError: it is longer than the limit, was cut, goes on after its end, or has an unknown encoding.
    """
    encoding = request.headers.get("content-encoding", "identity")
    if encoding not in ("identity", "gzip"):
        raise RefusedError(415, "unknown-encoding", "a body may be sent as it is, or as gzip")
    unpacked = zlib.decompressobj(wbits=31) if encoding == "gzip" else None
    found, received = bytearray(), 0
    async for piece in request.stream():
        received += len(piece)
        try:
            found += piece if unpacked is None else unpacked.decompress(piece, limit + 1 - len(found))
        except zlib.error as error:
            raise RefusedError(400, "bad-request", "the body is no gzip: it was cut or changed") from error
        if len(found) > limit or received > limit + _PACKED:
            raise RefusedError(413, "too-large", f"the body may have {limit:,} bytes at most")
        if unpacked is not None and unpacked.unused_data:  # zlib would keep all of it
            raise RefusedError(400, "bad-request", "the body goes on after the end of its gzip")
    if unpacked is not None and not unpacked.eof:
        raise RefusedError(400, "bad-request", "the body was cut")
    return bytes(found)
