"""Declarations of endpoints. The routes and their description in OpenAPI are both made from these."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from msgspec import Struct

from agentv.web.context import Permission, ProjectContext, Viewer

Method = Literal["GET", "POST", "DELETE"]


VARIABLE = re.compile(r"\{(\w+)\}")
"""A variable part of a path."""


class NoQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Takes no parameters."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request whose parts were checked.

    Attributes:
        names: the variable parts of the path.
        query: of the endpoint's type.
        viewer: who asks.
        body: of the endpoint's type; None: it takes none.
    """

    names: dict[str, str]
    query: Any
    viewer: Viewer
    body: Any = None

    @property
    def person(self) -> str:
        """Name of who asks."""
        return self.viewer.person


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method of one path of the API.

    Attributes:
        path: such as `/api/runs/{id}`.
        summary: one sentence.
        answer: the type of the answer.
        handler: called in a thread.
        query: the type of the parameters.
        body: the type of the body; None without a body.
        state: what the answer depends on, as a text for its ETag; None: its ETag is made from the answer.
        kept: the answer takes long to make, so that it is kept as long as its state stays.
        needs: the permission without which it is refused: an option of `agentv view`, or a scope on a server.
    """

    path: str
    summary: str
    answer: Any
    handler: Callable[[ProjectContext, Call], Any]
    query: type[Struct] = NoQuery
    method: Method = "GET"
    body: type[Struct] | None = None
    state: Callable[[ProjectContext, Call], str] | None = None
    kept: bool = False
    needs: Permission | None = None

    @property
    def variables(self) -> list[str]:
        """Names of the variable parts of the path."""
        return VARIABLE.findall(self.path)


@dataclass(frozen=True, slots=True)
class Stream:
    """A path with server-sent events.

    Attributes:
        events: the name of each event, and the type of its data.
        open: yields events as (name, id, data); called in the event loop.
    """

    path: str
    summary: str
    events: dict[str, Any]
    open: Callable[..., Any]
    query: type[Struct] = NoQuery
