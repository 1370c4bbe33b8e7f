"""HTTP client of a team's server."""

from __future__ import annotations

import gzip
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import httpx
import msgspec

from agentv.errors import AgentvError, ExitStatus
from agentv.extensions.team.remote import TOKEN_VARIABLE, Remote
from agentv.model.values.values import EMPTY
from agentv.reports.text import one_line
from agentv.store.files.directory import Closing
from agentv.version import __version__

ATTEMPTS = 6
_LONGEST_WAIT_S = 30.0
_TIMEOUT_S = 60.0
_CONNECT_S = 10.0
_RETRIED = frozenset({429, 502, 503, 504})
_REFUSES_SENDER = frozenset({401, 403, 404, 405})
"""Statuses that every request of this sender would get."""

_SMALL = 512
"""Most bytes of a body that is sent uncompressed."""

_LONGEST_MESSAGE = 1_000
"""Most characters shown of a message from the server."""


class PushError(AgentvError):
    """A run could not be pushed. The server keeps what was sent, and the next push continues from there."""

    status = ExitStatus.ERRORED


class RemoteError(PushError):
    """The server cannot be reached, is not an agentv server, or refuses the token, so no run can be pushed now.

    Attributes:
        temporary: whether the problem is temporary, so that a retry may succeed.
    """

    def __init__(self, message: str, *, temporary: bool = False) -> None:
        super().__init__(message)
        self.temporary = temporary


class ConflictError(Exception):
    """The server's rows differ from what this client expected; the client must fetch the state again."""


class Connection(Closing):
    """An HTTP connection to a remote, which retries requests while the server is unavailable. A context manager.

    Args:
        remote: the server.
        transport: replaces the network in tests.
        sleep: waits for a number of seconds.
        attempts: attempts per request; 1 leaves retries to the caller.
        timeout_s: seconds to wait for data from the server.
    """

    def __init__(
        self,
        remote: Remote,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], object] = time.sleep,
        attempts: int = ATTEMPTS,
        timeout_s: float = _TIMEOUT_S,
    ) -> None:
        self._remote = remote
        self._sleep = sleep
        self._attempts = attempts
        self.sent = 0
        headers = {"Authorization": f"Bearer {remote.token}", "User-Agent": f"agentv/{__version__}"}
        self._client = httpx.Client(
            headers=headers,
            timeout=httpx.Timeout(timeout_s, connect=min(_CONNECT_S, timeout_s)),
            transport=transport,
        )

    def close(self) -> None:
        """Close the HTTP client."""
        self._client.close()

    def get(self, path: str, into: Any, query: Mapping[str, Any] = EMPTY) -> Any:
        """Send a GET request and return the decoded response.

        Raises:
            PushError: the request failed; the text says why.
        """
        return self.send("GET", path, query, b"", into)

    def send(self, method: str, path: str, query: Mapping[str, Any], body: bytes, into: Any) -> Any:
        """Send a body, compressed if it is large, and return the decoded response.

        Raises:
            ConflictError: the server has other rows.
            PushError: the server refuses, or cannot be reached.
        """
        packed = gzip.compress(body, 1, mtime=0) if len(body) > _SMALL else body
        headers = {"Content-Encoding": "gzip"} if len(body) > _SMALL else {}
        texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in query.items()}
        address = f"{self._remote.address}/api/{quote(path)}"
        request = self._client.build_request(method, address, params=texts, content=packed, headers=headers)
        response = self._send_with_retries(request)
        self.sent += len(packed)
        if response.status_code == 409:
            raise ConflictError(_message(response))
        if response.status_code != 200:
            raise _refusal(response)
        try:
            return msgspec.json.decode(response.content, type=into)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._not_a_server() from error

    def _send_with_retries(self, request: httpx.Request) -> httpx.Response:
        wait = 0.5
        for attempt in range(1, self._attempts + 1):
            try:
                response = self._client.send(request)
            except httpx.DecodingError as error:
                raise self._not_a_server() from error
            except httpx.TransportError as error:
                # a retry cannot help
                final = _certificate_error(error) is not None or isinstance(error, httpx.UnsupportedProtocol)
                if attempt == self._attempts or final:
                    message = f"cannot reach {self._remote.address}: {_reason(error)}"
                    raise RemoteError(message, temporary=not final) from error
            else:
                if response.status_code not in _RETRIED or attempt == self._attempts:
                    return response
                retry_after = response.headers.get("retry-after", "")
                wait = max(wait, float(retry_after) if retry_after.isascii() and retry_after.isdigit() else 0.0)
            self._sleep(min(wait, _LONGEST_WAIT_S))
            wait *= 2
        raise AssertionError("the last attempt returns or raises")

    def _not_a_server(self) -> RemoteError:
        what = "what answers there is not an agentv server, or a much newer one"
        return RemoteError(f"cannot push to {self._remote.address}: {what}")


def _refusal(response: httpx.Response) -> PushError:
    status = response.status_code
    text = f"the server refused ({status}): {_message(response)}"
    if status == 401:
        return RemoteError(f"{text}; check {TOKEN_VARIABLE}, or make a token with 'agentv serve token create'")
    if response.has_redirect_location:
        return RemoteError(f"{text}: it redirects to {one_line(response.headers['location'][:_LONGEST_MESSAGE])}")
    if status in _RETRIED or status >= 500:
        return RemoteError(text, temporary=True)
    is_of_run = _error(response).get("code") == "other-token"
    return RemoteError(text) if status in _REFUSES_SENDER and not is_of_run else PushError(text)


def _message(response: httpx.Response) -> str:
    found = _error(response).get("message")
    return response.reason_phrase or "it gave no reason" if found is None else one_line(str(found)[:_LONGEST_MESSAGE])


def _error(response: httpx.Response) -> dict[str, Any]:
    try:
        return msgspec.json.decode(response.content, type=dict[str, dict[str, Any]])["error"]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError):
        return {}


def _certificate_error(error: BaseException | None) -> ssl.SSLError | None:
    """Return the TLS error in the chain of causes of an error, or None."""
    while error is not None and not isinstance(error, ssl.SSLError):
        error = error.__cause__ or error.__context__
    return error


def _reason(error: httpx.TransportError) -> str:
    tls = _certificate_error(error)
    if isinstance(tls, ssl.SSLCertVerificationError):
        hint = "for a certificate authority of your own, set SSL_CERT_FILE to its certificate"
        return f"its certificate is not valid: {tls.verify_message}; {hint}"
    if tls is not None:
        return "it does not speak TLS; is the address http:// ?"
    return one_line(str(error)) or type(error).__name__
