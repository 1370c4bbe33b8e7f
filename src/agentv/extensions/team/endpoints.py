"""Endpoints of a team's server: shared state, authentication and authorization, declarations, and responses."""

from __future__ import annotations

import time
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from secrets import compare_digest
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import msgspec
from anyio import CapacityLimiter, to_thread
from msgspec import Struct
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from agentv.errors import AgentvError
from agentv.extensions.team.database import Database, DatabaseUnavailableError
from agentv.extensions.team.people import LONGEST, PREFIX, Members, Scope, Sessions, Token, Tokens
from agentv.extensions.team.uploaded import OtherTokenError, UploadConflictError
from agentv.extensions.team.uploads import Uploads
from agentv.web.answers import RefusedError, error_response
from agentv.web.endpoints import TOKEN_HEADER, Endpoint
from agentv.web.security import SAFE

if TYPE_CHECKING:
    from agentv.extensions.team.openid import OpenIdProvider


_FAILURES = 20
"""Wrong tokens from one address within `_WINDOW_S` after which its requests are refused."""

_WINDOW_S = 60.0


_WRITERS = 16
"""Threads for requests that change something, out of 40 in all."""


class FailedSignIns:
    """Counts wrong tokens by address in windows of about a minute, to limit guessing."""

    def __init__(self) -> None:
        self._began = 0.0
        self._failures: Counter[str] = Counter()

    def wait_s(self, address: str) -> float:
        """Return the seconds until requests from an address are accepted again, or 0."""
        left = self._began + _WINDOW_S - time.monotonic()
        return left if left > 0 and self._failures[address] >= _FAILURES else 0.0

    def add(self, address: str) -> None:
        """Count a wrong token from an address."""
        if time.monotonic() - self._began > _WINDOW_S:
            self._began = time.monotonic()
            self._failures.clear()
        self._failures[address] += 1


class TeamState:
    """The state of a server.

    Args:
        database: shared with other servers.
        addresses: see below.
        openid: provider at which people sign in; None: they sign in with an API token.
        proxies: see below.

    Attributes:
        addresses: public addresses of the server, such as `https://evals.example.org`.
        proxies: IP addresses or networks whose `X-Forwarded-For` is trusted.
        answered: number of responses by status, for the metrics.
        writers: limits the threads of requests that change something, so that reading requests do not wait for them.
        copied: number of database changes included in this server's copies; -1 before the first comparison.
    """

    def __init__(
        self,
        database: Database,
        addresses: Sequence[str] = (),
        openid: OpenIdProvider | None = None,
        proxies: Sequence[str] = (),
    ) -> None:
        self.database = database
        self.addresses = tuple(addresses)
        self.openid = openid
        self.proxies = tuple(proxies)
        self.tokens = Tokens(database)
        self.members = Members(database)
        self.sessions = Sessions(database)
        self.uploads = Uploads(database)
        self.failed_sign_ins = FailedSignIns()
        self.answered: Counter[int] = Counter()
        self.writers = CapacityLimiter(_WRITERS)
        self.copied = -1


Purpose = Literal["session", "sign-in"]

_SECONDS: dict[Purpose, int] = {"session": int(LONGEST.total_seconds()), "sign-in": 600}


def origin_of(addresses: Sequence[str], request: Request) -> str:
    """Return the server's address that a request was sent to."""
    host = request.headers.get("host", "")
    return next((one for one in addresses if urlsplit(one).netloc == host), addresses[0] if addresses else "")


def cookie_name(purpose: Purpose, origin: str) -> str:
    """Return the name of a cookie. Without TLS it contains the port, as servers on one host share cookies."""
    if origin.startswith("https://"):
        return f"__Host-agentv-{purpose}"
    return f"agentv-{purpose}-{urlsplit(origin).port or 80}"


def cookie_of(request: Request, purpose: Purpose, origin: str) -> str:
    """Return the value of a cookie, or "" if it is not set."""
    return request.cookies.get(cookie_name(purpose, origin), "")


def set_cookie(response: Response, purpose: Purpose, origin: str, text: str) -> None:
    """Set a cookie; an empty text deletes it."""
    name, secure = cookie_name(purpose, origin), origin.startswith("https://")
    max_age = _SECONDS[purpose] if text else 0
    response.set_cookie(name, text, max_age=max_age, path="/", secure=secure, httponly=True, samesite="lax")


class Identity(Struct, frozen=True):
    """An authenticated person or program.

    Attributes:
        actor: name in the audit log and in labels.
        scopes: scopes by project; those of None hold for every project.
        csrf: CSRF token that changing requests of a session must carry; empty for API tokens.
    """

    actor: str
    scopes: Mapping[str | None, frozenset[Scope]]
    csrf: str = ""

    def allows(self, scope: Scope, project: str | None) -> bool:
        """Whether a scope is granted in a project, or in every project if None; `admin` includes all others."""
        held = self.held(project)
        return scope in held or "admin" in held

    def held(self, project: str | None) -> Collection[Scope]:
        """Return the scopes in a project."""
        return self.scopes.get(None, frozenset()) | self.scopes.get(project, frozenset())


def session_identity(state: TeamState, text: str) -> Identity | None:
    """Return the identity of a session, or None if it is no longer valid. Called in a thread.

    Raises:
        DatabaseUnavailableError: the database cannot be reached.
    """
    session = state.sessions.find(text)
    if session is None:
        return None
    if session.token is not None:
        token = state.tokens.by_id(session.token)
        if token is None or token.problem is not None:
            return None
        return of_token(token, csrf_of(text))
    if state.openid is None or session.person.issuer != state.openid.issuer:
        return None
    scopes = state.members.scopes(session.person)
    return Identity(session.person.actor, scopes, csrf_of(text)) if scopes else None


def of_token(token: Token, csrf: str = "") -> Identity:
    """Return the identity of a token."""
    return Identity(token.actor, {token.project: frozenset(token.scopes)}, csrf)


def csrf_of(text: str) -> str:
    """Return the CSRF token of a session, from which the session cannot be derived."""
    return sha256(f"agentv page {text}".encode(errors="replace")).hexdigest()


def checked_identity(state: TeamState, request: Request, scope: Scope | None, project: str | None) -> Identity:
    """Authenticate a request, and check that its sender has a scope in a project. Called in a thread.

    A token takes precedence over a session. The scopes of a session are the current ones of its token or person.

    Args:
        state: state of the server.
        request: the request.
        scope: required scope; None: any authenticated sender is allowed.
        project: project of the request; None: all projects.

    Raises:
        RefusedError: the sender is unknown or lacks the scope, or the request was forged by another page.
        DatabaseUnavailableError: the database cannot be reached.
    """
    token, text = _bearer_token(state, request), cookie_of(request, "session", origin_of(state.addresses, request))
    found = of_token(token) if token is not None else session_identity(state, text)
    if found is None:
        raise RefusedError(401, "no-token", "the request has no token: send 'Authorization: Bearer TOKEN'")
    if scope is not None:
        check_scope(found, scope, project)
    if found.csrf and request.method not in SAFE:  # with a session, only the server's own pages may change something
        given = request.headers.get(TOKEN_HEADER, "").encode()
        if "origin" not in request.headers or not compare_digest(given, found.csrf.encode()):
            raise RefusedError(403, "wrong-token", "reload the page: it belongs to another session")
    return found


def check_scope(identity: Identity, scope: Scope, project: str | None) -> None:
    """Raise if an identity lacks a scope in a project.

    Raises:
        RefusedError: it has no access to the project, or lacks the scope.
    """
    if not identity.held(project):
        raise RefusedError(403, "other-project", f"you have no access to the project '{project}'")
    if not identity.allows(scope, project):
        raise RefusedError(403, "missing-scope", f"this needs the scope '{scope}'")


def _bearer_token(state: TeamState, request: Request) -> Token | None:
    """Return the token of a request, or None if it has no `Authorization` header."""
    if "authorization" not in request.headers:
        return None
    address = request.client.host if request.client is not None else ""
    if wait := state.failed_sign_ins.wait_s(address):
        raise RefusedError(429, "too-many-attempts", "too many wrong tokens came from this address", wait)
    kind, _, text = request.headers["authorization"].partition(" ")
    if kind.lower() != "bearer" or not text:
        raise RefusedError(401, "no-token", "the request has no token: send 'Authorization: Bearer TOKEN'")
    token = state.tokens.find(text.strip()) if text.startswith(PREFIX) else None
    if token is None:
        state.failed_sign_ins.add(address)
        raise RefusedError(401, "wrong-token", "the server does not know this token")
    if token.problem is not None:
        raise RefusedError(401, "wrong-token", token.problem)
    return token


SMALL_BODY = 4 << 20
"""Most bytes of a body other than an upload of rows or artifacts, decompressed."""

_PACKED = 1 << 16
"""Bytes by which gzip may lengthen a body."""


class TeamCall(Struct, frozen=True):
    """An authenticated and authorized request.

    Attributes:
        project: project in its path; empty if none exists.
        names: other variable parts of its path.
        query: its query parameters, converted.
        body: its body, decompressed.
    """

    identity: Identity
    project: str
    names: dict[str, str]
    query: Any
    body: bytes


async def read_body(request: Request, limit: int) -> bytes:
    """Return the body of a request, decompressed.

    Raises:
        RefusedError: it is longer than the limit, is truncated, has trailing data, or has an unknown encoding.
    """
    encoding = request.headers.get("content-encoding", "identity")
    if encoding not in ("identity", "gzip"):
        raise RefusedError(415, "unknown-encoding", "a body may be sent as it is, or as gzip")
    too_large = RefusedError(413, "too-large", f"the body may have {limit:,} bytes at most")
    received = bytearray()
    async for piece in request.stream():
        received += piece
        if len(received) > limit + _PACKED:
            raise too_large
    found, is_whole = bytes(received), True
    if encoding == "gzip":
        unpacked = zlib.decompressobj(wbits=31)
        try:
            found = unpacked.decompress(received, limit + 1)
        except zlib.error as error:
            raise RefusedError(400, "bad-request", "the body is no gzip: it was cut or changed") from error
        is_whole = unpacked.eof and not unpacked.unused_data
    if len(found) > limit:
        raise too_large
    if not is_whole:
        raise RefusedError(400, "bad-request", "the body was cut, or goes on after the end of its gzip")
    return found


RETRY_S = 2.0
"""Seconds after which a client may retry when the database cannot be reached."""


@dataclass(frozen=True, slots=True)
class TeamEndpoint(Endpoint):
    """One method of one path, which requires authentication.

    Attributes:
        scope: required scope; None: any authenticated sender is allowed.
        limit: most bytes of the body.
    """

    scope: Scope | None = field(kw_only=True)
    limit: int = SMALL_BODY


def routes_of(state: TeamState, endpoints: Sequence[TeamEndpoint]) -> list[Route]:
    """Return the routes of endpoints."""
    return [Route(one.path, _handler(state, one), methods=[one.method]) for one in endpoints]


def json_response(state: TeamState, value: Any) -> Response:
    """Return a JSON response, and count it for the metrics."""
    state.answered[200] += 1
    return Response(msgspec.json.encode(value), media_type="application/json")


def _handler(state: TeamState, endpoint: TeamEndpoint) -> Callable[[Request], Any]:
    async def handler(request: Request) -> Response:
        names = {name: str(value) for name, value in request.path_params.items()}
        project = names.pop("project", "")
        try:
            sender = await run_in_threadpool(checked_identity, state, request, endpoint.scope, project or None)
            query = msgspec.convert(dict(request.query_params), endpoint.query, strict=False)
            body = await read_body(request, endpoint.limit)
            call = TeamCall(sender, project, names, query, body)
            limiter = None if endpoint.method == "GET" else state.writers
            return json_response(state, await to_thread.run_sync(endpoint.handler, state, call, limiter=limiter))
        except Exception as error:  # noqa: BLE001  # any error becomes a response
            return failed(state, error)

    return handler


def failed(state: TeamState, error: Exception) -> Response:
    """Return the response to an exception, and count it for the metrics."""
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
    msgspec.DecodeError: (400, "bad-request"),  # an invalid body or query
    UnicodeDecodeError: (400, "bad-request"),
    RecursionError: (400, "bad-request"),
    ClientDisconnect: (400, "cut"),  # no client reads this response, but the metrics count it
}
"""Exception → status and code of its response; the first match counts."""
