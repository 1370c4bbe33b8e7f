"""The answers of a run as a grid: a row per case, a column per combination of prompt, target and variant."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from msgspec import Struct, json
from msgspec.structs import replace

from agentv.extensions.view.case_index import CaseIndex
from agentv.extensions.view.case_queries import GridCounts, GridFilter, MatchedCases
from agentv.extensions.view.case_rows import CaseChoice, CaseEntry, CaseGroup, CaseOrder, CaseTrial
from agentv.extensions.view.cases import CaseQuery, StatusCounts, choice_of
from agentv.extensions.view.growing import GrowingRun
from agentv.extensions.view.pages.entries import from_root
from agentv.model.run.labels import answer_sha256
from agentv.model.run.trial import Status
from agentv.store.files.directory import INDEX
from agentv.store.files.lines import lines_at
from agentv.store.rows.results import read_results_at

MOST = 200
"""Maximum number of rows per page."""

TEXT = 2_000
"""Maximum number of characters of an answer or a variable in a cell."""


class GridQuery(CaseQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which rows, in which order, and which page of them.

    Attributes:
        show: `different` selects rows whose columns disagree, `changed` those with a cell that has another status in
            the run `against`, `rated` those with an answer rated by a person.
        against: id of another run, whose answers are shown for comparison.
        where: `NAME=TEXT` selects rows whose variable NAME, or `metadata.NAME`, contains TEXT, ignoring case; may be
            repeated.
    """

    order: CaseOrder = "file"
    show: GridFilter = ""
    against: str = ""
    where: tuple[str, ...] = ()


class GridColumn(Struct, frozen=True):
    """Target, prompt and variant of a column."""

    target: str
    prompt: str | None
    variant: str | None

    @classmethod
    def of(cls, group: CaseGroup) -> GridColumn:
        """The column of a group of cases."""
        return cls(group.target, group.prompt, group.variant)


class GridText(Struct, frozen=True):
    """A text of `length` characters, possibly truncated."""

    text: str
    length: int

    @classmethod
    def of(cls, text: str) -> GridText:
        """A text, truncated to `TEXT` characters."""
        return cls(text[:TEXT], len(text))


class GridCell(Struct, frozen=True):
    """One case in one column.

    Attributes:
        column: index of its column in the page's `columns`.
        route: value for `/cases/{route}`.
        trial: value for `/trials/{trial}` of the shown trial: the first sample with the case's status.
        key: key of the shown trial.
        samples, passed: number of samples, and of those that passed.
        answer: answer of the shown trial; null if it has none.
        output_sha256: hash of the answer, which ratings refer to; empty without an answer.
        why: why the case did not pass, in one line; empty if it passed.
        cost: cost in US dollars, including judges; null if unknown.
        duration: mean duration of its samples in milliseconds.
        base: the same case in the other run, or null.
    """

    column: int
    route: str
    trial: str
    key: str
    status: Status
    score: float | None
    samples: int
    passed: int
    answer: GridText | None
    output_sha256: str
    why: str
    cost: float | None
    duration: float
    base: GridCell | None = None


class GridRow(Struct, frozen=True):
    """One case.

    Attributes:
        route: route of its first cell.
        path: path of its eval file.
        vars: variables as text, by name, followed by the case's metadata as `metadata.NAME`.
        input: the last user message.
    """

    route: str
    id: str
    suite: str
    path: str
    tags: tuple[str, ...]
    description: str
    vars: dict[str, GridText]
    input: GridText
    cells: list[GridCell]


class GridPage(Struct, frozen=True, rename={"start": "from"}):
    """A page of the selected rows.

    Attributes:
        columns: columns in the order of `run.json`.
        start: position of the first row.
        total: number of selected rows.
        counts: rows by the status of their worst cell, ignoring the selection of statuses.
        different: number of these rows whose columns disagree.
        flaky: number of these rows with a cell whose samples disagree.
        changed: number of these rows with another status in the other run; null without another run.
        indexed, cursor: as in a list of cases.
    """

    columns: list[GridColumn]
    rows: list[GridRow]
    start: int
    total: int
    counts: StatusCounts
    different: int
    flaky: int
    changed: int | None
    indexed: float
    cursor: str


def page_of_grid(
    run: GrowingRun, query: GridQuery, base: GrowingRun | None, rated: frozenset[tuple[str, str]] = frozenset()
) -> GridPage:
    """The page of rows that a query selects.

    Args:
        run: the run.
        query: selection of rows.
        base: the run that the query compares with.
        rated: suites and ids of the cases with a rated answer, if only these are shown.

    Raises:
        ValueError: a status is not known, or a number is out of range.
        StoreError: the rows cannot be read.
    """
    choice = choice_of(run, query, MOST)
    if query.where:
        choice = replace(choice, trials=_where(run, choice, query.where))
    matched = None if base is None else _matched(run, base)
    with run.lock, run.index() as index:
        progress = run.progress()
        changed = matched.changed if matched else ()
        name = ("grid", choice, query.show, changed, rated)
        chosen, counts = run.cached(name, lambda index: _rows(index, query, choice, changed, rated))
        columns = _columns(index)
        shown = chosen[query.start : query.start + query.limit]
        by_row = index.queries.cells(shown, choice)
        entries = {one.number: one for one in index.entries([number for row in shown for number in by_row[row]])}
    before = {}
    if base is not None and matched is not None:
        with base.index() as index:
            others = {number: matched.numbers[number] for number in entries if number in matched.numbers}
            found = {one.number: one for one in index.entries(list(others.values()))}
        reader = _Reader(base, columns, found.values())
        before = {number: reader.cell(found[other]) for number, other in others.items() if other in found}
    reader = _Reader(run, columns, entries.values())
    rows = [reader.row([entries[number] for number in by_row[row]], before) for row in shown if by_row[row]]
    return GridPage(
        columns=columns,
        rows=rows,
        start=query.start,
        total=len(chosen),
        counts=StatusCounts.of(counts.by_status),
        different=counts.different,
        flaky=counts.flaky,
        changed=None if base is None else counts.changed,
        indexed=progress.indexed,
        cursor=progress.cursor,
    )


def _rows(
    index: CaseIndex, query: GridQuery, choice: CaseChoice, changed: tuple[int, ...], rated: frozenset[tuple[str, str]]
) -> tuple[list[int], GridCounts]:
    queries = index.queries
    outcomes = queries.outcomes(choice, changed)
    among = queries.rows_of(rated) if query.show == "rated" else None
    return queries.rows(choice, outcomes, query.show, among), queries.counts(outcomes)


class _Facts(Struct):
    vars: dict[str, Any] = {}
    metadata: dict[str, Any] = {}


_facts_in = json.Decoder(_Facts).decode


def _where(run: GrowingRun, choice: CaseChoice, where: tuple[str, ...]) -> tuple[int, ...]:
    """The numbers of the first trials of the selected cases that meet all conditions of `where`."""
    wanted = [(name, text.lower()) for name, _, text in (one.partition("=") for one in where)]

    def found(index: CaseIndex) -> tuple[int, ...]:
        first_at = {place: trial for trial, place in index.first_trials(choice)}
        trials = []
        for place, line in lines_at(run.path / INDEX, first_at):
            row = _facts_in(line)
            facts = _facts(row.vars, row.metadata)
            if all(name in facts and text in _as_text(facts[name]).lower() for name, text in wanted):
                trials.append(first_at[place])
        return tuple(trials)

    return run.cached(("where", choice, where), found)


def _facts(variables: Mapping[str, object], metadata: Mapping[str, object]) -> dict[str, object]:
    return {**variables, **{f"metadata.{name}": value for name, value in metadata.items()}}


def _matched(run: GrowingRun, base: GrowingRun) -> MatchedCases:
    """The cases of a run matched with those of another one.

    The runs are locked in the order of their paths, to prevent a deadlock with the opposite comparison.
    """
    first, second = sorted((run, base), key=lambda one: one.path)
    with first.lock, second.lock, base.index() as before:
        name = ("matched", str(base.path), before.read)
        return run.cached(name, lambda index: index.queries.match(before.queries))


def _columns(index: CaseIndex) -> list[GridColumn]:
    """The columns of a run, in the order of prompts, targets and variants in `run.json`."""
    columns = dict.fromkeys(GridColumn.of(group) for _, group in index.groups())
    return sorted(columns, key=lambda one: index.order.column(one.prompt, one.target, one.variant))


class _Reader:
    """Creates the cells of entries from their rows, which are read at once."""

    def __init__(self, run: GrowingRun, columns: list[GridColumn], entries: Collection[CaseEntry]) -> None:
        places = sorted({one.place for entry in entries for one in (entry.trials[0], _shown_trial(entry))})
        self._results = dict(zip(places, read_results_at(run.path / INDEX, run.root, places), strict=True))
        self._root = run.root
        self._columns = {column: place for place, column in enumerate(columns)}

    def row(self, entries: list[CaseEntry], before: Mapping[int, GridCell]) -> GridRow:
        """A row with its cells. `before` contains cells of another run by entry number."""
        cells = sorted((self.cell(entry, before.get(entry.number)) for entry in entries), key=lambda cell: cell.column)
        first = entries[0]
        result = self._results[first.trials[0].place]
        case = result.trial.case
        # the last user message, or the last message if none is from the user
        asked = [message for message in result.input if message.role == "user"] or list(result.input)
        return GridRow(
            first.route,
            first.case_id,
            first.group.suite,
            from_root(self._root, first.group.path or ""),
            first.group.tags,
            case.description or "",
            {name: GridText.of(_as_text(value)) for name, value in _facts(case.vars, case.metadata).items()},
            GridText.of(asked[-1].text if asked else ""),
            cells,
        )

    def cell(self, entry: CaseEntry, base: GridCell | None = None) -> GridCell:
        """The cell of an entry. `base` is the same cell of another run."""
        trial = _shown_trial(entry)
        result = self._results[trial.place]
        costs = [one.cost for one in entry.trials if one.cost is not None]
        return GridCell(
            self._columns.get(GridColumn.of(entry.group), -1),
            entry.route,
            str(trial.number),
            result.trial.key,
            entry.status,
            entry.score,
            len(entry.trials),
            sum(one.status == "passed" for one in entry.trials),
            None if result.output is None else GridText.of(result.output),
            "" if result.output is None else answer_sha256(result.output),
            "" if entry.status in ("passed", "shown") else trial.teaser,
            sum(costs) if costs else None,
            sum(one.duration for one in entry.trials) / len(entry.trials),
            base,
        )


def _shown_trial(entry: CaseEntry) -> CaseTrial:
    """The first sample with the status of its case."""
    return next((one for one in entry.trials if one.status == entry.status), entry.trials[0])


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.encode(value).decode()
