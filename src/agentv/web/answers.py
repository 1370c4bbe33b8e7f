"""Responses of endpoints: JSON encoding, ETags and errors."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from agentv.errors import AgentvError, UsageError
from agentv.reports.text import safe, to_json, without_directories

LONGEST_BODY = 1_000_000
"""Maximum size of a request's body, in bytes."""


LOCKED = "this page can only read: open the address that 'agentv view' printed when it started, which has the token"
"""Message for a page that may not change anything because it lacks the token of this start."""


class Problem(msgspec.Struct, frozen=True):
    """An error.

    Attributes:
        code: identifies the kind of error, for programs.
        message: explains the error, for people.
    """

    code: str
    message: str


class ErrorAnswer(msgspec.Struct, frozen=True):
    """The response to a request that failed."""

    error: Problem


class RefusedError(Exception):
    """Refuses a request with an HTTP status and an error code.

    Attributes:
        retry_s: seconds after which the request may be sent again; None omits `Retry-After` from the response.
    """

    def __init__(self, status: int, code: str, message: str, retry_s: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.retry_s = retry_s


def no_route(error: Exception) -> RefusedError:
    """The error for a request that no route matches."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 405:
        return RefusedError(405, "wrong-method", "this address does not support the method")
    return RefusedError(status, "no-such-address", "there is nothing at this address")


def encoded(value: Any) -> bytes:
    """JSON in UTF-8. Lone surrogates, which UTF-8 cannot represent, are escaped."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return to_json(msgspec.to_builtins(value)).encode()


def error_response(
    status: int, code: str, message: str, retry_s: float | None = None, *, close: bool = False
) -> Response:
    """The response to a request that failed. `close` ends the connection after it."""
    headers = {} if retry_s is None else {"Retry-After": str(int(retry_s) + 1)}
    if close:
        headers["Connection"] = "close"
    answer = encoded(ErrorAnswer(Problem(code, safe(without_directories(message)))))
    return Response(answer, status, headers, media_type="application/json")


def is_not_modified(request: Request, tag: str) -> bool:
    """Whether the client already has the response with this `ETag`."""
    return tag in (one.strip() for one in request.headers.get("if-none-match", "").split(","))


def response_to_error(error: Exception) -> Response:
    """The response for an exception that a handler raised."""
    if isinstance(error, RefusedError):
        return error_response(error.status, error.code, str(error), error.retry_s)
    if isinstance(error, UsageError) and error.hint:
        return error_response(422, "not-possible", f"{error}; {error.hint}")
    if isinstance(error, AgentvError):
        return error_response(*error.http_error, str(error))
    for kind, said in _PROBLEMS.items():
        if isinstance(error, kind):
            return error_response(*said, str(error))
    return error_response(500, "internal-error", f"this is a bug in agentv: {type(error).__name__}")


_PROBLEMS: dict[type[Exception], tuple[int, str]] = {
    ValueError: (400, "bad-request"),
    FileNotFoundError: (404, "no-such-run"),
    OSError: (422, "unreadable"),
}
"""Exception → status and error code of the response; the first match counts."""
