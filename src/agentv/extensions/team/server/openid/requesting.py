"""Requests to an OpenID provider: short, bounded, and without redirects."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any, TypeVar

import httpx
import msgspec

from agentv.extensions.team.request_deadline import Connections, DeadlineExceededError
from agentv.store.files.decoded_types import described

_LONGEST = 1 << 20
"""Bytes of an answer."""

_TIMEOUT_S = 5.0
SIGN_IN_S = 10.0
"""Seconds for all requests of one sign-in together, and for waiting until those of others end."""

Answer = TypeVar("Answer")


class OpenIdError(Exception):
    """A person cannot be signed in. The message is for that person and for the administrator."""


class ProviderUnavailableError(OpenIdError):
    """The provider cannot be reached, or does not answer as it must; the same may succeed later."""


class ProviderRequests:
    """Sends requests to a provider.

    Args:
        transport: in place of the network.
        sign_in_s: see `SIGN_IN_S`.
    """

    def __init__(self, transport: httpx.BaseTransport | None = None, sign_in_s: float = SIGN_IN_S) -> None:
        self._sign_in_s = sign_in_s
        self._until: ContextVar[float | None] = ContextVar("until", default=None)  # of the sign-in of this thread
        self._client = httpx.Client(
            timeout=_TIMEOUT_S,
            headers={"Accept": "application/json"},
            transport=transport,
            limits=httpx.Limits(max_keepalive_connections=0),  # each is of one request, whose deadline can end it
        )

    @contextmanager
    def sign_in(self) -> Iterator[None]:
        """All requests of the block have one deadline."""
        token = self._until.set(time.monotonic() + self._sign_in_s)
        try:
            yield
        finally:
            self._until.reset(token)

    @contextmanager
    def holding(self, lock: Lock) -> Iterator[None]:
        """Hold a lock that others may hold while they wait for the provider.

        Raises:
            ProviderUnavailableError: they wait too long.
        """
        if not lock.acquire(timeout=self._left()):
            raise ProviderUnavailableError("the OpenID provider takes too long")
        try:
            yield
        finally:
            lock.release()

    def _left(self) -> float:
        until = self._until.get()
        return self._sign_in_s if until is None else max(0.0, until - time.monotonic())

    def get(self, address: str, into: type[Answer], headers: Mapping[str, str] | None = None) -> Answer:
        """A document.

        Raises:
            ProviderUnavailableError: it cannot be read.
        """
        status, body = self._answer("GET", address, headers=headers)
        if status != 200:
            raise ProviderUnavailableError(f"the OpenID provider answered {status} at {address}")
        return _decoded(body, into, address)

    def post(self, address: str, form: str, headers: Mapping[str, str], into: type[Answer]) -> Answer:
        """The answer to a form.

        Raises:
            OpenIdError: the provider refuses.
            ProviderUnavailableError: it does not answer.
        """
        sent = {"Content-Type": "application/x-www-form-urlencoded", **headers}
        status, body = self._answer("POST", address, content=form, headers=sent)
        if status >= 500 or status == 429:
            raise ProviderUnavailableError(f"the OpenID provider answered {status} at {address}")
        if status != 200:
            raise OpenIdError(f"the OpenID provider refused the sign-in: {_error_code(body) or status}")
        return _decoded(body, into, address)

    def _answer(self, method: str, address: str, **given: Any) -> tuple[int, bytes]:
        connections, body = Connections(), bytearray()
        given["extensions"] = connections.extensions
        try:
            with connections.within(self._left()), self._client.stream(method, address, **given) as response:
                if "," in response.headers.get("content-encoding", ""):  # each of them multiplies the size of a piece
                    raise ProviderUnavailableError(f"the OpenID provider's answer at {address} is packed repeatedly")
                for piece in response.iter_bytes():
                    body += piece
                    if len(body) > _LONGEST:
                        raise ProviderUnavailableError(f"the OpenID provider's answer at {address} is too long")
                    if connections.ended:
                        break  # and the deadline is reported
                return response.status_code, bytes(body)
        except DeadlineExceededError as error:
            raise ProviderUnavailableError(f"the OpenID provider takes too long at {address}") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            reason = type(error).__name__ if isinstance(error, httpx.TimeoutException) else str(error)
            raise ProviderUnavailableError(f"the OpenID provider cannot be reached at {address}: {reason}") from error


def _decoded(body: bytes, into: type[Answer], address: str) -> Answer:
    try:
        return msgspec.json.decode(body, type=described(into))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProviderUnavailableError(f"the OpenID provider's answer at {address} is not valid: {error}") from error


def _error_code(body: bytes) -> str:
    """The code of an OAuth error, such as `invalid_grant`."""
    try:
        code = msgspec.json.decode(body)["error"]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError, KeyError):
        return ""
    return code[:60] if isinstance(code, str) and code.isascii() and code.isprintable() else ""
