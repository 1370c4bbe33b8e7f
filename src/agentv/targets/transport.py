"""The HTTP beneath SDKs that use httpx: aiohttp, which takes half the time, with no limit on calls at once.

Import this module in the function that needs it: httpx and aiohttp take a fifth of a second.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx
from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector
from httpx_aiohttp import AiohttpTransport

from agentv.foreign.proxies import proxy_for

LARGEST_BODY = 64_000_000
"""Bytes of a reply: an answer of 10 MB, every letter of it escaped; more is never read."""

_PIECE = 65_536


class TooLargeError(Exception):
    """The body of a reply is larger than `LARGEST_BODY`."""


class ModelTransport(AiohttpTransport):
    """One pool of connections. How many calls there are at once the engine decides, so the pool has no limit."""

    def get_client(self) -> ClientSession:
        """The session; made at the first call, since it belongs to the event loop of that call."""
        return ClientSession(
            connector=TCPConnector(limit=0, ssl=self.ssl_context),
            cookie_jar=DummyCookieJar(),  # one case must not see what another one was given
            timeout=ClientTimeout(total=None),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send; the body of the reply is read by whoever asked, and not beyond its limit."""
        response = await super().handle_async_request(_in_pieces(request))
        assert isinstance(response.stream, httpx.AsyncByteStream)  # noqa: S101  # what the transport makes
        response.stream = _Bounded(response.stream)
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


class _Bounded(httpx.AsyncByteStream):
    """A body that ends with an error where it is too large."""

    def __init__(self, stream: httpx.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > LARGEST_BODY:
                raise TooLargeError
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def transport_for(base_url: str) -> ModelTransport:
    """The transport to one server, through the proxy that the environment names for it."""
    proxy = proxy_for(base_url)
    return ModelTransport(proxy=httpx.Proxy(proxy) if proxy is not None else None)


def no_cookies() -> CookieJar:
    """A jar that keeps none, for the `cookies` of an httpx client."""
    return CookieJar(DefaultCookiePolicy(allowed_domains=()))
