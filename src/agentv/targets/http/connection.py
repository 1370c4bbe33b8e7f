"""HTTP connections of targets: what is sent and what comes back, whole, with every way to fail as a value.

Every request asks for a reply that is not compressed (`Accept-Encoding: identity`), and a compressed one is refused: a
megabyte can unpack to gigabytes (a "bomb"). aiohttp takes a quarter of a second to import, so that functions import it.
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
    """What a server answered: its status, the words beside it, the whole body, and the headers by lower-case names."""

    status: int
    reason: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(slots=True)
class Connection:
    """A pool of connections without a limit of its own: how many calls there are at once the engine decides."""

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
            The reply, whatever its status, or a Failure with the code `timeout`, `connection` or `output-too-large`.
            No message holds a header or the URL: they may hold a secret.
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
                    allow_redirects=False,  # what headers and body hold is for this server alone
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
        """Let go of all connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()


class UnreadReplyError(Exception):
    """A reply with this status and these headers that is not read: it leads to another address, or is compressed."""

    def __init__(self, status: int, headers: Mapping[str, str]) -> None:
        super().__init__(f"HTTP {status}: not read")
        self.status = status
        self.headers = headers


def refuse_unread(status: int, headers: Mapping[str, str]) -> None:
    """Check the head of a reply for an SDK, which would follow, with the key, wherever it leads, and decompress it.

    Raises:
        UnreadReplyError: the body must not be read.
    """
    if (300 <= status < 400 and "Location" in headers) or is_compressed(headers):
        raise UnreadReplyError(status, headers)


async def _read_bounded(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
    """Middleware: the response, read unless it is a stream, whose lines aiohttp bounds.

    Raises:
        UnreadReplyError, TooLargeError: the body must not be read, or is too large.
    """
    response = await handler(request)
    try:
        refuse_unread(response.status, response.headers)
        if not response.headers.get("Content-Type", "").startswith("text/event-stream"):
            body = b"".join([piece async for piece in bounded(response.content.iter_any())])
            response._body = body  # noqa: SLF001  # what has been read before is not read again
    except BaseException:
        response.close()
        raise
    return response


def session_of_sdk() -> ClientSession:
    """A session for an SDK that would follow redirects, and read replies of any size. It belongs to the loop."""
    return unlimited_session(middlewares=[_read_bounded])


UNCOMPRESSED = {"Accept-Encoding": "identity"}
"""The header that asks for a reply as it is."""


def unlimited_session(ssl: SSLContext | bool = True, **options: Any) -> ClientSession:
    """A session without cookies, time limits and a limit of connections. It belongs to the loop that runs now."""
    from aiohttp import ClientSession, ClientTimeout, DummyCookieJar

    return ClientSession(
        headers=UNCOMPRESSED,
        connector=unlimited_connector(ssl=ssl),
        cookie_jar=DummyCookieJar(),  # one case must not see what another one was given
        timeout=ClientTimeout(total=None),
        **options,
    )


def sendable(body: bytes | None) -> bytes | BytesIO | None:
    """A large body as a file, which is sent in pieces, so that other calls are not delayed."""
    return body if body is None or len(body) <= _CHUNK else BytesIO(body)


def reason_of(error: Exception) -> str:
    """Why there is no reply. The words of most errors hold the URL, so only those that do not are quoted."""
    from aiohttp import ClientConnectionError, ClientConnectorError, ClientPayloadError, ClientResponseError

    if isinstance(error, ClientConnectorError):
        return f"cannot connect to {error.host}:{error.port}: {error.os_error.strerror or error.os_error}"
    name = type(error).__name__
    if isinstance(error, ClientConnectionError | ClientPayloadError):
        return f"{name}: {error}"
    return f"{name}: {error.message}" if isinstance(error, ClientResponseError) and error.message else name


def tls_context(*addresses: str | None) -> ssl.SSLContext:
    """A context for connections to these addresses, each a server or a proxy; None is no address.

    It trusts the authorities of `certifi`, or those that SSL_CERT_FILE and SSL_CERT_DIR name. Reading them takes 17 ms,
    so each set is read once in a process, and not at all where no address begins with `https`. In that case, an
    encrypted connection would fail.

    Raises:
        OSError: the file of SSL_CERT_FILE cannot be read, or has no certificate. OpenSSL ignores a missing directory.
    """
    if any(address is not None and address.lower().startswith("https:") for address in addresses):
        return _trusting(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
    return _trusting_nobody()


@lru_cache(maxsize=8)
def _trusting(file: str | None, directory: str | None) -> ssl.SSLContext:
    import certifi

    if file or directory:
        try:
            return ssl.create_default_context(cafile=file or None, capath=directory or None)
        except OSError as error:
            message = f"cannot read the certificates of SSL_CERT_FILE: {file}: {error.strerror}"
            raise OSError(message) from error
    return ssl.create_default_context(cafile=certifi.where())


@lru_cache(maxsize=1)
def _trusting_nobody() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


LARGEST_BODY = 22_000_000
"""Bytes of a reply that are read: an answer of 10 MB in Chinese, its letters escaped. As text it may take 88 MB."""


class TooLargeError(Exception):
    """The body of a reply is larger than is read."""


async def bounded(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """The body, piece by piece.

    Raises:
        TooLargeError: it has more than `LARGEST_BODY` bytes.
    """
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > LARGEST_BODY:
            raise TooLargeError
        yield chunk


class BoundedBody:
    """Base of a response stream of httpx or httpx2 that ends with a `TooLargeError` where it is too large."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __aiter__(self) -> AsyncIterator[bytes]:
        return bounded(self._stream)

    async def aclose(self) -> None:
        """Close the stream below."""
        await self._stream.aclose()
