"""The pages of `agentv view` on a team's server: the list of projects, and each project at `/projects/NAME/`."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from agentv.app.results.project import DeletedRun, NamedRun, NoSuchRunError, Project, checked_name
from agentv.errors import UsageError
from agentv.extensions.team.server.endpoints import failed
from agentv.extensions.team.server.identity import checked_identity
from agentv.extensions.team.server.sign_in import SIGN_IN
from agentv.extensions.team.server.state import TeamState
from agentv.extensions.team.store.labels import TeamLabels
from agentv.extensions.team.store.uploaded import RunName, UploadRefusedError, name_in
from agentv.extensions.team.store.uploads import Uploads
from agentv.registry.extensions import PAGES, loaded
from agentv.store.files.directory import RUN, is_being_written, results_directory
from agentv.web.answers import RefusedError
from agentv.web.documents import document, message_page
from agentv.web.endpoints import SCOPE_OF, ProjectContext, Viewer
from agentv.web.security import SAFE, Application, Message, Receive, Send

_WAIT_S = 2.0
"""Seconds to wait for this server's own copy, so that whoever changed something sees it at once."""

_LOOK_S = 0.02


class DatabaseRuns:
    """The runs of one project.

    Args:
        uploads: of the database.
        project: whose runs they are.
        copies: directory of this server's copies of them.
    """

    def __init__(self, uploads: Uploads, project: str, copies: Path) -> None:
        self._uploads = uploads
        self._project = project
        self._copies = copies

    def name(self, run_id: str, name: str, person: str) -> NamedRun:
        """See `RunEditor`. A later push replaces the name only where the run was given another one in its own files.

        Raises:
            DatabaseUnavailableError: the database cannot be reached.
        """
        given = checked_name(name)
        if not self._uploads.give_name(RunName(self._project, run_id, person, is_admin=True), given):
            raise NoSuchRunError("this project has no such run; it may have been deleted")
        _wait(lambda: self._has_name(run_id, given))
        return NamedRun(run_id, given)

    def delete(self, run_id: str, person: str) -> DeletedRun:
        """See `RunEditor`. Whoever has the run's files may push it again.

        Raises:
            DatabaseUnavailableError: the database cannot be reached.
        """
        name = RunName(self._project, run_id, person, is_admin=True)
        if (self._copies / run_id).is_dir() and is_being_written(self._copies / run_id):
            raise UsageError("the run is still being uploaded", "wait until it ends")
        if not self._uploads.delete(name):
            raise NoSuchRunError("this project has no such run; it may have been deleted")
        _wait(lambda: not (self._copies / run_id).exists())
        return DeletedRun(run_id, [])

    def _has_name(self, run_id: str, given: str) -> bool:
        try:
            return bool(name_in((self._copies / run_id / RUN).read_bytes()) == given)
        except (OSError, UploadRefusedError):
            return False  # it is not copied yet, or was deleted just now


def _wait(done: Callable[[], bool]) -> None:
    end = time.monotonic() + _WAIT_S
    while not done() and time.monotonic() < end:
        time.sleep(_LOOK_S)


PROJECTS = "projects.js"
"""The module that the list of projects begins with."""


class ProjectPages:
    """One application of pages for each project, made when its project is first asked for.

    Args:
        state: of the server.
        data: directory of the copies.
    """

    def __init__(self, state: TeamState, data: Path) -> None:
        self._state = state
        self._data = data
        self._lock = Lock()
        self._mounted: dict[str, tuple[ProjectContext, Application]] = {}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request about a project. Who may not read it does not learn whether it exists."""
        request = Request(scope)
        project = scope["path_params"]["project"]
        is_document = scope["path"] == f"{scope['root_path']}/" and request.method in SAFE
        try:
            viewer = await run_in_threadpool(self._viewer, project, request)
            _, pages = await run_in_threadpool(self._application, project)
        except Exception as error:  # noqa: BLE001  # whatever it is, a person gets a sentence
            answer = failed(self._state, error)
            if is_document:
                answer = refused_page(self._state, error, request, "../..")
            await answer(scope, receive, send)
            return
        await pages({**scope, "viewer": viewer}, receive, send)

    def close(self) -> None:
        """Close all runs."""
        for context, _ in self._mounted.values():
            context.close()

    def _viewer(self, project: str, request: Request) -> Viewer:
        found = checked_identity(self._state, request, "read", project)
        allowed = frozenset(one for one, scope in SCOPE_OF.items() if found.allows(scope, project))
        return Viewer(found.actor, allowed, found.csrf, team=True)

    def _application(self, project: str) -> tuple[ProjectContext, Application]:
        with self._lock:
            if project not in self._mounted:
                self._mounted[project] = self._mount(project)
            return self._mounted[project]

    def _mount(self, project: str) -> tuple[ProjectContext, Application]:
        if project not in self._state.tokens.projects():
            raise RefusedError(404, "no-such-project", f"the server has no project '{project}'")
        root = self._data / project
        results_directory(root).mkdir(parents=True, exist_ok=True)  # it may be copied for the first time just now
        context = ProjectContext(
            Project(root),
            lambda request: self._viewer(project, request),
            editor=DatabaseRuns(self._state.uploads, project, results_directory(root)),
            labels_of=lambda person: TeamLabels(self._state.database, project, person),
            writers=self._state.writers,
        )
        return context, loaded(PAGES, "project")(context, "../../static")


def page_routes(state: TeamState, pages: ProjectPages) -> list[BaseRoute]:
    """The routes of all pages; those of endpoints must come before them."""

    async def projects(request: Request) -> Response:
        try:
            found = await run_in_threadpool(checked_identity, state, request, None, None)
        except Exception as error:  # noqa: BLE001  # whatever it is, a person gets a sentence
            return refused_page(state, error, request, ".")
        text = document(f"static/{_version()}", PROJECTS, found.csrf)
        return Response(text, media_type="text/html; charset=utf-8")

    async def add_slash(request: Request) -> Response:
        # relative: a proxy may have another scheme, and a path before ours
        return RedirectResponse(f"./{request.path_params['project']}/", 308)

    return [
        loaded(PAGES, "static")(),
        Route("/", projects),
        Route("/projects/{project}", add_slash),
        Mount("/projects/{project}", app=pages),
    ]


def refused_page(state: TeamState, error: Exception, request: Request, root: str) -> Response:
    """The page of somebody who is not let in, or where something went wrong. Who is not signed in is led to do so.

    Args:
        state: of the server.
        error: what was raised.
        request: of a page.
        root: address of the list of projects, relative to the page.
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
