"""Rows of a table as cases, by promptfoo's columns (SPEC section 2).

Plain columns are variables; those that begin with two underscores say what is expected of the answer, and more. Values
keep their types; all of a CSV file are texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct, structs
from msgspec.structs import replace

from agentv.authoring.cases.data_files.csv_table import Expectations
from agentv.authoring.cases.data_files.rows import Table, TableRow, WrongValue
from agentv.authoring.source.nearest import did_you_mean
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, node_of, written
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import resolve
from agentv.errors import Diagnostic
from agentv.model.values.values import Json, Span

_SPECIAL = re.compile(
    r"__(?:(?P<name>id|description|metric|threshold)|(?P<expected>expected\d*)"
    r"|metadata:(?P<metadata>.+?)(?P<list>\[\])?|config:__(?P<of>expected\d*):threshold)"
)
_NAMES = ("__expected", "__expected1", "__metric", "__threshold", "__description", "__metadata:", "__config:", "__id")
_PROMPTFOO = frozenset({"__prefix", "__suffix", "__providerOutput"})
"""Columns of promptfoo's that have no meaning here. Passed over, they would change what is tested."""

MOST = 16_384
"""Columns, as many as a spreadsheet has."""

SHOWN = 50
"""Mistakes of one header that are reported."""


class Column(Struct, frozen=True):
    """One column: its name, and what it sets.

    Attributes:
        kind: `vars`, `expected`, `config`, `metadata`, `list` (metadata from a list), or a special column's name.
        key: the variable, the metadata key, or the column of the assertion that a `config` is for.
    """

    name: str
    kind: str
    key: str


def read_columns(names: Sequence[str], at: Span, code: str, report: Report) -> Sequence[Column] | None:
    """The columns that a header names; None if some are wrong, which is reported.

    Args:
        names: the cells of the header.
        at: position of the header.
        code: of a header that no table can have.
        report: receives what is wrong.
    """
    report = report.section()
    if len(names) > MOST:
        message = f"this table has {len(names):,} columns; the maximum is {MOST:,}"
        report.error(code, at, message, hint="write one row per case")
        return None
    columns: list[Column] = []
    places: dict[tuple[str, str], int] = {}
    for place, name in enumerate(map(str.strip, names), 1):
        if report.count > SHOWN:
            break  # one mistake in the program that wrote it
        if not name:
            hint = "name it, or remove the comma" if code == "bad-csv" else "name it, or remove the column"
            report.error(code, at, f"column {place} has no name", hint=hint)
        columns.append(column := _column(name, at, report))
        sets = ("metadata" if column.kind == "list" else column.kind, column.key)
        if name and (first := places.setdefault(sets, place)) != place:
            message = f"the column '{name}' appears twice; the first is column {first}"
            if name != columns[first - 1].name:
                message = f"the columns '{columns[first - 1].name}' and '{name}' set the same key"
            report.error("duplicate-key", at, message)
    # every `config` names the column of an assertion; `__expected` also means the only one there is, or the first
    expected = [column.key for column in columns if column.kind == "expected"]
    for place, column in enumerate(columns):
        if column.kind != "config" or column.key in expected or report.count > SHOWN:
            continue
        if column.key == "expected" and expected:
            columns[place] = structs.replace(column, key=expected[0])
        else:
            message = f"'{column.name}' refers to a column '__{column.key}', which does not exist"
            near = did_you_mean(column.key, expected)
            report.error("unknown-key", at, message, hint=near and near.replace("'", "'__", 1))
    return None if report.failed else columns


def _column(name: str, at: Span, report: Report) -> Column:
    if not name.startswith("__"):
        if name.startswith("_") and _SPECIAL.fullmatch(f"_{name}"):
            message = f"the column '{name}' starts with one underscore, so it is a variable"
            report.warning("nearly-a-column", at, message, hint=f"did you mean '_{name}'?")
        return Column(name, "vars", name)
    match = _SPECIAL.fullmatch(name)
    if match is None:
        if name in _PROMPTFOO:
            message = f"promptfoo's column '{name}' is not supported"
            hints = {"__providerOutput": "for existing answers, use the provider 'replay'"}
            report.error("unknown-key", at, message, hint=hints.get(name, "put its text into the suite's 'input'"))
        elif name.startswith("__metadata"):
            report.error("unknown-key", at, f"the column '{name}' needs a key", hint="write '__metadata:NAME'")
        elif name.startswith("__config"):
            hint = "write '__config:__expected1:threshold'; no other option can be set this way"
            report.error("unknown-key", at, f"the column '{name}' has no effect", hint=hint)
        else:
            near = did_you_mean(name, _NAMES)
            notes = () if near else (f"special columns are {', '.join(_NAMES)}",)
            report.error("unknown-key", at, f"unknown special column '{name}'", hint=near, notes=notes)
        return Column(name, "vars", name)
    if match["name"]:
        return Column(name, match["name"], name)
    if match["expected"]:
        return Column(name, "expected", match["expected"])
    if match["of"]:
        return Column(name, "config", match["of"])
    return Column(name, "list" if match["list"] else "metadata", match["metadata"])


_COMMA = re.compile(r"(?<!\\),")


class Cell(Struct, frozen=True):
    """Value, text and position of a cell."""

    value: Json
    text: str
    at: Span

    def node(self) -> Node:
        """The value with its type."""
        return node_of(self.value, self.at)


class TableCases:
    """The cases of a table, which may be in several files with the same columns.

    Args:
        tables: the files, in order.
        expectations: reads the cells with expected results.
        prefix: precedes `row-N`, the id of a row without one.
        problem_with: returns the problem of these columns for the suite of the rows, if any.
        name: of the table in messages, where it is not that of a file.
    """

    unit = "row"

    def __init__(
        self,
        tables: Sequence[Table],
        expectations: Expectations,
        prefix: str,
        problem_with: Callable[[Sequence[Column], Span], Diagnostic | None],
        name: str = "",
    ) -> None:
        self.path = tables[0].path
        self._tables = tables
        self._expectations = expectations
        self._prefix = prefix
        self._unfit = problem_with
        self._name = f"{name}, " if name else ""
        self._columns: Sequence[Column] = ()
        self._source = 0

    def records(self, report: Report) -> Iterator[tuple[int, TableRow]]:
        """The rows below the header that are not blank."""
        number = 0
        for source, table in enumerate(self._tables):
            names = table.header(report)
            if names is None or not self._read_header(source, names, report):
                return
            for line, values in table.rows(report):
                if isinstance(values, WrongValue) or any(value is not None and value != "" for value in values):
                    number += 1
                    self._source = source
                    yield line, TableRow(line, number, values, source)

    def node(self, number: int, record: TableRow, report: Report) -> Node | None:
        """The case of a row."""
        del number  # the row knows it, and its file
        return self._case(record, [self._at(record)] * self._width(record), report)

    def exact(self, number: int, record: TableRow, report: Report) -> Node | None:
        """The case of a row, with the places of its cells."""
        del number
        return self._case(record, [self._cell_at(record, place) for place in range(1, self._width(record) + 1)], report)

    def renders(self, record: TableRow) -> bool:
        """Whether rows may contain placeholders."""
        text = repr(record)
        return "{{" in text or "{%" in text

    def identity(self, record: TableRow) -> str | None:
        """The id that the row gives or gets."""
        own = next((place for place, column in enumerate(self._columns) if column.kind == "id"), None)
        values = () if isinstance(record.values, WrongValue) else record.values
        value = values[own] if own is not None and own < len(values) else None
        given = "" if isinstance(value, WrongValue) else _text(value).strip()
        return given or self._id_of(record)

    def reworded(self, record: TableRow, found: Diagnostic) -> Diagnostic:
        """The diagnostic with the row, the cell and the name of the column."""
        table = self._tables[record.source]
        if found.span is not None and found.span.file != table.path:
            return found  # it is the suite's own, and the same for every row
        place = found.span.column if found.span is not None and found.span.end_column > found.span.column else None
        where = self._name + table.place(record, place)
        if place is not None and place <= len(self._columns):
            where = f"{where}, column '{self._columns[place - 1].name}'"
        return replace(found, message=f"{where}: {found.message}", span=self._at(record))

    def _read_header(self, source: int, names: Sequence[str], report: Report) -> bool:
        """Whether the columns of a file can be used; reported where they cannot."""
        table = self._tables[source]
        top = Span(table.path, table.header_line, 1, table.header_line, 1)
        if source:
            if [column.name for column in self._columns] == [name.strip() for name in names]:
                return True
            report.error(table.code, top, f"the columns of this file differ from those of {self._tables[0].path}")
            return False
        if not names:
            report.error("no-tests", top, "this file contains no cases")
            return False
        columns = read_columns(names, top, table.code, report)
        if columns is None:
            return False
        problem = self._unfit(columns, top)
        if problem is not None:
            report.add(problem)
            return False
        self._columns = columns
        return True

    def _at(self, record: TableRow) -> Span:
        """The place of a row as a whole: of no width, so that it is not taken for its first cell."""
        return Span(self._tables[record.source].path, record.line, 1, record.line, 1)

    def _id_of(self, row: TableRow) -> str:
        return f"{self._prefix}row-{row.number}"

    def _width(self, row: TableRow) -> int:
        return 0 if isinstance(row.values, WrongValue) else max(len(row.values), len(self._columns))

    def _cell_at(self, row: TableRow, place: int) -> Span:
        return replace(self._at(row), column=place, end_column=place + 1)

    def _case(self, row: TableRow, places: Sequence[Span], report: Report) -> Node | None:
        own, at, values = report.section(), self._at(row), row.values
        code = self._tables[row.source].code
        if isinstance(values, WrongValue):
            report.error(code, at, values.message, hint=values.hint)
            return None
        items: dict[str, Node] = {"id": Scalar(self._id_of(row), self._id_of(row), at)}
        fill = _Filling(self._expectations, own)
        for place, cell_at in enumerate(places):
            value = values[place] if place < len(values) else ""  # a sheet leaves empty cells out
            if type(value) is str and place < len(self._columns):  # first: all cells of a CSV file are texts
                fill.take(self._columns[place], Cell(value, value, cell_at))
                continue
            problem = value if isinstance(value, WrongValue) else self._problem(place, value)
            if problem is not None:
                own.error(code, self._cell_at(row, place + 1), problem.message, hint=problem.hint)
            elif place < len(self._columns) and not isinstance(value, WrongValue):
                fill.take(self._columns[place], Cell(value, _text(value), cell_at))
        if own.failed:
            return None
        items |= fill.items(at)
        return MapNode(items, {key: node.at for key, node in items.items()}, at)

    def _problem(self, place: int, value: Json) -> WrongValue | None:
        """What is wrong with the value in a column, counted from 0."""
        if place >= len(self._columns):
            empty = value is None or value == ""
            return (
                None
                if empty
                else WrongValue("this cell has no column: the header above it is empty", "name the column")
            )
        column = self._columns[place]
        if isinstance(value, list | dict) and column.kind not in ("vars", "metadata", "list"):
            found = "a list" if isinstance(value, list) else "a struct"
            return WrongValue(f"'{column.name}' needs text, found {found}")
        return None


class _Filling:
    """What the cells of one row come to."""

    def __init__(self, expectations: Expectations, report: Report) -> None:
        self._expectations = expectations
        self._report = report
        self._own: dict[str, Node] = {}
        self._vars: dict[str, Node] = {}
        self._metadata: dict[str, Node] = {}
        self._expected: dict[str, Cell] = {}
        self._thresholds: dict[str, Node] = {}
        self._metric: Node | None = None

    def take(self, column: Column, cell: Cell) -> None:
        """One cell. An empty one says nothing, but as a variable it is the empty text."""
        kind, text, at = column.kind, cell.text, cell.at
        if kind == "vars":
            self._vars[column.key] = cell.node()
        elif not text.strip():
            return
        elif kind == "expected":
            self._expected[column.key] = cell
        elif kind == "metadata" or (kind == "list" and isinstance(cell.node(), ListNode)):
            self._metadata[column.key] = cell.node()
        elif kind == "list":
            items = [item.strip().replace("\\,", ",") for item in _COMMA.split(text)]
            self._metadata[column.key] = ListNode([Scalar(item, item, at) for item in items], at)
        elif kind == "config":
            self._thresholds[column.key] = _number(text, at)
        elif kind == "metric":
            self._metric = Scalar(text.strip(), text.strip(), at)
        else:
            self._own[kind] = _number(text, at) if kind == "threshold" else Scalar(text.strip(), text.strip(), at)

    def items(self, at: Span) -> Mapping[str, Node]:
        """The keys of the case."""
        found = dict(self._own)
        for key, nodes in (("vars", self._vars), ("metadata", self._metadata)):
            if nodes:
                found[key] = MapNode(nodes, {name: node.at for name, node in nodes.items()}, at)
        if self._expected:
            found["assert"] = ListNode([self._entry(*one) for one in self._expected.items()], at)
        return found

    def _entry(self, column: str, cell: Cell) -> MapNode:
        entry = self._expectations.entry(cell.text, cell.at, self._thresholds.get(column), self._report)
        if self._metric is None:
            return entry
        return MapNode({**entry.items, "name": self._metric}, {**entry.keys, "name": self._metric.at}, entry.at)


def _number(text: str, at: Span) -> Scalar:
    text = text.strip()
    return Scalar(resolve(text), text, at)


def _text(value: Json) -> str:
    """A value as the text that a cell of a CSV file would have."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return getattr(value, "text", None) or written(value)
