"""The connection to the server of a model API: a body goes out, and its reply comes back, whole or as a stream.

The SDKs of the APIs take a second to import and milliseconds a call, and their retries, limits of time and classes of
replies would all have to be turned off. So the few requests that are needed are made with aiohttp.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agentv.model.values.response import CallFailure, Failure
from agentv.model.values.values import Json, JsonObject
from agentv.targets.http.answers import TOO_LARGE
from agentv.targets.http.connection import (
    TooLargeError,
    bounded,
    reason_of,
    sendable,
    tls_context,
    unlimited_session,
)
from agentv.targets.http.failures import (
    carries_key,
    is_compressed,
    names_user,
    no_connection,
    no_key_sent,
    shown,
    unreadable_reply,
)
from agentv.targets.model_api.prices import load_prices
from agentv.targets.model_api.streams import ReplyStream, events_in, is_stream
from agentv.user_code.connections import proxy_for
from agentv.user_code.excerpts import head
from agentv.version import __version__

if TYPE_CHECKING:
    from aiohttp import ClientSession
    from multidict import CIMultiDict

_OF_KEYS = (401, 403)

_HINTS = {
    401: "the key was refused: check {key}",
    403: "this key lacks permission: check {key}, and whether it has access to the model",
    404: "check 'model' and 'base_url'",
}


@dataclass(frozen=True, slots=True)
class ApiErrors:
    """What the errors of an API mean: each API says it elsewhere.

    Attributes:
        retryable: the statuses that the target's `retry` lists.
        secrets: texts that no message may hold.
    """

    retryable: frozenset[int] = frozenset()
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def of_status(self, status: int, content: bytes, headers: Mapping[str, str]) -> CallFailure:
        """The failure in a reply with an error status."""
        raise NotImplementedError

    def of_stream(self, error: Json) -> CallFailure:
        """The failure with which a stream broke off."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class JsonReply:
    """A JSON object that a server sent, and the milliseconds until it was there."""

    body: JsonObject
    duration_ms: float


def load_client() -> None:
    """Import the HTTP client and read the price list, which takes half a second: before the first call's time."""
    import aiohttp  # noqa: F401

    load_prices()


@dataclass(slots=True)
class ModelClient:
    """The connection to one server.

    Attributes:
        base_url: with which the addresses of the API begin, without a slash at the end.
        errors: reads those of the API.
        credentials: the headers that hold the key; empty: there is none.
        headers: further ones; they win.
        key_from: the variables that may give the key.
        unreachable: what may be wrong where nobody listens.
    """

    base_url: str
    errors: ApiErrors
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    key_from: Iterable[str] = ()
    unreachable: str | None = None
    _session: ClientSession | None = field(default=None, repr=False)
    _headers: CIMultiDict[str] | None = field(default=None, repr=False)

    async def post(
        self,
        path: str,
        body: Mapping[str, Any],
        stream: ReplyStream | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> JsonReply | Failure:
        """Send a body and read the reply.

        Args:
            path: behind the base URL.
            body: of the request.
            stream: takes the events of a reply that is streamed; None: it is not.
            headers: of this request alone.

        Returns:
            The reply; what `errors` makes of an error status; else a Failure with the code `connection`, `bad-answer`,
            `bad-body` or `output-too-large`.
        """
        from aiohttp import ClientError

        try:
            content = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            why = shown(str(error), self.errors.secrets)
            return Failure("bad-body", f"the request cannot be written as JSON: {why}")
        session, started = self.opened(), perf_counter()
        if stream is not None:
            stream.begin()
        try:
            async with session.post(
                f"{self.base_url}{path}",
                data=sendable(content),
                headers=self._with(headers),
                proxy=proxy_for(self.base_url),
                allow_redirects=False,  # a key for one server must not reach another
            ) as response:
                if is_compressed(response.headers):
                    return self._refused(response.status, b"", response.headers)
                pieces = bounded(response.content.iter_any())
                if stream is not None and response.status < 300 and is_stream(response.headers):
                    failure = await stream.read(events_in(pieces))
                    if stream.reply.error:
                        failure = self.errors.of_stream(stream.reply.error)
                    return failure or JsonReply(stream.reply.body(), _ms_since(started))
                reply = b"".join([piece async for piece in pieces])
        except (ClientError, OSError, TooLargeError, ValueError, RecursionError) as error:
            return self._broken(error)
        if not 200 <= response.status < 300:
            return self._refused(response.status, reply, response.headers)
        return self._read(reply, response.headers, _ms_since(started))

    def opened(self) -> ClientSession:
        """The session of the loop that runs now; certificates take their time, which must not count as an answer's."""
        if self._session is not None:
            return self._session
        from multidict import CIMultiDict

        own = {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": f"agentv/{__version__}"}
        self._headers = CIMultiDict({**own, **self.credentials})
        self._headers.update(self.headers)
        if names_user(self.base_url):
            self._headers.pop("Authorization", None)  # the user in the URL becomes one
        self._session = unlimited_session(tls_context(self.base_url, proxy_for(self.base_url)), auto_decompress=False)
        return self._session

    async def close(self) -> None:
        """Close all connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _with(self, headers: Mapping[str, str] | None) -> CIMultiDict[str] | None:
        if headers is None or self._headers is None:
            return self._headers
        found = self._headers.copy()
        found.update(headers)
        return found

    def _read(self, content: bytes, headers: Mapping[str, str], duration_ms: float) -> JsonReply | Failure:
        try:
            body = json.loads(content)
        except (ValueError, RecursionError):
            kind = headers.get("content-type", "no content type").partition(";")[0]
            what = f"the response is not JSON ({kind}): {head(content, 200) or 'no body'}"
            return unreadable_reply(what, self.errors.secrets)
        if not isinstance(body, dict):
            what = f"the response is not a JSON object: {head(content, 200)}"
            return unreadable_reply(what, self.errors.secrets)
        return JsonReply(body, duration_ms)

    def _refused(self, status: int, content: bytes, headers: Mapping[str, str]) -> CallFailure:
        failure = self.errors.of_status(status, content, headers)
        hint = self._hint(status) if failure.code == "http-status" else None
        return failure if hint is None else replace(failure, message=f"{failure.message} ({hint})")

    def _hint(self, status: int) -> str | None:
        """What to look at, by a status; servers on this machine are asked without a key, and some want one."""
        if status in _OF_KEYS and not self.credentials and not carries_key(self.headers):
            return no_key_sent(self.key_from)
        place = f"'api_key' ({' or '.join(self.key_from)})" if self.credentials else "'headers'"
        return _HINTS.get(status, "").format(key=place) or None

    def _broken(self, error: Exception) -> Failure:
        """Why no whole reply came."""
        from aiohttp import ClientConnectorError, ClientPayloadError

        secrets = self.errors.secrets
        if isinstance(error, TooLargeError):
            return TOO_LARGE
        if isinstance(error, ClientPayloadError):
            return unreadable_reply("the response was cut off")
        if isinstance(error, json.JSONDecodeError | UnicodeDecodeError | RecursionError):
            return unreadable_reply(f"an event of the stream is not JSON: {error}", secrets)
        failure = no_connection(reason_of(error), secrets)
        if not isinstance(error, ClientConnectorError) or not self.unreachable:
            return failure
        return replace(failure, message=f"{failure.message}; {self.unreachable}")


def _ms_since(started: float) -> float:
    return (perf_counter() - started) * 1000
