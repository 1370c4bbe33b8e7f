"""Targets, prompts and variants of a run side by side: a table of text, and the comparisons in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from agentv.model.run.matrix import DIMENSIONS, ComparedMeasure, MatrixComparison, RunMatrix
from agentv.model.run.summary import Summary
from agentv.model.values.formatting import ELLIPSIS, plural
from agentv.model.values.values import Json, JsonObject, objects_in
from agentv.reports.run.matrix_grid import Grid, GridRow, grid_of
from agentv.reports.text.aligned import GAP, aligned
from agentv.reports.text.escaping import cells, one_line
from agentv.reports.text.signs import signed

WIDTH = 100
"""Columns where no terminal says how many it has."""

ROWS, COLUMNS, COMPARED = 20, 12, 20
"""Prompts, targets and comparisons that are shown; the summary holds all."""

_LABEL = 25
"""Characters of a name in a table."""

_NAME = 60
"""Characters of a name in a sentence."""

FEWEST = 6
"""Independent cases below which nothing can be shown at an alpha of 0.05."""
_LEAST_P = 0.001
_FEW_POINTS = 0.1


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
    yield from (f"  {comparison_words(one)}" for one in found[:COMPARED])
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


def comparison_words(one: MatrixComparison, margin: float = 0.0) -> str:
    """`b better than a: +8.0 points (95% CI +2.1 to +13.9, p 0.010); 100 cases`.

    Without a verdict for either of them it says that the result is inconclusive, never that they are equal.
    `margin` is that of the comparison.
    """
    base, candidate = one_line(one.base, _NAME), one_line(one.candidate, _NAME)
    if one.verdict is None:
        return f"{candidate} vs {base}: nothing to compare: {_nothing(one)}"
    found = "; ".join((_numbers(one), *_left_out(one)))
    if one.verdict in ("better", "worse"):
        return f"{candidate} {one.verdict} than {base}: {found}"
    if one.verdict == "equivalent":
        return f"{candidate} equivalent to {base}, within {margin:g}: {found}"
    if one.verdict == "non-inferior":
        return f"{candidate} not worse than {base} by more than {margin:g}: {found}"
    return f"{candidate} vs {base}: inconclusive{_reason(one)}: {found}"


def points(delta: float) -> str:
    """`+8.0 points`; of a difference of less than a tenth of a point one digit that counts."""
    shown = 100 * delta
    return f"{shown:+.1g} points" if 0 < abs(shown) < _FEW_POINTS else f"{signed(shown, 1)} points"


def _numbers(one: MatrixComparison) -> str:
    return f"{' and '.join(_measure(each, one) for each in _told(one))}; {_based_on(one)}"


def _told(one: MatrixComparison) -> tuple[ComparedMeasure, ...]:
    """The pass rate; with the mean score, where that moved differently."""
    first, *rest = one.measures
    return (first, *(each for each in rest if (each.delta, each.interval) != (first.delta, first.interval)))


def _measure(each: ComparedMeasure, one: MatrixComparison) -> str:
    mean = each.measure == "mean score"
    scale = 1 if mean else 100
    shown = f"mean score {signed(each.delta, 3)}" if mean else points(each.delta)
    if each.measure == "share of cases that passed":  # samples of some ended early, so rates of samples are biased
        shown += " in cases that passed"
    if each.interval is None or each.p_value is None:
        return shown
    digits = 3 if mean else 1
    low, high = (signed(scale * end, digits) for end in each.interval)
    p = f"p {each.p_value:.3f}" if each.p_value >= _LEAST_P else f"p < {_LEAST_P}"
    also = "" if not one.shown_by or each.measure in one.shown_by or len(one.measures) == 1 else ", not significant"
    return f"{shown} ({100 * each.confidence:.4g}% CI {low} to {high}, {p}{also})"


def _based_on(one: MatrixComparison) -> str:
    cases = plural(one.cases, "case", ",")
    if one.clusters == one.cases:
        return cases
    return f"{cases} in {plural(one.clusters, 'cluster', ',')}"


def _reason(one: MatrixComparison) -> str:
    if one.withheld == "errors":
        return f" (the verdict depends on {plural(one.errored, 'errored pair')})"
    if one.withheld == "measures":
        return " (one measure is better, the other worse)"
    if one.withheld == "settings":
        return " (cases were decided by different rules)"
    if one.clusters < FEWEST:
        return f" (fewer than {FEWEST} independent cases)"
    return ""


def _left_out(one: MatrixComparison) -> Iterator[str]:
    for number, name in ((one.only_base, one.base), (one.only_candidate, one.candidate)):
        if number:
            yield f"{number:,} only with {one_line(name, _NAME)}, not compared"
    if one.errored and one.withheld != "errors":
        yield f"{one.errored:,} errored"
    if one.unfinished:
        yield f"{one.unfinished:,} not finished or not checked"


def _nothing(one: MatrixComparison) -> str:
    why = "; ".join(_left_out(one))
    return why or "they have no case in common"


def matrix_data(matrix: RunMatrix, summary: JsonObject) -> dict[str, Json]:
    """The matrix as pages take it: that of `summary.json`, each comparison with its `sentence`.

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
        {**each, "sentence": comparison_words(one)}
        for one, each in zip(matrix.comparisons, objects_in(data["comparisons"]), strict=True)
    ]
    return {**data, "comparisons": found}
