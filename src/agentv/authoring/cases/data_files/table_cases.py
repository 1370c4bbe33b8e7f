"""Rows of a table as cases: the columns mean what those of a CSV file do, and values keep their types."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from msgspec import Struct

from agentv.authoring.cases.data_files.csv_cases import Filling
from agentv.authoring.cases.data_files.csv_expected import Expectations
from agentv.authoring.cases.data_files.csv_header import Column, read_columns
from agentv.authoring.cases.data_files.csv_rows import Cell
from agentv.authoring.cases.data_files.rows import Table, TableRow, WrongValue
from agentv.authoring.source.nodes import MapNode, Node, Scalar, node_of, written
from agentv.authoring.source.report import Report
from agentv.errors import Diagnostic
from agentv.model.values.span import Span
from agentv.model.values.values import Json


class TypedCell(Struct, frozen=True):
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
        problem_with: Callable[[Sequence[Column]], Diagnostic | None],
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
                if any(value is not None and value != "" for value in values):
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
        value = record.values[own] if own is not None and own < len(record.values) else None
        given = "" if isinstance(value, WrongValue) else _text(value).strip()
        return given or self._id_of(record)

    def reworded(self, record: TableRow, found: Diagnostic) -> Diagnostic:
        """The diagnostic with the row, the cell and the name of the column."""
        table = self._tables[record.source]
        if found.span is not None and found.span.file != table.path:
            return found  # it is the suite's own, and the same for every row
        place = found.span.column if found.span is not None and found.span.end_column > found.span.column else None
        where = self._name + table.place(record.line, place)
        if place is not None and place <= len(self._columns):
            where = f"{where}, column '{self._columns[place - 1].name}'"
        return replace(found, message=f"{where}: {found.message}")

    def _read_header(self, source: int, names: Sequence[str], report: Report) -> bool:
        """Whether the columns of a file can be used; reported where they cannot."""
        table = self._tables[source]
        top = Span(table.path, 1, 1, 1, 1)
        if source:
            if [column.name for column in self._columns] == [name.strip() for name in names]:
                return True
            report.error("bad-table", top, f"the columns of this file differ from those of {self._tables[0].path}")
            return False
        cells = [Cell(name, top._replace(column=place, end_column=place + 1)) for place, name in enumerate(names, 1)]
        if not cells:
            report.error("no-tests", top, "this file contains no cases")
            return False
        columns = read_columns(cells, report, "bad-table")
        if columns is None:
            return False
        problem = self._unfit(columns)
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
        return max(len(row.values), len(self._columns))

    def _cell_at(self, row: TableRow, place: int) -> Span:
        return self._at(row)._replace(column=place, end_column=place + 1)

    def _case(self, row: TableRow, places: Sequence[Span], report: Report) -> Node | None:
        own, at = report.section(), self._at(row)
        items: dict[str, Node] = {"id": Scalar(self._id_of(row), self._id_of(row), at)}
        fill = Filling(self._expectations, own)
        for place, cell_at in enumerate(places):
            value = row.values[place] if place < len(row.values) else ""  # a sheet leaves empty cells out
            problem = value if isinstance(value, WrongValue) else self._problem(place, value)
            if problem is not None:
                own.error("bad-table", self._cell_at(row, place + 1), problem.message, hint=problem.hint)
            elif place < len(self._columns) and not isinstance(value, WrongValue):
                fill.take(self._columns[place], TypedCell(value, _text(value), cell_at))
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


def _text(value: Json) -> str:
    """A value as the text that a cell of a CSV file would have."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return getattr(value, "text", None) or written(value)
