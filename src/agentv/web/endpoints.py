"""Endpoints of a project: their shared state, their declaration, their OpenAPI description, and the server."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import RLock
from typing import Any, Literal, TypeVar, get_args, get_type_hints

import msgspec
import uvicorn
from anyio import CapacityLimiter
from msgspec import Struct
from starlette.requests import Request

from agentv.app.results.project import Project, RunEditor
from agentv.version import __version__
from agentv.web.answers import ErrorAnswer

TOKEN_HEADER = "X-Agentv-Token"  # noqa: S105  # the name of a header

Permission = Literal["edit", "label", "run"]
PERMISSIONS: tuple[Permission, ...] = get_args(Permission)

SCOPE_OF: dict[Permission, Literal["admin", "label"]] = {"edit": "admin", "label": "label"}
"""Permission → the scope that grants it on a team's server. `run` has none: a server does not run cases."""

_Shared = TypeVar("_Shared")


class Viewer(Struct, frozen=True):
    """The person who sends a request, and what they may do beyond reading.

    Attributes:
        person: name for labels and the audit log.
        permissions: permissions to change something.
        token: required for changes from the person's page, and included in its document; "" omits it from the document.
        team: whether the project is one of several on a server where people sign in.
    """

    person: str
    permissions: frozenset[Permission] = frozenset()
    token: str = ""
    team: bool = False


@dataclass(eq=False)
class ProjectContext:
    """The state of one project's application.

    Attributes:
        project: the project whose runs are shown.
        viewer: returns the person who sends a request. Called in a thread; raises RefusedError if they may not read the
            project.
        token: required for requests that change something; a new one at each start. Only the printed address contains
            it, no page does, so that other users of this machine can read but change nothing. Empty on a team's server,
            and if nothing may be changed.
        editor: names and deletes runs; None to do so in the run files.
        labels_of: returns the store of a person's labels; None to use the project's files.
        writers: limits the threads that change something; None for the default limit.
    """

    project: Project
    viewer: Callable[[Request], Viewer]
    token: str = ""
    editor: RunEditor | None = None
    labels_of: Callable[[str], Any] | None = None
    writers: CapacityLimiter | None = None
    _shared: dict[Callable[[ProjectContext], Any], Any] = field(default_factory=dict)
    _lock: RLock = field(default_factory=RLock)

    def lacks_token(self, viewer: Viewer) -> bool:
        """Whether the viewer's page may change nothing only because it lacks the token."""
        return bool(self.token) and not viewer.permissions

    def shared(self, make: Callable[[ProjectContext], _Shared]) -> _Shared:
        """The object that `make` returns, created once for all endpoints. `close` closes it if it has that method."""
        with self._lock:
            if make not in self._shared:
                self._shared[make] = make(self)
            found: _Shared = self._shared[make]
            return found

    def close(self) -> None:
        """Close the shared objects."""
        for one in self._shared.values():
            if hasattr(one, "close"):
                one.close()


Method = Literal["GET", "POST", "PUT", "DELETE"]

VARIABLE = re.compile(r"\{(\w+)\}")
"""A variable part of a path."""


class NoQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """No query parameters."""


@dataclass(frozen=True, slots=True)
class Call:
    """A validated request.

    Attributes:
        names: values of the variable parts of the path, by name.
        query: the parameters, of the endpoint's `query` type.
        viewer: the person who sends the request.
        body: of the endpoint's `body` type; None if it takes none.
    """

    names: dict[str, str]
    query: Any
    viewer: Viewer
    body: Any = None

    @property
    def person(self) -> str:
        """Name of the person who sends the request."""
        return self.viewer.person


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method of one path of the API.

    Attributes:
        path: path with its variable parts in braces, such as `/api/runs/{id}`.
        summary: one sentence for the API reference.
        answer: type of the response.
        handler: called in a thread, with the application's state and the request.
        query: type of the query parameters.
        body: type of the request body, `bytes` for one that is not JSON; None without a body.
        state: returns the text that the ETag is made from, which changes whenever the response does; None to make the
            ETag from the response.
        cached: whether to cache the response until its state changes, because it is slow to compute.
        needs: required permission: an option of `agentv view`, or a scope on a team's server.
    """

    path: str
    summary: str
    answer: Any
    handler: Callable[..., Any]
    query: type[Struct] = NoQuery
    method: Method = "GET"
    body: Any = None
    state: Callable[[ProjectContext, Call], str] | None = None
    cached: bool = False
    needs: Permission | None = None

    @property
    def variables(self) -> list[str]:
        """Names of the variable parts of the path."""
        return VARIABLE.findall(self.path)


Handler = TypeVar("Handler", bound=Callable[..., Any])
AnyEndpoint = TypeVar("AnyEndpoint", bound=Endpoint)


def declaring(into: list[AnyEndpoint], kind: type[AnyEndpoint]) -> Callable[..., Callable[[Handler], Handler]]:
    """A decorator that declares a function as the handler of an endpoint and adds the endpoint to `into`.

    It takes the path, and the endpoint's attributes after `handler` by name. The function's docstring is the summary,
    its return type the type of the response.
    """

    def endpoint(path: str, **more: Any) -> Callable[[Handler], Handler]:
        def declared(handler: Handler) -> Handler:
            into.append(kind(path, str(handler.__doc__), get_type_hints(handler)["return"], handler, **more))
            return handler

        return declared

    return endpoint


@dataclass(frozen=True, slots=True)
class Stream:
    """A path that serves server-sent events.

    Attributes:
        events: event name → type of its data.
        open: yields events as (name, id, data); called in the event loop.
    """

    path: str
    summary: str
    events: dict[str, Any]
    open: Callable[..., Any]
    query: type[Struct] = NoQuery


_REFERENCE = "#/components/schemas/{name}"
_ATTRIBUTE = re.compile(r"^ {4,8}(\w+(?:, \w+)*): (.+(?:\n {8,12}\S.*)*)", re.MULTILINE)


def description(title: str, endpoints: Sequence[Endpoint], streams: Sequence[Stream]) -> dict[str, Any]:
    """The OpenAPI 3.1 document of an API."""
    types = [one.answer for one in endpoints] + [one.body for one in endpoints if one.body not in (None, bytes)]
    types += [*(data for stream in streams for data in stream.events.values()), ErrorAnswer]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REFERENCE)
    known = {str(one): schema for one, schema in zip(types, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, known)
    for stream in streams:
        paths.setdefault(stream.path, {})["get"] = _streamed(stream, known)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": __version__},
        "paths": paths,
        "components": {"schemas": components},
    }


def _operation(endpoint: Endpoint, known: dict[str, Any]) -> dict[str, Any]:
    content = {"application/json": {"schema": known[str(endpoint.answer)]}}
    found: dict[str, Any] = {
        "summary": endpoint.summary,
        "parameters": _parameters(endpoint.path, endpoint.query),
        "responses": {"200": {"description": "The answer.", "content": content}, **_problems(known)},
    }
    if endpoint.body is not None:
        found["requestBody"] = {
            "required": True,
            "content": {"application/octet-stream": {}}
            if endpoint.body is bytes
            else {"application/json": {"schema": known[str(endpoint.body)]}},
        }
    return found


def _streamed(stream: Stream, known: dict[str, Any]) -> dict[str, Any]:
    events = "; ".join(
        f"`{name}`: JSON of {known[str(data)]['$ref'].rpartition('/')[2]}" for name, data in stream.events.items()
    )
    content = {"text/event-stream": {"schema": {"type": "string"}}}
    return {
        "summary": stream.summary,
        "parameters": _parameters(stream.path, stream.query),
        "responses": {"200": {"description": f"Server-sent events. {events}.", "content": content}, **_problems(known)},
    }


def _problems(known: dict[str, Any]) -> dict[str, Any]:
    content = {"application/json": {"schema": known[str(ErrorAnswer)]}}
    return {"default": {"description": "What went wrong.", "content": content}}


def _parameters(path: str, query: type[msgspec.Struct]) -> list[dict[str, Any]]:
    named: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in VARIABLE.findall(path)
    ]
    schema = msgspec.json.schema(query)["$defs"][query.__name__]
    said = _ATTRIBUTE.findall(query.__doc__ or "")  # attributes described in the type's docstring
    meanings = {name: " ".join(text.split()) for names, text in said for name in names.split(", ")}
    for parameter in msgspec.structs.fields(query):
        name = parameter.encode_name
        one = {"name": name, "in": "query", "required": parameter.required, "schema": schema["properties"][name]}
        named.append({**one, "description": meanings[parameter.name]} if parameter.name in meanings else one)
    return named


_MOST_CONNECTIONS = 500


def quiet_config(application: Any, **options: Any) -> uvicorn.Config:
    """The configuration of a server that logs nothing, so that no request writes to the terminal."""
    for name in ("uvicorn", "uvicorn.error", "sse_starlette", "asyncio"):
        logger = logging.getLogger(name)
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
    common: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False, "ws": "none"}
    return uvicorn.Config(application, http="h11", limit_concurrency=_MOST_CONNECTIONS, **common, **options)
