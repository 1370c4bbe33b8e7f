"""Endpoints of a team's server: their declarations, requests from a known sender, and answers."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_type_hints

import msgspec
from anyio import to_thread
from msgspec import Struct
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from agentv.errors import AgentvError
from agentv.extensions.team.server.identity import Identity, checked_identity
from agentv.extensions.team.server.state import TeamState
from agentv.extensions.team.store.database import DatabaseUnavailableError
from agentv.extensions.team.store.tokens import Scope
from agentv.extensions.team.store.uploaded import OtherTokenError, UploadConflictError
from agentv.web.answers import RefusedError, error_response
from agentv.web.endpoints import NoQuery

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


RETRY_S = 2.0
"""Seconds after which a client may try again where the database was away."""


_SLOW_S = 2.0
"""Seconds that a body may take before its sender is checked again, who may have lost access meanwhile."""


Method = Literal["GET", "POST", "PUT", "DELETE"]


@dataclass(frozen=True, slots=True)
class TeamEndpoint:
    """One method of one path.

    Attributes:
        summary: one sentence.
        scope: that the sender must have; None: whoever is known may.
        handler: called in a thread; what it returns is the answer, as JSON.
        query: the type of the parameters.
        limit: bytes of the body.
        body: the type of the JSON that it takes, `bytes` for anything else; None: it takes no body.
    """

    method: Method
    path: str
    summary: str
    scope: Scope | None
    handler: Callable[[TeamState, TeamCall], Any]
    query: type[Struct] = NoQuery
    limit: int = SMALL_BODY
    body: Any = None

    @property
    def answer(self) -> Any:
        """The type of the answer: what the handler returns."""
        return get_type_hints(self.handler)["return"]


def routes_of(state: TeamState, endpoints: Sequence[TeamEndpoint]) -> list[Route]:
    """The routes of endpoints."""
    return [Route(one.path, _handler(state, one), methods=[one.method]) for one in endpoints]


def json_response(state: TeamState, value: Any) -> Response:
    """An answer, which the metrics count."""
    state.answered[200] += 1
    return Response(msgspec.json.encode(value), media_type="application/json")


def _handler(state: TeamState, endpoint: TeamEndpoint) -> Callable[[Request], Any]:
    async def handler(request: Request) -> Response:
        try:
            return json_response(state, await _answered(state, endpoint, request))
        except Exception as error:  # noqa: BLE001  # whatever it is, a client gets a sentence
            return failed(state, error)

    return handler


async def _answered(state: TeamState, endpoint: TeamEndpoint, request: Request) -> Any:
    names = {name: str(value) for name, value in request.path_params.items()}
    project = names.pop("project", None)
    sender = await run_in_threadpool(checked_identity, state, request, endpoint.scope, project)
    query = msgspec.convert(dict(request.query_params), endpoint.query, strict=False)
    began = time.monotonic()
    body = await read_body(request, endpoint.limit)
    if time.monotonic() - began > _SLOW_S:
        sender = await run_in_threadpool(checked_identity, state, request, endpoint.scope, project)
    call = TeamCall(sender, project, names, query, body)
    if endpoint.method == "GET":
        return await run_in_threadpool(endpoint.handler, state, call)
    return await to_thread.run_sync(endpoint.handler, state, call, limiter=state.writers)


def failed(state: TeamState, error: Exception) -> Response:
    """The answer where something raised, which the metrics count."""
    if isinstance(error, RefusedError):
        found = error_response(error.status, error.code, str(error), error.retry_s)
    elif isinstance(error, DatabaseUnavailableError):
        found = error_response(503, "database-unavailable", "the server cannot reach its database", RETRY_S)
    else:
        bug = f"this is a bug in agentv: {type(error).__name__}"
        known = (error_response(*said, str(error)) for kind, said in _PROBLEMS.items() if isinstance(error, kind))
        found = next(known, None) or error_response(500, "internal-error", bug)
    if found.status_code == 401:
        found.headers["WWW-Authenticate"] = "Bearer"
    state.answered[found.status_code] += 1
    return found


_PROBLEMS: dict[type[Exception], tuple[int, str]] = {
    UploadConflictError: (409, "conflict"),
    OtherTokenError: (403, "other-token"),
    AgentvError: (422, "refused"),
    msgspec.ValidationError: (400, "bad-request"),
    ClientDisconnect: (400, "cut"),  # nobody reads this answer, but the metrics count it
}
"""Exception → the status and the code of its answer; the first that fits."""
