"""Cases and trials of a run, and the grid of its answers."""

from __future__ import annotations

from typing import Any

from agentv.app.labelled_runs import labelled_runs
from agentv.extensions.view.api.runs import state_of_run
from agentv.extensions.view.state import view_of
from agentv.extensions.view.viewed.cases import CasePage, CaseQuery, ViewedCase, case_at, page_of_cases
from agentv.extensions.view.viewed.grid import GridPage, GridQuery, page_of_grid
from agentv.extensions.view.viewed.trial import whole_trial
from agentv.web.context import ProjectContext
from agentv.web.endpoints import Call, Endpoint


def _cases(context: ProjectContext, call: Call) -> CasePage:
    return page_of_cases(view_of(context).opened.run(call.names["id"]), call.query)


def _grid(context: ProjectContext, call: Call) -> GridPage:
    opened, query = view_of(context).opened, call.query
    run, base = opened.run(call.names["id"]), opened.run(query.against) if query.against else None
    if query.show != "rated":
        return page_of_grid(run, query, base)
    kept = None if context.labels_of is None else context.labels_of(call.person)
    rated = labelled_runs().ratings(run.path, context.project.root, kept)
    return page_of_grid(run, query, base, frozenset((suite, case) for suite, case, _ in rated))


def _case(context: ProjectContext, call: Call) -> ViewedCase:
    return case_at(view_of(context).opened.run(call.names["id"]), call.names["route"])


def _trial(context: ProjectContext, call: Call) -> dict[str, Any]:
    return whole_trial(view_of(context).opened.run(call.names["id"]), call.names["trial"])


_RUN = "/api/runs/{id}"
ENDPOINTS = (
    Endpoint(f"{_RUN}/cases", "Cases of a run, page by page.", CasePage, _cases, CaseQuery, state=state_of_run),
    Endpoint(f"{_RUN}/grid", "Answers by case and column, page by page.", GridPage, _grid, GridQuery),
    Endpoint(f"{_RUN}/cases/{{route}}", "A case with its trials.", ViewedCase, _case, state=state_of_run),
    Endpoint(
        f"{_RUN}/trials/{{trial}}",
        "A trial with all its texts, its trace and its diff.",
        dict[str, Any],
        _trial,
        state=state_of_run,
    ),
)
