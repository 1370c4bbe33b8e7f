"""Read tables whose values have types: Excel, Parquet and Arrow files, and the text files of datasets.

openpyxl reads workbooks, with the stored results of formulas. pyarrow reads all other files, in batches.
"""

from __future__ import annotations

import math
import re
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from agentv.authoring.cases.data_files.rows import TableRow, Value, WrongValue, report_unreadable
from agentv.authoring.source.files import PARQUET
from agentv.authoring.source.nearest import did_you_mean
from agentv.authoring.source.nodes import WrittenFloat
from agentv.authoring.source.report import Report
from agentv.model.values.values import Span

if TYPE_CHECKING:
    import pyarrow as pa
    from openpyxl.workbook import Workbook


LARGEST = 1_000_000_000
"""Maximum size in bytes of an unpacked workbook."""

LAST_ROW = 1_048_576
"""Number of the last row in Excel."""

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


class SheetTable:
    """One sheet of a workbook.

    Args:
        path: path of the file.
        sheet: name of the sheet, or its number from 1 if no sheet has that name; None for the first.
    """

    code = "bad-table"

    def __init__(self, path: str, sheet: str | None) -> None:
        self.path = path
        self.header_line = 1
        self._asked = sheet
        self._name = sheet or ""

    def header(self, report: Report) -> Sequence[str] | None:
        """The texts of the first non-empty row; [] if none exists, None if the file is invalid (reported)."""
        wrong = _wrong_file(self.path)
        if wrong is not None:
            report_unreadable(self.path, wrong.message, report, wrong.hint)
            return None
        try:
            with warnings.catch_warnings(), closing(_workbook(self.path)) as book:
                name = self._chosen([sheet.title for sheet in book.worksheets], report)
            if name is None:
                return None
            self._name = name
            for line, values in self._read():
                self.header_line = line
                last = max(place for place, value in enumerate(values, 1) if value != "")
                for place, value in enumerate(values[:last], 1):
                    if isinstance(value, WrongValue):
                        where = self.place(TableRow(line, 0, values), place)
                        report_unreadable(self.path, f"{where}, a header: {value.message}", report)
                        return None
                return list(map(str, values[:last]))
        except Exception as error:  # noqa: BLE001  # openpyxl trusts the file: a damaged one can raise anything
            report_unreadable(self.path, _damaged(error), report)
            return None
        return []

    def rows(self, report: Report) -> Iterator[tuple[int, Sequence[Value]]]:
        """Yield the rows below the header, with their numbers in the sheet."""
        try:
            for line, values in self._read():
                if line > self.header_line:
                    yield line, values
        except Exception as error:  # noqa: BLE001
            report_unreadable(self.path, _damaged(error), report)

    def place(self, row: TableRow, column: int | None) -> str:
        """The sheet, and the name of the row or the cell in Excel."""
        from openpyxl.utils import get_column_letter

        where = f"row {row.line}" if column is None else f"cell {get_column_letter(column)}{row.line}"
        return f"sheet '{self._name}', {where}"

    def _chosen(self, names: Sequence[str], report: Report) -> str | None:
        """The name of the requested sheet; None if there is no such sheet, which is reported."""
        top = Span(self.path, 1, 1, 1, 1)
        if not names:
            report.error("bad-table", top, "this workbook has no sheet with cells")
            return None
        if self._asked is None:
            if len(names) > 1:
                others = ", ".join(f"'{name}'" for name in names[1:6]) + (", …" if len(names) > 6 else "")
                message = f"this workbook has {len(names)} sheets; '{names[0]}' is read, and not {others}"
                hint = f"name the sheet: {Path(self.path).name}#{names[0]}"
                report.warning("other-sheets", top, message, hint=hint)
            return names[0]
        if self._asked in names:
            return self._asked
        if self._asked.isdecimal() and 0 < int(self._asked) <= len(names):
            return names[int(self._asked) - 1]
        hint = did_you_mean(self._asked, names) or f"its sheets are {', '.join(names[:20])}"
        report.error("bad-table", top, f"this workbook has no sheet '{self._asked}'", hint=hint)
        return None

    def _read(self) -> Iterator[tuple[int, Sequence[Value]]]:
        """Yield the non-empty rows with their numbers, the header first."""
        with closing(_workbook(self.path)) as book:
            sheet: Any = book[self._name]
            sheet.reset_dimensions()  # do not trust the size that the file declares
            with zipfile.ZipFile(self.path) as parts:
                uncalculated = _uncalculated(parts.read(sheet._worksheet_path.lstrip("/")))  # noqa: SLF001  # there is no public name
            for line, cells in enumerate(sheet.iter_rows(max_row=LAST_ROW), 1):
                values = [_value(cell) for cell in cells]
                for place, cell in enumerate(cells) if uncalculated else ():
                    if cell.value is None and getattr(cell, "coordinate", None) in uncalculated:
                        values[place] = WrongValue(NO_RESULT)
                if any(value != "" for value in values):
                    yield line, values


NO_RESULT = "the formula has no stored result: open the workbook in a spreadsheet program, and save it"
_EMPTY_FORMULA = re.compile(rb"<c\b([^>]*)><f\b[^>]*?(?:/>|>[^<]*</f>)(?:<v\s*/>|<v></v>)?</c>")
_COORDINATE = re.compile(rb'\br="([A-Z]+[0-9]+)"')


def _uncalculated(sheet: bytes) -> frozenset[str]:
    """Names of the cells, such as `B2`, whose formula has no stored result. An empty text is a result."""
    cells = (found[1] for found in _EMPTY_FORMULA.finditer(sheet) if b't="str"' not in found[1])
    return frozenset(found[1].decode() for cell in cells if (found := _COORDINATE.search(cell)))


def _workbook(path: str) -> Workbook:
    from openpyxl import load_workbook

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about parts that are not read here
        return load_workbook(path, read_only=True, data_only=True, keep_links=False)


def _wrong_file(path: str) -> WrongValue | None:
    """The problem of a file that cannot be opened as a workbook, or None."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123  # a Path would add nothing
            if file.read(len(_OLE)) == _OLE:
                message = "this workbook is protected by a password, or in the format of Excel 97 to 2003"
                return WrongValue(message, "save it as .xlsx, without a password")
        with zipfile.ZipFile(path) as parts:
            unpacked = sum(one.file_size for one in parts.infolist())
    except zipfile.BadZipFile:
        return WrongValue("this is not an Excel workbook", "if it is a CSV file, rename it to .csv")
    except OSError as error:
        return WrongValue(f"this file cannot be read: {error.strerror}")
    if unpacked > LARGEST:
        message = f"this workbook unpacks to more than {LARGEST // 1_000_000:,} MB"
        return WrongValue(message, "save its sheet as CSV or Parquet")
    return None


def _value(cell: Any) -> Value:
    """The value of a cell. An empty cell is the empty text, as in CSV. Dates and times are in ISO 8601."""
    value = cell.value
    if value is None:
        return ""
    if cell.data_type == "e":
        return WrongValue(f"the cell contains the error {value}")
    if isinstance(value, timedelta):
        minutes, seconds = divmod(round(value.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    return value if isinstance(value, str | int | float) else str(value)


def _damaged(error: Exception) -> str:
    return f"this workbook cannot be read: {str(error) or type(error).__name__}"


_KINDS = {
    ".csv": "a CSV file",
    ".jsonl": "a JSON Lines file",
    ".json": "a JSON Lines file",
    ".parquet": "a Parquet file",
}
ROWS = 1024
"""Number of rows that are converted at once."""


class ArrowTable(Struct):
    """A Parquet file, an Arrow file or stream, or a text file of a dataset."""

    path: str
    code: str = "bad-table"
    header_line: int = 1

    def header(self, report: Report) -> Sequence[str] | None:
        """The names of the columns; None if the file cannot be read, which is reported."""
        try:
            return [str(name) for name in _opened(self.path)[0].names]
        except _errors() as error:
            report_unreadable(self.path, _message(self.path, error), report)
            return None

    def rows(self, report: Report) -> Iterator[tuple[int, Sequence[Value]]]:
        """Yield the rows with their numbers, from 1."""
        number = 0
        try:
            for batch in _opened(self.path)[1]:
                batch.validate(full=True)  # do not trust the offsets that the file declares
                for start in range(0, batch.num_rows, ROWS):
                    part = batch.slice(start, ROWS)
                    columns = [_values(column) for column in part.columns]
                    for values in zip(*columns, strict=True) if columns else [()] * part.num_rows:
                        number += 1
                        yield number, values
        except _errors() as error:
            report_unreadable(self.path, f"after row {number}: {_message(self.path, error)}", report)

    def place(self, row: TableRow, column: int | None) -> str:
        """The row's number. The caller names the column."""
        del column
        return f"row {row.line}"


def _opened(path: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    import pyarrow as pa

    suffix = Path(path).suffix
    if suffix in PARQUET:
        from pyarrow import parquet

        file = parquet.ParquetFile(path)
        return file.schema_arrow, file.iter_batches(batch_size=ROWS)
    if suffix in _KINDS:  # a file of a dataset on the Hub; types are inferred
        from pyarrow import csv, json

        reader = csv.open_csv(path) if suffix == ".csv" else json.open_json(path)
        return reader.schema, iter(reader)
    source = pa.OSFile(path)  # not memory-mapped: truncating the file would crash the process
    try:
        found = pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        stream = pa.ipc.open_stream(source)
        return stream.schema, iter(stream)
    return found.schema, (found.get_batch(place) for place in range(found.num_record_batches))


def _values(column: pa.Array) -> list[Value]:
    import pyarrow.types as t

    values: list[Any] = column.to_pylist(maps_as_pydicts="strict")
    if t.is_string(column.type) or t.is_integer(column.type) or t.is_boolean(column.type):
        return values
    if t.is_float32(column.type) or t.is_float16(column.type):
        import numpy as np

        # with as few digits as identify it: 0.1, not 0.10000000149011612
        values = [value if value is None else float(str(np.float32(value))) for value in values]
    return [_checked(value) for value in values]


def _checked(value: Any) -> Value:
    try:
        plain: Value = _plain(value)
    except ValueError as error:
        return WrongValue(str(error), "write null, convert the column to text or numbers, or drop it")
    return plain


def _plain(value: Any) -> Any:
    """A Python value as a JSON value.

    Raises:
        ValueError: the value has no form in JSON.
    """
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, Decimal):
        number = WrittenFloat(f"{value:f}")
        if Decimal(repr(float(number))) != value:
            raise ValueError(f"{value:f} has more digits than a number keeps; store the column as text")
        return number
    found = {"nan": "NaN", "inf": "an infinite number", "-inf": "an infinite number"}.get(str(value))
    raise ValueError(f"{found or f'a value of the type {type(value).__name__}'} is not a value of JSON")


def _errors() -> tuple[type[Exception], ...]:
    import pyarrow as pa

    return (pa.ArrowException, OSError, MemoryError, ValueError, KeyError)  # KeyError: an unknown time zone


def _message(path: str, error: Exception) -> str:
    kind = _KINDS.get(Path(path).suffix, "an Arrow file")
    return f"this is not {kind} that can be read: {str(error) or type(error).__name__}"
