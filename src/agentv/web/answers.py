"""Answers of endpoints: encoded, tagged, or what went wrong."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from agentv.errors import AgentvError, UsageError
from agentv.reports.text import safe, to_json, without_directories

LONGEST_BODY = 1_000_000
"""Bytes of a request's body."""


LOCKED = "this page can only read: open the address that 'agentv view' printed when it started, which has the token"
"""Said to a page that could change something if it had the token of this start."""


class Problem(msgspec.Struct, frozen=True):
    """What went wrong.

    Attributes:
        code: a word for programs.
        message: a sentence for people.
    """

    code: str
    message: str


class ErrorAnswer(msgspec.Struct, frozen=True):
    """The answer to a request that failed."""

    error: Problem


class RefusedError(Exception):
    """A request that is refused, with the status and the code of its answer.

    Attributes:
        retry_s: seconds after which it may be sent again; None: the answer does not say.
    """

    def __init__(self, status: int, code: str, message: str, retry_s: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.retry_s = retry_s


def no_route(error: Exception) -> RefusedError:
    """What is said where no route fits."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 405:
        return RefusedError(405, "wrong-method", "this address does not support the method")
    return RefusedError(status, "no-such-address", "there is nothing at this address")


def encoded(value: Any) -> bytes:
    """JSON in UTF-8. Halves of surrogate pairs, which no file can hold, are spelled out."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return to_json(msgspec.to_builtins(value)).encode()


def error_response(
    status: int, code: str, message: str, retry_s: float | None = None, *, close: bool = False
) -> Response:
    """The answer to a request that failed. `close`: no other request is read from this connection."""
    headers = {} if retry_s is None else {"Retry-After": str(int(retry_s) + 1)}
    if close:
        headers["Connection"] = "close"
    answer = encoded(ErrorAnswer(Problem(code, safe(without_directories(message)))))
    return Response(answer, status, headers, media_type="application/json")


def is_known(request: Request, tag: str) -> bool:
    """Whether who asks has the answer with this `ETag` already."""
    return tag in (one.strip() for one in request.headers.get("if-none-match", "").split(","))


def failed(error: Exception) -> Response:
    """The answer where a handler raised."""
    if isinstance(error, RefusedError):
        return error_response(error.status, error.code, str(error), error.retry_s)
    if isinstance(error, UsageError) and error.hint:
        return error_response(422, "not-possible", f"{error}; {error.hint}")
    if isinstance(error, AgentvError):
        return error_response(*error.answered, str(error))
    for kind, said in _PROBLEMS.items():
        if isinstance(error, kind):
            return error_response(*said, str(error))
    return error_response(500, "internal-error", f"this is a bug in agentv: {type(error).__name__}")


_PROBLEMS: dict[type[Exception], tuple[int, str]] = {
    ValueError: (400, "bad-request"),
    FileNotFoundError: (404, "no-such-run"),
    OSError: (422, "unreadable"),
}
"""Exception → the status and the code of its answer; the first that fits."""
