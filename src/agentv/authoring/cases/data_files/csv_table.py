"""CSV files: the rows that Python's `csv` reads, strictly, with the lines that they begin at."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from functools import partial
from typing import BinaryIO

from agentv.authoring.cases.data_files.rows import LARGEST_VALUE, TableRow, Value, WrongValue
from agentv.authoring.source.report import Report
from agentv.model.values.formatting import plural
from agentv.model.values.span import Span

_DELIMITERS = {";": "semicolons", "\t": "tabs"}
"""What other programs put between cells."""


class CsvTable:
    """A CSV file, comma-separated, in UTF-8.

    Args:
        path: of the file.
    """

    code = "bad-csv"

    def __init__(self, path: str) -> None:
        self.path = path
        self.header_line = 1
        self._columns: Sequence[str] = ()

    def header(self, report: Report) -> Sequence[str] | None:
        """The cells of the first row that is not blank; None if all are, or if it cannot be read (reported)."""
        for line, cells in self._read(report):
            wrong = cells if isinstance(cells, WrongValue) else _wrong_separator(cells)
            if wrong is not None:
                report.error(self.code, Span(self.path, line, 1, line, 1), wrong.message, hint=wrong.hint)
                return None
            assert not isinstance(cells, WrongValue)  # noqa: S101  # for mypy
            self.header_line, self._columns = line, cells
            return cells
        return None

    def rows(self, report: Report) -> Iterator[tuple[int, Sequence[Value] | WrongValue]]:
        """The rows below the header that are not blank, by the lines that they begin at."""
        rows = self._read(report)
        next(rows, None)
        wanted = len(self._columns)
        for line, cells in rows:
            if isinstance(cells, WrongValue) or len(cells) == wanted:
                yield line, cells
                continue
            hint = "quote a cell that contains a comma"
            if len(cells) < wanted:
                hint = f"'{self._columns[len(cells)].strip()}' is the first missing one"
            yield line, WrongValue(f"{plural(len(cells), 'cell')}, but the header has {plural(wanted, 'column')}", hint)

    def place(self, row: TableRow, column: int | None) -> str:
        """The row by its number; a column is named by what refers to it."""
        del column
        return f"row {row.number}"

    def _read(self, report: Report) -> Iterator[tuple[int, list[str] | WrongValue]]:
        csv.field_size_limit(LARGEST_VALUE)
        with open(self.path, "rb") as file:  # noqa: PTH123  # a Path would add nothing
            reader = csv.reader(_lines(file), strict=True)
            while True:
                line = reader.line_num + 1
                try:
                    cells = next(reader)
                except StopIteration:
                    return
                except csv.Error as error:
                    yield line, _wrong_row(error)
                    if "field limit" in str(error):
                        return
                except ValueError as error:
                    _report_line(error, Span(self.path, reader.line_num + 1, 1, reader.line_num + 1, 2), report)
                    return
                else:
                    if any(cell and not cell.isspace() for cell in cells):
                        yield line, cells


def _lines(file: BinaryIO) -> Iterator[str]:
    """The lines as text, each with a line feed.

    Raises:
        ValueError: a line is not text in UTF-8 (UnicodeDecodeError), contains NUL, or is too long.
    """
    start = True
    for data in iter(partial(file.readline, LARGEST_VALUE + 1), b""):
        if len(data) > LARGEST_VALUE:
            raise ValueError(f"this line is longer than {LARGEST_VALUE // 1_000_000} MB")
        text = data.decode("utf-8-sig" if start else "utf-8")
        start = False
        if "\0" in text:
            raise ValueError("this line contains a NUL byte, so the file is not text")
        yield f"{text[:-2]}\n" if text.endswith("\r\n") else text


def _report_line(error: ValueError, at: Span, report: Report) -> None:
    if not isinstance(error, UnicodeDecodeError):
        report.error("bad-csv", at, str(error))
        return
    utf_16 = error.object.startswith((b"\xff\xfe", b"\xfe\xff"))
    message = "this file is UTF-16" if utf_16 else f"not UTF-8 (byte {error.start + 1} of the line)"
    report.error("not-utf-8", at, message, hint="save it as 'CSV UTF-8'")


def _wrong_row(error: csv.Error) -> WrongValue:
    """The problem of a row in our words; `csv` has no class for each."""
    said = str(error)
    if "expected after" in said:
        return WrongValue("text after a closing quote", 'write "" for a quote inside it')
    if "unexpected end" in said:
        return WrongValue("a quote in this row is never closed")
    if "field limit" in said:
        return WrongValue(f"a cell is longer than {LARGEST_VALUE // 1_000_000} MB", "is a quote never closed?")
    return WrongValue("lines end in carriage returns (CR)", "save it with line feeds (LF)")


def _wrong_separator(header: Sequence[str]) -> WrongValue | None:
    """The problem of a header whose cells are not separated by commas."""
    used = next((one for one in _DELIMITERS if one in header[0]), None) if len(header) == 1 else None
    if used is None:
        return None
    message = f"the columns are separated by {_DELIMITERS[used]}, but a CSV file needs commas"
    return WrongValue(message, "save it with commas")
