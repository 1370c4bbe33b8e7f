"""The answers of a run as a grid: a row for each case, a column for each prompt, target and variant."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from msgspec import Struct, json
from msgspec.structs import replace

from agentv.extensions.view.case_index import CaseIndex
from agentv.extensions.view.case_queries import Beside, GridCounts, GridFilter
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
"""Rows of one page."""

TEXT = 2_000
"""Characters of an answer, or of a variable, that a cell holds."""


class GridQuery(CaseQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which rows, in what order, and which part of them.

    Attributes:
        show: `different`: columns disagree; `changed`: a cell ended otherwise in the run `against`; `rated`: people
            rated an answer.
        against: id of another run, whose answers stand beside.
        where: `NAME=TEXT`: the variable, or `metadata.NAME`, contains a text, in any case; may be repeated.
    """

    order: CaseOrder = "file"
    show: GridFilter = ""
    against: str = ""
    where: tuple[str, ...] = ()


class GridColumn(Struct, frozen=True):
    """What the cells of a column ran with."""

    target: str
    prompt: str | None
    variant: str | None

    @classmethod
    def of(cls, group: CaseGroup) -> GridColumn:
        """That of a group of cases."""
        return cls(group.target, group.prompt, group.variant)


class GridText(Struct, frozen=True):
    """A text, or the beginning of one of `length` characters."""

    text: str
    length: int

    @classmethod
    def of(cls, text: str) -> GridText:
        """The text, cut."""
        return cls(text[:TEXT], len(text))


class GridCell(Struct, frozen=True):
    """One case in one column.

    Attributes:
        column: its place among the columns of the page.
        route: what `/case` is asked for.
        trial: what `/trials/{trial}` is asked for: of the first sample that ended as the case did.
        key: of that trial.
        samples, passed: how many there are, and how many passed.
        answer: of that trial; null: it has none.
        output_sha256: of the answer, by which ratings know it; empty without an answer.
        why: why it did not pass, in a line; empty: it did.
        cost: US dollars, with its judges; null: unknown.
        duration: milliseconds.
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
        route: of its first cell.
        path: of its eval file.
        vars: names → values as text; after them the metadata of the case, as `metadata.NAME`.
        input: the last message of the user.
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
    """A part of the chosen rows.

    Attributes:
        columns: in the order of `run.json`.
        start: position of the first row.
        total: how many rows are chosen.
        counts: how many of the rows came to what, by the worst of their cells, whatever status is chosen.
        different: how many of them have columns that disagree.
        flaky: how many of them have a cell whose samples disagree.
        changed: how many of them ended otherwise in the other run; null without another run.
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
    """The rows that a page asks for.

    Args:
        run: whose rows they are.
        query: which of them.
        base: the run that the query names.
        rated: suites and ids of the cases with a rated answer, if only these are shown.

    Raises:
        ValueError: a status is not known, or a number is out of range.
        StoreError: the rows cannot be read.
    """
    choice = choice_of(run, query, MOST)
    if query.where:
        choice = replace(choice, trials=_where(run, choice, query.where))
    beside = None if base is None else _beside(run, base)
    with run.lock, run.index() as index:
        progress = run.progress()
        changed = beside.changed if beside else ()
        name = ("grid", choice, query.show, changed, rated)
        chosen, counts = run.remember(name, lambda index: _rows(index, query, choice, changed, rated))
        columns = _columns(index)
        shown = chosen[query.start : query.start + query.limit]
        by_row = index.queries.cells(shown, choice)
        entries = {one.number: one for one in index.entries([number for row in shown for number in by_row[row]])}
    before = {}
    if base is not None and beside is not None:
        with base.index() as index:
            others = {number: beside.numbers[number] for number in entries if number in beside.numbers}
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
    """The numbers of the first trials of chosen cases whose facts contain texts."""
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

    return run.remember(("where", choice, where), found)


def _facts(variables: Mapping[str, object], metadata: Mapping[str, object]) -> dict[str, object]:
    return {**variables, **{f"metadata.{name}": value for name, value in metadata.items()}}


def _beside(run: GrowingRun, base: GrowingRun) -> Beside:
    """The cases of a run in another one.

    Both are locked in the order of their paths, whichever is compared with which.
    """
    first, second = sorted((run, base), key=lambda one: one.path)
    with first.lock, second.lock, base.index() as before:
        name = ("beside", str(base.path), before.read)
        return run.remember(name, lambda index: index.queries.beside(before.queries))


def _columns(index: CaseIndex) -> list[GridColumn]:
    """What cases ran with, in the order in which `run.json` names prompts, targets and variants."""
    columns = dict.fromkeys(GridColumn.of(group) for _, group in index.groups())
    return sorted(columns, key=lambda one: index.order.column(one.prompt, one.target, one.variant))


class _Reader:
    """What cells show out of the rows of a run, which are read together."""

    def __init__(self, run: GrowingRun, columns: list[GridColumn], entries: Collection[CaseEntry]) -> None:
        places = sorted({one.place for entry in entries for one in (entry.trials[0], _shown(entry))})
        self._results = dict(zip(places, read_results_at(run.path / INDEX, run.root, places), strict=True))
        self._root = run.root
        self._columns = {column: place for place, column in enumerate(columns)}

    def row(self, entries: list[CaseEntry], before: Mapping[int, GridCell]) -> GridRow:
        """A row with its cells; `before`: cells of another run, by the numbers of the entries."""
        cells = sorted((self.cell(entry, before.get(entry.number)) for entry in entries), key=lambda cell: cell.column)
        first = entries[0]
        result = self._results[first.trials[0].place]
        case = result.trial.case
        # what the user said last; what there is at all, where nobody asked
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
        """A cell; `base`: that of another run."""
        trial = _shown(entry)
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


def _shown(entry: CaseEntry) -> CaseTrial:
    """The first sample that ended as its case did."""
    return next((one for one in entry.trials if one.status == entry.status), entry.trials[0])


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.encode(value).decode()
