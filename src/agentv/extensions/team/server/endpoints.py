"""Declarations of the endpoints of a team's server, and how they are answered."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_type_hints

import msgspec
from anyio import to_thread
from msgspec import Struct
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agentv.errors import AgentvError
from agentv.extensions.team.server.identity import checked_identity
from agentv.extensions.team.server.requests import SMALL_BODY, TeamCall, read_body
from agentv.extensions.team.server.state import TeamState
from agentv.extensions.team.store.database import DatabaseUnavailableError
from agentv.extensions.team.store.tokens import Scope
from agentv.extensions.team.store.uploaded import OtherTokenError, UploadConflictError
from agentv.web.answers import RefusedError, error_response

RETRY_S = 2.0
"""Seconds after which a client may try again where the database was away."""


_SLOW_S = 2.0
"""Seconds that a body may take before its sender is checked again, who may have lost access meanwhile."""


class NoQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Takes no parameters."""


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

    method: Literal["GET", "POST", "PUT", "DELETE"]
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
}
"""Exception → the status and the code of its answer; the first that fits."""
