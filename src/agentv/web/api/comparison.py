"""Comparisons of runs."""

from __future__ import annotations

from msgspec import Struct

from agentv.app.view.comparison import ViewedComparison, viewed_comparison
from agentv.web.api.runs import state_of
from agentv.web.context import ViewContext
from agentv.web.endpoints import Call, Endpoint


class RunsQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Which runs.

    Attributes:
        run: given twice: the base, then the candidate.
    """

    run: tuple[str, ...] = ()


def _compared(context: ViewContext, call: Call) -> ViewedComparison:
    base, candidate = _both(call)
    return viewed_comparison((base, candidate), context.opened.run(base), context.opened.run(candidate))


def _state(context: ViewContext, call: Call) -> str:
    return "\n".join(state_of(context, run_id) for run_id in _both(call))


def _both(call: Call) -> tuple[str, str]:
    if len(call.query.run) != 2:
        raise ValueError("give 'run' twice: the base, then the candidate")
    return call.query.run[0], call.query.run[1]


ENDPOINTS = (
    Endpoint(
        "/api/compare", "A candidate against a base.", ViewedComparison, _compared, RunsQuery, state=_state, kept=True
    ),
)
