"""Tables in a terminal: columns side by side. Not a library's table: a thousand rows would take it a second."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentv.model.values.formatting import ELLIPSIS
from agentv.reports.text.escaping import cells

GAP = "  "
"""Between two columns."""

_FEWEST = 12
"""Columns that the last column of a list keeps, however narrow the terminal is."""

_STYLES = {
    "ready": "32",
    "passed": "32",
    "tested": "36",
    "edited": "33",
    "wrong": "31",
    "failed": "31",
    "errored": "35",
    "dim": "2",
    "bold": "1",
}

Cell = tuple[str, str | None]
"""Text, which is safe and one line, and the name of its style."""


def paint(text: str, style: str | None, *, color: bool) -> str:
    """The text in the style's colour."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if color and style is not None and text else text


def aligned(rows: Sequence[Sequence[Cell | str]], width: int | None = None, *, color: bool = False) -> Iterator[str]:
    """Columns side by side.

    Args:
        rows: at least one, all of the same length.
        width: columns of the terminal, to which the last column is cut; None: it is not cut.
        color: paint with escape sequences.
    """
    widths = widths_of(rows)
    left = None if width is None else max(width - sum(widths) - len(GAP) * len(widths), _FEWEST)
    for row in rows:
        *first, (last, style) = map(_styled, row)
        padded = [
            paint(text, look, color=color) + " " * (wide - cells(text))
            for (text, look), wide in zip(first, widths, strict=True)
        ]
        last = last if left is None else fitted(last, left)
        yield GAP.join([*padded, paint(last, style, color=color)]).rstrip()


def widths_of(rows: Sequence[Sequence[Cell | str]]) -> list[int]:
    """Width of every column except the last."""
    return [max(cells(_styled(row[at])[0]) for row in rows) for at in range(len(rows[0]) - 1)]


def fitted(text: str, columns: int) -> str:
    """The beginning of a text that fits."""
    if cells(text) <= columns:
        return text
    while text and cells(text) >= columns:
        text = text[:-1]
    return text + ELLIPSIS


def _styled(cell: Cell | str) -> Cell:
    return (cell, None) if isinstance(cell, str) else cell
