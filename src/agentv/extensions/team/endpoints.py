"""Endpoints of a team's server: what they share, who sends a request and may do what, declarations, and answers."""

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
"""Wrong tokens of one address within `_WINDOW_S`, after which its requests are refused."""

_WINDOW_S = 60.0


_WRITERS = 16
"""Of 40 threads."""


class FailedSignIns:
    """Counts wrong tokens of each address in the current minute or so, so that nobody tries many."""

    def __init__(self) -> None:
        self._began = 0.0
        self._failures: Counter[str] = Counter()

    def wait_s(self, address: str) -> float:
        """Seconds until requests of an address are taken again; 0: they are."""
        left = self._began + _WINDOW_S - time.monotonic()
        return left if left > 0 and self._failures[address] >= _FAILURES else 0.0

    def add(self, address: str) -> None:
        """A request of an address had a wrong token."""
        if time.monotonic() - self._began > _WINDOW_S:
            self._began = time.monotonic()
            self._failures.clear()
        self._failures[address] += 1


class TeamState:
    """The state of a server.

    Args:
        database: shared with other servers.
        addresses: see below.
        openid: where people sign in; None: they sign in with an API token.
        proxies: see below.

    Attributes:
        addresses: under which people reach the server, such as `https://evals.example.org`.
        proxies: IP addresses or networks whose `X-Forwarded-For` says who sent a request.
        answered: requests by status, for the metrics.
        writers: threads that change something. Others stay for readers, who must not wait where writers do.
        copied: how many changes of the database its copies show; -1: they were never compared.
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
    """The one of a server's addresses under which a browser sees it."""
    host = request.headers.get("host", "")
    return next((one for one in addresses if urlsplit(one).netloc == host), addresses[0] if addresses else "")


def cookie_name(purpose: Purpose, origin: str) -> str:
    """The name of a cookie. Servers of one machine share cookies, so that a port is part of the name without TLS."""
    if origin.startswith("https://"):
        return f"__Host-agentv-{purpose}"
    return f"agentv-{purpose}-{urlsplit(origin).port or 80}"


def cookie_of(request: Request, purpose: Purpose, origin: str) -> str:
    """What a cookie holds; empty: it is not there."""
    return request.cookies.get(cookie_name(purpose, origin), "")


def set_cookie(response: Response, purpose: Purpose, origin: str, text: str) -> None:
    """Have the browser keep a cookie; an empty text: forget it."""
    name, secure = cookie_name(purpose, origin), origin.startswith("https://")
    max_age = _SECONDS[purpose] if text else 0
    response.set_cookie(name, text, max_age=max_age, path="/", secure=secure, httponly=True, samesite="lax")


class Identity(Struct, frozen=True):
    """A person or a program.

    Attributes:
        actor: how the audit log and labels name it.
        scopes: by project; those of None hold for every project.
        csrf: what a request that changes something must carry, if it comes with a session; empty: with a token.
    """

    actor: str
    scopes: Mapping[str | None, frozenset[Scope]]
    csrf: str = ""

    def allows(self, scope: Scope, project: str | None) -> bool:
        """Whether it may do something in a project, or with None in every project; `admin` includes all else."""
        held = self.held(project)
        return scope in held or "admin" in held

    def held(self, project: str | None) -> Collection[Scope]:
        """What it may do in a project."""
        return self.scopes.get(None, frozenset()) | self.scopes.get(project, frozenset())


def session_identity(state: TeamState, text: str) -> Identity | None:
    """Who is signed in with a session; None: nobody is any more. Called in a thread.

    Raises:
        DatabaseUnavailableError: it cannot be looked up.
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
    """Whoever has a token."""
    return Identity(token.actor, {token.project: frozenset(token.scopes)}, csrf)


def csrf_of(text: str) -> str:
    """What a page of a session proves itself with. Who knows it cannot find out the session."""
    return sha256(f"agentv page {text}".encode(errors="replace")).hexdigest()


def checked_identity(state: TeamState, request: Request, scope: Scope | None, project: str | None) -> Identity:
    """Who sends a request, and may do what it asks for: something with a scope in a project. Called in a thread.

    A token counts more than a session. The scopes of a session are looked up with each request: those that its token or
    its person has now.

    Args:
        state: of the server.
        request: that was sent.
        scope: that it needs; None: whoever is known may send it.
        project: None: it is about all projects.

    Raises:
        RefusedError: the request does not say who sends it, or they may not; or another page sent it with a session.
        DatabaseUnavailableError: it cannot be looked up.
    """
    token, text = _bearer_token(state, request), cookie_of(request, "session", origin_of(state.addresses, request))
    found = of_token(token) if token is not None else session_identity(state, text)
    if found is None:
        raise RefusedError(401, "no-token", "the request has no token: send 'Authorization: Bearer TOKEN'")
    if scope is not None:
        check_scope(found, scope, project)
    if found.csrf and request.method not in SAFE:  # only one of the server's own pages changes something with a session
        given = request.headers.get(TOKEN_HEADER, "").encode()
        if "origin" not in request.headers or not compare_digest(given, found.csrf.encode()):
            raise RefusedError(403, "wrong-token", "reload the page: it belongs to another session")
    return found


def check_scope(identity: Identity, scope: Scope, project: str | None) -> None:
    """Refuse what a project, or the lack of a scope, forbids.

    Raises:
        RefusedError: the message says which.
    """
    if not identity.held(project):
        raise RefusedError(403, "other-project", f"you have no access to the project '{project}'")
    if not identity.allows(scope, project):
        raise RefusedError(403, "missing-scope", f"this needs the scope '{scope}'")


def _bearer_token(state: TeamState, request: Request) -> Token | None:
    """The token of a request; None: it has none."""
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
"""Bytes of a body that is no upload of rows or artifacts, decompressed."""

_PACKED = 1 << 16
"""Bytes by which gzip may make a body longer."""


class TeamCall(Struct, frozen=True):
    """A request whose sender was checked.

    Attributes:
        project: that its address names; empty: it names none.
        names: the variable parts of its path.
        query: its parameters, converted.
        body: decompressed.
    """

    identity: Identity
    project: str
    names: dict[str, str]
    query: Any
    body: bytes


async def read_body(request: Request, limit: int) -> bytes:
    """The body, decompressed.

    Raises:
        RefusedError: it is longer than the limit, was cut, goes on after its end, or has an unknown encoding.
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
"""Seconds after which a client may try again where the database was away."""


@dataclass(frozen=True, slots=True)
class TeamEndpoint(Endpoint):
    """One method of one path, which asks who sends a request.

    Attributes:
        scope: that the sender must have; None: whoever is known may.
        limit: bytes of the body.
    """

    scope: Scope | None = field(kw_only=True)
    limit: int = SMALL_BODY


def routes_of(state: TeamState, endpoints: Sequence[TeamEndpoint]) -> list[Route]:
    """The routes of endpoints."""
    return [Route(one.path, _handler(state, one), methods=[one.method]) for one in endpoints]


def json_response(state: TeamState, value: Any) -> Response:
    """An answer, which the metrics count."""
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
        except Exception as error:  # noqa: BLE001  # whatever it is, a client gets a sentence
            return failed(state, error)

    return handler


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
    msgspec.DecodeError: (400, "bad-request"),  # of a body or a query
    UnicodeDecodeError: (400, "bad-request"),
    RecursionError: (400, "bad-request"),
    ClientDisconnect: (400, "cut"),  # nobody reads this answer, but the metrics count it
}
"""Exception → the status and the code of its answer; the first that fits."""
