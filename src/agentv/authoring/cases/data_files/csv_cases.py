"""Rows of a CSV file as cases, by promptfoo's columns (SPEC section 2).

Plain columns are variables; those that begin with two underscores say what is expected of the answer, and more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from agentv.authoring.cases.data_files.csv_expected import Expectations
from agentv.authoring.cases.data_files.csv_header import Column, read_header
from agentv.authoring.cases.data_files.csv_rows import Cell, CsvRow, read_rows
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar
from agentv.authoring.source.report import Report
from agentv.authoring.source.scalars import resolve
from agentv.errors import Diagnostic
from agentv.model.values.formatting import plural
from agentv.model.values.span import Span

_COMMA = re.compile(r"(?<!\\),")


class CsvCases:
    """The CSV format of cases.

    Args:
        path: of the file.
        expectations: reads the cells with expected results.
        prefix: precedes `row-N`, the id of a row without one.
        problem_with: returns the problem of these columns for the suite of the rows, if any.
    """

    unit = "row"

    def __init__(
        self,
        path: str,
        expectations: Expectations,
        prefix: str,
        problem_with: Callable[[Sequence[Column]], Diagnostic | None],
    ) -> None:
        self.path = path
        self._expectations = expectations
        self._prefix = prefix
        self._unfit = problem_with
        self._columns: Sequence[Column] = ()

    def records(self, report: Report) -> Iterator[tuple[int, CsvRow]]:
        """The rows under the header that are not blank."""
        rows = read_rows(self.path, report)
        header = next(rows, None)
        columns = read_header(header, self.path, report) if header is not None else None
        if columns is None:
            return
        problem = self._unfit(columns)
        if problem is not None:
            report.add(problem)
            return
        self._columns = columns
        number = 0
        for row in rows:
            if row.raw.strip(", "):
                number += 1
                yield row.line, CsvRow(row.line, row.raw, number, row.problem, row.folded)

    def node(self, number: int, record: CsvRow, report: Report) -> Node | None:
        """The case of a row."""
        at = self._at(number)
        if record.problem is not None:
            report.add(record.problem)
            return None
        return self._case(record, [Cell(text, at) for text in record.texts], at, report)

    def exact(self, number: int, record: CsvRow, report: Report) -> Node | None:
        """The case of a row, with the places of its cells."""
        if record.problem is not None:
            return None
        return self._case(record, record.cells(self.path), self._at(number), report)

    def renders(self, record: CsvRow) -> bool:
        """Whether rows may contain placeholders."""
        return "{{" in record.raw or "{%" in record.raw

    def identity(self, record: CsvRow) -> str | None:
        """The id that the row gives or gets."""
        own = next((place for place, column in enumerate(self._columns) if column.kind == "id"), None)
        texts = record.texts if own is not None and record.problem is None else []
        given = texts[own].strip() if own is not None and own < len(texts) else ""
        return given or self._id_of(record)

    def reworded(self, record: CsvRow, found: Diagnostic) -> Diagnostic:
        """The diagnostic with the row's number and the column's name."""
        where = f"row {record.number}"
        if found.span is not None and found.span.file != self.path:
            return found  # it is the suite's own, and the same for every row
        if found.span is not None and found.code != "bad-csv":
            spans = (cell.at for cell in record.cells(self.path))
            names = (column.name for column, at in zip(self._columns, spans, strict=False) if at == found.span)
            name = next(names, None)
            where = f"{where}, column '{name}'" if name is not None else where
        return replace(found, message=f"{where}: {found.message}")

    def _at(self, number: int) -> Span:
        """The place of a row as a whole: of no width, so that it is not taken for its first cell."""
        return Span(self.path, number, 1, number, 1)

    def _id_of(self, row: CsvRow) -> str:
        return f"{self._prefix}row-{row.number}"

    def _case(self, row: CsvRow, cells: Sequence[Cell], at: Span, report: Report) -> Node | None:
        if len(cells) != len(self._columns):
            self._report_ragged(cells, at, report)
            return None
        items: dict[str, Node] = {"id": Scalar(self._id_of(row), self._id_of(row), at)}
        fill = Filling(self._expectations, report)
        for column, cell in zip(self._columns, cells, strict=True):
            fill.take(column, cell)
        items |= fill.items(at)
        return MapNode(items, {key: node.at for key, node in items.items()}, at)

    def _report_ragged(self, cells: Sequence[Cell], at: Span, report: Report) -> None:
        wanted = len(self._columns)
        message = f"{plural(len(cells), 'cell')}, but the header has {plural(wanted, 'column')}"
        if len(cells) > wanted:
            report.error("bad-csv", cells[wanted].at, message, hint="quote a cell that contains a comma")
        else:
            report.error("bad-csv", at, message, hint=f"'{self._columns[len(cells)].name}' is the first missing one")


class WrittenCell(Protocol):
    """A cell of a row, with or without a type."""

    @property
    def text(self) -> str:
        """What is written in it."""
        ...

    @property
    def at(self) -> Span:
        """Its place."""
        ...

    def node(self) -> Node:
        """Its value."""
        ...


class Filling:
    """What the cells of one row come to."""

    def __init__(self, expectations: Expectations, report: Report) -> None:
        self._expectations = expectations
        self._report = report
        self._own: dict[str, Node] = {}
        self._vars: dict[str, Node] = {}
        self._metadata: dict[str, Node] = {}
        self._expected: dict[str, WrittenCell] = {}
        self._thresholds: dict[str, Node] = {}
        self._metric: Node | None = None

    def take(self, column: Column, cell: WrittenCell) -> None:
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

    def _entry(self, column: str, cell: WrittenCell) -> MapNode:
        entry = self._expectations.entry(cell.text, cell.at, self._thresholds.get(column), self._report)
        if self._metric is None:
            return entry
        return MapNode({**entry.items, "name": self._metric}, {**entry.keys, "name": self._metric.at}, entry.at)


def _number(text: str, at: Span) -> Scalar:
    text = text.strip()
    return Scalar(resolve(text), text, at)
