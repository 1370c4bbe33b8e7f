"""Checks of every request, and security headers of every response.

A page of another origin can send requests to a server on the same machine or network, even under a host name that it
controls (DNS rebinding). So the Host of a request must be an address of the server, and a request that changes
something must come from our own page and carry the token. `agentv view` prints the token as part of its address, which
only the user who started it has; a team's server derives it from the session.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator, MutableMapping
from secrets import compare_digest
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response

from agentv.web.answers import LOCKED, LONGEST_BODY, error_response
from agentv.web.endpoints import TOKEN_HEADER

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
SAFE = frozenset({"GET", "HEAD"})
_METHODS = SAFE | {"POST", "DELETE"}
_OWN_SITES = frozenset({None, "same-origin", "none"})


class Guard:
    """Middleware that refuses requests of other sites and adds the security headers to every response.

    Args:
        application: the ASGI application to guard.
        addresses: addresses of the server, such as `https://evals.example.org`.
        token: required for requests that change something; "" refuses all of them. None on a server where people sign
            in: its application checks permissions and the size of uploads itself.
    """

    def __init__(self, application: Application, addresses: Collection[str], token: str | None) -> None:
        self._application = application
        self._token = token
        self._origins = frozenset(addresses)
        self._hosts = frozenset(host for address in addresses for host in _hosts(address))
        self._methods = _METHODS if token is not None else _METHODS | {"PUT"}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass a request to the application, or refuse it."""
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        sent = _WithHeaders(send, scope["path"])
        refused = self._refused(scope)
        if refused is not None:
            await refused(scope, receive, sent)
            return
        try:
            await self._application(scope, receive, sent)
        except Exception as error:  # noqa: BLE001  # never show a client a traceback
            if not sent.started:
                what = f"this is a bug in agentv: {type(error).__name__}"
                await error_response(500, "internal-error", what)(scope, receive, sent)

    def _refused(self, scope: Message) -> Response | None:
        headers, method = Headers(scope=scope), scope["method"]
        if "transfer-encoding" in headers and "content-length" in headers:  # request smuggling through a proxy
            what = "a request has either Content-Length or Transfer-Encoding"
            return error_response(400, "bad-request", what, close=True)
        # monitoring may request /health at any address of the machine
        is_health = self._token is None and scope["path"] == "/health"
        if headers.get("host", "").lower() not in self._hosts and not is_health:
            what = "open the address that agentv printed"
            if self._token is None:
                hint = "start it with --address and the address that people open"
                what = f"the server is not reached at this address; {hint}"
            return error_response(403, "wrong-host", what)
        if method not in self._methods:
            return error_response(405, "wrong-method", f"{method} is not supported")
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()) or (self._token is not None and int(length[:12]) > LONGEST_BODY):
            return error_response(413, "too-large", f"a request may have {LONGEST_BODY:,} bytes at most")
        origin = headers.get("origin")
        cross_site = "/api/" in scope["path"] and headers.get("sec-fetch-site") not in _OWN_SITES
        if cross_site or (origin is not None and origin not in self._origins):
            return error_response(403, "wrong-origin", "requests of other sites are refused")
        return None if method in SAFE or self._token is None else self._refused_change(headers, self._token)

    def _refused_change(self, headers: Headers, token: str) -> Response | None:
        if not token:
            return error_response(403, "read-only", "start the server with --edit, --label or --run to change anything")
        given = headers.get(TOKEN_HEADER, "").encode()
        if "origin" not in headers or not compare_digest(given, token.encode()):
            return error_response(403, "wrong-token", LOCKED)
        return None


class _WithHeaders:
    """An ASGI `send` that adds the security headers to a response."""

    def __init__(self, send: Send, path: str) -> None:
        self._send = send
        self._cached = path.startswith("/static/")
        self.started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            if not self._cached or message["status"] != 200:
                headers["Cache-Control"] = "no-store"
        await self._send(message)


def loopback_addresses(port: int) -> list[str]:
    """The addresses of a server on this machine."""
    shown = "" if port == 80 else f":{port}"
    return [f"http://{name}{shown}" for name in ("127.0.0.1", "localhost", "[::1]")]


def _hosts(address: str) -> Iterator[str]:
    """The accepted values of a request's Host: with and without a default port."""
    scheme, _, host = address.partition("://")
    yield host
    if ":" not in host.rpartition("]")[2]:
        yield f"{host}:{443 if scheme == 'https' else 80}"
