"""The HTTP beneath SDKs that use httpx: aiohttp, which takes half the time, with no limit on calls at once.

Import this module in the function that needs it: httpx and aiohttp take a fifth of a second.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx
from aiohttp import ClientSession, ClientTimeout, DummyCookieJar
from httpx_aiohttp import AiohttpTransport

from agentv.targets.http.bodies import ENCODINGS, BoundedBody
from agentv.targets.http.certificates import tls_context
from agentv.user_code.connectors import unlimited_connector
from agentv.user_code.proxies import proxy_for

_PIECE = 65_536


class ModelTransport(AiohttpTransport):
    """One pool of connections. How many calls there are at once the engine decides, so the pool has no limit."""

    def get_client(self) -> ClientSession:
        """The session; made at the first call, since it belongs to the event loop of that call."""
        return ClientSession(
            connector=unlimited_connector(ssl=self.ssl_context),
            cookie_jar=DummyCookieJar(),  # one case must not see what another one was given
            timeout=ClientTimeout(total=None),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send; the body of the reply is read by whoever asked, and not beyond its limit."""
        request.headers["Accept-Encoding"] = ENCODINGS
        response = await super().handle_async_request(_in_pieces(request))
        bound(response)
        return response


def _in_pieces(request: httpx.Request) -> httpx.Request:
    """The request, a large body as a stream of pieces, so that other calls are not held up while it is sent."""
    if len(request.content) <= _PIECE:
        return request
    pieces = _Pieces(request.content)
    return httpx.Request(
        request.method, request.url, headers=request.headers, stream=pieces, extensions=request.extensions
    )


class _Pieces(httpx.AsyncByteStream):
    def __init__(self, content: bytes) -> None:
        self._content = content

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self._content), _PIECE):
            yield self._content[start : start + _PIECE]


class _BoundedStream(BoundedBody, httpx.AsyncByteStream):
    """A body that ends with an error where it is too large."""


def bound(response: httpx.Response) -> None:
    """Bound the body of a reply before anybody reads it."""
    assert isinstance(response.stream, httpx.AsyncByteStream)  # noqa: S101  # what an async client gets
    response.stream = _BoundedStream(response)


def transport_for(base_url: str) -> ModelTransport:
    """The transport to one server, through the proxy that the environment names for it."""
    proxy = proxy_for(base_url)
    return ModelTransport(verify=tls_context(base_url, proxy), proxy=httpx.Proxy(proxy) if proxy is not None else None)


def no_cookies() -> CookieJar:
    """A jar that keeps none, for the `cookies` of an httpx client."""
    return CookieJar(DefaultCookiePolicy(allowed_domains=()))
