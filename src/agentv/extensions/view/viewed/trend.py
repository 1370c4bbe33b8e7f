"""The trend of a suite over its runs, as `agentv trend` computes and words it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from agentv.app.results.project import Project
from agentv.app.trend import suites_with_runs, targets_of, trend
from agentv.errors import UsageError
from agentv.model.run.compared.trend import Followed
from agentv.reports.commands.trend import findings, notes, trend_data
from agentv.reports.text.paths import without_directories


class TrendQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Which runs.

    Attributes:
        suite: its name; empty: the first one.
        last: number of runs.
        measure: what of a run is followed.
        target: its name; empty: the first one of the newest run.
    """

    suite: str = ""
    last: Annotated[int, Meta(ge=1, le=10_000)] = 20
    measure: Literal["pass_rate", "mean_score"] = "pass_rate"
    target: str = ""


class ViewedTrend(Struct, frozen=True):
    """A suite's trend.

    Attributes:
        suites: all that have results.
        suite: the one that is shown; empty without results.
        targets: all that ran the suite.
        target: the one that is shown.
        findings: what the runs show, in sentences.
        notes: what weakens that.
        data: as `agentv trend --json` has it, or null.
        problem: why the data is missing.
    """

    suites: list[str]
    suite: str
    targets: list[str] = []
    target: str = ""
    findings: list[str] = []
    notes: list[str] = []
    data: dict[str, Any] | None = None
    problem: str = ""


def viewed_trend(project: Project, query: TrendQuery) -> ViewedTrend:
    """The trend of a suite of the project.

    Raises:
        StoreError: the files of a run cannot be read.
    """
    suites = suites_with_runs(project.root)
    suite = query.suite or next(iter(suites), "")
    if not suite:
        return ViewedTrend([], "", problem="no run has ended yet")
    measure: Followed = "pass rate" if query.measure == "pass_rate" else "mean score"
    targets = targets_of(suite, project.root)
    target = query.target or next(iter(targets), "")
    try:
        found = trend(suite, query.last, measure, project.root, target)
    except UsageError as error:
        problem = without_directories(f"{error}; {error.hint}" if error.hint else str(error))
        return ViewedTrend(suites, suite, targets, target, problem=problem)
    return ViewedTrend(suites, suite, targets, target, findings(found), notes(found), trend_data(found))
