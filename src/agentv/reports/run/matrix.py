"""Targets, prompts and variants of a run side by side: a table of text, and the comparisons in words."""

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
    bases = " and ".join(f"the first {by}" for by in dict.fromkeys(one.by for one in matrix.comparisons))
    return f"compared case by case with {bases}{corrected}:"


def _table(grid: Grid, width: int) -> Iterator[str]:
    """The grid in blocks of as many columns as fit."""
    labels = [column_label(names) for names in grid.columns]
    number_of = Counter(labels)  # a number tells apart those that are cut to the same
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


NONE = "-"
"""A combination that did not run, and a number that is not known."""

_PER = 1000
"""Answers that a cost is given for: one answer often costs less than a hundredth of a cent."""

_SECOND_MS = 1000


class GridRow(Struct, frozen=True):
    """A row of a grid. `name` is the name of a prompt if `is_prompt`, and else says what the row shows."""

    name: str | None
    cells: tuple[str, ...]
    is_prompt: bool = False


class Grid(Struct, frozen=True):
    """A matrix as texts; names are not escaped.

    Attributes:
        columns: the parts of the name of each column: target, prompt or variant, of those that differ.
    """

    columns: tuple[tuple[str | None, ...], ...]
    rows: tuple[GridRow, ...]


_Side = MatrixCell | MatrixGroup | None
_Key = tuple[str, str | None, str | None]


def grid_of(matrix: RunMatrix) -> Grid:
    """Targets and variants are columns, and prompts are rows; of one target with one variant, prompts are columns."""
    cells: Mapping[_Key, MatrixCell] = {(one.target, one.prompt, one.variant): one for one in matrix.cells}
    pairs = [(target, variant) for target in matrix.targets for variant in matrix.variants]
    pairs = [pair for pair in pairs if any((pair[0], prompt, pair[1]) in cells for prompt in matrix.prompts)]
    if len(pairs) == 1:
        ((target, variant),) = pairs
        wholes: list[_Side] = [cells.get((target, prompt, variant)) for prompt in matrix.prompts]
        compared = _compared(matrix, "prompt", matrix.prompts)
        return Grid(tuple((prompt,) for prompt in matrix.prompts), tuple(_numbers(wholes, "", compared)))
    several = (len(matrix.targets) > 1, len(matrix.variants) > 1)
    columns = tuple(tuple(name for name, differs in zip(pair, several, strict=True) if differs) for pair in pairs)
    by: Dimension = "target" if len(matrix.variants) == 1 else "variant"
    names = [pair[0] if by == "target" else pair[1] for pair in pairs]
    compared = _compared(matrix, by, names) if by == "target" or len(matrix.targets) == 1 else []
    if len(matrix.prompts) == 1:
        (prompt,) = matrix.prompts
        wholes = [cells.get((target, prompt, variant)) for target, variant in pairs]
        return Grid(columns, tuple(_numbers(wholes, "", compared)))
    prompts = [
        GridRow(prompt, tuple(_rate(cells.get((target, prompt, variant))) for target, variant in pairs), is_prompt=True)
        for prompt in matrix.prompts
    ]
    return Grid(columns, (*prompts, *_numbers(_wholes(matrix, pairs), "all prompts", compared)))


def _compared(matrix: RunMatrix, by: Dimension, names: Sequence[str | None]) -> list[GridRow]:
    """What a case takes with each of these: cost, tokens, turns and time, with the paired differences."""
    found: dict[str, dict[str | None, str]] = {}
    for one in matrix.comparisons or ():
        for name, before, after, moved, _ in usage_rows(one.usage) if one.by == by else ():
            row = found.setdefault(name, {})
            row.setdefault(one.base, before)
            row[one.candidate] = f"{after} [{moved}]" if moved else after
    return [GridRow(f"{what} per case", tuple(row.get(name, NONE) for name in names)) for what, row in found.items()]


def _wholes(matrix: RunMatrix, pairs: Sequence[tuple[str, str | None]]) -> list[_Side]:
    """The totals of each column over all prompts; nothing where both targets and variants differ."""
    if len(matrix.targets) > 1 and len(matrix.variants) > 1:
        return []
    groups, place = (matrix.by_target, 0) if len(matrix.targets) > 1 else (matrix.by_variant, 1)
    by_name = {one.name: one for one in groups}
    return [by_name.get(pair[place]) for pair in pairs]


def _numbers(wholes: Sequence[_Side], rate: str, compared: Sequence[GridRow]) -> Iterator[GridRow]:
    """The pass rate, the mean score, cost and latency of each column; rows that say something, then those compared."""
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
    """`71.7% of 60 (59.2% to 81.5%)`, and what is in no rate: `, 11 errored`; a dash where nothing ran.

    Of cases with several samples `over 60`: the mean over cases is no share of the samples.
    """
    if side is None:
        return NONE
    totals = side.totals
    counts = totals.cases
    parts = []
    sampled = totals.rule_pass_rate is not None  # then the rate is a mean over samples, and these are cases
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
    """Whether the mean score says more than the pass rate."""
    mean, rate = totals.mean_score, totals.pass_rate
    return mean is not None and (rate is None or f"{mean:.2f}" != f"{rate:.2f}")


def _cost(usage: GroupUsage) -> str:
    """The price of 1,000 answers; where that of some is not known, of how many it is."""
    if usage.cost_per_answer_usd is None:
        return NONE
    partly = "" if usage.priced_answers == usage.answers else f" ({usage.priced_answers:,} of {usage.answers:,})"
    return f"{money(_PER * usage.cost_per_answer_usd)}{partly}"


def _latency(usage: GroupUsage) -> str:
    if usage.latency_ms is None:
        return NONE
    return f"{usage.latency_ms:.0f} ms" if usage.latency_ms < _SECOND_MS else duration(usage.latency_ms)
