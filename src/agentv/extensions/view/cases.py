"""The list of a run's cases, paginated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from agentv.errors import AgentvError, StoreError
from agentv.extensions.view.case_index import CaseIndex
from agentv.extensions.view.case_rows import AnyStatus, CaseChoice, CaseEntry, CaseOrder
from agentv.extensions.view.growing import GrowingRun
from agentv.extensions.view.rates import Rate, rate_of_cases, stored_facts
from agentv.model.run.trial import Status
from agentv.store.journal.verification import stored_summary
from agentv.store.totals.tally import STATUSES

MOST = 500
"""Maximum number of cases per page."""


class NoSuchCaseError(AgentvError):
    """A run does not have the requested case or trial."""

    http_error = (404, "no-such-case")


class StatusCounts(Struct, frozen=True):
    """Number of cases by status."""

    passed: int = 0
    failed: int = 0
    errored: int = 0
    skipped: int = 0
    shown: int = 0

    @classmethod
    def of(cls, counts: Sequence[int]) -> StatusCounts:
        """Counts from numbers in the order of `STATUSES`."""
        return cls(**dict(zip(STATUSES, counts, strict=True)))


class ViewedTrial(Struct, frozen=True):
    """A trial in a list.

    Attributes:
        trial: value for `/trials/{trial}`.
        repeat: planned number of samples of its case.
        assertions: for each, its index in the run's table of assertions, and 0 (passed), 1 (failed) or 2 (errored).
        cost: cost in US dollars, including judges.
        teaser: why the trial ended as it did, or the beginning of its answer.
    """

    trial: str
    sample: int
    repeat: int
    status: Status
    score: float | None
    threshold: float
    duration: float
    cost: float | None
    assertions: list[list[int]]
    teaser: str


class ViewedCase(Struct, frozen=True):
    """A case in a list: on one target, with one prompt and one variant.

    Attributes:
        route: value for `/cases/{route}`.
        sha: hash of the case's definition, shortened; it changes when the definition does.
        early: how sampling ended; null if the case's sampling cannot end early.
    """

    route: str
    id: str
    suite: str
    target: str
    prompt: str | None
    variant: str | None
    tags: tuple[str, ...]
    status: Status
    score: float | None
    teaser: str
    sha: str
    early: dict[str, Any] | None
    trials: list[ViewedTrial]

    @classmethod
    def of(cls, entry: CaseEntry) -> ViewedCase:
        """The case of an entry of the index."""
        group = entry.group
        trials = [
            ViewedTrial(
                str(one.number),
                one.sample,
                group.repeat,
                one.status,
                one.score,
                group.threshold,
                one.duration,
                one.cost,
                one.grades,
                one.teaser,
            )
            for one in entry.trials
        ]
        names = (entry.route, entry.case_id, group.suite, group.target, group.prompt, group.variant, group.tags)
        return cls(*names, entry.status, entry.score, entry.teaser, entry.sha, entry.early, trials)


class CaseQuery(Struct, frozen=True, forbid_unknown_fields=True, rename={"start": "from"}):
    """Which cases, in which order, and which page of them.

    Attributes:
        q: search terms that a trial of the case contains: prefixes of words, or any part of ids and names.
        status: statuses, separated by spaces; `flaky` selects cases whose samples disagree.
        assertion: `failed NAME` or `any NAME`, where NAME is the type or name of an assertion.
        cause: cause of a group of failures.
        id: ids of cases; the parameter may be repeated.
        order: `worst` first, `run` (order of completion), `file`, `name`, `slowest` or `costliest` first.
        limit: maximum number of cases.
        start: position of the first case.
    """

    q: str = ""
    status: str = ""
    suite: str = ""
    target: str = ""
    prompt: str = ""
    variant: str = ""
    tag: str = ""
    assertion: str = ""
    cause: str = ""
    id: tuple[str, ...] = ()
    order: CaseOrder = "worst"
    limit: int = 100
    start: int = 0


class CasePage(Struct, frozen=True, rename={"start": "from"}):
    """A page of the selected cases.

    A case counts once per target, prompt and variant, except in `worst` and `distinct`.

    Attributes:
        start: position of the first case.
        total: number of selected cases.
        counts: selected cases by status, ignoring the selection of statuses.
        worst: distinct cases by status, each with its worst result.
        distinct: number of distinct cases.
        flaky: number of cases of the run whose samples disagree.
        rate: pass rate of the selected cases; null if they are selected by status, or if too many depend on each other.
        indexed: share of the rows read so far, 0..1; below 1 there will be more cases.
        cursor: cursor after which `/events` starts.
    """

    cases: list[ViewedCase]
    start: int
    total: int
    counts: StatusCounts
    worst: StatusCounts
    distinct: int
    flaky: int
    rate: Rate | None
    indexed: float
    cursor: str


def page_of_cases(run: GrowingRun, query: CaseQuery) -> CasePage:
    """The page of cases that a query selects.

    Raises:
        ValueError: a status is not known, or a number is out of range.
        StoreError: the rows cannot be read.
    """
    choice = choice_of(run, query, MOST)
    with run.lock:
        progress, numbers = run.progress(), run.numbers(choice)
        with run.index() as index:
            entries = index.entries(numbers[query.start : query.start + query.limit])
        shown = _totals(run, msgspec.structs.replace(choice, order="run"), len(numbers))
    cases = [ViewedCase.of(entry) for entry in entries]
    return CasePage(cases, query.start, len(numbers), *shown, progress.indexed, progress.cursor)


class _PageTotals(NamedTuple):
    """Numbers of a page of cases that cover all selected cases."""

    counts: StatusCounts
    worst: StatusCounts
    distinct: int
    flaky: int
    rate: Rate | None


def _totals(run: GrowingRun, choice: CaseChoice, total: int) -> _PageTotals:
    cut, every = cut_reason(run.path), choice == CaseChoice(order=choice.order)

    def counted(index: CaseIndex) -> _PageTotals:
        stored = stored_facts(index) if every else None
        if stored is not None:
            facts = stored.with_cut(cut)
            worst = StatusCounts.of(facts.worst)
            return _PageTotals(StatusCounts.of(index.counts), worst, facts.distinct, facts.flaky, facts.rate)
        queries, rate = index.queries, rate_of_cases(index, choice, total, cut)
        worst = StatusCounts.of(queries.counts(queries.outcomes(choice)).by_status)
        counts = StatusCounts.of(queries.by_status(choice))
        return _PageTotals(counts, worst, queries.distinct(choice), queries.flaky(), rate)

    return run.cached(("shown", choice, cut), counted)


def cut_reason(run: Path) -> str | None:
    """Why a run was stopped because of its results, or None if it was not."""
    try:
        stored = stored_summary(run)
        found = None if stored is None else stored.document.get("cut")
    except StoreError:
        return None
    return found if isinstance(found, str) else None


def case_at(run: GrowingRun, route: str) -> ViewedCase:
    """The case with a route.

    Raises:
        NoSuchCaseError: the run has no such case.
    """
    with run.index() as index:
        number = index.case_at(route)
        entries = [] if number is None else index.entries([number])
    for entry in entries:
        if entry.route == route:
            return ViewedCase.of(entry)
    raise NoSuchCaseError("this run has no such case")


def choice_of(run: GrowingRun, query: CaseQuery, most: int) -> CaseChoice:
    """The selection of a query whose `limit` may be `most` at most.

    Raises:
        ValueError: a status is not known, or a number is out of range.
    """
    if not 0 <= query.limit <= most or query.start < 0:
        raise ValueError(f"limit must be 0 to {most}, and from 0 or more")
    statuses: list[AnyStatus] = []
    for status in query.status.split():
        if status not in (*STATUSES, "flaky"):
            raise ValueError(f"status: '{status[:40]}' is not one of {', '.join((*STATUSES, 'flaky'))}")
        statuses.append(status)  # type: ignore[arg-type]  # checked just above
    names = (query.suite, query.target, query.prompt, query.variant, query.tag, query.assertion)
    trials: tuple[int, ...] | None = None
    if query.cause:
        trials = tuple(number for group in run.failures() if group.cause == query.cause for number in group.numbers)
    return CaseChoice(tuple(statuses), *names, trials, query.q, query.id, query.order)
