"""Changes of runs, which the option --edit allows."""

from __future__ import annotations

from msgspec import Struct

from agentv.app.view.editing import DeletedRun, NamedRun, delete_run, name_run
from agentv.web.context import ViewContext
from agentv.web.endpoints import Call, Endpoint


class RunName(Struct, frozen=True, forbid_unknown_fields=True):
    """A name for a run; empty: none."""

    name: str


def _name(context: ViewContext, call: Call) -> NamedRun:
    return name_run(context.opened, call.names["id"], call.body.name)


def _delete(context: ViewContext, call: Call) -> DeletedRun:
    return delete_run(context.opened, call.names["id"])


ENDPOINTS = (
    Endpoint("/api/runs/{id}/name", "Name a run.", NamedRun, _name, method="POST", body=RunName, needs="edit"),
    Endpoint("/api/runs/{id}", "Delete a run.", DeletedRun, _delete, method="DELETE", needs="edit"),
)
