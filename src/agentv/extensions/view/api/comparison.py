"""Comparisons of runs."""

from __future__ import annotations

from msgspec import Struct

from agentv.extensions.view.api.runs import state_of
from agentv.extensions.view.state import view_of
from agentv.extensions.view.viewed.comparison import ViewedComparison, viewed_comparison
from agentv.extensions.view.viewed.moved_cases import MovedCases, moved_cases
from agentv.web.context import ProjectContext
from agentv.web.endpoints import Call, Endpoint


class RunsQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Which runs.

    Attributes:
        run: given twice: the base, then the candidate.
    """

    run: tuple[str, ...] = ()


def _compared(context: ProjectContext, call: Call) -> ViewedComparison:
    ids, opened = _both(call), view_of(context).opened
    return viewed_comparison(ids, *map(opened.run, ids))


def _state(context: ProjectContext, call: Call) -> str:
    return "\n".join(state_of(context, run_id) for run_id in _both(call))


def _both(call: Call) -> tuple[str, str]:
    if len(call.query.run) != 2:
        raise ValueError("give 'run' twice: the base, then the candidate")
    return call.query.run[0], call.query.run[1]


MOST_RUNS = 9
"""The base, and the runs that are compared with it."""


class SeveralRunsQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Which runs.

    Attributes:
        run: given two to nine times: the base, then the others.
    """

    run: tuple[str, ...] = ()


def _moved(context: ProjectContext, call: Call) -> MovedCases:
    ids = _several(call)
    return moved_cases(ids, [view_of(context).opened.run(run_id) for run_id in ids])


def _state_of_several(context: ProjectContext, call: Call) -> str:
    return "\n".join(state_of(context, run_id) for run_id in _several(call))


def _several(call: Call) -> tuple[str, ...]:
    ids: tuple[str, ...] = call.query.run
    if not 2 <= len(ids) <= MOST_RUNS:
        raise ValueError(f"give 'run' two to {MOST_RUNS} times: the base, then the others")
    return ids


ENDPOINTS = (
    Endpoint(
        "/api/compare/moved",
        "Cases that moved from a base in several runs.",
        MovedCases,
        _moved,
        SeveralRunsQuery,
        state=_state_of_several,
        kept=True,
    ),
    Endpoint(
        "/api/compare", "A candidate against a base.", ViewedComparison, _compared, RunsQuery, state=_state, kept=True
    ),
)
