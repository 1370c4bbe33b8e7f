"""The JSON API of the pages: what is asked for, and which use case answers."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from agentv.app.labelled_runs import labelled_runs
from agentv.app.results.project import DeletedRun, NamedRun, stamp_of
from agentv.errors import UsageError
from agentv.extensions.view.cases import CasePage, CaseQuery, ViewedCase, case_at, page_of_cases
from agentv.extensions.view.comparison import (
    MovedCases,
    TrendQuery,
    ViewedComparison,
    ViewedTrend,
    moved_cases,
    viewed_comparison,
    viewed_trend,
)
from agentv.extensions.view.grid import GridPage, GridQuery, page_of_grid
from agentv.extensions.view.growing import GrowingRun
from agentv.extensions.view.overview import RunOverview, overview
from agentv.extensions.view.prompts import PromptList, WholePrompt, has_library, prompt_list, whole_prompt
from agentv.extensions.view.runs import RunPage, RunQuery
from agentv.extensions.view.state import view_of
from agentv.extensions.view.trial import (
    Rerun,
    RerunCommand,
    check_rerun,
    rerun_command,
    rerun_failed_command,
    whole_trial,
)
from agentv.registry.extensions import ENDPOINTS, loaded, registered
from agentv.store.files.directory import is_being_written
from agentv.version import __version__
from agentv.web.endpoints import Call, Endpoint, ProjectContext

MOST_RUNS = 9
"""The base, and the runs that are compared with it."""


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


class RunsQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Which runs.

    Attributes:
        run: the base, then the others; the parameter is repeated.
    """

    run: tuple[str, ...] = ()


class RunName(Struct, frozen=True, forbid_unknown_fields=True):
    """A name for a run; empty: none."""

    name: str


def endpoints() -> tuple[Endpoint, ...]:
    """All endpoints of a project: those of the pages, and those that extensions add."""
    return (*_OWN, *(one for name in registered(ENDPOINTS) for one in loaded(ENDPOINTS, name)))


def _project(context: ProjectContext, call: Call) -> ProjectFacts:
    may = call.viewer.permissions
    return ProjectFacts(
        context.project.name,
        __version__,
        call.person,
        call.viewer.team,
        edit="edit" in may,
        label="label" in may,
        run="run" in may,
        locked=context.locks(call.viewer),
        offers=[
            "compare",
            *registered(ENDPOINTS),
            *([] if context.project.named else ["trend"]),  # it is of all runs
            *(["prompts"] if has_library(context.project) else []),
        ],
    )


def _opened(context: ProjectContext, call: Call) -> GrowingRun:
    return view_of(context).opened.run(call.names["id"])


def _grid(context: ProjectContext, call: Call) -> GridPage:
    run, query = _opened(context, call), call.query
    base = view_of(context).opened.run(query.against) if query.against else None
    if query.show != "rated":
        return page_of_grid(run, query, base)
    kept = None if context.labels_of is None else context.labels_of(call.person)
    rated = labelled_runs().ratings(run.path, context.project.root, kept)
    return page_of_grid(run, query, base, frozenset((suite, case) for suite, case, _ in rated))


def _compared(context: ProjectContext, call: Call) -> ViewedComparison:
    base, candidate = _ids(call, 2)
    opened = view_of(context).opened
    return viewed_comparison((base, candidate), opened.run(base), opened.run(candidate))


def _moved(context: ProjectContext, call: Call) -> MovedCases:
    ids = _ids(call)
    return moved_cases(ids, [view_of(context).opened.run(run_id) for run_id in ids])


def _ids(call: Call, most: int = MOST_RUNS) -> tuple[str, ...]:
    ids: tuple[str, ...] = call.query.run
    if not 2 <= len(ids) <= most:
        several = f"two to {most} times: the base, then the others"
        raise ValueError(f"give 'run' {'twice: the base, then the candidate' if most == 2 else several}")
    return ids


def _rerun(context: ProjectContext, call: Call) -> Rerun:
    trial = call.names["trial"]
    return _start(context, call, rerun_command(_opened(context, call), trial), trial)


def _rerun_failed(context: ProjectContext, call: Call) -> Rerun:
    command = rerun_failed_command(_opened(context, call))
    if next(iter(context.project.runs()), "") != call.names["id"]:  # --last-failed would run what failed since then
        raise UsageError("there is a newer run: open that one, or run the cases of this one by cause")
    return _start(context, call, command, "")


def _start(context: ProjectContext, call: Call, command: RerunCommand, trial: str) -> Rerun:
    check_rerun(command, _opened(context, call).root, context.project.root)
    return view_of(context).runner.start(command.words, Rerun("running", call.names["id"], trial, command.shown))


def _state_of_all(context: ProjectContext, call: Call) -> str:  # noqa: ARG001  # every state has this signature
    """What a list of runs depends on."""
    return "\n".join(_state(run_id, path) for run_id, path in context.project.runs().items())


def _state_of_one(context: ProjectContext, call: Call) -> str:
    run_id = call.names["id"]
    return _state(run_id, context.project.run(run_id))


def _state_of_several(context: ProjectContext, call: Call, most: int = MOST_RUNS) -> str:
    return "\n".join(_state(run_id, context.project.run(run_id)) for run_id in _ids(call, most))


def _state(run_id: str, path: Path) -> str:
    return f"{run_id} {path} {stamp_of(path)} {is_being_written(path)}"


_RUN = "/api/runs/{id}"
_OWN = (
    Endpoint("/api/project", "The project and what may be done here.", ProjectFacts, _project),
    Endpoint(
        "/api/runs",
        "The runs of the project, page by page.",
        RunPage,
        lambda context, call: view_of(context).runs.page(call.query),
        RunQuery,
        state=_state_of_all,
    ),
    Endpoint(
        _RUN,
        "A run: its facts, failures by cause, and rates.",
        RunOverview,
        lambda context, call: overview(_opened(context, call), call.names["id"]),
        state=_state_of_one,
        kept=True,
    ),
    Endpoint(
        f"{_RUN}/cases",
        "Cases of a run, page by page.",
        CasePage,
        lambda context, call: page_of_cases(_opened(context, call), call.query),
        CaseQuery,
        state=_state_of_one,
    ),
    Endpoint(f"{_RUN}/grid", "Answers by case and column, page by page.", GridPage, _grid, GridQuery),
    Endpoint(
        f"{_RUN}/cases/{{route}}",
        "A case with its trials.",
        ViewedCase,
        lambda context, call: case_at(_opened(context, call), call.names["route"]),
        state=_state_of_one,
    ),
    Endpoint(
        f"{_RUN}/trials/{{trial}}",
        "A trial with all its texts, its trace and its diff.",
        dict[str, Any],
        lambda context, call: whole_trial(_opened(context, call), call.names["trial"]),
        state=_state_of_one,
    ),
    Endpoint(
        "/api/compare/moved",
        "Cases that moved from a base in several runs.",
        MovedCases,
        _moved,
        RunsQuery,
        state=_state_of_several,
        kept=True,
    ),
    Endpoint(
        "/api/compare",
        "A candidate against a base.",
        ViewedComparison,
        _compared,
        RunsQuery,
        state=partial(_state_of_several, most=2),
        kept=True,
    ),
    Endpoint(
        f"{_RUN}/name",
        "Name a run.",
        NamedRun,
        lambda context, call: view_of(context).editor.name(call.names["id"], call.body.name, call.person),
        method="POST",
        body=RunName,
        needs="edit",
    ),
    Endpoint(
        _RUN,
        "Delete a run.",
        DeletedRun,
        lambda context, call: view_of(context).editor.delete(call.names["id"], call.person),
        method="DELETE",
        needs="edit",
    ),
    Endpoint(
        "/api/prompts",
        "The prompts of the library, with status and last exam.",
        PromptList,
        lambda context, _: prompt_list(context.project),
    ),
    Endpoint(
        "/api/prompts/{name}",
        "A prompt: its texts, exam attempts and gates.",
        WholePrompt,
        lambda context, call: whole_prompt(context.project, call.names["name"], context.project.runs()),
    ),
    Endpoint(
        "/api/trend",
        "A suite's results over its last runs.",
        ViewedTrend,
        lambda context, call: viewed_trend(context.project, call.query),
        TrendQuery,
        state=_state_of_all,
        kept=True,
    ),
    Endpoint(f"{_RUN}/trials/{{trial}}/run", "Run a case again.", Rerun, _rerun, method="POST", needs="run"),
    Endpoint(f"{_RUN}/run", "Run the failed cases again.", Rerun, _rerun_failed, method="POST", needs="run"),
    Endpoint(
        "/api/rerun",
        "The case that runs again.",
        Rerun,
        lambda context, _: view_of(context).runner.status(),
        needs="run",
    ),
    Endpoint(
        "/api/rerun",
        "Cancel the case that runs again.",
        Rerun,
        lambda context, _: view_of(context).runner.cancel(),
        method="DELETE",
        needs="run",
    ),
)
