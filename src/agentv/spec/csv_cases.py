"""Rows of a CSV file as cases, by promptfoo's columns (SPEC section 2).

Plain columns are variables; those that begin with two underscores say what is expected of the answer, and more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from agentv.errors import Diagnostic
from agentv.model.span import Span
from agentv.spec.csv_expected import Expectations
from agentv.spec.csv_rows import Cell, Row, read_rows
from agentv.spec.nearest import did_you_mean
from agentv.spec.nodes import ListNode, MapNode, Node, Scalar
from agentv.spec.report import Report
from agentv.spec.scalars import resolve

_COMMA = re.compile(r"(?<!\\),")
_SPECIAL = re.compile(
    r"__(?:(?P<name>id|description|metric|threshold)|(?P<expected>expected\d*)"
    r"|metadata:(?P<metadata>.+?)(?P<list>\[\])?|config:__(?P<of>expected\d*):threshold)"
)
_NAMES = ("__expected", "__expected1", "__metric", "__threshold", "__description", "__metadata:", "__config:", "__id")
_PROMPTFOO = frozenset({"__prefix", "__suffix", "__providerOutput"})
"""Columns of promptfoo's that have no meaning here. Passed over, they would change what is tested."""

_WRONG_DELIMITERS = {";": "semicolons", "\t": "tabs"}


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name, where it stands, and what it fills.

    Attributes:
        kind: `vars`, `expected`, `config`, `metadata`, `list` (metadata out of a list), or a special column's name.
        key: the variable, the key of the metadata, or the column of the assertion that a `config` is for.
    """

    name: str
    at: Span
    kind: str
    key: str


class CsvCases:
    """The format of a CSV file of cases.

    Args:
        path: of the file.
        expectations: read the cells that say what is expected.
        prefix: stands in front of `row-N`, the id of a row that gives none.
        unfit: what is wrong with the columns for the suite that the rows are for, if anything.
    """

    unit = "row"

    def __init__(
        self,
        path: str,
        expectations: Expectations,
        prefix: str,
        unfit: Callable[[Sequence[Column]], Diagnostic | None],
    ) -> None:
        self.path = path
        self._expectations = expectations
        self._prefix = prefix
        self._unfit = unfit
        self._columns: Sequence[Column] = ()

    def records(self, report: Report) -> Iterator[tuple[int, Row]]:
        """The rows under the header that are not blank."""
        rows = read_rows(self.path, report)
        header = next(rows, None)
        columns = read_header(header, self.path, report) if header is not None else None
        if columns is None:
            return
        unfit = self._unfit(columns)
        if unfit is not None:
            report.add(unfit)
            return
        self._columns = columns
        number = 0
        for row in rows:
            if row.raw.strip(", "):
                number += 1
                yield row.line, replace(row, number=number)

    def node(self, number: int, record: Row, report: Report) -> Node | None:
        """The case of a row."""
        at = self._at(number)
        if record.fault is not None:
            report.add(record.fault)
            return None
        return self._case(record, [Cell(text, at) for text in record.texts], at, report)

    def exact(self, number: int, record: Row, report: Report) -> Node | None:
        """The case of a row, with the places of its cells."""
        if record.fault is not None:
            return None
        return self._case(record, record.cells(self.path), self._at(number), report)

    def renders(self, record: Row) -> bool:
        """Whether it may hold placeholders."""
        return "{{" in record.raw or "{%" in record.raw

    def identity(self, record: Row) -> str | None:
        """The id that the row gives or gets."""
        own = next((place for place, column in enumerate(self._columns) if column.kind == "id"), None)
        texts = record.texts if own is not None and record.fault is None else []
        given = texts[own].strip() if own is not None and own < len(texts) else ""
        return given or self._id_of(record)

    def told(self, record: Row, found: Diagnostic) -> Diagnostic:
        """The diagnostic with the number of the row, and the column that it stands in."""
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

    def _id_of(self, row: Row) -> str:
        return f"{self._prefix}row-{row.number}"

    def _case(self, row: Row, cells: Sequence[Cell], at: Span, report: Report) -> Node | None:
        if len(cells) != len(self._columns):
            self._say_ragged(cells, at, report)
            return None
        items: dict[str, Node] = {"id": Scalar(self._id_of(row), self._id_of(row), at)}
        fill = _Filling(self._expectations, report)
        for column, cell in zip(self._columns, cells, strict=True):
            fill.take(column, cell)
        items |= fill.items(at)
        return MapNode(items, {key: node.at for key, node in items.items()}, at)

    def _say_ragged(self, cells: Sequence[Cell], at: Span, report: Report) -> None:
        wanted = len(self._columns)
        message = f"{_count(len(cells), 'cell')} under a header of {_count(wanted, 'column')}"
        if len(cells) > wanted:
            report.error("bad-csv", cells[wanted].at, message, hint="a cell that holds a comma needs quotes around it")
        else:
            report.error("bad-csv", at, message, hint=f"'{self._columns[len(cells)].name}' is the first to be missing")


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
            self._vars[column.key] = Scalar(text, text, at)
        elif not text.strip():
            return
        elif kind == "expected":
            self._expected[column.key] = cell
        elif kind == "metadata":
            self._metadata[column.key] = Scalar(text, text, at)
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


def read_header(row: Row, path: str, report: Report) -> Sequence[Column] | None:
    """The columns that the first row names; None where they are wrong, all of which is then reported."""
    if row.fault is not None:
        report.add(row.fault)
        return None
    cells = row.cells(path)
    if len(cells) == 1 and not row.raw.startswith('"'):
        for delimiter, called in _WRONG_DELIMITERS.items():
            if delimiter in row.raw:
                message = f"the columns are separated by {called}, and a CSV file needs commas"
                at = cells[0].at._replace(column=row.raw.index(delimiter) + 1, end_column=row.raw.index(delimiter) + 2)
                report.error(
                    "bad-csv", at, message, hint="save it with commas; quote the name if it is a lone column's"
                )
                return None
    errors = report.errors
    columns: list[Column] = []
    for cell in cells:
        column = _column(cell, len(columns) + 1, report)
        _refuse_second(column, columns, report)
        columns.append(column)
    _join_configs(columns, report)
    return columns if report.errors == errors else None


def _column(cell: Cell, place: int, report: Report) -> Column:
    name, at = cell.text.strip(), cell.at
    if not name:
        report.error("bad-csv", at, f"column {place} has no name", hint="name it, or take the comma away")
    if not name.startswith("__"):
        special = name.startswith("_") and _SPECIAL.fullmatch(f"_{name}") is not None
        if special:
            message = f"the column '{name}' is a variable, for it begins with one underscore"
            report.warning("nearly-a-column", at, message, hint=f"did you mean '_{name}'?")
        return Column(name, at, "vars", name)
    match = _SPECIAL.fullmatch(name)
    if match is None:
        _say_unknown(name, at, report)
        return Column(name, at, "vars", name)
    if match["name"]:
        return Column(name, at, match["name"], name)
    if match["expected"]:
        return Column(name, at, "expected", match["expected"])
    if match["of"]:
        return Column(name, at, "config", match["of"])
    return Column(name, at, "list" if match["list"] else "metadata", match["metadata"])


def _say_unknown(name: str, at: Span, report: Report) -> None:
    if name in _PROMPTFOO:
        message = f"promptfoo's column '{name}' has no meaning here"
        hints = {"__providerOutput": "answers that are there already are given by the provider 'replay'"}
        report.error("unknown-key", at, message, hint=hints.get(name, "write what it says into the suite's 'input'"))
    elif name.startswith("__metadata"):
        report.error("unknown-key", at, f"the column '{name}' needs a key", hint="write '__metadata:NAME'")
    elif name.startswith("__config"):
        hint = "write '__config:__expected1:threshold'; no other option can be set so"
        report.error("unknown-key", at, f"the column '{name}' sets nothing", hint=hint)
    else:
        near = did_you_mean(name, _NAMES)
        notes = () if near else (f"special columns are {', '.join(_NAMES)}",)
        report.error("unknown-key", at, f"no special column is called '{name}'", hint=near, notes=notes)


def _refuse_second(column: Column, before: Sequence[Column], report: Report) -> None:
    first = next((place for place, one in enumerate(before, 1) if one.name == column.name and one.name), None)
    if first is not None:
        report.error(
            "duplicate-key", column.at, f"the column '{column.name}' stands twice; the first is column {first}"
        )


def _join_configs(columns: list[Column], report: Report) -> None:
    """Every `config` names the column of an assertion; `__expected` also means the only one there is, or the first."""
    expected = [column.key for column in columns if column.kind == "expected"]
    for place, column in enumerate(columns):
        if column.kind != "config" or column.key in expected:
            continue
        if column.key == "expected" and expected:
            columns[place] = replace(column, key=expected[0])
        else:
            message = f"'{column.name}' is for a column '__{column.key}', which is not there"
            hint = did_you_mean(column.key, expected)
            report.error("unknown-key", column.at, message, hint=hint and hint.replace("'", "'__", 1))


def _number(text: str, at: Span) -> Scalar:
    text = text.strip()
    return Scalar(resolve(text), text, at)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
