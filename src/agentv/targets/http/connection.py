"""One HTTP client a target: what is sent and what comes back, whole, with every way to fail as a value."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from ssl import SSLContext
from typing import TYPE_CHECKING, Any

from agentv.model.values.response import Failure
from agentv.targets.http.answers import LIMIT, TOO_LARGE
from agentv.targets.http.bodies import ENCODINGS, PackedError, bounded
from agentv.user_code.connections import proxy_for

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

        try:
            async with (
                asyncio.timeout(timeout_s),
                self._opened().request(
                    method,
                    url,
                    headers=headers,
                    data=sendable(body),
                    proxy=proxy_for(url),
                    allow_redirects=False,  # what headers and body hold is for this server alone
                ) as response,
            ):
                data = await _read(response)
        except TimeoutError:
            return Failure("timeout", f"no response within {timeout_s:g} s", retryable=True)
        except PackedError as error:
            return Failure("bad-answer", str(error), retryable=True)
        except (ClientError, OSError, ValueError) as error:
            return Failure("connection", f"no reply: {reason_of(error)}", retryable=not isinstance(error, ValueError))
        headers = {name.lower(): value for name, value in response.headers.items()}
        return TOO_LARGE if data is None else HttpReply(response.status, response.reason or "", data, headers)

    def _opened(self) -> ClientSession:
        if self._session is None:
            self._session = unlimited_session(auto_decompress=False)  # aiohttp takes half a packed body for the whole
        return self._session

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
    from agentv.targets.http.bounded_replies import BoundedResponse

    return unlimited_session(response_class=BoundedResponse, middlewares=[refuse_redirects])


def unlimited_session(ssl: SSLContext | bool = True, **options: Any) -> ClientSession:
    """A session without cookies, time limits and a limit of connections. It belongs to the loop that runs now."""
    from aiohttp import ClientSession, ClientTimeout, DummyCookieJar

    from agentv.user_code.connections import unlimited_connector

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


async def _read(response: ClientResponse) -> bytes | None:
    """The body; None when it is larger than an answer may be, as soon as that is known."""
    if (response.content_length or 0) > LIMIT:
        return None
    data = bytearray()
    async for chunk in bounded(response.content.iter_any(), response.headers.get("Content-Encoding", "")):
        data += chunk
        if len(data) > LIMIT:
            return None
    return bytes(data)


def reason_of(error: Exception) -> str:
    """Why there is no reply. The words of most errors hold the URL, so only those that do not are quoted."""
    from aiohttp import ClientConnectionError, ClientConnectorError, ClientPayloadError, ClientResponseError

    if isinstance(error, ClientConnectorError):
        return f"cannot connect to {error.host}:{error.port}: {error.os_error.strerror or error.os_error}"
    name = type(error).__name__
    if isinstance(error, ClientConnectionError | ClientPayloadError):
        return f"{name}: {error}"
    return f"{name}: {error.message}" if isinstance(error, ClientResponseError) and error.message else name
