"""Targets, prompts and variants of a run side by side: a text table, and sentences on the comparisons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from agentv.model.run.matrix import (
    DIMENSIONS,
    Dimension,
    GroupTotals,
    GroupUsage,
    MatrixCell,
    MatrixGroup,
    RunMatrix,
)
from agentv.model.run.summary import Summary
from agentv.model.values.formatting import ELLIPSIS, duration, money, plural
from agentv.model.values.values import Json, JsonObject, objects_in
from agentv.reports.run.paired import details, difference, sentence, usage_rows
from agentv.reports.text import GAP, aligned, cells, one_line, percent

WIDTH = 100
"""Width in columns if the terminal's width is unknown."""

ROWS, COLUMNS, COMPARED = 20, 12, 20
"""Numbers of prompts, columns and comparisons that are shown; the summary has all of them."""

_LABEL = 25
"""Characters shown of a name in a table."""


def matrix_lines(summary: Summary, width: int) -> Iterator[str]:
    """The matrix as a table, then the comparisons; nothing if the run has no matrix.

    Args:
        summary: summary of the run.
        width: width of the terminal; columns that do not fit go in a further table below.
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
    """A heading that says what is compared, and lines for each comparison."""
    found = matrix.comparisons or ()
    yield compared_heading(matrix)
    for one in found[:COMPARED]:
        yield f"  {sentence(one)}"
        if one.verdict is not None:
            yield f"    {one.verdict}: {details(one)}"
    if len(found) > COMPARED:
        yield f"  and {len(found) - COMPARED} more, in summary.json"


def compared_heading(matrix: RunMatrix) -> str:
    """`compared case by case with the first target, corrected for 3 tests (Holm):`, or why nothing is compared."""
    if matrix.comparisons is None:
        return "not compared: the run was stopped by its results"
    if not matrix.comparisons:
        return "not compared: they have no case in common"
    corrected = f", corrected for {matrix.tests} tests (Holm)" if matrix.tests > 1 else ""
    bases = " and ".join(f"the first {by}" for by in dict.fromkeys(one.by for one in matrix.comparisons))
    return f"compared case by case with {bases}{corrected}:"


def _table(grid: Grid, width: int) -> Iterator[str]:
    """The grid in blocks of as many columns as fit."""
    labels = [column_label(names) for names in grid.columns]
    number_of = Counter(labels)  # numbers distinguish labels that are equal after being cut
    columns = [f"{label} ({place})" if number_of[label] > 1 else label for place, label in enumerate(labels, 1)]
    names = ["", *((column_label((row.name,)) if row.is_prompt else row.name or "") for row in _shown_rows(grid))]
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


def column_label(names: tuple[str | None, ...]) -> str:
    """`gpt`, `claude as careful`; a long name is shortened in the middle."""
    return " as ".join("no prompt" if name is None else _both_ends(one_line(name)) for name in names)


def _both_ends(name: str) -> str:
    if len(name) <= _LABEL:
        return name
    half = (_LABEL - 1) // 2
    return f"{name[:half]}{ELLIPSIS}{name[-half:]}"


def matrix_data(matrix: RunMatrix, summary: JsonObject) -> dict[str, Json]:
    """The matrix of `summary.json` with sentences added to each comparison, for HTML pages.

    Args:
        matrix: matrix of the run.
        summary: the object of `summary.json`, with the same matrix.
    """
    data = summary["matrix"]
    if not isinstance(data, dict):  # the summary has no matrix
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


NONE = "-"
"""Cell for a combination that did not run and for an unknown number."""

_PER = 1000
"""Number of answers that costs are given for, since one often costs less than a hundredth of a cent."""

_SECOND_MS = 1000


class GridRow(Struct, frozen=True):
    """A row of a grid. `name` is the name of a prompt if `is_prompt`, else the heading of the row."""

    name: str | None
    cells: tuple[str, ...]
    is_prompt: bool = False


class Grid(Struct, frozen=True):
    """A matrix as text cells; names are not escaped.

    Attributes:
        columns: the parts of each column's name: target, prompt or variant, whichever differ.
    """

    columns: tuple[tuple[str | None, ...], ...]
    rows: tuple[GridRow, ...]


_Side = MatrixCell | MatrixGroup | None
_Key = tuple[str, str | None, str | None]


def grid_of(matrix: RunMatrix) -> Grid:
    """The grid of a matrix: targets and variants as columns, prompts as rows (or as columns if there is one target)."""
    cells: Mapping[_Key, MatrixCell] = {(one.target, one.prompt, one.variant): one for one in matrix.cells}
    pairs = [(target, variant) for target in matrix.targets for variant in matrix.variants]
    pairs = [pair for pair in pairs if any((pair[0], prompt, pair[1]) in cells for prompt in matrix.prompts)]
    if len(pairs) == 1:
        ((target, variant),) = pairs
        wholes: list[_Side] = [cells.get((target, prompt, variant)) for prompt in matrix.prompts]
        compared = _usage_per_case(matrix, "prompt", matrix.prompts)
        return Grid(tuple((prompt,) for prompt in matrix.prompts), tuple(_total_rows(wholes, "", compared)))
    several = (len(matrix.targets) > 1, len(matrix.variants) > 1)
    columns = tuple(tuple(name for name, differs in zip(pair, several, strict=True) if differs) for pair in pairs)
    by: Dimension = "target" if len(matrix.variants) == 1 else "variant"
    names = [pair[0] if by == "target" else pair[1] for pair in pairs]
    compared = _usage_per_case(matrix, by, names) if by == "target" or len(matrix.targets) == 1 else []
    if len(matrix.prompts) == 1:
        (prompt,) = matrix.prompts
        wholes = [cells.get((target, prompt, variant)) for target, variant in pairs]
        return Grid(columns, tuple(_total_rows(wholes, "", compared)))
    prompts = [
        GridRow(prompt, tuple(_rate(cells.get((target, prompt, variant))) for target, variant in pairs), is_prompt=True)
        for prompt in matrix.prompts
    ]
    return Grid(columns, (*prompts, *_total_rows(_column_totals(matrix, pairs), "all prompts", compared)))


def _usage_per_case(matrix: RunMatrix, by: Dimension, names: Sequence[str | None]) -> list[GridRow]:
    """Rows with the usage per case of each column (cost, tokens, turns, time) and the paired differences."""
    found: dict[str, dict[str | None, str]] = {}
    for one in matrix.comparisons or ():
        for name, before, after, moved, _ in usage_rows(one.usage) if one.by == by else ():
            row = found.setdefault(name, {})
            row.setdefault(one.base, before)
            row[one.candidate] = f"{after} [{moved}]" if moved else after
    return [GridRow(f"{what} per case", tuple(row.get(name, NONE) for name in names)) for what, row in found.items()]


def _column_totals(matrix: RunMatrix, pairs: Sequence[tuple[str, str | None]]) -> list[_Side]:
    """The totals of each column over all prompts; empty if both targets and variants differ."""
    if len(matrix.targets) > 1 and len(matrix.variants) > 1:
        return []
    groups, place = (matrix.by_target, 0) if len(matrix.targets) > 1 else (matrix.by_variant, 1)
    by_name = {one.name: one for one in groups}
    return [by_name.get(pair[place]) for pair in pairs]


def _total_rows(wholes: Sequence[_Side], rate: str, compared: Sequence[GridRow]) -> Iterator[GridRow]:
    """Rows with pass rate, mean score, cost and latency of each column, without redundant ones, then `compared`."""
    if not wholes:
        return
    yield GridRow(rate or "pass rate", tuple(map(_rate, wholes)))
    if any(one is not None and _has_own_mean(one.totals) for one in wholes):
        means = (None if one is None else one.totals.mean_score for one in wholes)
        yield GridRow("mean score", tuple(NONE if mean is None else f"{mean:.2f}" for mean in means))
    known = {row.name for row in compared}
    for name, shown, same in (("cost per 1,000", _cost, "cost"), ("median latency", _latency, "time")):
        cells = tuple((NONE if one is None else shown(one.usage)) for one in wholes)
        if f"{same} per case" not in known and set(cells) != {NONE}:
            yield GridRow(name, cells)
    yield from compared


def _rate(side: _Side) -> str:
    """`71.7% of 60 (59.2% to 81.5%), 11 errored`: a pass rate and the trials outside it; a dash if nothing ran.

    For cases with several samples it is `over 60`, since a mean over cases is not a share of the samples.
    """
    if side is None:
        return NONE
    totals = side.totals
    counts = totals.cases
    parts = []
    sampled = totals.rule_pass_rate is not None  # the rate is a mean over samples, but these counts are of cases
    if totals.pass_rate is not None:
        interval = totals.pass_rate_interval
        sure = "" if interval is None else f" ({percent(interval[0])} to {percent(interval[1])})"
        parts.append(f"{percent(totals.pass_rate)} {'over' if sampled else 'of'} {totals.judged:,}{sure}")
    others = ((counts.errored, "errored"), (counts.skipped, "not run"), (counts.shown, "shown"))
    parts += [
        f"{plural(number, 'case', ',') if sampled else f'{number:,}'} {word}" for number, word in others if number
    ]
    return ", ".join(parts) or NONE


def _has_own_mean(totals: GroupTotals) -> bool:
    """Whether the mean score differs from the pass rate when shown."""
    mean, rate = totals.mean_score, totals.pass_rate
    return mean is not None and (rate is None or f"{mean:.2f}" != f"{rate:.2f}")


def _cost(usage: GroupUsage) -> str:
    """The cost of 1,000 answers, and how many have a known cost if not all do."""
    if usage.cost_per_answer_usd is None:
        return NONE
    partly = "" if usage.priced_answers == usage.answers else f" ({usage.priced_answers:,} of {usage.answers:,})"
    return f"{money(_PER * usage.cost_per_answer_usd)}{partly}"


def _latency(usage: GroupUsage) -> str:
    if usage.latency_ms is None:
        return NONE
    return f"{usage.latency_ms:.0f} ms" if usage.latency_ms < _SECOND_MS else duration(usage.latency_ms)
