"""Excel workbooks: the rows of one sheet, read one after the other.

Formulas count by the results that are stored with them. What a reader would lose in silence is refused: formulas
without a result, merged cells, errors such as #N/A.
"""

from __future__ import annotations

import re
import warnings
import zipfile
import zlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import date, datetime, time, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import ParseError
from xml.parsers import expat

from msgspec import Struct

from agentv.authoring.cases.data_files.rows import LARGEST_VALUE, TableRow, Value, WrongValue, report_unreadable
from agentv.authoring.source.nearest import did_you_mean
from agentv.authoring.source.report import Report
from agentv.model.values.span import Span

if TYPE_CHECKING:
    from openpyxl.workbook import Workbook

LARGEST = 1_000_000_000
"""Bytes that all parts of a workbook may have once they are unpacked."""

DENSEST = 200
"""Unpacked bytes for each packed one from which on a large part is taken for a bomb; text reaches some 20."""

SMALL = 50_000_000
"""Unpacked bytes of a part whose density does not matter."""

LAST_ROW = 1_048_576
"""The last row that Excel has."""

MOST_MERGED = 100
"""Merged ranges that are looked at; a row in one of them is wrong."""

_ROWS = 512
_BLOCK = 1 << 20
_TIMES = re.compile(r"[hs]")
_QUOTED = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]')
_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    ParseError,
    expat.ExpatError,
    EOFError,
    OSError,
    MemoryError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    ArithmeticError,
    NotImplementedError,
    RuntimeError,
)
"""What reading a damaged workbook can raise: its parts refer to each other, and openpyxl believes them."""

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")


class _Merged(Struct, frozen=True):
    """A merged range: its first column, and its rows."""

    column: int
    first: int
    last: int
    ref: str


class _Sheet(Struct, frozen=True):
    """A sheet: its name, its merged ranges, and whether some cell has a formula."""

    name: str
    merged: Sequence[_Merged] = ()
    has_formulas: bool = False


class SheetTable:
    """One sheet of a workbook.

    Args:
        path: of the file.
        sheet: its name, or its number from 1 where none has that name; None: the first.
    """

    code = "bad-table"
    header_line = 1

    def __init__(self, path: str, sheet: str | None) -> None:
        self.path = path
        self._asked = sheet
        self._sheet = _Sheet(sheet or "")
        self._first = 1  # the row of the header
        self._width = 0  # and its columns

    def header(self, report: Report) -> Sequence[str] | None:
        """The texts of the first row that is not empty."""
        wrong = _wrong_file(self.path)
        if wrong is not None:
            report_unreadable(self.path, wrong[0], report, wrong[1])
            return None
        try:
            return self._header(report)
        except _ERRORS as error:
            report_unreadable(self.path, _message(error), report)
            return None

    def rows(self, report: Report) -> Iterator[tuple[int, Sequence[Value]]]:
        """The rows below the header, by their numbers in the sheet."""
        try:
            for line, values in self._all_rows(report):
                if line > self._first:
                    yield line, values
        except _ERRORS as error:
            report_unreadable(self.path, _message(error), report)

    def place(self, row: TableRow, column: int | None) -> str:
        """The row or the cell as Excel names it."""
        from openpyxl.utils import get_column_letter

        where = f"row {row.line}" if column is None else f"cell {get_column_letter(column)}{row.line}"
        return f"sheet '{self._sheet.name}', {where}"

    def _header(self, report: Report) -> Sequence[str] | None:
        with closing(_workbook(self.path, formulas=False)) as book:
            name = self._chosen(book, report)
            if name is None:
                return None
            merged, has_formulas = _scanned(self.path, book[name]._worksheet_path)  # noqa: SLF001  # there is no other way to it
        self._sheet = _Sheet(name, merged, has_formulas)
        for line, values in self._all_rows(report):
            self._first = line
            return self._checked_header(line, values, report)
        return []

    def _checked_header(self, line: int, values: Sequence[Value], report: Report) -> list[str] | None:
        merged = self._merged_at(line)
        if merged is not None:
            message = f"sheet '{self._sheet.name}': the header has merged cells, {merged.ref}, so columns have no name"
            report.error("bad-table", self._at(line), message, hint="unmerge them, and name each column")
            return None
        last = max(place for place, value in enumerate(values, 1) if value != "")
        wrong = next((place for place, value in enumerate(values, 1) if isinstance(value, WrongValue)), None)
        if wrong is not None:
            found = values[wrong - 1]
            assert isinstance(found, WrongValue)  # noqa: S101  # as was seen
            report.error(
                "bad-table",
                self._at(line),
                f"{self.place(TableRow(line, 0, values), wrong)}: {found.message}",
                hint=found.hint,
            )
            return None
        self._width = last
        return [str(value) for value in values[:last]]

    def _chosen(self, book: Workbook, report: Report) -> str | None:
        """The name of the sheet that is asked for."""
        names = [sheet.title for sheet in book.worksheets]
        if not names:
            report_unreadable(self.path, "this workbook has no sheet with cells", report)
            return None
        if self._asked is None:
            if len(names) > 1:
                others = ", ".join(f"'{name}'" for name in names[1:6]) + (", …" if len(names) > 6 else "")
                message = f"this workbook has {len(names)} sheets; '{names[0]}' is read, and not {others}"
                hint = f"name the sheet: {Path(self.path).name}#{names[0]}"
                report.warning("other-sheets", Span(self.path, 1, 1, 1, 1), message, hint=hint)
            return str(names[0])
        if self._asked in names:
            return self._asked
        if self._asked.isdecimal() and 0 < int(self._asked) <= len(names):
            return str(names[int(self._asked) - 1])
        message = f"this workbook has no sheet '{self._asked}'"
        hint = did_you_mean(self._asked, names) or f"its sheets are {', '.join(names[:20])}"
        report.error("bad-table", Span(self.path, 1, 1, 1, 1), message, hint=hint)
        return None

    def _all_rows(self, report: Report) -> Iterator[tuple[int, Sequence[Value]]]:
        """Rows that are not empty, the header first."""
        with closing(_workbook(self.path, formulas=False)) as book:
            formulas = self._formulas() if self._sheet.has_formulas else None
            sheet = book[self._sheet.name]
            sheet.reset_dimensions()  # what a file says of its own size is not believed
            for line, cells in enumerate(_without_warnings(sheet.iter_rows()), 1):
                if line > LAST_ROW:
                    message = f"sheet '{self._sheet.name}' has more than {LAST_ROW:,} rows, the maximum"
                    report.error("bad-table", self._at(LAST_ROW), message)
                    return
                written = next(formulas, frozenset()) if formulas is not None else frozenset()
                if not cells:  # a gap, which may be a million rows
                    continue
                values = [_value(cell, place in written) for place, cell in enumerate(cells, 1)]
                if any(value != "" for value in values):
                    merged = self._merged_at(line)
                    if merged is not None and self._first < line and merged.column <= self._width:
                        values += [""] * (merged.column - len(values))
                        values[merged.column - 1] = _merged_cells(merged.ref)
                    yield line, values
            if formulas is not None:
                formulas.close()

    def _formulas(self) -> Generator[frozenset[int]]:
        """The columns of each row that hold formulas."""
        with closing(_workbook(self.path, formulas=True)) as book:
            sheet = book[self._sheet.name]
            sheet.reset_dimensions()
            for cells in _without_warnings(sheet.iter_rows()):
                yield frozenset(place for place, cell in enumerate(cells, 1) if cell.data_type == "f")

    def _merged_at(self, line: int) -> _Merged | None:
        """A merged range that a row is part of."""
        return next((one for one in self._sheet.merged if one.first <= line <= one.last), None)

    def _at(self, line: int) -> Span:
        return Span(self.path, line, 1, line, 1)


def _merged_cells(ref: str) -> WrongValue:
    return WrongValue(
        f"the cells {ref} are merged, so some of them have no value", "unmerge them, and fill in each one"
    )


def _workbook(path: str, *, formulas: bool) -> Workbook:
    from openpyxl import load_workbook

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of parts that are not read here
        return load_workbook(path, read_only=True, data_only=not formulas, keep_links=False)


def _without_warnings(rows: Iterator[Any]) -> Iterator[Any]:
    """The same; a date out of bounds, of which openpyxl warns, is an error of its cell."""
    while True:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            some = list(islice(rows, _ROWS))
        if not some:
            return
        yield from some


def _wrong_file(path: str) -> tuple[str, str | None] | None:
    """Why a file is no workbook, or one that is not opened, and what to do about it."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123  # a Path would add nothing
            if file.read(len(_OLE)) == _OLE:
                return _of_older_format(file.read(LARGEST // 10))
        with zipfile.ZipFile(path) as parts:
            sizes = [(one.file_size, one.compress_size) for one in parts.infolist()]
    except zipfile.BadZipFile:
        return "this is not an Excel workbook", "if it is a CSV file, rename it to .csv"
    except OSError as error:
        return f"this file cannot be read: {error.strerror}", None
    unpacked = sum(size for size, _ in sizes)
    if unpacked > LARGEST:
        return f"this workbook unpacks to more than {LARGEST // 1_000_000:,} MB", "save its sheet as CSV or Parquet"
    if any(size > SMALL and size > DENSEST * packed for size, packed in sizes):
        return f"a part of this workbook unpacks to more than {DENSEST} times its size", "save its sheet as CSV"
    return None


def _of_older_format(data: bytes) -> tuple[str, str | None]:
    if _ENCRYPTED in data:
        return "this workbook is protected by a password", "save it without a password"
    return "this is a workbook in the format of Excel 97 to 2003", "save it as .xlsx"


def _scanned(path: str, part: str) -> tuple[Sequence[_Merged], bool]:
    """The merged ranges of a sheet, and whether it has formulas: what openpyxl does not say of one that it streams.

    Raises:
        ExpatError: the sheet is no XML.
        ValueError: it declares entities, or a range is none.
    """
    scan = _Scan()
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler = scan.begin
    parser.EntityDeclHandler = scan.refuse
    with zipfile.ZipFile(path) as parts, parts.open(part) as file:
        while block := file.read(_BLOCK):
            parser.Parse(block, False)
    parser.Parse(b"", True)
    return list(scan.merged.values()), scan.has_formulas


class _Scan:
    """What is noticed of a sheet while its XML is read, whatever prefixes, quotes and encoding it is written with."""

    def __init__(self) -> None:
        self.merged: dict[str, _Merged] = {}
        self.has_formulas = False

    def begin(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        if name.endswith(" f"):
            self.has_formulas = True
        elif name.endswith(" mergeCell") and len(self.merged) < MOST_MERGED:
            from openpyxl.utils import range_boundaries

            ref = attributes.get("ref", "")
            left, first, _, last = range_boundaries(ref)
            if None in (left, first, last):
                raise ValueError(f"'{ref}' is no range of cells")
            self.merged[ref] = _Merged(left, first, last, ref)

    def refuse(self, *_: object) -> None:
        """An entity is declared, which no sheet needs."""
        raise ValueError("it declares entities")


def _value(cell: Any, has_formula: bool) -> Value:
    """What a cell says. An empty one is the empty text, as in CSV."""
    value, kind = cell.value, cell.data_type
    if value is None:
        if has_formula and kind != "str":
            return WrongValue("this formula has no stored result", "open the file in Excel or LibreOffice, and save it")
        return ""
    if isinstance(value, time | date | timedelta):
        return _time(value, cell.number_format)
    return WrongValue(f"the cell contains the error {value}") if kind == "e" else _plain(value)


def _plain(value: Any) -> Value:
    if isinstance(value, str):
        return value if len(value) <= LARGEST_VALUE else WrongValue("this text is longer than 10 MB")
    if isinstance(value, int | float) and abs(value) != float("inf") and value == value:  # noqa: PLR0124  # not NaN
        return value
    return WrongValue(f"'{value}' is not a value of JSON")


def _time(value: time | date | timedelta, shown_as: str) -> str:
    """A time by ISO 8601; a date has one only where its cell shows it."""
    if isinstance(value, timedelta):
        return _duration(value)
    if not isinstance(value, datetime):
        return value.isoformat()
    shows_time = _TIMES.search(_QUOTED.sub("", shown_as).lower()) is not None
    return value.isoformat() if shows_time or value.time() != time() else value.date().isoformat()


def _duration(value: timedelta) -> str:
    seconds = round(value.total_seconds())
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _message(error: Exception) -> str:
    return f"this workbook cannot be read: {str(error) or type(error).__name__}"
