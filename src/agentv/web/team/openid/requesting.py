"""Requests to an OpenID provider: short, bounded, and without redirects."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, TypeVar

import httpx
import msgspec

from agentv.store.files.decoded_types import described

_LONGEST = 1 << 20
"""Bytes of an answer."""

_TIMEOUT_S = 5.0
_DEADLINE_S = 15.0

Answer = TypeVar("Answer")


class OpenIdError(Exception):
    """A person cannot be signed in. The message is for that person and for the administrator."""


class ProviderUnavailableError(OpenIdError):
    """The provider cannot be reached, or does not answer as it must; the same may succeed later."""


class ProviderRequests:
    """Sends requests to a provider.

    Args:
        transport: in place of the network.
    """

    def __init__(self, transport: httpx.BaseTransport | None = None) -> None:
        self._client = httpx.Client(timeout=_TIMEOUT_S, headers={"Accept": "application/json"}, transport=transport)

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
        deadline, body = time.monotonic() + _DEADLINE_S, bytearray()
        try:
            with self._client.stream(method, address, **given) as response:
                if "," in response.headers.get("content-encoding", ""):  # each of them multiplies the size of a piece
                    raise ProviderUnavailableError(f"the OpenID provider's answer at {address} is packed repeatedly")
                for piece in response.iter_bytes():
                    body += piece
                    if len(body) > _LONGEST:
                        raise ProviderUnavailableError(f"the OpenID provider's answer at {address} is too long")
                    if time.monotonic() > deadline:
                        raise ProviderUnavailableError(f"the OpenID provider takes too long at {address}")
                return response.status_code, bytes(body)
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
