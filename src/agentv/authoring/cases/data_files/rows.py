"""Rows of a table, and what reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from agentv.authoring.source.report import Report
from agentv.model.values.span import Span
from agentv.model.values.values import Json

LARGEST_VALUE = 10_000_000
"""Bytes of one text, as many as a row of CSV may have."""


class WrongValue:
    """A value that cannot be one of a case.

    Args:
        message: what it is.
        hint: what to do about it.
    """

    __slots__ = ("hint", "message")

    def __init__(self, message: str, hint: str | None = None) -> None:
        self.message = message
        self.hint = hint

    def __repr__(self) -> str:
        return f"WrongValue({self.message!r})"


Value = Json | WrongValue


class TableRow:
    """One row: its values in the order of the columns.

    Attributes:
        line: the row of the sheet, or the line or row of the file; all count from 1.
        number: of the case, from 1.
        values: or what is wrong with the row as a whole.
        source: the file that it is in, where a table has several.
    """

    __slots__ = ("_text", "line", "number", "source", "values")

    def __init__(self, line: int, number: int, values: Sequence[Value] | WrongValue, source: int = 0) -> None:
        self.line = line
        self.number = number
        self.values = values
        self.source = source
        self._text: str | None = None

    def __repr__(self) -> str:
        """Everything that the row says, by which a changed file is noticed."""
        if self._text is None:
            self._text = f"{self.number}{self.values!r}"
        return self._text


class Table(Protocol):
    """A file with a header and rows.

    Attributes:
        path: of the file.
        code: of what is wrong with the file itself.
        header_line: the line that the header is in.
    """

    path: str
    code: str
    header_line: int

    def header(self, report: Report) -> Sequence[str] | None:
        """The names of the columns, or None after reporting that they are missing."""
        ...

    def rows(self, report: Report) -> Iterator[tuple[int, Sequence[Value] | WrongValue]]:
        """Each row with its number, and its values in the order of the header. What ends the file early is reported."""
        ...

    def place(self, row: TableRow, column: int | None) -> str:
        """A row, or a cell of it, as people name it.

        Args:
            row: of the file.
            column: from 1; None: the whole row.
        """
        ...


def report_unreadable(path: str, error: Exception | str, report: Report, hint: str | None = None) -> None:
    """Report a file whose content is not what its name says."""
    from agentv.model.values.formatting import shorten

    text = shorten(" ".join(str(error).split()), 200)
    report.error("bad-table", Span(path, 1, 1, 1, 1), text, hint=hint)
