"""CSV according to RFC 4180: rows from bytes, one at a time, with the position of every cell.

The `csv` module is not used: it knows no columns of the source, reads the rest of the file into a quote that is never
closed, and accepts a stray quote inside a cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from msgspec import Struct

from agentv.authoring.source.nodes import Node, Scalar
from agentv.authoring.source.report import Report
from agentv.errors import Diagnostic
from agentv.model.values.span import Span

LARGEST = 10_000_000
"""Bytes of one row. A quote that is not closed would make a row of all that follows it."""

_BODY = r'(?:[^"]++|"")*+'
_CELL = re.compile(rf'"{_BODY}"(?=,|\Z)|[^",]*+(?=,|\Z)')
_OPEN = re.compile(rf'"{_BODY}\Z')
_CLOSED = re.compile(rf'{_BODY}"(?=,|\Z)')
_STILL_OPEN = re.compile(rf"{_BODY}\Z")
_BOM = "\ufeff"


class CsvRow(Struct, frozen=True):
    """One row as authored, without its line end.

    Attributes:
        number: from 1; the header is 0.
        problem: why it cannot be split into cells.
        folded: it spans several lines.
    """

    line: int
    raw: str
    number: int = 0
    problem: Diagnostic | None = None
    folded: bool = False

    @property
    def texts(self) -> list[str]:
        """The texts of its cells."""
        if '"' not in self.raw:
            return self.raw.split(",")
        return [_unquoted(match.group()) for match in _matches(self.raw)]

    def cells(self, path: str) -> list[Cell]:
        """The cells with their places."""
        return [Cell(_unquoted(match.group()), self._span(path, match)) for match in _matches(self.raw)]

    def _span(self, path: str, match: re.Match[str]) -> Span:
        line, column = self._place(match.start())
        end_line, end = self._place(match.end())
        return Span(path, line, column, end_line, end if match.end() > match.start() else end + 1)

    def _place(self, at: int) -> tuple[int, int]:
        before = self.raw.count("\n", 0, at) if self.folded else 0
        return self.line + before, at - (self.raw.rfind("\n", 0, at) if before else -1)


class Cell(Struct, frozen=True):
    """Text and position of a cell."""

    text: str
    at: Span

    def node(self) -> Node:
        """The text as a value."""
        return Scalar(self.text, self.text, self.at)


def read_rows(path: str, report: Report) -> Iterator[CsvRow]:
    """The rows of a file without blank lines, the header first.

    If the end of a row cannot be determined, this is reported and ends the pass: `bad-csv`, `not-utf-8`.

    Raises:
        OSError: the file cannot be read.
    """
    with open(path, "rb") as file:  # noqa: PTH123  # a Path would add nothing
        yield from _Rows(path, report).read(file)


class _Rows:
    def __init__(self, path: str, report: Report) -> None:
        self._path = path
        self._report = report
        self._broken = False

    def read(self, file: BinaryIO) -> Iterator[CsvRow]:
        lines_of_row: list[str] = []  # the lines of a row whose last cell is quoted and not closed yet
        begin = number = size = 0
        opened = Span(self._path, 1, 1, 1, 2)
        for at, line in self._lines(file):
            if not lines_of_row:
                if not line.strip():
                    continue
                begin, size = at, 0
            size += len(line)
            if size > LARGEST:
                break
            if lines_of_row and '"' not in line:
                lines_of_row.append(line)
                continue
            after = _quotes(line, inside=bool(lines_of_row))
            lines_of_row.append(line)
            if after.opens is not None:
                opened = Span(self._path, at, after.opens + 1, at, after.opens + 2)
            if not after.is_open:
                problem = None if after.error_at is None else self._stray(at, line, after.error_at)
                yield CsvRow(begin, "\n".join(lines_of_row), number, problem, len(lines_of_row) > 1)
                number += 1
                lines_of_row = []
        if lines_of_row and not self._broken:
            self._report.error("bad-csv", opened, "the quote that starts here is never closed")

    def _lines(self, file: BinaryIO) -> Iterator[tuple[int, str]]:
        number = 0
        while data := file.readline(LARGEST + 1):
            number += 1
            wrong = _problem_with(data)
            if wrong is not None:
                self._broken = True
                code, message, hint = wrong
                self._report.error(code, Span(self._path, number, 1, number, 2), message, hint=hint)
                return
            text = data.decode("utf-8")
            yield number, (text.removeprefix(_BOM) if number == 1 else text).rstrip("\r\n")

    def _stray(self, line: int, text: str, column: int) -> Diagnostic:
        at = Span(self._path, line, column + 1, line, column + 2)
        if text[column] == '"':
            message, hint = "a quote is inside a cell", 'quote the whole cell, and write "" for the inner quote'
            if not text[:column].rpartition(",")[2].strip():
                message, hint = "white space before an opening quote", "remove it"
        else:
            message, hint = "text after a closing quote", 'write "" for a quote inside it'
        return Diagnostic("bad-csv", message, at, hint=hint)


class _Quotes(Struct, frozen=True):
    """What the quotes of a line come to.

    Attributes:
        is_open: a quoted cell goes on in the next line.
        opens: where that cell begins, if in this line.
        error_at: where a quote, or what follows one, is wrong.
    """

    is_open: bool = False
    opens: int | None = None
    error_at: int | None = None


_NONE = _Quotes()
_GOES_ON = _Quotes(is_open=True)


def _quotes(line: str, *, inside: bool) -> _Quotes:
    if '"' not in line:
        return _GOES_ON if inside else _NONE
    at = 0
    if inside:
        closed = _CLOSED.match(line)
        if closed is None:
            open_still = _STILL_OPEN.match(line) is not None
            return _GOES_ON if open_still else _Quotes(error_at=_end_of_quoted(line, 0))
        at = closed.end() + 1
    while at <= len(line):
        cell = _CELL.match(line, at)
        if cell is None:
            return _unfinished(line, at)
        at = cell.end() + 1
    return _NONE


def _unfinished(line: str, at: int) -> _Quotes:
    """A cell that does not end as one should: it goes on in the next line, or is wrong."""
    if line[at] != '"':
        return _Quotes(error_at=line.index('"', at))
    if _OPEN.match(line, at):
        return _Quotes(is_open=True, opens=at)
    return _Quotes(error_at=_end_of_quoted(line, at + 1))


def _end_of_quoted(line: str, at: int) -> int:
    body = re.compile(_BODY).match(line, at)
    return (body.end() if body else at) + 1


def _problem_with(data: bytes) -> tuple[str, str, str | None] | None:
    """Why bytes are no line of a CSV file: a code, a message and a hint."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "not-utf-8", "this file is UTF-16", "save it as 'CSV UTF-8'"
    if b"\0" in data:
        return "bad-csv", "this line contains a NUL byte, so the file is not text", None
    if len(data) > LARGEST:
        return "bad-csv", f"this line is longer than {LARGEST // 1_000_000} MB", None
    if data.isascii():
        return None
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return "not-utf-8", f"not UTF-8 (byte {error.start + 1} of the line)", "save it as 'CSV UTF-8'"
    return None


def _matches(raw: str) -> Iterator[re.Match[str]]:
    at = 0
    while at <= len(raw):
        match = _CELL.match(raw, at)
        if match is None:  # a row is made of cells, as `_quotes` saw to
            raise ValueError(f"no cell at {at}")
        yield match
        at = match.end() + 1


def _unquoted(written: str) -> str:
    return written[1:-1].replace('""', '"') if written.startswith('"') else written
