"""Sign-in and sign-out in a browser, which exchanges an API token or an OpenID provider's response for a session."""

from __future__ import annotations

from asyncio import timeout
from collections.abc import Awaitable, Callable
from html import escape
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from agentv.errors import StoreError
from agentv.extensions.team.endpoints import (
    Identity,
    TeamState,
    cookie_of,
    csrf_of,
    failed,
    json_response,
    of_token,
    origin_of,
    read_body,
    session_identity,
    set_cookie,
)
from agentv.extensions.team.openid import SIGN_IN_S, Attempt, OpenIdError, ProviderUnavailableError, own_path
from agentv.extensions.team.people import PREFIX, Person, Token
from agentv.registry.extensions import PAGES, loaded
from agentv.reports.text import safe
from agentv.web.answers import RefusedError
from agentv.web.documents import module, page
from agentv.web.endpoints import TOKEN_HEADER
from agentv.web.security import HEADERS

_MODULE = "sign_in/sign_in.js"
"""Entry module of the sign-in page."""


_OPENID_FORM = """<p>This server signs you in with your organization's account.</p>
<form id="openid">
<button class="primary" type="submit">Sign in</button>
</form>
"""

_API_FORM = """<form id="token-form">
<label for="token">API token</label>
<input id="token" type="password" autocomplete="off" spellcheck="false" required aria-describedby="about problem">
<p class="note" id="about">A token with the scope <code>read</code>. Whoever runs this server creates one with
<code>agentv serve token create</code>. Your browser does not store it.</p>
<button class="primary" type="submit">Sign in</button>
</form>
"""

_SIGNED_IN = """<p>You are signed in as <b><bdi>{actor}</bdi></b>.</p>
<p class="actions"><a class="primary" href="{target}">Continue</a>
<button class="quiet" type="button" id="sign-out">Sign out</button></p>
"""

_BODY_OF_PAGE = """\
<body class="signin" data-target="{target}">
<main>
<div class="panel">
<p class="brand">agentv</p>
<h1>{title}</h1>
<p class="problem" role="alert" id="problem">{problem}</p>
{content}<noscript><p class="warning">This page needs JavaScript.</p></noscript>
</div>
</main>
</body>
"""


SIGN_IN = "/sign-in"
CALLBACK = "/sign-in/openid/callback"
"""Path of the redirect URI, which must be registered at the provider."""

_DATABASE_AWAY = (503, "The server cannot reach its database. Try again.")
_BODY = 16 << 10

T = TypeVar("T")


class Wanted(Struct, frozen=True, forbid_unknown_fields=True):
    """A sign-in request: `to` is the path to open afterwards, `token` the API token if one is used."""

    token: Annotated[str, Meta(max_length=1000)] = ""
    to: Annotated[str, Meta(max_length=2000)] = "/"


def sign_in_routes(state: TeamState) -> list[Route]:
    """Return the routes of sign-in and sign-out, which need no authentication."""
    handlers = SignIn(state)
    return [
        Route(SIGN_IN, handlers.page),
        Route(f"{SIGN_IN}/token", handlers.wrapped(handlers.exchange_token), methods=["POST"]),
        Route(f"{SIGN_IN}/openid", handlers.wrapped(handlers.begin_openid), methods=["POST"]),
        Route(CALLBACK, handlers.end_openid),
        Route("/sign-out", handlers.wrapped(handlers.sign_out), methods=["POST"]),
    ]


class SignIn(Struct, frozen=True):
    """Handlers for the requests of the sign-in page."""

    _state: TeamState

    async def page(self, request: Request) -> Response:
        """Return the sign-in page. A person who is already signed in can continue or sign out."""
        target = own_path(request.query_params.get("to", "/"))
        text = cookie_of(request, "session", self._origin(request))
        try:
            found = await run_in_threadpool(session_identity, self._state, text) if text else None
        except StoreError:
            return self._page(target, *_DATABASE_AWAY)
        return self._page(target, who=found)

    async def end_openid(self, request: Request) -> Response:
        """Handle the provider's redirect. Errors are shown as a page, since the browser navigates here."""
        origin = self._origin(request)
        attempt = Attempt.of_cookie(cookie_of(request, "sign-in", origin))
        try:
            signed_in = await self._signed_in(request, attempt)
            target = attempt.target if attempt is not None else "/"
            response: Response = RedirectResponse(target, 303, HEADERS)
            await run_in_threadpool(self._begin_session, request, response, signed_in)
        except (RefusedError, StoreError) as error:
            problem = (error.status, str(error)) if isinstance(error, RefusedError) else _DATABASE_AWAY
            response = self._page(attempt.target if attempt else "/", *problem)
        set_cookie(response, "sign-in", origin, "")
        return response

    def wrapped(self, handler: Callable[[Request, Wanted], Awaitable[Response]]) -> Callable[..., Any]:
        """Wrap a handler: check the origin, decode the body, and turn exceptions into responses."""

        async def answer(request: Request) -> Response:
            try:
                self._check_own_page(request)
                return await handler(request, msgspec.json.decode(await read_body(request, _BODY), type=Wanted))
            except Exception as error:  # noqa: BLE001  # any error becomes a response
                return failed(self._state, error)

        return answer

    async def exchange_token(self, request: Request, wanted: Wanted) -> Response:
        """Start a session with an API token."""
        self._check_attempts(request)
        if self._state.openid is not None:
            raise RefusedError(403, "openid-only", "This server signs people in with OpenID Connect. Reload the page.")
        text = wanted.token.strip()
        token = await run_in_threadpool(self._state.tokens.find, text) if text.startswith(PREFIX) else None
        if token is None:
            self._state.failed_sign_ins.add(_client(request))
            raise RefusedError(401, "wrong-token", "The server does not know this token.")
        if token.problem is not None:
            raise RefusedError(401, "wrong-token", f"T{token.problem[1:]}.")
        if not of_token(token).allows("read", token.project):
            scopes = ", ".join(token.scopes)
            raise RefusedError(403, "missing-scope", f"The token lacks the scope 'read'. It has: {scopes}.")
        response = json_response(self._state, {"to": own_path(wanted.to)})
        await run_in_threadpool(self._begin_session, request, response, token)
        return response

    async def begin_openid(self, request: Request, wanted: Wanted) -> Response:
        """Start an attempt to sign in at the provider."""
        if self._state.openid is None:
            raise RefusedError(404, "no-openid", "This server has no OpenID provider. Reload the page.")
        self._check_attempts(request)
        attempt = Attempt.begin(wanted.to)
        location = await self._from_provider(self._state.openid.address(attempt, self._origin(request) + CALLBACK))
        response = json_response(self._state, {"location": location})
        set_cookie(response, "sign-in", self._origin(request), attempt.cookie)
        return response

    async def _signed_in(self, request: Request, attempt: Attempt | None) -> Person:
        openid, answer = self._state.openid, dict(request.query_params)
        if openid is None:
            raise RefusedError(404, "no-openid", "This server has no OpenID provider.")
        if attempt is None or not attempt.matches(answer.get("state", "")):
            message = "This sign-in was not begun in this browser, took too long, or ended already. Sign in again."
            raise RefusedError(400, "wrong-state", message)
        self._check_attempts(request)
        try:
            found = await self._from_provider(openid.person(attempt, answer, self._origin(request) + CALLBACK))
        except RefusedError as error:
            if error.code == "not-signed-in":
                self._state.failed_sign_ins.add(_client(request))
            raise
        if not await run_in_threadpool(self._state.members.scopes, found):
            add = f"agentv serve member add {found.email}" if found.email else "agentv serve member add"
            message = f"{found.actor} is not a member. Ask whoever runs this server to run '{add}'."
            if not found.email:
                message += " The provider gave no verified email address."
            raise RefusedError(403, "not-a-member", message)
        return found

    def _begin_session(self, request: Request, response: Response, signed_in: Person | Token) -> None:
        """Start a session, and end the one that the browser had before."""
        origin = self._origin(request)
        before = cookie_of(request, "session", origin)
        if before:
            self._state.sessions.end(before, signed_in.actor)
        set_cookie(response, "session", origin, self._state.sessions.begin(signed_in))

    async def sign_out(self, request: Request, _: Wanted) -> Response:
        """End the session."""
        origin = self._origin(request)
        text = cookie_of(request, "session", origin)
        if text and request.headers.get(TOKEN_HEADER) != csrf_of(text):
            raise RefusedError(403, "wrong-token", "reload the page: it belongs to another session")
        if text:
            found = await run_in_threadpool(session_identity, self._state, text)
            await run_in_threadpool(self._state.sessions.end, text, found.actor if found else "former member")
        response = json_response(self._state, {"to": SIGN_IN})
        set_cookie(response, "session", origin, "")
        return response

    async def _from_provider(self, answer: Awaitable[T]) -> T:
        """Wait for a result from the provider.

        Raises:
            RefusedError: the provider refuses, cannot be reached, or takes too long.
        """
        try:
            async with timeout(SIGN_IN_S):
                return await answer
        except TimeoutError as error:
            message = f"The OpenID provider did not answer within {SIGN_IN_S:g} seconds."
            raise RefusedError(502, "provider-unavailable", message) from error
        except OpenIdError as error:
            unavailable, text = isinstance(error, ProviderUnavailableError), str(error)
            status, code = (502, "provider-unavailable") if unavailable else (403, "not-signed-in")
            raise RefusedError(status, code, f"{text[:1].upper()}{text[1:]}.") from error

    def _check_attempts(self, request: Request) -> None:
        if wait := self._state.failed_sign_ins.wait_s(_client(request)):
            message = "Too many sign-ins failed from this address. Wait a minute."
            raise RefusedError(429, "too-many-attempts", message, wait)

    def _check_own_page(self, request: Request) -> None:
        if request.headers.get("origin") != self._origin(request):  # browsers send it with every POST
            raise RefusedError(403, "wrong-origin", "requests of other sites are refused")

    def _origin(self, request: Request) -> str:
        return origin_of(self._state.addresses, request)

    def _page(self, target: str, status: int = 200, problem: str = "", who: Identity | None = None) -> Response:
        """Return the page, with the reason why the last attempt failed, or for `who`, who is signed in."""
        self._state.answered[status] += 1
        static = f"/static/{loaded(PAGES, 'version')()}"
        title, content, csrf = "Sign in", _API_FORM if self._state.openid is None else _OPENID_FORM, ""
        if who is not None:
            title, csrf = "Signed in", who.csrf
            content = _SIGNED_IN.format(actor=escape(safe(who.actor)), target=escape(target))
        problem = escape(safe(problem))
        body = _BODY_OF_PAGE.format(target=escape(target), title=title, problem=problem, content=content)
        text = page(static, f"{title} · agentv", body, module(static, _MODULE), csrf)
        return HTMLResponse(text, status, {**HEADERS, "Cache-Control": "no-store"})


def _client(request: Request) -> str:
    return request.client.host if request.client is not None else ""
