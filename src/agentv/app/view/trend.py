"""The trend of a suite over its runs, as `agentv trend` computes and words it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from agentv.app.trend import suites_with_runs, target_values, trend
from agentv.app.view.project import Project
from agentv.errors import UsageError
from agentv.reports.commands.trend import findings, notes, trend_data
from agentv.reports.text.paths import without_directories
from agentv.stats.series.series import Measure


class TrendQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Which runs.

    Attributes:
        suite: its name; empty: the first one.
        last: number of runs.
        measure: what of a run is followed.
        target: whose results alone; empty: those of all targets together.
    """

    suite: str = ""
    last: Annotated[int, Meta(ge=1, le=10_000)] = 20
    measure: Literal["pass_rate", "mean_score"] = "pass_rate"
    target: str = ""


class TargetLine(Struct, frozen=True):
    """A target over the runs of a trend.

    Attributes:
        values: what it came to in each run, 0..1; null: nothing.
    """

    target: str
    values: list[float | None]


class ViewedTrend(Struct, frozen=True):
    """A suite's trend.

    Attributes:
        suites: all that have results.
        suite: the one that is shown; empty: there is none.
        findings: what the runs show, in sentences.
        notes: what weakens that.
        data: as `agentv trend --json` has it; null: there is none.
        problem: why there is none.
        targets: each target over the same runs, where there are several.
    """

    suites: list[str]
    suite: str
    findings: list[str] = []
    notes: list[str] = []
    data: dict[str, Any] | None = None
    problem: str = ""
    targets: list[TargetLine] = []


def viewed_trend(project: Project, query: TrendQuery) -> ViewedTrend:
    """The trend of a suite of the project.

    Raises:
        StoreError: the files of a run cannot be read.
    """
    suites = suites_with_runs(project.root)
    suite = query.suite or next(iter(suites), "")
    if not suite:
        return ViewedTrend([], "", problem="no run has ended yet")
    measure: Measure = "pass rate" if query.measure == "pass_rate" else "mean score"
    try:
        found = trend(suite, query.last, measure, project.root, query.target or None)
    except UsageError as error:
        return ViewedTrend(
            suites, suite, problem=without_directories(f"{error}; {error.hint}" if error.hint else str(error))
        )
    targets = [TargetLine(name, values) for name, values in target_values(found, project.root).items()]
    return ViewedTrend(suites, suite, findings(found), notes(found), trend_data(found), targets=targets)
