"""What the first page of a run shows: its facts, its failures by cause, and the rates of its assertions."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from msgspec import Struct

from agentv.app.results.listing import compared_totals_of, listed_run
from agentv.app.view.cases import StatusCounts
from agentv.app.view.growing import GrowingRun
from agentv.app.view.runs import ViewedState, name_of, state_in_views
from agentv.errors import StoreError
from agentv.model.run.clusters import CASE
from agentv.model.run.runs import ListedRun
from agentv.model.run.summary import Summary
from agentv.model.values.values import JsonObject
from agentv.reports.html.entries import ERRORED, FAILED, PASSED
from agentv.reports.html.failures import groups_json
from agentv.reports.html.report import HtmlReport
from agentv.stats.intervals.design_effect import estimated_rate
from agentv.store.files.directory import RUN, read_document
from agentv.store.index.case_index import CaseIndex


class AssertionName(Struct, frozen=True):
    """An assertion of the table that lists mean by numbers; no name where there are too many."""

    type: str
    name: str | None


class NameTables(Struct, frozen=True):
    """The names that occur in the rows of a run."""

    suites: list[str]
    targets: list[str]
    prompts: list[str]
    variants: list[str]
    tags: list[str]
    assertions: list[AssertionName]


class AssertionRate(Struct, frozen=True):
    """Grades of an assertion.

    Attributes:
        name: its name; its type where names are too many to tell apart.
        judged: grades that passed or failed.
        rate: passed / judged; None: samples end early, where no rate is unbiased, or nothing was judged.
        interval: 95 % interval of the rate, by clusters.
        bounds: the rate if all errored ones had failed, and if all had passed.
        clusters: how many clusters the judged ones form.
        by: what forms them.
    """

    name: str
    types: list[str]
    counts: StatusCounts
    judged: int
    rate: float | None
    interval: tuple[float, float] | None
    bounds: tuple[float, float] | None
    clusters: int
    by: list[str]


class Rates(Struct, frozen=True):
    """Rates that the summary of a run does not have; those by tag are in `facts.summary.by_tag`."""

    assertions: list[AssertionRate]


class RunOverview(Struct, frozen=True):
    """A run.

    Attributes:
        facts: what `run.json` and `summary.json` say, as in the static report.
        done: trials with a row.
        failures: groups, those of the most cases first, and the command that runs them again. Each of their members has
            the `route` of its case, and its `trial`.
        problem: why the run, or some of its rows, cannot be read; empty: nothing is wrong.
        indexed: share of the rows that is read, 0..1; below 1 the numbers are of these.
        cursor: what `/events` starts after.
    """

    run_id: str
    name: str
    state: ViewedState
    problem: str
    done: int
    planned: int | None
    facts: dict[str, Any]
    counts: StatusCounts
    tables: NameTables
    failures: dict[str, Any]
    rates: Rates
    indexed: float
    cursor: str


def overview(run: GrowingRun, run_id: str) -> RunOverview:
    """The run as its first page shows it.

    Raises:
        StoreError: its files cannot be read.
    """
    record = read_document(run.path / RUN)
    listed = listed_run(run.path)
    report = HtmlReport.of(str(record.get("run_id", run_id)), record, _totals(run, record, listed), (), run.root)
    with run.lock:
        progress = run.progress()
        with run.index() as index:
            tables, rates = _tables(index), _assertion_rates(index)
            counts, trials = StatusCounts.of(index.counts), index.trials
        failures = _failures(run, report)
    return RunOverview(
        run_id,
        name_of(record),
        state_in_views(listed.state),
        progress.problem or listed.problem or "",
        trials if listed.state == "being written" else listed.done,
        listed.planned,
        report.facts(),
        counts,
        tables,
        failures,
        rates,
        progress.indexed,
        progress.cursor,
    )


def _totals(run: GrowingRun, record: JsonObject, listed: ListedRun) -> Summary | None:
    if listed.state == "being written":
        return run.totals(record)
    if listed.state == "unreadable":
        return None
    try:
        return compared_totals_of(run.path, record)
    except StoreError:
        return listed.summary


def _failures(run: GrowingRun, report: HtmlReport) -> dict[str, Any]:
    groups = run.failures()
    with run.index() as index:
        found = groups_json(groups, report)
        for group in found["groups"]:
            del group["numbers"]
            for member in group["members"]:
                number = member.pop("number")
                case = index.case_of(number)
                entries = [] if case is None else index.entries([case])
                member["trial"] = str(number)
                member["route"] = entries[0].route if entries else None
    return found


def _tables(index: CaseIndex) -> NameTables:
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for _, group in index.groups():
        found["suites"][group.suite] = found["targets"][group.target] = None
        for kind, name in (("prompts", group.prompt), ("variants", group.variant)):
            if name is not None:
                found[kind][name] = None
        found["tags"].update(dict.fromkeys(group.tags))
    names = {kind: list(found[kind]) for kind in ("suites", "targets", "prompts", "variants", "tags")}
    return NameTables(**names, assertions=[AssertionName(*one) for one in index.assertions])


_MOST_NAMES = 25
"""Assertions that are told apart by name; where there are more, by type."""


class _Graded:
    """The grades of one assertion."""

    def __init__(self) -> None:
        self.types: dict[str, None] = {}
        self.counts = [0, 0, 0]
        self.clusters: Counter[tuple[int, float]] = Counter()
        self._cluster, self._judged, self._passed = 0, 0, 0

    def add(self, cluster: int, state: int, number: int) -> None:
        """Count grades of a cluster; clusters come one after the other."""
        if cluster != self._cluster:
            self.end(cluster)
        self.counts[state] += number
        self._judged += number * (state != ERRORED)
        self._passed += number * (state == PASSED)

    def end(self, following: int = 0) -> None:
        """End a cluster."""
        if self._judged:
            self.clusters[self._judged, float(self._passed)] += 1
        self._cluster, self._judged, self._passed = following, 0, 0

    def rate(self, name: str, by: list[str], *, early: bool) -> AssertionRate:
        """The rate of the grades."""
        passed, failed, errored = self.counts[PASSED], self.counts[FAILED], self.counts[ERRORED]
        counts = StatusCounts(passed=passed, failed=failed, errored=errored)
        judged = passed + failed
        if early or not judged:
            return AssertionRate(name, list(self.types), counts, judged, None, None, None, 0, by)
        found = estimated_rate(self.clusters)
        bounds = (passed / (judged + errored), (passed + errored) / (judged + errored))
        return AssertionRate(
            name, list(self.types), counts, judged, found.mean, found.interval, bounds, found.clusters, by
        )


def _assertion_rates(index: CaseIndex) -> Rates:
    """The rates of all assertions, by name where names are few, the worst first."""
    groups = [group for _, group in index.groups()]
    early = any(group.alpha is not None for group in groups)
    by = sorted({group.clustered_by or CASE for group in groups})
    known = index.assertions
    names = {name for _, name in known}
    by_name = len(names) <= _MOST_NAMES and None not in names
    shown = [(name if by_name and name is not None else kind) for kind, name in known]
    found: dict[str, _Graded] = defaultdict(_Graded)
    for cluster, grades, number in index.grade_counts():
        for assertion, state in zip(grades[::2], grades[1::2], strict=True):
            graded = found[shown[assertion]]
            graded.types[known[assertion][0]] = None
            graded.add(cluster, state, number)
    for graded in found.values():
        graded.end()
    ordered = sorted(found.items(), key=lambda one: -(one[1].counts[FAILED] + one[1].counts[ERRORED]))
    return Rates([graded.rate(name, by, early=early) for name, graded in ordered])
