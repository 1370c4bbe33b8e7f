"""The project and its runs."""

from __future__ import annotations

from msgspec import Struct

from agentv.app.results.project import stamp_of
from agentv.extensions.view.state import view_of
from agentv.extensions.view.viewed.overview import RunOverview, overview
from agentv.extensions.view.viewed.prompts import has_library
from agentv.extensions.view.viewed.runs import RunPage, RunQuery
from agentv.registry.extensions import ENDPOINTS as ENDPOINTS_OF_EXTENSIONS
from agentv.registry.extensions import registered
from agentv.store.files.directory import is_being_written
from agentv.version import __version__
from agentv.web.context import ProjectContext
from agentv.web.endpoints import Call, Endpoint


class ProjectFacts(Struct, frozen=True):
    """The project.

    Attributes:
        name: of its directory.
        version: of agentv.
        person: who asks; empty: whoever started `agentv view`.
        team: the project is one of several on a server.
        edit: runs may be named and deleted.
        label: answers may be labelled.
        run: cases may be run again.
        locked: pages that have the token of this start may do some of these; this one has not.
        offers: the further screens that have data here.
    """

    name: str
    version: str
    person: str
    team: bool
    edit: bool
    label: bool
    run: bool
    locked: bool
    offers: list[str]


def _project(context: ProjectContext, call: Call) -> ProjectFacts:
    may = call.viewer.permissions
    facts = (context.project.name, __version__, call.person, call.viewer.team)
    trend = [] if context.project.named else ["trend"]  # it is of all runs
    offers = [
        "compare",
        *registered(ENDPOINTS_OF_EXTENSIONS),
        *trend,
        *(["prompts"] if has_library(context.project) else []),
    ]
    locked = context.locks(call.viewer)
    return ProjectFacts(
        *facts, edit="edit" in may, label="label" in may, run="run" in may, locked=locked, offers=offers
    )


def _runs(context: ProjectContext, call: Call) -> RunPage:
    return view_of(context).runs.page(call.query)


def _run(context: ProjectContext, call: Call) -> RunOverview:
    run_id = call.names["id"]
    return overview(view_of(context).opened.run(run_id), run_id)


def state_of_runs(context: ProjectContext, call: Call) -> str:  # noqa: ARG001  # every state has this signature
    """What a list of runs depends on."""
    return "\n".join(
        f"{run_id} {stamp_of(path)} {is_being_written(path)}" for run_id, path in context.project.runs().items()
    )


def state_of_run(context: ProjectContext, call: Call) -> str:
    """What an answer about a run depends on."""
    return state_of(context, call.names["id"])


def state_of(context: ProjectContext, run_id: str) -> str:
    """As `state_of_run`, by the run's id."""
    path = context.project.run(run_id)
    return f"{path} {stamp_of(path)} {is_being_written(path)}"


ENDPOINTS = (
    Endpoint("/api/project", "The project and what may be done here.", ProjectFacts, _project),
    Endpoint("/api/runs", "The runs of the project, page by page.", RunPage, _runs, RunQuery, state=state_of_runs),
    Endpoint(
        "/api/runs/{id}",
        "A run: its facts, failures by cause, and rates.",
        RunOverview,
        _run,
        state=state_of_run,
        kept=True,
    ),
)
