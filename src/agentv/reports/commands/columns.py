"""Tables of a list in a terminal: columns side by side, the last one cut to fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentv.model.values.formatting import ELLIPSIS
from agentv.reports.text.escaping import cells

GAP = "  "

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
"""Text and the name of its style."""


def paint(text: str, style: str | None, *, color: bool) -> str:
    """The text in the style's colour."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if color and style is not None and text else text


def aligned(rows: Sequence[Sequence[Cell]], width: int, *, color: bool) -> Iterator[str]:
    """Columns side by side. Not a library's table: a thousand rows would take it a second.

    Args:
        rows: of cells that are safe and hold one line each; at least one row, all of the same length.
        width: columns of the terminal; only the last column is cut to fit.
        color: paint with escape sequences.
    """
    widths = widths_of(rows)
    left = max(width - sum(widths) - len(GAP) * len(widths), _FEWEST)
    for row in rows:
        padded = [
            paint(text, style, color=color) + " " * (wide - cells(text))
            for (text, style), wide in zip(row[:-1], widths, strict=True)
        ]
        last, style = row[-1]
        yield GAP.join([*padded, paint(fitted(last, left), style, color=color)]).rstrip()


def widths_of(rows: Sequence[Sequence[Cell]]) -> list[int]:
    """Width of every column except the last."""
    return [max(cells(row[at][0]) for row in rows) for at in range(len(rows[0]) - 1)]


def fitted(text: str, columns: int) -> str:
    """The beginning of a text that fits."""
    if cells(text) <= columns:
        return text
    while text and cells(text) >= columns:
        text = text[:-1]
    return text + ELLIPSIS
