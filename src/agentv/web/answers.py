"""Answers of endpoints: encoded, tagged, or what went wrong."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from secrets import token_urlsafe
from typing import Any

import msgspec
from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response

from agentv.app.results.project import NoSuchRunError
from agentv.errors import AgentvError, UsageError
from agentv.extensions.team.store.database import DatabaseUnavailableError
from agentv.extensions.team.store.tokens import Scope
from agentv.extensions.view.viewed.cases import NoSuchCaseError
from agentv.extensions.view.viewed.growing import DamagedIndexError
from agentv.extensions.view.viewed.prompts import NoSuchPromptError
from agentv.reports.text.embedded import to_json
from agentv.reports.text.escaping import safe
from agentv.reports.text.paths import without_directories
from agentv.version import __version__
from agentv.web.context import Permission, ViewContext, Viewer
from agentv.web.endpoints import Call, Endpoint

_START = token_urlsafe(8)
"""Answers hold cursors, which mean nothing to another process: its answers have other tags."""

KEPT = 16
"""Answers that take long to make and are kept."""

LONGEST_BODY = 1_000_000
"""Bytes of a request's body."""


LOCKED = "this page can only read: open the address that 'agentv view' printed when it started, which has the token"
"""Said to a page that could change something if it had the token of this start."""

SCOPE_OF: dict[Permission, Scope] = {"edit": "admin", "label": "label"}
"""Permission → the scope that gives it on a team's server, where nobody runs cases."""


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


async def answer(context: ViewContext, endpoint: Endpoint, request: Request) -> Response:
    """The answer of an endpoint to a request."""
    try:
        call = await _checked(context, endpoint, request)
        threads = None if endpoint.method == "GET" else context.writers
        return await to_thread.run_sync(_answered, context, endpoint, call, request, limiter=threads)
    except Exception as error:  # noqa: BLE001  # whatever it is, a person gets a sentence
        return failed(error)


def failed(error: Exception) -> Response:
    """The answer where a handler raised."""
    if isinstance(error, RefusedError):
        return error_response(error.status, error.code, str(error), error.retry_s)
    if isinstance(error, UsageError) and error.hint:
        return error_response(422, "not-possible", f"{error}; {error.hint}")
    for kind, (status, code) in _PROBLEMS.items():
        if isinstance(error, kind):
            return error_response(status, code, str(error))
    return error_response(500, "internal-error", f"this is a bug in agentv: {type(error).__name__}")


_PROBLEMS: dict[type[Exception], tuple[int, str]] = {
    DatabaseUnavailableError: (503, "database-unavailable"),
    NoSuchRunError: (404, "no-such-run"),
    NoSuchCaseError: (404, "no-such-case"),
    NoSuchPromptError: (404, "no-such-prompt"),
    UsageError: (422, "not-possible"),
    AgentvError: (422, "unreadable"),
    ValueError: (400, "bad-request"),
    FileNotFoundError: (404, "no-such-run"),
    OSError: (422, "unreadable"),
}
"""Exception → the status and the code of its answer; the first that fits."""


def _answered(context: ViewContext, endpoint: Endpoint, call: Call, request: Request) -> Response:
    tag = None
    if endpoint.state is not None:
        state = f"{__version__}\0{_START}\0{request.url.query}\0{endpoint.state(context, call)}"
        tag = f'W/"{hashlib.blake2b(state.encode(errors="surrogatepass"), digest_size=12).hexdigest()}"'
        if is_known(request, tag):
            return Response(status_code=304, headers={"ETag": tag})
    kept = context.answers.get((endpoint.path, tag)) if endpoint.kept and tag is not None else None
    if kept is not None:
        return Response(kept, media_type="application/json", headers={"ETag": tag or ""})
    try:
        found = endpoint.handler(context, call)
    except DamagedIndexError:
        found = endpoint.handler(context, call)  # with an index that is built again
    response = Response(encoded(found), media_type="application/json")
    if endpoint.method == "GET" and endpoint.state is None:
        return _unless_known(response, request)
    if tag is not None and getattr(found, "indexed", 1.0) >= 1:
        response.headers["ETag"] = tag
        if endpoint.kept:
            _keep(context, (endpoint.path, tag), bytes(response.body))
    return response


def _unless_known(response: Response, request: Request) -> Response:
    """The answer, tagged by its content; nothing but the tag where the page has it."""
    tag = f'W/"{hashlib.blake2b(bytes(response.body), digest_size=12).hexdigest()}"'
    if is_known(request, tag):
        return Response(status_code=304, headers={"ETag": tag})
    response.headers["ETag"] = tag
    return response


def _keep(context: ViewContext, key: tuple[str, str], answer: bytes) -> None:
    context.answers[key] = answer
    with suppress(KeyError):  # another thread may have taken the last one
        while len(context.answers) > KEPT:
            context.answers.popitem(last=False)


async def _checked(context: ViewContext, endpoint: Endpoint, request: Request) -> Call:
    viewer: Viewer = request.scope["viewer"]
    if endpoint.needs is not None and context.locks(viewer):
        raise RefusedError(403, "wrong-token", LOCKED)
    if endpoint.needs is not None and endpoint.needs not in viewer.permissions:
        raise RefusedError(403, "read-only", _lacking(viewer, endpoint.needs))
    query = _converted(request.query_params.multi_items(), endpoint.query)
    body = None
    if endpoint.body is not None:
        body = msgspec.json.decode(await _body(request), type=endpoint.body)
    return Call({name: str(request.path_params[name]) for name in endpoint.variables}, query, viewer, body)


def _lacking(viewer: Viewer, permission: Permission) -> str:
    if not viewer.team:
        return f"start the server with --{permission} to do this"
    scope = SCOPE_OF.get(permission)
    return f"this needs the scope '{scope}'" if scope else "a team's server runs no cases; run them where the files are"


def _converted(given: list[tuple[str, str]], into: type[msgspec.Struct]) -> Any:
    repeated = {one.encode_name for one in msgspec.structs.fields(into) if one.type == tuple[str, ...]}
    values: dict[str, Any] = {}
    for name, value in given:
        if name in repeated:
            values.setdefault(name, []).append(value)
        elif name in values:
            raise ValueError(f"'{name}' is given twice")
        else:
            values[name] = value
    return msgspec.convert(values, into, strict=False)


async def _body(request: Request) -> bytes:
    found = bytearray()
    async for piece in request.stream():
        found += piece
        if len(found) > LONGEST_BODY:
            raise RefusedError(413, "too-large", f"a request may have {LONGEST_BODY:,} bytes at most")
    return bytes(found)
