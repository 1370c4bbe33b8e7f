"""The server that runs are pushed to: its address and token, and what it answers."""

from __future__ import annotations

import gzip
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any, Self
from urllib.parse import quote, urlsplit

import httpx
import msgspec

from agentv.errors import AgentvError, ExitStatus, UsageError
from agentv.lazy_dataclass import dataclass
from agentv.reports.text.escaping import one_line
from agentv.version import __version__

TOKEN_VARIABLE = "AGENTV_TOKEN"  # noqa: S105  # the name of a variable
REMOTE_VARIABLE = "AGENTV_REMOTE"

_ATTEMPTS = 6
_LONGEST_WAIT_S = 30.0
_TIMEOUT = httpx.Timeout(60.0, connect=10.0)
_AGAIN = frozenset({429, 502, 503, 504})
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_SMALL = 512
"""Bytes of a body that is sent as it is."""


class PushError(AgentvError):
    """A run could not be pushed. What was sent stays, and the next push goes on from there."""

    status = ExitStatus.ERRORED


class ConflictError(Exception):
    """The server has other rows than this client thought; it asks again."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A project on a server.

    Attributes:
        address: such as `https://evals.example.org/projects/support`.
        token: never shown.
    """

    address: str
    token: str

    @classmethod
    def of(cls, address: str, token: str) -> Remote:
        """A checked address and token.

        Raises:
            UsageError: they cannot be used; the text never contains the token.
        """
        try:
            parts = urlsplit(address.strip())
            wrong = parts.scheme not in ("http", "https") or not parts.hostname or bool(parts.query or parts.fragment)
            secret = parts.username is not None or parts.password is not None
        except ValueError:
            wrong, secret = True, False
        hint = "it must look like https://evals.example.org/projects/NAME"
        if secret:
            raise UsageError(
                "the address of the server contains a password", f"{hint}; tokens go into {TOKEN_VARIABLE}"
            )
        if wrong or "/projects/" not in parts.path:
            raise UsageError(f"'{one_line(address)}' is not the address of a project on a server", hint)
        if not token.strip() or not token.strip().isascii() or len(token.split()) != 1:
            raise UsageError(
                "there is no token for the server"
                if not token.strip()
                else "the token is not one word of ASCII letters",
                f"set {TOKEN_VARIABLE}; 'agentv serve token create' makes one",
            )
        return cls(address.strip().rstrip("/"), token.strip())

    @property
    def is_exposed(self) -> bool:
        """Whether the token travels unencrypted over a network."""
        parts = urlsplit(self.address)
        return parts.scheme == "http" and parts.hostname not in _LOOPBACK


class Connection:
    """Requests to a remote, tried again while the server is away for a moment. A context manager.

    Args:
        remote: the server.
        transport: in place of the network.
        sleep: waits so many seconds.
    """

    def __init__(
        self,
        remote: Remote,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._remote = remote
        self._sleep = sleep
        self.sent = 0
        headers = {"Authorization": f"Bearer {remote.token}", "User-Agent": f"agentv/{__version__}"}
        self._client = httpx.Client(headers=headers, timeout=_TIMEOUT, transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._client.close()

    def get(self, path: str, into: Any) -> Any:
        """The answer to a GET, of a type.

        Raises:
            PushError: there is none; the text says why.
        """
        return self._answer("GET", path, {}, b"", into)

    def send(self, method: str, path: str, query: Mapping[str, Any], body: bytes, into: Any) -> Any:
        """Send a body, compressed; the answer, of a type.

        Raises:
            ConflictError: the server has other rows.
            PushError: it refuses, or cannot be reached.
        """
        return self._answer(method, path, query, body, into)

    def _answer(self, method: str, path: str, query: Mapping[str, Any], body: bytes, into: Any) -> Any:
        packed = gzip.compress(body, 1, mtime=0) if len(body) > _SMALL else body
        headers = {"Content-Encoding": "gzip"} if len(body) > _SMALL else {}
        texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in query.items()}
        address = f"{self._remote.address}/api/{quote(path)}"
        response = self._tried(
            self._client.build_request(method, address, params=texts, content=packed, headers=headers)
        )
        self.sent += len(packed)
        if response.status_code == 409:
            raise ConflictError(_message(response))
        if response.status_code != 200:
            raise PushError(f"the server refused ({response.status_code}): {_message(response)}")
        try:
            return msgspec.json.decode(response.content, type=into)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            what = "what answers there is not an agentv server, or a much newer one"
            raise PushError(f"cannot push to {self._remote.address}: {what}") from error

    def _tried(self, request: httpx.Request) -> httpx.Response:
        wait = 0.5
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                response = self._client.send(request)
            except httpx.TransportError as error:
                if attempt == _ATTEMPTS or _is_final(error):
                    raise PushError(f"cannot reach {self._remote.address}: {_reason(error)}") from error
            else:
                if response.status_code not in _AGAIN or attempt == _ATTEMPTS:
                    return response
                wait = max(wait, _retry_after(response))
            self._sleep(min(wait, _LONGEST_WAIT_S))
            wait *= 2
        raise AssertionError("the last attempt returns or raises")


def _message(response: httpx.Response) -> str:
    try:
        return one_line(str(msgspec.json.decode(response.content)["error"]["message"]))
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError):
        return response.reason_phrase or "it gave no reason"


def _retry_after(response: httpx.Response) -> float:
    said = response.headers.get("retry-after", "")
    return float(said) if said.isascii() and said.isdigit() else 0.0


def _certificate_error(error: BaseException | None) -> ssl.SSLError | None:
    """The error of TLS that is the cause of another error."""
    while error is not None and not isinstance(error, ssl.SSLError):
        error = error.__cause__ or error.__context__
    return error


def _is_final(error: httpx.TransportError) -> bool:
    """Whether trying again cannot help."""
    return _certificate_error(error) is not None or isinstance(error, httpx.UnsupportedProtocol)


def _reason(error: httpx.TransportError) -> str:
    tls = _certificate_error(error)
    if isinstance(tls, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not valid: {tls.verify_message}; "
            "for a certificate authority of your own, set SSL_CERT_FILE to its certificate"
        )
    if tls is not None:
        return "it does not speak TLS; is the address http:// ?"
    if isinstance(error, httpx.TimeoutException):
        return "it did not answer in time"
    return one_line(str(error)) or type(error).__name__
