"""The application of a team's server."""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agentv.extensions.team.server import administration, labels, uploads
from agentv.extensions.team.server.endpoints import TeamEndpoint, failed, routes_of
from agentv.extensions.team.server.health import health_routes
from agentv.extensions.team.server.pages import ProjectPages, page_routes
from agentv.extensions.team.server.requests import TeamCall
from agentv.extensions.team.server.sign_in import sign_in_routes
from agentv.extensions.team.server.state import TeamState
from agentv.web.answers import RefusedError
from agentv.web.openapi import description
from agentv.web.security import Guard


def _description(state: TeamState, call: TeamCall) -> dict[str, Any]:  # noqa: ARG001  # as all handlers
    return description("agentv serve", ENDPOINTS, ())


ENDPOINTS = (
    *uploads.ENDPOINTS,
    *labels.ENDPOINTS,
    *administration.ENDPOINTS,
    TeamEndpoint("GET", "/api/openapi.json", "This description.", None, _description),
)


def team_routes(state: TeamState) -> list[Route]:
    """The routes for uploads, labels and administration, sign-in, health and metrics."""
    return [*routes_of(state, ENDPOINTS), *sign_in_routes(state), *health_routes(state)]


def team_application(state: TeamState, data: Path) -> Guard:
    """The application of a server: these routes, and the pages of every project.

    Args:
        state: of the server.
        data: directory of the copies of runs.
    """
    pages = ProjectPages(state, data)

    async def not_found(request: Request, error: Exception) -> Response:  # noqa: ARG001  # Starlette's signature
        status = error.status_code if isinstance(error, HTTPException) else 500
        if status == 405:
            return failed(state, RefusedError(405, "wrong-method", "this address does not support the method"))
        return failed(state, RefusedError(status, "no-such-address", "there is nothing at this address"))

    @asynccontextmanager
    async def lifespan(_: Starlette) -> Any:
        yield
        pages.close()

    starlette = Starlette(
        routes=[*team_routes(state), *page_routes(state, pages)],
        exception_handlers={HTTPException: not_found},
        lifespan=lifespan,
    )
    starlette.router.redirect_slashes = False  # it would redirect to the scheme of this side of a proxy
    return Guard(starlette, state.addresses, None)
