"""The pages of `agentv view` on a team's server: the list of projects, and each project at `/projects/NAME/`."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from agentv.app.results.project import Project
from agentv.extensions.team.server.editing import DatabaseRuns
from agentv.extensions.team.server.endpoints import failed
from agentv.extensions.team.server.identity import checked_identity
from agentv.extensions.team.server.sign_in import SIGN_IN
from agentv.extensions.team.server.state import TeamState
from agentv.extensions.team.store.labels import TeamLabels
from agentv.extensions.view.app import project_application
from agentv.extensions.view.pages import served
from agentv.extensions.view.static import static_route, static_version
from agentv.store.files.directory import results_directory
from agentv.web.answers import SCOPE_OF, RefusedError
from agentv.web.context import ViewContext, Viewer, ViewOptions
from agentv.web.security import SAFE, Message, Receive, Send


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
        self._mounted: dict[str, tuple[ViewContext, Starlette]] = {}

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

    def _application(self, project: str) -> tuple[ViewContext, Starlette]:
        with self._lock:
            if project not in self._mounted:
                self._mounted[project] = self._mount(project)
            return self._mounted[project]

    def _mount(self, project: str) -> tuple[ViewContext, Starlette]:
        if project not in self._state.tokens.projects():
            raise RefusedError(404, "no-such-project", f"the server has no project '{project}'")
        root = self._data / project
        results_directory(root).mkdir(parents=True, exist_ok=True)  # it may be copied for the first time just now
        context = ViewContext(
            Project(root),
            ViewOptions(),
            lambda request: self._viewer(project, request),
            DatabaseRuns(self._state.uploads, project, results_directory(root)),
        )
        context.writers = self._state.writers
        context.labels_of = lambda person: TeamLabels(self._state.database, project, person)
        return context, project_application(context, "../../static")


def page_routes(state: TeamState, pages: ProjectPages) -> list[BaseRoute]:
    """The routes of all pages; those of endpoints must come before them."""

    async def projects(request: Request) -> Response:
        try:
            found = await run_in_threadpool(checked_identity, state, request, None, None)
        except Exception as error:  # noqa: BLE001  # whatever it is, a person gets a sentence
            return refused_page(state, error, request, ".")
        text = served.document(f"static/{static_version()}", found.csrf, served.PROJECTS)
        return Response(text, media_type="text/html; charset=utf-8")

    async def add_slash(request: Request) -> Response:
        # relative: a proxy may have another scheme, and a path before ours
        return RedirectResponse(f"./{request.path_params['project']}/", 308)

    return [
        static_route(),
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
    text = served.message_page(f"{root}/static/{static_version()}", "This page cannot be shown", words, f"{root}/")
    headers = {name: value for name, value in answer.headers.items() if name in ("retry-after", "www-authenticate")}
    return Response(text, answer.status_code, headers, media_type="text/html; charset=utf-8")
