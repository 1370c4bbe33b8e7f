"""Columns of text, aligned by the width that a terminal gives them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentv.reports.text.escaping import cells

GAP = "  "
"""Between two columns."""


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows of cells as lines, columns two blanks apart."""
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        line = GAP.join(text + " " * (width - cells(text)) for text, width in zip(row, widths, strict=True))
        yield line.rstrip()
