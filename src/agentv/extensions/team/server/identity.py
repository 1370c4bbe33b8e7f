"""Who sends a request, and what they may do; the cookies that say so."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from secrets import compare_digest
from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from agentv.extensions.team.server.state import TeamState
from agentv.extensions.team.store.members import LONGEST
from agentv.extensions.team.store.tokens import PREFIX, Scope, Token
from agentv.web.answers import RefusedError
from agentv.web.endpoints import TOKEN_HEADER
from agentv.web.security import SAFE

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
    response.set_cookie(
        cookie_name(purpose, origin),
        text,
        max_age=_SECONDS[purpose] if text else 0,
        path="/",
        secure=origin.startswith("https://"),
        httponly=True,
        samesite="lax",
    )


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
        held = self._held(project)
        return scope in held or "admin" in held

    def knows(self, project: str | None) -> bool:
        """Whether it may do anything in a project."""
        return bool(self._held(project))

    def projects(self, names: Iterable[str]) -> list[str]:
        """Those of the projects whose runs it may read."""
        return [name for name in names if self.allows("read", name)]

    def _held(self, project: str | None) -> Collection[Scope]:
        return self.scopes.get(None, frozenset()) | self.scopes.get(project, frozenset())


def identify(state: TeamState, request: Request) -> Identity | None:
    """Who sends a request; None: it does not say, or its session has ended. Called in a thread.

    A token counts more than a session. The scopes of a session are looked up with each request: those that its token or
    its person has now.

    Raises:
        RefusedError: its token is wrong, expired or revoked, or its address sent too many of those.
        DatabaseUnavailableError: it cannot be looked up.
    """
    token = _bearer_token(state, request)
    if token is not None:
        return Identity(token.actor, {token.project: frozenset(token.scopes)})
    text = cookie_of(request, "session", origin_of(state.addresses, request))
    return session_identity(state, text) if text else None


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
        return Identity(token.actor, {token.project: frozenset(token.scopes)}, csrf_of(text))
    if state.openid is None or session.person.issuer != state.openid.issuer:
        return None
    scopes = state.members.scopes(session.person)
    return Identity(session.person.actor, scopes, csrf_of(text)) if scopes else None


def csrf_of(text: str) -> str:
    """What a page of a session proves itself with. Who knows it cannot find out the session."""
    return sha256(f"agentv page {text}".encode(errors="replace")).hexdigest()


def checked_identity(state: TeamState, request: Request, scope: Scope | None, project: str | None) -> Identity:
    """Who sends a request, and may do what it asks for: something with a scope in a project. Called in a thread.

    Args:
        state: of the server.
        request: that was sent.
        scope: that it needs; None: whoever is known may send it.
        project: None: it is about all projects.

    Raises:
        RefusedError: the request does not say who sends it, or they may not.
        DatabaseUnavailableError: it cannot be looked up.
    """
    found = identify(state, request)
    if found is None:
        raise RefusedError(401, "no-token", "the request has no token: send 'Authorization: Bearer TOKEN'")
    if scope is not None:
        check_scope(found, scope, project)
    check_own_page(found, request)
    return found


def check_scope(identity: Identity, scope: Scope, project: str | None) -> None:
    """Refuse what a project, or the lack of a scope, forbids.

    Raises:
        RefusedError: the message says which.
    """
    if not identity.knows(project):
        own = ", ".join(f"'{name}'" for name in sorted(filter(None, identity.scopes)))
        not_this = "" if project is None else f", not for '{project}'"
        what = (
            "you have no access to this project" if identity.csrf else f"the token is for the project {own}{not_this}"
        )
        raise RefusedError(403, "other-project", what)
    if not identity.allows(scope, project):
        who = "you do" if identity.csrf else "the token does"
        raise RefusedError(403, "missing-scope", f"{who} not have the scope '{scope}'")


def check_own_page(identity: Identity, request: Request) -> None:
    """Check that a change made with a session was sent by one of the server's own pages.

    Raises:
        RefusedError: another page sent it, or a page of an earlier session.
    """
    if not identity.csrf or request.method in SAFE:
        return
    given = request.headers.get(TOKEN_HEADER, "").encode()
    if "origin" not in request.headers or not compare_digest(given, identity.csrf.encode()):
        raise RefusedError(403, "wrong-token", "reload the page: it belongs to another session")


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
