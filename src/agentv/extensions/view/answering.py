"""How the endpoints of a project are answered: checked, tagged by what an answer depends on, kept if it takes long."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from secrets import token_urlsafe
from typing import Any

import msgspec
from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response

from agentv.extensions.view.state import ProjectView, view_of
from agentv.extensions.view.viewed.growing import DamagedIndexError
from agentv.version import __version__
from agentv.web.answers import LOCKED, LONGEST_BODY, RefusedError, encoded, failed, is_known
from agentv.web.endpoints import SCOPE_OF, Call, Endpoint, Permission, ProjectContext, Viewer

_START = token_urlsafe(8)
"""Answers hold cursors, which mean nothing to another process: its answers have other tags."""

KEPT = 16
"""Answers that take long to make and are kept."""


async def answer(context: ProjectContext, endpoint: Endpoint, request: Request) -> Response:
    """The answer of an endpoint to a request."""
    try:
        call = await _checked(context, endpoint, request)
        threads = None if endpoint.method == "GET" else context.writers
        return await to_thread.run_sync(_answered, context, endpoint, call, request, limiter=threads)
    except Exception as error:  # noqa: BLE001  # whatever it is, a person gets a sentence
        return failed(error)


def _answered(context: ProjectContext, endpoint: Endpoint, call: Call, request: Request) -> Response:
    tag = None
    if endpoint.state is not None:
        state = f"{__version__}\0{_START}\0{request.url.query}\0{endpoint.state(context, call)}"
        tag = f'W/"{hashlib.blake2b(state.encode(errors="surrogatepass"), digest_size=12).hexdigest()}"'
        if is_known(request, tag):
            return Response(status_code=304, headers={"ETag": tag})
    view = view_of(context)
    kept = view.answers.get((endpoint.path, tag)) if endpoint.kept and tag is not None else None
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
            _keep(view, (endpoint.path, tag), bytes(response.body))
    return response


def _unless_known(response: Response, request: Request) -> Response:
    """The answer, tagged by its content; nothing but the tag where the page has it."""
    tag = f'W/"{hashlib.blake2b(bytes(response.body), digest_size=12).hexdigest()}"'
    if is_known(request, tag):
        return Response(status_code=304, headers={"ETag": tag})
    response.headers["ETag"] = tag
    return response


def _keep(view: ProjectView, key: tuple[str, str], answer: bytes) -> None:
    view.answers[key] = answer
    with suppress(KeyError):  # another thread may have taken the last one
        while len(view.answers) > KEPT:
            view.answers.popitem(last=False)


async def _checked(context: ProjectContext, endpoint: Endpoint, request: Request) -> Call:
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
