"""Changes of runs, which need the permission `edit`."""

from __future__ import annotations

from msgspec import Struct

from agentv.extensions.view.viewed.editing import DeletedRun, NamedRun
from agentv.web.context import ViewContext
from agentv.web.endpoints import Call, Endpoint


class RunName(Struct, frozen=True, forbid_unknown_fields=True):
    """A name for a run; empty: none."""

    name: str


def _name(context: ViewContext, call: Call) -> NamedRun:
    return context.editor.name(call.names["id"], call.body.name, call.person)


def _delete(context: ViewContext, call: Call) -> DeletedRun:
    return context.editor.delete(call.names["id"], call.person)


ENDPOINTS = (
    Endpoint("/api/runs/{id}/name", "Name a run.", NamedRun, _name, method="POST", body=RunName, needs="edit"),
    Endpoint("/api/runs/{id}", "Delete a run.", DeletedRun, _delete, method="DELETE", needs="edit"),
)
