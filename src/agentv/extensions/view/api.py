"""The JSON API of the pages: its endpoints and their handlers."""

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
    whole_trial,
)
from agentv.registry.extensions import ENDPOINTS, loaded, registered
from agentv.store.files.directory import is_being_written
from agentv.version import __version__
from agentv.web.endpoints import Call, Endpoint, ProjectContext, declaring

MOST_RUNS = 9
"""Maximum number of runs in a comparison, including the base."""


class ProjectFacts(Struct, frozen=True):
    """The project.

    Attributes:
        name: name of its directory.
        version: version of agentv.
        person: the person who sends the request; empty for the one who started `agentv view`.
        team: whether the project is one of several on a team's server.
        edit: whether runs may be named and deleted.
        label: whether answers may be labelled.
        run: whether cases may be run again.
        locked: whether the page may do none of these only because it lacks the token of this start.
        offers: further screens that have data in this project.
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
        run: the base, then the others; repeat the parameter.
    """

    run: tuple[str, ...] = ()


class RunName(Struct, frozen=True, forbid_unknown_fields=True):
    """A name for a run; "" removes it."""

    name: str


def endpoints() -> tuple[Endpoint, ...]:
    """All endpoints of a project: those below and those that extensions add."""
    return (*_OWN, *(one for name in registered(ENDPOINTS) for one in loaded(ENDPOINTS, name)))


def _opened(context: ProjectContext, call: Call) -> GrowingRun:
    return view_of(context).opened.run(call.names["id"])


def _ids(call: Call, most: int = MOST_RUNS) -> tuple[str, ...]:
    ids: tuple[str, ...] = call.query.run
    if not 2 <= len(ids) <= most:
        several = f"two to {most} times: the base, then the others"
        raise ValueError(f"give 'run' {'twice: the base, then the candidate' if most == 2 else several}")
    return ids


def _state_of_all(context: ProjectContext, call: Call) -> str:  # noqa: ARG001  # the signature of `Endpoint.state`
    """The state of a list of runs: that of every run."""
    return "\n".join(_state(run_id, path) for run_id, path in context.project.runs().items())


def _state_of_one(context: ProjectContext, call: Call) -> str:
    run_id = call.names["id"]
    return _state(run_id, context.project.run(run_id))


def _state_of_several(context: ProjectContext, call: Call, most: int = MOST_RUNS) -> str:
    return "\n".join(_state(run_id, context.project.run(run_id)) for run_id in _ids(call, most))


def _state(run_id: str, path: Path) -> str:
    return f"{run_id} {path} {stamp_of(path)} {is_being_written(path)}"


_RUN = "/api/runs/{id}"
_OWN: list[Endpoint] = []
_endpoint = declaring(_OWN, Endpoint)


@_endpoint("/api/project")
def _project(context: ProjectContext, call: Call) -> ProjectFacts:
    """The project and the viewer's permissions."""
    may = call.viewer.permissions
    return ProjectFacts(
        context.project.name,
        __version__,
        call.person,
        call.viewer.team,
        edit="edit" in may,
        label="label" in may,
        run="run" in may,
        locked=context.lacks_token(call.viewer),
        offers=[
            "compare",
            *registered(ENDPOINTS),
            *([] if context.project.named else ["trend"]),  # a trend covers all runs of the project
            *(["prompts"] if has_library(context.project) else []),
        ],
    )


@_endpoint("/api/runs", query=RunQuery, state=_state_of_all)
def _runs(context: ProjectContext, call: Call) -> RunPage:
    """The runs of the project, paginated."""
    return view_of(context).runs.page(call.query)


@_endpoint(_RUN, state=_state_of_one, cached=True)
def _overview(context: ProjectContext, call: Call) -> RunOverview:
    """A run: its facts, failures by cause and rates."""
    return overview(_opened(context, call), call.names["id"])


@_endpoint(f"{_RUN}/cases", query=CaseQuery, state=_state_of_one)
def _cases(context: ProjectContext, call: Call) -> CasePage:
    """The cases of a run, paginated."""
    return page_of_cases(_opened(context, call), call.query)


@_endpoint(f"{_RUN}/grid", query=GridQuery)
def _grid(context: ProjectContext, call: Call) -> GridPage:
    """The answers of a run by case and column, paginated."""
    run, query = _opened(context, call), call.query
    base = view_of(context).opened.run(query.against) if query.against else None
    if query.show != "rated":
        return page_of_grid(run, query, base)
    labels = None if context.labels_of is None else context.labels_of(call.person)
    rated = labelled_runs().ratings(run.path, context.project.root, labels)
    return page_of_grid(run, query, base, frozenset((suite, case) for suite, case, _ in rated))


@_endpoint(f"{_RUN}/cases/{{route}}", state=_state_of_one)
def _case(context: ProjectContext, call: Call) -> ViewedCase:
    """A case with its trials."""
    return case_at(_opened(context, call), call.names["route"])


@_endpoint(f"{_RUN}/trials/{{trial}}", state=_state_of_one)
def _trial(context: ProjectContext, call: Call) -> dict[str, Any]:
    """A trial with its complete texts, trace and diff."""
    return whole_trial(_opened(context, call), call.names["trial"])


@_endpoint("/api/compare/moved", query=RunsQuery, state=_state_of_several, cached=True)
def _moved(context: ProjectContext, call: Call) -> MovedCases:
    """The cases that changed between a base and several other runs."""
    ids = _ids(call)
    return moved_cases(ids, [view_of(context).opened.run(run_id) for run_id in ids])


@_endpoint("/api/compare", query=RunsQuery, state=partial(_state_of_several, most=2), cached=True)
def _compared(context: ProjectContext, call: Call) -> ViewedComparison:
    """The comparison of a candidate with a base."""
    base, candidate = _ids(call, 2)
    opened = view_of(context).opened
    return viewed_comparison((base, candidate), opened.run(base), opened.run(candidate))


@_endpoint(f"{_RUN}/name", method="POST", body=RunName, needs="edit")
def _name(context: ProjectContext, call: Call) -> NamedRun:
    """Name a run."""
    return view_of(context).editor.name(call.names["id"], call.body.name, call.person)


@_endpoint(_RUN, method="DELETE", needs="edit")
def _delete(context: ProjectContext, call: Call) -> DeletedRun:
    """Delete a run."""
    return view_of(context).editor.delete(call.names["id"], call.person)


@_endpoint("/api/prompts")
def _prompts(context: ProjectContext, call: Call) -> PromptList:  # noqa: ARG001  # the signature of handlers
    """The prompts of the library, with their status and last exam."""
    return prompt_list(context.project)


@_endpoint("/api/prompts/{name}")
def _prompt(context: ProjectContext, call: Call) -> WholePrompt:
    """A prompt: its texts, exam attempts and gates."""
    return whole_prompt(context.project, call.names["name"], context.project.runs())


@_endpoint("/api/trend", query=TrendQuery, state=_state_of_all, cached=True)
def _trend(context: ProjectContext, call: Call) -> ViewedTrend:
    """A suite's results over its most recent runs."""
    return viewed_trend(context.project, call.query)


@_endpoint(f"{_RUN}/trials/{{trial}}/run", method="POST", needs="run")
def _rerun(context: ProjectContext, call: Call) -> Rerun:
    """Run a trial's case again."""
    trial = call.names["trial"]
    return _start(context, call, rerun_command(_opened(context, call), trial), trial)


@_endpoint(f"{_RUN}/run", method="POST", needs="run")
def _rerun_failed(context: ProjectContext, call: Call) -> Rerun:
    """Run the failed cases of a run again, which must be the newest."""
    command = rerun_command(_opened(context, call), "")
    if next(iter(context.project.runs()), "") != call.names["id"]:  # --last-failed would use the newer run
        raise UsageError("there is a newer run: open that one, or run the cases of this one by cause")
    return _start(context, call, command, "")


def _start(context: ProjectContext, call: Call, command: RerunCommand, trial: str) -> Rerun:
    check_rerun(command, _opened(context, call).root, context.project.root)
    return view_of(context).runner.start(command.words, Rerun("running", call.names["id"], trial, command.shown))


@_endpoint("/api/rerun", needs="run")
def _rerun_status(context: ProjectContext, call: Call) -> Rerun:  # noqa: ARG001  # the signature of handlers
    """The state of the current or last rerun."""
    return view_of(context).runner.status()


@_endpoint("/api/rerun", method="DELETE", needs="run")
def _cancel(context: ProjectContext, call: Call) -> Rerun:  # noqa: ARG001  # the signature of handlers
    """Cancel the current rerun."""
    return view_of(context).runner.cancel()
