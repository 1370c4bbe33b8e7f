"""Position in an authored file."""

from __future__ import annotations

from typing import NamedTuple


class Span(NamedTuple):
    """A stretch of one file. Lines and columns count from 1; the end column is exclusive.

    A tuple rather than a dataclass: one is made for every assertion of every case.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    def within(self, other: Span) -> bool:
        """Whether another one covers it."""
        begins = self.file == other.file and (other.line, other.column) <= (self.line, self.column)
        return begins and (self.end_line, self.end_column) <= (other.end_line, other.end_column)

    def __str__(self) -> str:
        """`file:line:column`, as editors and terminals link it."""
        return f"{self.file}:{self.line}:{self.column}"
