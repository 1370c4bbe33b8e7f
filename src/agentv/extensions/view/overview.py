"""Overview of a run: its facts, failures by cause, and the pass rates of its assertions."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from msgspec import Struct

from agentv.app.results.listing import compared_totals_of, listed_run, totals_of
from agentv.errors import StoreError
from agentv.extensions.view.case_index import CaseIndex
from agentv.extensions.view.cases import StatusCounts, cut_reason
from agentv.extensions.view.growing import GrowingRun
from agentv.extensions.view.pages.page import HtmlReport, failures_json
from agentv.extensions.view.rates import AssertionRate, Rate
from agentv.extensions.view.runs import ViewedState, name_of, viewed_state
from agentv.model.run.runs import ListedRun
from agentv.model.run.summary import Summary
from agentv.model.values.values import JsonObject
from agentv.reports.text import without_directories
from agentv.store.files.directory import RUN, read_document
from agentv.store.totals.tally import STATUSES

_COMPARED = 50_000
"""Maximum number of trials for which missing column comparisons are computed during a request."""


class AssertionName(Struct, frozen=True):
    """An assertion, referred to by its index in the table. `name` is null if there are too many names."""

    type: str
    name: str | None


class NameTables(Struct, frozen=True):
    """Names in the rows of a run."""

    suites: list[str]
    targets: list[str]
    prompts: list[str]
    variants: list[str]
    tags: list[str]
    assertions: list[AssertionName]


class OverviewCounts(Struct, frozen=True):
    """Counts of a run, for the rows read so far.

    Attributes:
        rows: entries of the list by status: one for each target, prompt and variant of a case.
        cases: distinct cases by status, each with its worst result; once the run has ended, cases that did not run
            count as skipped.
        distinct: number of distinct cases.
        flaky: number of entries whose samples disagree.
        trials: number of trials with a row.
    """

    rows: StatusCounts
    cases: StatusCounts
    distinct: int
    flaky: int
    trials: int


class OverviewRates(Struct, frozen=True):
    """Pass rates of a run.

    Attributes:
        run: pass rate over all rows; null if nothing was judged or too many cases depend on each other.
        by: always empty: `facts.summary` has the rates by suite, target, prompt, variant and tag.
        assertions: pass rate of each assertion.
    """

    run: Rate | None
    by: dict[str, Any]
    assertions: list[AssertionRate]


class RunOverview(Struct, frozen=True):
    """A run.

    Attributes:
        facts: facts from `run.json` and `summary.json`, as in the static report.
        done: number of trials with a row.
        failures: groups of failures, those with the most cases first, and the command that reruns them. Each member of
            a group has the `route` of its case and its `trial`.
        scores: histogram of the scores with ten bins: for each, the numbers of passed and of failed cases.
        problem: why the run or some of its rows cannot be read; "" if nothing is wrong.
        indexed: share of the rows read so far, 0..1; below 1 the numbers cover only these.
        cursor: cursor after which `/events` starts.
    """

    run_id: str
    name: str
    state: ViewedState
    problem: str
    done: int
    planned: int | None
    facts: dict[str, Any]
    counts: OverviewCounts
    tables: NameTables
    failures: dict[str, Any]
    rates: OverviewRates
    scores: list[tuple[int, int]]
    indexed: float
    cursor: str


def overview(run: GrowingRun, run_id: str) -> RunOverview:
    """The overview of a run.

    Raises:
        StoreError: its files cannot be read.
    """
    record = read_document(run.path / RUN)
    listed = listed_run(run.path)
    summary = _totals(run, record, listed)
    report = HtmlReport(str(record.get("run_id", run_id)), record, summary, (), run.root)
    ended = None if listed.state == "being written" else summary
    with run.lock:
        progress = run.progress()
        facts = run.facts(cut_reason(run.path))
        with run.index() as index:
            # the summary of an ended run counts all planned cases, the index only those with a row
            worst = facts.worst if ended is None else [getattr(ended.cases, status) for status in STATUSES]
            cases, rows = StatusCounts.of(worst), StatusCounts.of(index.counts)
            counts = OverviewCounts(rows, cases, facts.distinct, facts.flaky, index.trials)
            tables = _tables(index)
        failures = _failures(run, report)
    return RunOverview(
        run_id=run_id,
        name=name_of(record),
        state=viewed_state(listed.state),
        problem=without_directories(progress.problem or listed.problem or ""),
        done=counts.trials if listed.state == "being written" else listed.done,
        planned=listed.planned,
        facts=report.facts(),
        counts=counts,
        tables=tables,
        failures=failures,
        rates=OverviewRates(facts.rate, {}, facts.assertions),
        scores=facts.scores,
        indexed=progress.indexed,
        cursor=progress.cursor,
    )


def _totals(run: GrowingRun, record: JsonObject, listed: ListedRun) -> Summary | None:
    if listed.state == "being written":
        return run.totals(record)
    if listed.state == "unreadable":
        return None
    try:
        if listed.done > _COMPARED:
            return totals_of(run.path, record)[0]
        return compared_totals_of(run.path, record)
    except StoreError:
        return listed.summary


def _failures(run: GrowingRun, report: HtmlReport) -> dict[str, Any]:
    groups = run.failures()
    with run.index() as index:
        found = failures_json(groups, report)
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
