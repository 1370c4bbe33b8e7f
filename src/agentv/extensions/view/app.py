"""The web application of one project: routes, responses of endpoints, static files, and the local server.

A page needs about seventy JavaScript modules. A browser discovers imports only as it parses each module, so loading
them one by one would take longer than loading the data. A page's entry module is therefore served joined with all its
imports, and compressed once.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import socket
import sys
import webbrowser
from collections.abc import Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from errno import EADDRINUSE
from functools import cache, partial
from html import escape
from importlib.resources import files
from pathlib import Path
from secrets import token_urlsafe
from tempfile import TemporaryDirectory
from threading import Thread
from types import FrameType
from typing import Any

import msgspec
import uvicorn
from anyio import to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from agentv.errors import UsageError
from agentv.extensions.view.api import endpoints
from agentv.extensions.view.events import STREAMS, Events
from agentv.extensions.view.growing import DamagedIndexError
from agentv.extensions.view.pages.page import ENTRY, joined
from agentv.extensions.view.state import view_of
from agentv.version import __version__
from agentv.web.answers import (
    LOCKED,
    LONGEST_BODY,
    RefusedError,
    encoded,
    error_response,
    is_not_modified,
    no_route,
    response_to_error,
)
from agentv.web.documents import document as document_of
from agentv.web.endpoints import SCOPE_OF, Call, Endpoint, Permission, ProjectContext, Viewer, description, quiet_config
from agentv.web.security import Guard, Message, Receive, Send, loopback_addresses

_START = token_urlsafe(8)
"""Part of every ETag, as responses contain cursors, which are only valid in this process."""

MOST_CACHED = 16
"""Number of slow responses that are cached."""


async def respond(context: ProjectContext, endpoint: Endpoint, request: Request) -> Response:
    """The response of an endpoint to a request."""
    try:
        call = await _call_of(context, endpoint, request)
        threads = None if endpoint.method == "GET" else context.writers
        return await to_thread.run_sync(_response, context, endpoint, call, request, limiter=threads)
    except Exception as error:  # noqa: BLE001  # every error becomes a response with a message
        return response_to_error(error)


def _response(context: ProjectContext, endpoint: Endpoint, call: Call, request: Request) -> Response:
    tag = None
    if endpoint.state is not None:
        state = f"{__version__}\0{_START}\0{request.url.query}\0{endpoint.state(context, call)}"
        tag = f'W/"{hashlib.blake2b(state.encode(errors="surrogatepass"), digest_size=12).hexdigest()}"'
        if is_not_modified(request, tag):
            return Response(status_code=304, headers={"ETag": tag})
    view = view_of(context)
    cached = view.answers.get((endpoint.path, tag)) if endpoint.cached and tag is not None else None
    if cached is not None:
        return Response(cached, media_type="application/json", headers={"ETag": tag or ""})
    try:
        found = endpoint.handler(context, call)
    except DamagedIndexError:
        found = endpoint.handler(context, call)  # the damaged index was removed and is rebuilt
    response = Response(encoded(found), media_type="application/json")
    if endpoint.method == "GET" and endpoint.state is None:
        return _unless_known(response, request)
    if tag is not None and getattr(found, "indexed", 1.0) >= 1:
        response.headers["ETag"] = tag
        if endpoint.cached:
            view.answers[(endpoint.path, tag)] = bytes(response.body)
            with suppress(KeyError):  # another thread may have removed the last one
                while len(view.answers) > MOST_CACHED:
                    view.answers.popitem(last=False)
    return response


def _unless_known(response: Response, request: Request) -> Response:
    """The response with an ETag of its content, or 304 without a body if the client already has it."""
    tag = f'W/"{hashlib.blake2b(bytes(response.body), digest_size=12).hexdigest()}"'
    if is_not_modified(request, tag):
        return Response(status_code=304, headers={"ETag": tag})
    response.headers["ETag"] = tag
    return response


async def _call_of(context: ProjectContext, endpoint: Endpoint, request: Request) -> Call:
    viewer: Viewer = request.scope["viewer"]
    if endpoint.needs is not None and context.lacks_token(viewer):
        raise RefusedError(403, "wrong-token", LOCKED)
    if endpoint.needs is not None and endpoint.needs not in viewer.permissions:
        raise RefusedError(403, "read-only", _permission_hint(viewer, endpoint.needs))
    query = _query_of(request.query_params.multi_items(), endpoint.query)
    body = None
    if endpoint.body is not None:
        found = bytearray()
        async for piece in request.stream():
            found += piece
            if len(found) > LONGEST_BODY:
                raise RefusedError(413, "too-large", f"a request may have {LONGEST_BODY:,} bytes at most")
        body = msgspec.json.decode(bytes(found), type=endpoint.body)
    return Call({name: str(request.path_params[name]) for name in endpoint.variables}, query, viewer, body)


def _query_of(given: list[tuple[str, str]], into: type[msgspec.Struct]) -> Any:
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


def _permission_hint(viewer: Viewer, permission: Permission) -> str:
    if not viewer.team:
        return f"start the server with --{permission} to do this"
    scope = SCOPE_OF.get(permission)
    return f"this needs the scope '{scope}'" if scope else "a team's server runs no cases; run them where the files are"


ENTRIES = (ENTRY, "projects.js", "sign_in/sign_in.js")
"""Entry modules of the pages: of a project, of a team's list of projects, and of signing in."""

_TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}


@cache
def static_files() -> dict[str, bytes]:
    """Path → content of every static file."""
    found: dict[str, bytes] = {}
    waiting = [("", files("agentv.extensions.view.pages") / "browser")]
    while waiting:
        place, directory = waiting.pop()
        for one in directory.iterdir():
            path = f"{place}{one.name}"
            if one.is_dir():
                waiting.append((f"{path}/", one))
            elif any(path.endswith(suffix) for suffix in _TYPES):
                found[path] = one.read_bytes()
    return found | {path: joined(path).encode() for path in ENTRIES}


@cache
def static_version() -> str:
    """A hash of all static files. It is part of their addresses, so that browsers may cache them for ever."""
    found = hashlib.blake2b(digest_size=8)
    for path, content in sorted(static_files().items()):
        found.update(f"{path}\0{len(content)}\0".encode() + content)
    return found.hexdigest()


@cache
def _compressed(path: str) -> bytes:
    return gzip.compress(static_files()[path], mtime=0)


async def static_file(request: Request) -> Response:
    """The response with a static file."""
    path = request.path_params["path"]
    if request.path_params["version"] != static_version() or path not in static_files():
        return error_response(404, "no-such-file", "reload the page: it belongs to another version")
    named = [one.replace(" ", "").lower() for one in request.headers.get("accept-encoding", "").split(",")]
    packed = any(one == "gzip" or (one.startswith("gzip;") and not one.endswith(("q=0", "q=0.0"))) for one in named)
    tag = f'"{static_version()}{"-gzip" if packed else ""}"'  # the address includes the version
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "ETag": tag, "Vary": "Accept-Encoding"}
    if is_not_modified(request, tag):
        return Response(status_code=304, headers=headers)
    if packed:
        headers["Content-Encoding"] = "gzip"
    kind = next(kind for suffix, kind in _TYPES.items() if path.endswith(suffix))
    return Response(_compressed(path) if packed else static_files()[path], media_type=kind, headers=headers)


def static_route() -> Route:
    """The route of all static files."""
    return Route("/static/{version}/{path:path}", static_file)


def application(context: ProjectContext, port: int) -> Guard:
    """The application of `agentv view` on a local port."""
    pages = project_application(context, "static")

    async def own(scope: Message, receive: Receive, send: Send) -> None:
        await pages({**scope, "viewer": context.viewer(Request(scope))}, receive, send)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> Any:
        yield
        context.close()

    routes = [static_route(), Mount("", app=own)]
    starlette = Starlette(routes=routes, exception_handlers=dict(HANDLERS), lifespan=lifespan)
    return Guard(starlette, loopback_addresses(port), context.token)


def project_application(context: ProjectContext, static: str) -> Starlette:
    """The pages and the API of one project. The caller must put a `Viewer` into the ASGI scope as `viewer`.

    Args:
        context: state of the project.
        static: address of the static files, relative to the document.
    """
    events, declared = Events(context), endpoints()

    async def document(request: Request) -> Response:
        text = document_of(f"{static}/{static_version()}", ENTRY, request.scope["viewer"].token)
        return Response(text, media_type="text/html; charset=utf-8")

    async def openapi(request: Request) -> Response:  # noqa: ARG001  # Starlette's signature
        return Response(encoded(description("agentv view", declared, STREAMS)), media_type="application/json")

    routes = [
        Route(one.path.replace("{route}", "{route:path}"), partial(respond, context, one), methods=[one.method])
        for one in declared
    ]
    routes += [Route(one.path, partial(one.open, events)) for one in STREAMS]
    routes += [Route("/api/openapi.json", openapi), Route("/", document)]
    return Starlette(routes=routes, exception_handlers=dict(HANDLERS))


async def _http_error(_: Request, error: Exception) -> Response:
    return response_to_error(no_route(error))


async def _bug(_: Request, error: Exception) -> Response:
    return response_to_error(error)


HANDLERS: Mapping[Any, Any] = {HTTPException: _http_error, Exception: _bug}
"""Handlers for requests without a route and for exceptions."""


DEFAULT_PORT = 4280
_TRIED = 20
"""Number of ports to try, starting at the default one."""

_GRACE_S = 0.3


class _Server(uvicorn.Server):
    """A server that stops at the first signal, even while streams are open."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002  # uvicorn's signature
        """Stop at once."""
        self.should_exit = self.force_exit = True


def listening_socket(port: int | None) -> socket.socket:
    """A socket that listens on a port; for None, on the default port or the next free one.

    Raises:
        UsageError: the port is in use or not permitted.
    """
    tried = [port] if port is not None else [*range(DEFAULT_PORT, DEFAULT_PORT + _TRIED), 0]
    for one in tried:
        # name the protocol: asyncio sets TCP_NODELAY only then, without which small responses are delayed
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(("127.0.0.1", one))
            listening.listen(128)
        except OSError as error:
            listening.close()
            if port is None and error.errno == EADDRINUSE:
                continue
            hint = "give another one with --port, or none to use the next free one"
            raise UsageError(f"cannot listen on port {one}: {error.strerror}", hint) from error
        return listening
    raise UsageError("no port is free", "give one with --port")


def serve(context: ProjectContext, listening: socket.socket, started: Callable[[], None] = lambda: None) -> None:
    """Serve until SIGINT or SIGTERM.

    Args:
        context: state of the project.
        listening: a listening socket.
        started: called once when requests can be answered.
    """
    port = listening.getsockname()[1]
    config = quiet_config(application(context, port), timeout_graceful_shutdown=1, timeout_keep_alive=30, lifespan="on")
    server = _Server(config)
    server.config.load()
    started()
    try:
        with suppress(KeyboardInterrupt):
            server.run(sockets=[listening])
    finally:
        context.close()


@contextmanager
def opened_in_browser(address: str, *, secret: bool) -> Iterator[None]:
    """Open a page in a browser if there is a display, without waiting for it.

    Args:
        address: address of the page.
        secret: whether the address contains a token. Every user of the machine can read the browser's command line, so
            the browser is given a private file that redirects to the address, which is deleted when the block ends.
    """
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        yield
        return
    with TemporaryDirectory(prefix="agentv-view-") as private:  # mode 0700
        if secret:
            page = Path(private, "open.html")
            page.write_text(_REDIRECT.format(address=escape(address)), encoding="utf-8")
            address = page.as_uri()
        Thread(target=_open, args=(address,), daemon=True).start()
        yield


_REDIRECT = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={address}">
<title>agentv</title>
<a href="{address}">agentv view</a>
"""


def _open(address: str) -> None:
    with suppress(Exception):
        webbrowser.open(address)
