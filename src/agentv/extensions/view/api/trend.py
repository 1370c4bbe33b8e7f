"""The trend of a suite."""

from __future__ import annotations

from agentv.extensions.view.api.runs import state_of_runs
from agentv.extensions.view.viewed.trend import TrendQuery, ViewedTrend, viewed_trend
from agentv.web.context import ProjectContext
from agentv.web.endpoints import Call, Endpoint


def _trend(context: ProjectContext, call: Call) -> ViewedTrend:
    return viewed_trend(context.project, call.query)


ENDPOINTS = (
    Endpoint(
        "/api/trend",
        "A suite's results over its last runs.",
        ViewedTrend,
        _trend,
        TrendQuery,
        state=state_of_runs,
        kept=True,
    ),
)
