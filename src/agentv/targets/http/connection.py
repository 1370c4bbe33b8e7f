"""HTTP connections of targets: what is sent and what comes back, whole, with every way to fail as a value.

Bodies of replies are unpacked a piece at a time and counted: a megabyte can unpack to gigabytes (a "bomb"). aiohttp
takes a quarter of a second to import, so that functions import it.
"""

from __future__ import annotations

import asyncio
import os
import re
import ssl
import zlib
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from io import BytesIO
from ssl import SSLContext
from typing import TYPE_CHECKING, Any

from agentv.model.values.response import Failure
from agentv.targets.http.answers import LIMIT, TOO_LARGE
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
            The reply, whatever its status, or a Failure with the code `timeout`, `connection`, `bad-answer` or
            `output-too-large`.
            No message holds a header or the URL: they may hold a secret.
        """
        from aiohttp import ClientError

        if self._session is None:
            self._session = unlimited_session(auto_decompress=False)  # aiohttp takes half a packed body for the whole
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
                async for chunk in bounded(response.content.iter_any(), response.headers.get("Content-Encoding", "")):
                    data += chunk
                    if len(data) > LIMIT:
                        return TOO_LARGE
        except TimeoutError:
            return Failure("timeout", f"no response within {timeout_s:g} s", retryable=True)
        except PackedError as error:
            return Failure("bad-answer", str(error), retryable=True)
        except (ClientError, OSError, ValueError) as error:
            return Failure("connection", f"no reply: {reason_of(error)}", retryable=not isinstance(error, ValueError))
        headers = {name.lower(): value for name, value in response.headers.items()}
        return HttpReply(response.status, response.reason or "", bytes(data), headers)

    async def close(self) -> None:
        """Let go of all connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()


class RedirectError(Exception):
    """A server sends on to another address, with this status and these headers."""

    def __init__(self, status: int, headers: Mapping[str, str]) -> None:
        super().__init__(f"HTTP {status}: a redirect")
        self.status = status
        self.headers = headers


async def refuse_redirects(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
    """Middleware that ends a call with `RedirectError`, for SDKs that would follow, with the key, wherever it leads."""
    response = await handler(request)
    if 300 <= response.status < 400 and "Location" in response.headers:
        response.close()
        raise RedirectError(response.status, response.headers)
    return response


def session_of_sdk() -> ClientSession:
    """A session for an SDK that would follow redirects, and read replies of any size. It belongs to the loop."""
    return unlimited_session(response_class=_bounded_response(), middlewares=[refuse_redirects])


@cache
def _bounded_response() -> type[ClientResponse]:
    """Responses whose bodies end with an error where they are too large, however small they were before they unpacked.

    Whoever reads such a body, whole or in pieces, gets a ClientPayloadError whose cause is a TooLargeError.
    """
    from aiohttp import ClientPayloadError, ClientResponse, StreamReader

    def counting_reader(size: Size) -> type[StreamReader]:
        """The class of the body of one response: a StreamReader has no room for what counts it."""

        class CountingReader(StreamReader):
            __slots__ = ()

            def feed_data(self, data: bytes, _: int = 0) -> bool:
                """Take in bytes as they are after unpacking."""
                if self.exception() is not None:
                    return True
                if size.takes(data):
                    return super().feed_data(data)
                error = ClientPayloadError("the response is too large")
                error.__cause__ = TooLargeError()
                self.set_exception(error)
                return True

        return CountingReader

    class BoundedResponse(ClientResponse):
        async def start(self, connection: Any) -> ClientResponse:
            """Read the head, and count what comes behind it from then on."""
            await super().start(connection)
            if type(self.content) is StreamReader:
                self.content.__class__ = counting_reader(Size())  # it exists already, and the parser holds on to it
            return self

    return BoundedResponse


def unlimited_session(ssl: SSLContext | bool = True, **options: Any) -> ClientSession:
    """A session without cookies, time limits and a limit of connections. It belongs to the loop that runs now."""
    from aiohttp import ClientSession, ClientTimeout, DummyCookieJar

    return ClientSession(
        headers={"Accept-Encoding": ENCODINGS},
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


LARGEST_BODY = 32_000_000
"""Bytes of a reply: an answer of 10 MB, every letter beyond ASCII escaped; more is never read."""

LARGEST_TEXT = 48_000_000
"""Bytes that a reply may take as text: one letter beyond the first 65,536 of Unicode makes each letter take four."""

ENCODINGS = "gzip, deflate"
"""In which replies may be packed: what unpacks in pieces with nothing else installed."""

_PIECE = 65_536
_GZIP = zlib.MAX_WBITS | 16
_WINDOWS = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": zlib.MAX_WBITS}


_WIDE = re.compile(rb"[\xf0-\xf7]")


class TooLargeError(Exception):
    """The body of a reply is larger than is read."""


class PackedError(ValueError):
    """The body of a reply cannot be unpacked."""


class Size:
    """What the body of a reply takes: its bytes, and its text."""

    __slots__ = ("_bytes", "_width")

    def __init__(self) -> None:
        self._bytes = 0
        self._width = 1

    def takes(self, piece: bytes) -> bool:
        """Take in the next bytes after unpacking; False where the body is too large with them."""
        self._bytes += len(piece)
        if self._width < 4 and not piece.isascii():  # bytes of the widest letters
            self._width = 4 if _WIDE.search(piece) else 2
        return self._bytes <= LARGEST_BODY and self._bytes * self._width <= LARGEST_TEXT


async def bounded(chunks: AsyncIterable[bytes], packed: str) -> AsyncIterator[bytes]:
    """The body, unpacked.

    Args:
        chunks: as they come over the network.
        packed: the header `Content-Encoding`, or an empty text.

    Raises:
        TooLargeError: `Size` refuses it.
        PackedError: it is packed in another way than was asked for, or not as it says.
    """
    size = Size()
    async for chunk in _unpacked(chunks, packed.strip().lower()):
        if not size.takes(chunk):
            raise TooLargeError
        yield chunk


class BoundedBody:
    """Base of a response stream of httpx or httpx2 whose body is unpacked here, a piece at a time, and counted.

    Those libraries unpack all of a piece at once.
    """

    def __init__(self, response: Any) -> None:
        self._stream = response.stream
        self._packed = response.headers.pop("content-encoding", "")

    def __aiter__(self) -> AsyncIterator[bytes]:
        return bounded(self._stream, self._packed)

    async def aclose(self) -> None:
        """Close the stream below."""
        await self._stream.aclose()


async def _unpacked(chunks: AsyncIterable[bytes], packed: str) -> AsyncIterator[bytes]:
    unpack: zlib._Decompress | None = None
    if packed not in ("", "identity", *_WINDOWS):
        raise PackedError(f"the response is encoded with {packed[:40]!r}, but the request accepts only {ENCODINGS}")
    async for chunk in chunks:
        if packed not in _WINDOWS:
            yield chunk
            continue
        rest = chunk
        try:
            while rest:
                if unpack is None:  # some servers send `deflate` without the header that RFC 9110 wants
                    raw = packed == "deflate" and rest[0] & 0xF != zlib.DEFLATED
                    unpack = zlib.decompressobj(-zlib.MAX_WBITS if raw else _WINDOWS[packed])
                yield unpack.decompress(rest, _PIECE)
                rest = unpack.unconsumed_tail
        except zlib.error as error:
            raise PackedError(f"the response cannot be decompressed: {error}") from error
    if unpack is not None and not unpack.eof:
        raise PackedError("the compressed response is incomplete")
