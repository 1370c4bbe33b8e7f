"""Changes of runs, which need the permission `edit`."""

from __future__ import annotations

from msgspec import Struct

from agentv.app.results.editing import DeletedRun, NamedRun
from agentv.extensions.view.state import view_of
from agentv.web.context import ProjectContext
from agentv.web.endpoints import Call, Endpoint


class RunName(Struct, frozen=True, forbid_unknown_fields=True):
    """A name for a run; empty: none."""

    name: str


def _name(context: ProjectContext, call: Call) -> NamedRun:
    return view_of(context).editor.name(call.names["id"], call.body.name, call.person)


def _delete(context: ProjectContext, call: Call) -> DeletedRun:
    return view_of(context).editor.delete(call.names["id"], call.person)


ENDPOINTS = (
    Endpoint("/api/runs/{id}/name", "Name a run.", NamedRun, _name, method="POST", body=RunName, needs="edit"),
    Endpoint("/api/runs/{id}", "Delete a run.", DeletedRun, _delete, method="DELETE", needs="edit"),
)
