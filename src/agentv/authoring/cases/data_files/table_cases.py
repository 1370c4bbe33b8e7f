"""Turn rows of a table into cases, by promptfoo's columns (SPEC section 2).

Plain columns are variables. Columns that begin with two underscores set assertions, the id, metadata and so on. Values
keep their types; those of a CSV file are all text.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import Struct, structs
from msgspec.structs import replace

from agentv.authoring.cases.data_files.csv_table import Expectations
from agentv.authoring.cases.data_files.rows import Table, TableRow, Value, WrongValue
from agentv.authoring.source.nearest import did_you_mean
from agentv.authoring.source.nodes import ListNode, Node, Scalar, mapping, node_of, written
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import resolve
from agentv.errors import Diagnostic
from agentv.model.values.values import Json, Span

_SPECIAL = re.compile(
    r"__(?:(?P<name>id|description|metric|threshold)|(?P<expected>expected\d*)"
    r"|metadata:(?P<metadata>.+?)(?P<list>\[\])?|config:__(?P<of>expected\d*):threshold)"
)
_NAMES = ("__expected", "__expected1", "__metric", "__threshold", "__description", "__metadata:", "__config:", "__id")

MOST = 16_384
"""Maximum number of columns, as in a spreadsheet."""

SHOWN = 50
"""Maximum number of errors that are reported for one header."""


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
    """The columns that a header names; None if some are invalid, which is reported.

    Args:
        names: the cells of the header.
        at: position of the header.
        code: diagnostic code for a header that no table can have.
        report: receives errors.
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
            break  # probably one mistake in the program that wrote the file
        if not name:
            hint = "name it, or remove the comma" if code == "bad-csv" else "name it, or remove the column"
            report.error(code, at, f"column {place} has no name", hint=hint)
        columns.append(column := _column(name, at, report))
        sets = ("metadata" if column.kind == "list" else column.kind, column.key)
        if name and (first := places.setdefault(sets, place)) != place:
            message = f"columns {first} and {place}, '{columns[first - 1].name}' and '{name}', set the same key"
            report.error("duplicate-key", at, message)
    # each `config` names the column of an assertion; `__expected` can also mean the first such column
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


class TableCases(Struct):
    """The cases of a table, which may be in several files with the same columns.

    Attributes:
        path: path of the first file.
        tables: the files, in order.
        expectations: reads the cells with expected results.
        prefix: precedes `row-N`, the id of a row without one.
        problem_with: returns the problem that the columns cause in the suite, or None.
        name: name of the table in messages, if it is not a file.
    """

    path: str
    tables: Sequence[Table]
    expectations: Expectations
    prefix: str
    problem_with: Callable[[Sequence[Column], Span], Diagnostic | None]
    name: str = ""
    unit: str = "row"
    _columns: Sequence[Column] = ()

    def records(self, report: Report) -> Iterator[tuple[int, TableRow]]:
        """Yield the non-blank rows below the headers of all files."""
        number = 0
        for source, table in enumerate(self.tables):
            names = table.header(report)
            if names is None or not self._read_header(source, names, report):
                return
            for line, values in table.rows(report):
                if isinstance(values, WrongValue) or any(value is not None and value != "" for value in values):
                    number += 1
                    yield line, TableRow(line, number, values, source)

    def node(self, number: int, record: TableRow, report: Report) -> Node | None:
        """The case of a row."""
        del number  # the row has it, and its file
        return self._case(record, [self._at(record)] * self._width(record), report)

    def exact(self, number: int, record: TableRow, report: Report) -> Node | None:
        """The case of a row, with the positions of its cells."""
        del number
        return self._case(record, [self._cell_at(record, place) for place in range(1, self._width(record) + 1)], report)

    def renders(self, record: TableRow) -> bool:
        """Whether a row may contain placeholders."""
        text = repr(record)
        return "{{" in text or "{%" in text

    def reworded(self, record: TableRow, found: Diagnostic) -> Diagnostic:
        """The diagnostic, whose message also names the row, the cell and the column."""
        table = self.tables[record.source]
        if found.span is not None and found.span.file != table.path:
            return found  # about the suite, and the same for every row
        place = found.span.column if found.span is not None and found.span.end_column > found.span.column else None
        where = (f"{self.name}, " if self.name else "") + table.place(record, place)
        if place is not None and place <= len(self._columns):
            where = f"{where}, column '{self._columns[place - 1].name}'"
        return replace(found, message=f"{where}: {found.message}", span=self._at(record))

    def _read_header(self, source: int, names: Sequence[str], report: Report) -> bool:
        """Read the header of a file. Return whether it is valid; errors are reported."""
        table = self.tables[source]
        top = Span(table.path, table.header_line, 1, table.header_line, 1)
        if source:
            if [column.name for column in self._columns] == [name.strip() for name in names]:
                return True
            report.error(table.code, top, f"the columns of this file differ from those of {self.tables[0].path}")
            return False
        if not names:
            report.error("no-tests", top, "this file contains no cases")
            return False
        columns = read_columns(names, top, table.code, report)
        if columns is None:
            return False
        problem = self.problem_with(columns, top)
        if problem is not None:
            report.add(problem)
            return False
        self._columns = columns
        return True

    def _at(self, record: TableRow) -> Span:
        """Position of a whole row, with no width, so that it is not mistaken for that of its first cell."""
        return Span(self.tables[record.source].path, record.line, 1, record.line, 1)

    def _width(self, row: TableRow) -> int:
        return 0 if isinstance(row.values, WrongValue) else max(len(row.values), len(self._columns))

    def _cell_at(self, row: TableRow, place: int) -> Span:
        return replace(self._at(row), column=place, end_column=place + 1)

    def _case(self, row: TableRow, places: Sequence[Span], report: Report) -> Node | None:
        own, at, values = report.section(), self._at(row), row.values
        code = self.tables[row.source].code
        if isinstance(values, WrongValue):
            report.error(code, at, values.message, hint=values.hint)
            return None
        identity = f"{self.prefix}row-{row.number}"
        items: dict[str, Node] = {"id": Scalar(identity, identity, at)}
        by_kind: dict[str, dict[str, Any]] = defaultdict(dict)  # kind of column → key → node
        for place, cell_at in enumerate(places):
            value = values[place] if place < len(values) else ""  # sheets omit empty cells at the end
            column = self._columns[place] if place < len(self._columns) else None
            is_text = type(value) is str and column is not None  # checked first: all cells of a CSV file are text
            problem = None if is_text else _problem(value, column)
            if problem is not None:
                own.error(code, self._cell_at(row, place + 1), problem.message, hint=problem.hint)
            elif column is not None and (node := _node(value, column.kind, cell_at)) is not None:
                by_kind["metadata" if column.kind == "list" else column.kind][column.key] = node
        if own.failed:
            return None
        expected, thresholds, metrics = (by_kind.pop(kind, {}) for kind in ("expected", "config", "metric"))
        groups = {kind: mapping(nodes, at) for kind in ("vars", "metadata") if (nodes := by_kind.pop(kind, None))}
        items |= {kind: node for kind, nodes in by_kind.items() for node in nodes.values()} | groups
        if expected:
            entries: list[Node] = []
            for key, cell in expected.items():
                entry = self.expectations.entry(cell.text, cell.at, thresholds.get(key), own)
                name = next(iter(metrics.values()), entry.get("name"))
                entries.append(mapping({**entry.items, "name": name}, entry.at, entry.keys))
            items["assert"] = ListNode(entries, at)
        return mapping(items, at)


def _problem(value: Value, column: Column | None) -> WrongValue | None:
    """The problem of a value in a column, or None."""
    if isinstance(value, WrongValue):
        return value
    if column is None:
        if value is None or value == "":
            return None
        return WrongValue("this cell has no column: the header above it is empty", "name the column")
    if isinstance(value, list | dict) and column.kind not in ("vars", "metadata", "list"):
        found = "a list" if isinstance(value, list) else "a struct"
        return WrongValue(f"'{column.name}' needs text, found {found}")
    return None


def _node(value: Any, kind: str, at: Span) -> Node | None:
    """The node of a cell; None if the cell is empty and sets no variable."""
    if kind == "vars":
        return node_of(value, at)
    text = _text(value)
    if not text.strip():
        return None
    if kind == "metadata" or (kind == "list" and isinstance(value, list)):
        return node_of(value, at)
    if kind == "list":
        items = [item.strip().replace("\\,", ",") for item in _COMMA.split(text)]
        return ListNode([Scalar(item, item, at) for item in items], at)
    text = text.strip()
    return Scalar(resolve(text) if kind in ("config", "threshold") else text, text, at)


def _text(value: Json) -> str:
    """A value as the text of a CSV cell."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return getattr(value, "text", None) or written(value)
