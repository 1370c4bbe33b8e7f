"""The application of a team's server."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agentv.web.answers import RefusedError
from agentv.web.team import administration, uploads
from agentv.web.team.endpoints import failed, routes_of
from agentv.web.team.health import health_routes
from agentv.web.team.state import TeamState


def team_routes(state: TeamState) -> list[Route]:
    """The routes for uploads and administration, health and metrics."""
    return [*routes_of(state, (*uploads.ENDPOINTS, *administration.ENDPOINTS)), *health_routes(state)]


def team_application(state: TeamState) -> Starlette:
    """An application of these routes alone."""

    async def not_found(request: Request, error: Exception) -> Response:  # noqa: ARG001  # Starlette's signature
        status = error.status_code if isinstance(error, HTTPException) else 500
        if status == 405:
            return failed(state, RefusedError(405, "wrong-method", "this address does not support the method"))
        return failed(state, RefusedError(status, "no-such-address", "there is nothing at this address"))

    return Starlette(routes=team_routes(state), exception_handlers={HTTPException: not_found})
