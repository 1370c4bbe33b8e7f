"""Targets, prompts and variants of a run side by side: a table of text, and the comparisons in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from agentv.model.run.matrix import DIMENSIONS, MatrixComparison, RunMatrix
from agentv.model.run.summary import Summary
from agentv.model.values.formatting import ELLIPSIS, plural
from agentv.model.values.values import Json, JsonObject, objects_in
from agentv.reports.run.matrix_grid import Grid, GridRow, grid_of
from agentv.reports.run.paired import details, difference, sentence, usage_rows
from agentv.reports.text.escaping import cells, one_line
from agentv.reports.text.tables import GAP, aligned

WIDTH = 100
"""Columns where no terminal says how many it has."""

ROWS, COLUMNS, COMPARED = 20, 12, 20
"""Prompts, targets and comparisons that are shown; the summary holds all."""

_LABEL = 25
"""Characters of a name in a table."""


def matrix_lines(summary: Summary, width: int) -> Iterator[str]:
    """The matrix as a table, and what the comparisons show; nothing where there is one of each.

    Args:
        summary: of the run.
        width: columns of the terminal; what does not fit beside the rest stands below it.
    """
    matrix = summary.matrix
    if matrix is None:
        return
    grid = grid_of(matrix)
    what = " and ".join(f"{by}s" for by in DIMENSIONS if len(matrix.names(by)) > 1)
    yield f"{what} side by side (pass rate with 95% CI):" if summary.cut is None else f"{what} side by side:"
    yield from (f"  {line}" for line in _table(grid, width - 2))
    yield from compared_lines(matrix)


def compared_lines(matrix: RunMatrix) -> Iterator[str]:
    """What is compared with what, and a line for each comparison."""
    found = matrix.comparisons or ()
    yield compared_heading(matrix)
    for one in found[:COMPARED]:
        yield f"  {sentence(one)}"
        if one.verdict is not None:
            yield f"    {one.verdict}: {details(one)}"
    if len(found) > COMPARED:
        yield f"  and {len(found) - COMPARED} more, in summary.json"


def compared_heading(matrix: RunMatrix) -> str:
    """`compared case by case with the first target, corrected for 3 tests (Holm):`; or why nothing is compared."""
    if matrix.comparisons is None:
        return "not compared: the run was stopped by its results"
    if not matrix.comparisons:
        return "not compared: they have no case in common"
    corrected = f", corrected for {matrix.tests} tests (Holm)" if matrix.tests > 1 else ""
    return f"compared case by case with {_bases(matrix.comparisons)}{corrected}:"


def _bases(comparisons: Sequence[MatrixComparison]) -> str:
    """`the first target and the first prompt`."""
    return " and ".join(f"the first {by}" for by in dict.fromkeys(one.by for one in comparisons))


def _table(grid: Grid, width: int) -> Iterator[str]:
    """The grid in blocks of as many columns as fit."""
    columns = _labels(grid.columns)
    names = ["", *(_row_label(row) for row in _shown_rows(grid))]
    first = max(map(cells, names))
    room = max(0, width - first)
    block: list[list[str]] = []
    taken = 0
    for place, label in enumerate(columns[:COLUMNS]):
        column = [label, *(row.cells[place] for row in _shown_rows(grid))]
        needed = max(map(cells, column)) + len(GAP)
        if block and taken + needed > room:
            yield from aligned(list(zip(names, *block, strict=True)))
            yield ""
            block, taken = [], 0
        block.append(column)
        taken += needed
    yield from aligned(list(zip(names, *block, strict=True)))
    prompts = sum(row.is_prompt for row in grid.rows)
    for number, most, what in ((prompts, ROWS, "prompt"), (len(columns), COLUMNS, "column")):
        if number > most:
            yield f"and {plural(number - most, f'more {what}')}, in summary.json"


def _shown_rows(grid: Grid) -> list[GridRow]:
    prompts = [row for row in grid.rows if row.is_prompt][:ROWS]
    return [*prompts, *(row for row in grid.rows if not row.is_prompt)]


def _row_label(row: GridRow) -> str:
    return column_label((row.name,)) if row.is_prompt else row.name or ""


def _labels(columns: Sequence[tuple[str | None, ...]]) -> list[str]:
    """The labels of columns; a number tells apart those that are cut to the same."""
    labels = [column_label(names) for names in columns]
    number_of = Counter(labels)
    return [f"{label} ({place})" if number_of[label] > 1 else label for place, label in enumerate(labels, 1)]


def column_label(names: tuple[str | None, ...]) -> str:
    """`gpt`, `claude as careful`; of a long name its two ends."""
    return " as ".join("no prompt" if name is None else _both_ends(one_line(name)) for name in names)


def _both_ends(name: str) -> str:
    if len(name) <= _LABEL:
        return name
    half = (_LABEL - 1) // 2
    return f"{name[:half]}{ELLIPSIS}{name[-half:]}"


def matrix_data(matrix: RunMatrix, summary: JsonObject) -> dict[str, Json]:
    """The matrix as pages take it: that of `summary.json`, each comparison in words, too.

    Args:
        matrix: of the run.
        summary: the object of `summary.json`, with the same matrix.
    """
    data = summary["matrix"]
    if not isinstance(data, dict):  # a summary without one has no matrix to show
        return {}
    if matrix.comparisons is None:
        return {**data, "comparisons": None}
    found = [
        {
            **each,
            "sentence": sentence(one),
            "details": details(one),
            "difference": difference(one),
            "usage_rows": usage_rows(one.usage),
        }
        for one, each in zip(matrix.comparisons, objects_in(data["comparisons"]), strict=True)
    ]
    return {**data, "comparisons": found}
