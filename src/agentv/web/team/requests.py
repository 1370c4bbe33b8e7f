"""Requests as endpoints get them: with a valid token, and a body within limits."""

from __future__ import annotations

import zlib
from typing import Any

import msgspec
from starlette.requests import Request

from agentv.lazy_dataclass import dataclass
from agentv.store.team.tokens import PREFIX, Scope, Token
from agentv.web.team.state import TeamState

SMALL_BODY = 4 << 20
"""Bytes of a body that is no upload of rows or artifacts, decompressed."""


class RefusedError(Exception):
    """A request that is refused, with the status and the code of its answer."""

    def __init__(self, status: int, code: str, message: str, retry_s: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.retry_s = retry_s


@dataclass(frozen=True, slots=True)
class TeamCall:
    """A request whose token was checked.

    Attributes:
        project: that its address names; None: it names none.
        names: the variable parts of its path.
        query: its parameters, converted.
        body: decompressed.
    """

    token: Token
    project: str | None
    names: dict[str, str]
    query: Any
    body: bytes

    @property
    def actor(self) -> str:
        """Who sent it."""
        return self.token.actor

    @property
    def of_project(self) -> str:
        """The project, of an address that names one."""
        assert self.project is not None  # noqa: S101  # its route has one
        return self.project

    def decoded(self, into: Any) -> Any:
        """The body as JSON.

        Raises:
            RefusedError: it is none, or another one.
        """
        try:
            return msgspec.json.decode(self.body, type=into)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise RefusedError(400, "bad-request", f"the body is not what this address takes: {error}") from error


def checked_token(state: TeamState, request: Request, scope: Scope, project: str | None) -> Token:
    """The token of a request, which must allow what it asks for.

    Raises:
        RefusedError: it has none, or one that does not.
        DatabaseUnavailableError: it cannot be looked up.
    """
    address = request.client.host if request.client is not None else ""
    if wait := state.failed_sign_ins.wait_s(address):
        raise RefusedError(429, "too-many-attempts", "too many wrong tokens came from this address", wait)
    kind, _, text = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not text:
        raise RefusedError(401, "no-token", "the request has no token: send 'Authorization: Bearer TOKEN'")
    token = state.tokens.find(text.strip()) if text.startswith(PREFIX) else None
    if token is None:
        state.failed_sign_ins.add(address)
        raise RefusedError(401, "wrong-token", "the server does not know this token")
    if token.problem is not None:
        raise RefusedError(401, "wrong-token", token.problem)
    if token.project not in (None, project):
        raise RefusedError(403, "other-project", f"the token is for the project '{token.project}'")
    if not token.allows(scope, project):
        raise RefusedError(403, "missing-scope", f"the token does not have the scope '{scope}'")
    return token


async def read_body(request: Request, limit: int) -> bytes:
    """The body, decompressed.

    Raises:
        RefusedError: it is longer than the limit, was cut, or has an unknown encoding.
    """
    encoding = request.headers.get("content-encoding", "identity")
    if encoding not in ("identity", "gzip"):
        raise RefusedError(415, "unknown-encoding", "a body may be sent as it is, or as gzip")
    unpacked = zlib.decompressobj(wbits=31) if encoding == "gzip" else None
    found = bytearray()
    async for piece in request.stream():
        try:
            found += piece if unpacked is None else unpacked.decompress(piece, limit + 1 - len(found))
        except zlib.error as error:
            raise RefusedError(400, "bad-request", "the body is no gzip: it was cut or changed") from error
        if len(found) > limit:
            raise RefusedError(413, "too-large", f"the body may have {limit:,} bytes at most")
    if unpacked is not None and not unpacked.eof:
        raise RefusedError(400, "bad-request", "the body was cut")
    return bytes(found)
