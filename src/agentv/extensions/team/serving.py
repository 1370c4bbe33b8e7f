"""The application of a team's server: API, pages, and the thread that keeps copies of runs up to date."""

from __future__ import annotations

import ipaddress
import re
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any
from urllib.parse import urlencode

import uvicorn
from msgspec import Struct
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from agentv.app.results.project import DeletedRun, NamedRun, NoSuchRunError, Project, checked_name
from agentv.errors import AgentvError, UsageError
from agentv.extensions.team.api import ENDPOINTS, health_routes
from agentv.extensions.team.endpoints import TeamState, checked_identity, failed, routes_of
from agentv.extensions.team.labels import TeamLabels
from agentv.extensions.team.replica import Replica
from agentv.extensions.team.sign_in import SIGN_IN, sign_in_routes
from agentv.extensions.team.uploaded import RunName
from agentv.registry.extensions import PAGES, loaded
from agentv.store.files.directory import is_being_written, results_directory
from agentv.web.answers import RefusedError, no_route
from agentv.web.documents import document, message_page
from agentv.web.endpoints import SCOPE_OF, ProjectContext, Viewer, quiet_config
from agentv.web.security import SAFE, Application, Guard, Message, Receive, Send, loopback_addresses

_WAIT_S = 2.0
"""Longest wait for this server's copies after a change, in seconds, so that the person who made it sees it."""

_POLL_S = 0.02


class DatabaseRuns(Struct, frozen=True):
    """Renames and deletes the runs of one project. A `RunEditor`.

    Args:
        state: state of the server.
        project: name of the project.
        copies: directory of this server's copies of its runs.
    """

    _state: TeamState
    _project: str
    _copies: Path

    def name(self, run_id: str, name: str, person: str) -> NamedRun:
        """Rename a run. A later push replaces the name only if the run's own name was changed meanwhile.

        Raises:
            DatabaseUnavailableError: the database cannot be reached.
        """
        given = checked_name(name)
        if not self._state.uploads.give_name(RunName(self._project, run_id, person, is_admin=True), given):
            raise NoSuchRunError("this project has no such run; it may have been deleted")
        self._wait_for_copies()
        return NamedRun(run_id, given)

    def delete(self, run_id: str, person: str) -> DeletedRun:
        """Delete a run. It can be pushed again from its files.

        Raises:
            DatabaseUnavailableError: the database cannot be reached.
        """
        name = RunName(self._project, run_id, person, is_admin=True)
        if (self._copies / run_id).is_dir() and is_being_written(self._copies / run_id):
            raise UsageError("the run is still being uploaded", "wait until it ends")
        if not self._state.uploads.delete(name):
            raise NoSuchRunError("this project has no such run; it may have been deleted")
        self._wait_for_copies()
        return DeletedRun(run_id, [])

    def _wait_for_copies(self) -> None:
        changes, end = self._state.uploads.changes(), time.monotonic() + _WAIT_S
        while self._state.copied < changes and time.monotonic() < end:
            time.sleep(_POLL_S)


PROJECTS = "projects.js"
"""Entry module of the list of projects."""


class ProjectPages:
    """Serves the pages of each project with its own application, created at the first request.

    Args:
        state: state of the server.
        data: directory of the copies.
    """

    def __init__(self, state: TeamState, data: Path) -> None:
        self._state = state
        self._data = data
        self._lock = Lock()
        self._mounted: dict[str, tuple[ProjectContext, Application]] = {}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request for a project. A sender without access cannot tell whether the project exists."""
        request = Request(scope)
        project = scope["path_params"]["project"]
        is_document = scope["path"] == f"{scope['root_path']}/" and request.method in SAFE
        try:
            viewer = await run_in_threadpool(self._viewer, project, request)
            _, pages = await run_in_threadpool(self._application, project)
        except Exception as error:  # noqa: BLE001  # any error becomes a response
            answer = failed(self._state, error)
            if is_document:
                answer = refused_page(self._state, error, request, "../..")
            await answer(scope, receive, send)
            return
        await pages({**scope, "viewer": viewer}, receive, send)

    def close(self) -> None:
        """Close the applications of all projects."""
        for context, _ in self._mounted.values():
            context.close()

    def _viewer(self, project: str, request: Request) -> Viewer:
        found = checked_identity(self._state, request, "read", project)
        allowed = frozenset(one for one, scope in SCOPE_OF.items() if found.allows(scope, project))
        return Viewer(found.actor, allowed, found.csrf, team=True)

    def _application(self, project: str) -> tuple[ProjectContext, Application]:
        with self._lock:
            if project in self._mounted:
                return self._mounted[project]
            if project not in self._state.tokens.projects():
                raise RefusedError(404, "no-such-project", f"the server has no project '{project}'")
            root = self._data / project
            results_directory(root).mkdir(parents=True, exist_ok=True)  # the first copy may not have been made yet
            context = ProjectContext(
                Project(root),
                lambda request: self._viewer(project, request),
                editor=DatabaseRuns(self._state, project, results_directory(root)),
                labels_of=lambda person: TeamLabels(self._state.database, project, person),
                writers=self._state.writers,
            )
            self._mounted[project] = context, loaded(PAGES, "project")(context, "../../static")
            return self._mounted[project]


def page_routes(state: TeamState, pages: ProjectPages) -> list[BaseRoute]:
    """Return the routes of all pages. Routes of endpoints must come before them."""

    async def projects(request: Request) -> Response:
        try:
            found = await run_in_threadpool(checked_identity, state, request, None, None)
        except Exception as error:  # noqa: BLE001  # any error becomes a page
            return refused_page(state, error, request, ".")
        text = document(f"static/{_version()}", PROJECTS, found.csrf)
        return Response(text, media_type="text/html; charset=utf-8")

    async def add_slash(request: Request) -> Response:
        # relative, since a proxy may use another scheme or a path prefix
        return RedirectResponse(f"./{request.path_params['project']}/", 308)

    return [
        loaded(PAGES, "static")(),
        Route("/", projects),
        Route("/projects/{project}", add_slash),
        Mount("/projects/{project}", app=pages),
    ]


def refused_page(state: TeamState, error: Exception, request: Request, root: str) -> Response:
    """Return the page for an error, or a redirect to the sign-in page if the person is not signed in.

    Args:
        state: state of the server.
        error: the exception.
        request: the request for the page.
        root: URL of the list of projects, relative to the page.
    """
    answer = failed(state, error)
    if answer.status_code == 401 and "authorization" not in request.headers:
        return RedirectResponse(f"{root}{SIGN_IN}?{urlencode({'to': request.url.path})}", 303)
    words = str(error) if isinstance(error, RefusedError) else "the server cannot answer now; try again later"
    text = message_page(f"{root}/static/{_version()}", "This page cannot be shown", words, f"{root}/")
    headers = {name: value for name, value in answer.headers.items() if name in ("retry-after", "www-authenticate")}
    return Response(text, answer.status_code, headers, media_type="text/html; charset=utf-8")


def _version() -> str:
    found: str = loaded(PAGES, "version")()
    return found


def team_routes(state: TeamState) -> list[Route]:
    """Return the routes for uploads, labels, administration, sign-in, health and metrics."""
    return [*routes_of(state, ENDPOINTS), *sign_in_routes(state), *health_routes(state)]


def team_application(state: TeamState, data: Path) -> Guard:
    """Return the application of a server, with these routes and the pages of every project.

    Args:
        state: state of the server.
        data: directory of the copies of runs.
    """
    pages = ProjectPages(state, data)

    async def not_found(request: Request, error: Exception) -> Response:  # noqa: ARG001  # Starlette's signature
        return failed(state, no_route(error))

    @asynccontextmanager
    async def lifespan(_: Starlette) -> Any:
        yield
        pages.close()

    starlette = Starlette(
        routes=[*team_routes(state), *page_routes(state, pages)],
        exception_handlers={HTTPException: not_found},
        lifespan=lifespan,
    )
    starlette.router.redirect_slashes = False  # such redirects would use the scheme behind the proxy
    return Guard(starlette, state.addresses, None)


_CHECK_S = 0.1
"""Seconds between two checks for changes of the database."""

_COMPARE_S = 5.0
"""Seconds after which copies are updated even if the database has not changed, as runs may have become silent."""

_RETRY_S = 1.0

_ADDRESS = re.compile(r"https?://([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")


def listening_socket(host: str, port: int) -> socket.socket:
    """Open a listening socket.

    Raises:
        UsageError: the address cannot be used.
    """
    # the protocol must be set, or asyncio does not enable TCP_NODELAY
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen(128)
    except OSError as error:
        made.close()
        message = f"cannot listen on {host}:{port}: {error.strerror}"
        raise UsageError(message, "give another --host or --port") from error
    return made


def serve_team(
    state: TeamState, data: Path, listening: socket.socket, started: Callable[[], None], problem: Callable[[str], None]
) -> None:
    """Serve until SIGINT or SIGTERM.

    Args:
        state: state of the server.
        data: directory of the copies.
        listening: listening socket.
        started: called once, before requests are answered.
        problem: called with each new problem of the background thread.

    Raises:
        StoreError: the directory cannot be used.
    """
    with copying(state, data, problem):
        started()
        with suppress(KeyboardInterrupt):
            team_server(state, data).run(sockets=[listening])


def team_server(state: TeamState, data: Path) -> uvicorn.Server:
    """Create the HTTP server."""
    config = quiet_config(
        team_application(state, data),
        timeout_graceful_shutdown=3,
        proxy_headers=bool(state.proxies),
        forwarded_allow_ips=list(state.proxies),
    )
    return uvicorn.Server(config)


def trusted_proxies(given: Sequence[str]) -> Sequence[str]:
    """Return the trusted proxies after checking them.

    Raises:
        UsageError: one is neither an IP address nor a network.
    """
    for one in given:
        try:
            ipaddress.ip_network(one)
        except ValueError as error:
            hint = "give it as 10.0.0.7, or a network as 10.0.0.0/24"
            raise UsageError(f"'{one}' is no IP address of a proxy", hint) from error
    return given


def public_addresses(given: Sequence[str], host: str, port: int) -> list[str]:
    """Return the public addresses of a server: those given, else the one it listens on.

    Raises:
        UsageError: an address is invalid, or the server listens on all addresses and none is given.
    """
    for one in given:
        if _ADDRESS.fullmatch(one.rstrip("/").lower()) is None:
            hint = "give it as https://evals.example.org, without a path"
            raise UsageError(f"'{one}' is no address of a server", hint)
    if given:
        return [one.rstrip("/").lower() for one in given]
    if host in ("0.0.0.0", "::"):  # noqa: S104  # rejected here
        hint = "add --address https://evals.example.org"
        raise UsageError(f"a server that listens on {host} must know its address", hint)
    if host in ("127.0.0.1", "localhost", "::1"):
        return loopback_addresses(port)
    shown = f"[{host}]" if ":" in host else host
    return [f"http://{shown.lower()}" + ("" if port == 80 else f":{port}")]


@contextmanager
def copying(state: TeamState, data: Path, problem: Callable[[str], None]) -> Iterator[Replica]:
    """Keep the copies of runs up to date during the block; close the database at its end."""
    ended = Event()
    replica = Replica(state.database, data)
    thread = Thread(target=_keep_copying, args=(state, replica, ended, problem), name="agentv-copies", daemon=True)
    thread.start()
    try:
        yield replica
    finally:
        ended.set()
        thread.join(timeout=5)
        state.database.close()
        replica.close()


def _keep_copying(state: TeamState, replica: Replica, ended: Event, problem: Callable[[str], None]) -> None:
    reported, compared_at = "", 0.0
    while not ended.wait(_CHECK_S):
        try:
            found = state.uploads.changes()
            if found != state.copied or time.monotonic() - compared_at > _COMPARE_S:
                replica.update()
                state.copied, compared_at = found, time.monotonic()
            reported = ""
        except AgentvError as error:
            if str(error) != reported and not ended.is_set():
                reported = str(error)
                problem(reported)
            ended.wait(_RETRY_S)
