"""HTTP connections of targets, with limits on the replies. Errors of a connection are returned as values.

Every request asks for an uncompressed reply (`Accept-Encoding: identity`). Compressed replies are rejected, because a
megabyte can expand to gigabytes. aiohttp takes a quarter of a second to import, so it is imported inside functions.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from io import BytesIO
from ssl import SSLContext
from typing import TYPE_CHECKING, Any

from agentv.model.values.response import Failure
from agentv.targets.http.answers import LIMIT, TOO_LARGE
from agentv.targets.http.failures import is_compressed
from agentv.user_code.connections import proxy_for, unlimited_connector

if TYPE_CHECKING:
    from aiohttp import ClientHandlerType, ClientRequest, ClientResponse, ClientSession


_CHUNK = 65_536


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A server's response: status, reason phrase, whole body, and headers by lower-case name."""

    status: int
    reason: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(slots=True)
class Connection:
    """A connection pool without a limit of its own: the engine limits concurrent calls."""

    _session: ClientSession | None = field(default=None, repr=False)

    async def ask(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout_s: float,
    ) -> HttpReply | Failure:
        """Send a request and read its reply.

        Returns:
            The reply with any status, or a Failure with the code `timeout`, `connection` or `output-too-large`.
            Messages contain neither headers nor the URL, because those may contain secrets.
        """
        from aiohttp import ClientError

        if self._session is None:
            self._session = unlimited_session(auto_decompress=False)
        data = bytearray()
        try:
            async with (
                asyncio.timeout(timeout_s),
                self._session.request(
                    method,
                    url,
                    headers=headers,
                    data=sendable(body),
                    proxy=proxy_for(url),
                    allow_redirects=False,  # another server must not get the headers and body
                ) as response,
            ):
                if (response.content_length or 0) > LIMIT:
                    return TOO_LARGE
                async for chunk in response.content.iter_any():
                    data += chunk
                    if len(data) > LIMIT:
                        return TOO_LARGE
        except TimeoutError:
            return Failure("timeout", f"no response within {timeout_s:g} s", retryable=True)
        except (ClientError, OSError, ValueError) as error:
            return Failure("connection", f"no reply: {reason_of(error)}", retryable=not isinstance(error, ValueError))
        headers = {name.lower(): value for name, value in response.headers.items()}
        return HttpReply(response.status, response.reason or "", bytes(data), headers)

    async def close(self) -> None:
        """Close all connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()


class UnreadReplyError(Exception):
    """A redirect or compressed reply, whose body is not read."""

    def __init__(self, status: int, headers: Mapping[str, str]) -> None:
        super().__init__(f"HTTP {status}: not read")
        self.status = status
        self.headers = headers


def refuse_unread(status: int, headers: Mapping[str, str]) -> None:
    """Reject a redirect or compressed reply, which an SDK would follow with the API key or decompress.

    Raises:
        UnreadReplyError: the body must not be read.
    """
    if (300 <= status < 400 and "Location" in headers) or is_compressed(headers):
        raise UnreadReplyError(status, headers)


async def _read_bounded(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
    """Middleware of aiohttp that reads a body with a size limit, except a stream, whose lines aiohttp limits.

    Raises:
        UnreadReplyError: the body must not be read.
        TooLargeError: the body is too large.
    """
    response = await handler(request)
    try:
        refuse_unread(response.status, response.headers)
        if not response.headers.get("Content-Type", "").startswith("text/event-stream"):
            body = b"".join([piece async for piece in bounded(response.content.iter_any())])
            response._body = body  # noqa: SLF001  # aiohttp returns this body instead of reading again
    except BaseException:
        response.close()
        raise
    return response


def sdk_session() -> ClientSession:
    """Return a session for an SDK. It rejects redirects and replies that are too large, and belongs to this loop."""
    return unlimited_session(middlewares=[_read_bounded])


UNCOMPRESSED = {"Accept-Encoding": "identity"}
"""The header that asks for an uncompressed reply."""


def unlimited_session(ssl: SSLContext | bool = True, **options: Any) -> ClientSession:
    """Return a session without cookies, timeouts or a connection limit. It belongs to the running event loop."""
    from aiohttp import ClientSession, ClientTimeout, DummyCookieJar

    return ClientSession(
        headers=UNCOMPRESSED,
        connector=unlimited_connector(ssl=ssl),
        cookie_jar=DummyCookieJar(),  # a case must not get another case's cookies
        timeout=ClientTimeout(total=None),
        **options,
    )


def sendable(body: bytes | None) -> bytes | BytesIO | None:
    """Return a large body as a file, which aiohttp sends in chunks so that other calls are not delayed."""
    return body if body is None or len(body) <= _CHUNK else BytesIO(body)


def reason_of(error: Exception) -> str:
    """Return why there is no reply. Most errors' messages contain the URL, so only those that do not are quoted."""
    from aiohttp import ClientConnectionError, ClientConnectorError, ClientPayloadError, ClientResponseError

    if isinstance(error, ClientConnectorError):
        return f"cannot connect to {error.host}:{error.port}: {error.os_error.strerror or error.os_error}"
    name = type(error).__name__
    if isinstance(error, ClientConnectionError | ClientPayloadError):
        return f"{name}: {error}"
    return f"{name}: {error.message}" if isinstance(error, ClientResponseError) and error.message else name


def tls_context(*addresses: str | None) -> ssl.SSLContext:
    """Return a TLS context for connections to these servers and proxies. None is ignored.

    It trusts the authorities of `certifi`, or those in SSL_CERT_FILE and SSL_CERT_DIR. Reading them takes 17 ms, so
    each set is read once per process. Without an `https` address none are read, and an encrypted connection would
    fail.

    Raises:
        OSError: SSL_CERT_FILE cannot be read or has no certificate. OpenSSL ignores a missing directory.
    """
    if any(address is not None and address.lower().startswith("https:") for address in addresses):
        return _trusting_context(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
    return _context_without_authorities()


@lru_cache(maxsize=8)
def _trusting_context(file: str | None, directory: str | None) -> ssl.SSLContext:
    import certifi

    if file or directory:
        try:
            return ssl.create_default_context(cafile=file or None, capath=directory or None)
        except OSError as error:
            message = f"cannot read the certificates of SSL_CERT_FILE: {file}: {error.strerror}"
            raise OSError(message) from error
    return ssl.create_default_context(cafile=certifi.where())


@lru_cache(maxsize=1)
def _context_without_authorities() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


LARGEST_BODY = 22_000_000
"""Largest reply in bytes: 10 MB of Chinese text with its characters escaped. As a str it may take 88 MB."""


class TooLargeError(Exception):
    """The body of a reply is larger than LARGEST_BODY."""


async def bounded(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Yield the chunks of a body.

    Raises:
        TooLargeError: the body has more than LARGEST_BODY bytes.
    """
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > LARGEST_BODY:
            raise TooLargeError
        yield chunk


class BoundedBody:
    """Base of a response stream of httpx or httpx2 that raises TooLargeError if the body is too large."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __aiter__(self) -> AsyncIterator[bytes]:
        return bounded(self._stream)

    async def aclose(self) -> None:
        """Close the wrapped stream."""
        await self._stream.aclose()
