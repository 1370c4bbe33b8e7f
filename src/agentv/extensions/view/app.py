"""The application: routes made from the declared endpoints, behind the guard."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from agentv.extensions.view.answering import answer
from agentv.extensions.view.api import endpoints
from agentv.extensions.view.events import STREAMS, Events
from agentv.extensions.view.pages.page import ENTRY
from agentv.extensions.view.static import static_route, static_version
from agentv.web.answers import encoded, error_response, failed
from agentv.web.documents import document as document_of
from agentv.web.endpoints import ProjectContext, description
from agentv.web.security import Guard, Message, Receive, Send, loopback_addresses


def application(context: ProjectContext, port: int) -> Guard:
    """The application of `agentv view`, on a port of this machine."""
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
    """The pages and the API of one project. Whoever calls it puts a `Viewer` into the scope as `viewer`.

    Args:
        context: of the project.
        static: address of the static files, relative to the document.
    """
    events, declared = Events(context), endpoints()

    async def document(request: Request) -> Response:
        text = document_of(f"{static}/{static_version()}", ENTRY, request.scope["viewer"].token)
        return Response(text, media_type="text/html; charset=utf-8")

    async def openapi(request: Request) -> Response:  # noqa: ARG001  # Starlette's signature
        return Response(encoded(description("agentv view", declared, STREAMS)), media_type="application/json")

    routes = [
        Route(one.path.replace("{route}", "{route:path}"), partial(answer, context, one), methods=[one.method])
        for one in declared
    ]
    routes += [Route(one.path, partial(one.open, events)) for one in STREAMS]
    routes += [Route("/api/openapi.json", openapi), Route("/", document)]
    return Starlette(routes=routes, exception_handlers=dict(HANDLERS))


async def _http_error(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 405:
        return error_response(405, "wrong-method", "this address does not support the method")
    return error_response(status, "no-such-address", "there is nothing at this address")


async def _bug(_: Request, error: Exception) -> Response:
    return failed(error)


HANDLERS: Mapping[Any, Any] = {HTTPException: _http_error, Exception: _bug}
"""Answers where no route fits, or a handler raised."""
