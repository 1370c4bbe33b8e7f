"""The matrix of a run as a grid: a column for each target, and a row for each prompt, with cost and latency below."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentv.model.run.matrix import Dimension, GroupTotals, GroupUsage, MatrixCell, MatrixGroup, RunMatrix
from agentv.model.values.formatting import duration, money, plural
from agentv.reports.run.paired import usage_rows
from agentv.reports.text.escaping import percent

NONE = "-"
"""A combination that did not run, and a number that is not known."""

_PER = 1000
"""Answers that a cost is given for: one answer often costs less than a hundredth of a cent."""

_SECOND_MS = 1000


@dataclass(frozen=True, slots=True)
class GridRow:
    """A row of a grid. `name` is the name of a prompt if `is_prompt`, and else says what the row shows."""

    name: str | None
    cells: tuple[str, ...]
    is_prompt: bool = False


@dataclass(frozen=True, slots=True)
class Grid:
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
    columns = tuple(_column(matrix, *pair) for pair in pairs)
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
        for name, before, after, difference, _ in usage_rows(one.usage) if one.by == by else ():
            row = found.setdefault(name, {})
            row.setdefault(one.base, before)
            row[one.candidate] = f"{after} [{difference}]" if difference else after
    return [GridRow(f"{what} per case", tuple(row.get(name, NONE) for name in names)) for what, row in found.items()]


def _column(matrix: RunMatrix, target: str, variant: str | None) -> tuple[str | None, ...]:
    names = ((target, matrix.targets), (variant, matrix.variants))
    return tuple(name for name, all_names in names if len(all_names) > 1)


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
        yield GridRow("mean score", tuple(_of(one, _mean) for one in wholes))
    known = {row.name for row in compared}
    for name, shown, same in (("cost per 1,000", _cost, "cost"), ("median latency", _latency, "time")):
        cells = tuple(_of_usage(one, shown) for one in wholes)
        if f"{same} per case" not in known and set(cells) != {NONE}:
            yield GridRow(name, cells)
    yield from compared


def _of(side: _Side, shown: Callable[[GroupTotals], str]) -> str:
    return NONE if side is None else shown(side.totals)


def _of_usage(side: _Side, shown: Callable[[GroupUsage], str]) -> str:
    return NONE if side is None else shown(side.usage)


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


def _mean(totals: GroupTotals) -> str:
    return NONE if totals.mean_score is None else f"{totals.mean_score:.2f}"


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
