"""Several runs against one base: the cases that moved in any of them, with what became of them in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from heapq import nlargest, nsmallest
from typing import Literal

from msgspec import Struct

from agentv.errors import UsageError
from agentv.extensions.view.index.case_index import CaseIndex
from agentv.extensions.view.viewed.cases import ViewedCase
from agentv.extensions.view.viewed.comparison import (
    MOST_MOVED,
    ViewedComparison,
    case_at,
    change_of,
    compared,
    counts_of,
    refused_comparison,
    told_comparison,
)
from agentv.extensions.view.viewed.growing import GrowingRun
from agentv.model.run.comparison import CaseKey, CasePair, Comparison

_WORSE, _BETTER = frozenset({"worse", "lower"}), frozenset({"better", "higher"})


class CaseInRun(Struct, frozen=True):
    """A case of the base in one of the other runs.

    Attributes:
        change: as in a comparison of two runs; `left out`: it is not compared there.
        case: null: the run does not have it, or it is not compared.
    """

    change: str
    case: ViewedCase | None = None


class MovedCase(Struct, frozen=True):
    """A case that moved.

    Attributes:
        direction: `worse`: it got worse in one of the runs at least.
        base: the case in the base.
        runs: the case in each of the other runs, in their order.
    """

    direction: Literal["worse", "better"]
    base: ViewedCase
    runs: list[CaseInRun]


class MovedCases(Struct, frozen=True):
    """Several runs against one base.

    Attributes:
        comparisons: each of the runs against the base; `moved` is empty there.
        worse: number of cases that got worse in one of the runs at least.
        better: number of the other cases that moved.
        moved: these cases, the worst first, then the best; of each direction the first.
    """

    comparisons: list[ViewedComparison]
    worse: int
    better: int
    moved: list[MovedCase]


def moved_cases(ids: Sequence[str], runs: Sequence[GrowingRun]) -> MovedCases:
    """The cases of the first run that moved in the others.

    Raises:
        StoreError: a run cannot be read.
    """
    base, *candidates = runs
    found = compared(base, candidates)
    named = [(ids[0], other) for other in ids[1:]]
    told = [
        refused_comparison(both, one) if isinstance(one, UsageError) else told_comparison(both, one, counts_of(one), [])
        for both, one in zip(named, found, strict=True)
    ]
    worse, better = _directions([one for one in found if isinstance(one, Comparison)])
    first = nsmallest(MOST_MOVED, worse, key=worse.__getitem__)
    last = nlargest(MOST_MOVED, better, key=better.__getitem__)
    columns = [_Column(one, {*first, *last}) for one in found]
    with ExitStack() as stack:
        before, *after = (stack.enter_context(run.index()) for run in runs)
        rows = [
            *(_row("worse", key, columns, before, after) for key in first),
            *(_row("better", key, columns, before, after) for key in last),
        ]
    return MovedCases(told, len(worse), len(better), [row for row in rows if row is not None])


def _directions(found: Sequence[Comparison]) -> tuple[Mapping[CaseKey, float], Mapping[CaseKey, float]]:
    """Cases that got worse somewhere, with the largest loss; the others that got better, with the largest gain."""
    worse: dict[CaseKey, float] = {}
    better: dict[CaseKey, float] = {}
    for one in found:
        for pair in one.pairs:
            change, key = change_of(pair), pair.before_key
            if change in _WORSE:
                worse[key] = min(worse.get(key, 0.0), pair.delta)
            elif change in _BETTER:
                better[key] = max(better.get(key, 0.0), pair.delta)
    return worse, {key: gain for key, gain in better.items() if key not in worse}


class _Column:
    """One of the runs against the base, with the pairs that are shown."""

    def __init__(self, found: Comparison | UsageError, shown: set[CaseKey]) -> None:
        self._found = found
        self._pairs: dict[CaseKey, CasePair] = {}
        if isinstance(found, Comparison):
            self._pairs = {pair.before_key: pair for pair in found.pairs if pair.before_key in shown}

    def pair(self, key: CaseKey) -> CasePair | None:
        return self._pairs.get(key)

    def cell(self, key: CaseKey, after: CaseIndex) -> CaseInRun:
        pair = self.pair(key)
        if pair is not None:
            return CaseInRun(change_of(pair), case_at(after, pair.after.places))
        return CaseInRun("left out" if isinstance(self._found, UsageError) else _why_left_out(key, self._found))


def _why_left_out(key: CaseKey, found: Comparison) -> str:
    """As far as the names in the base tell it: the other run may have given the case another target."""
    left = found.left_out
    if key in left.only_base:
        return "gone"
    if key in left.edited:
        return "edited"
    return "unjudged" if key in left.errored or key in left.unfinished else "left out"


def _row(
    direction: Literal["worse", "better"],
    key: CaseKey,
    columns: Sequence[_Column],
    before: CaseIndex,
    after: Sequence[CaseIndex],
) -> MovedCase | None:
    pairs = (pair for column in columns if (pair := column.pair(key)) is not None)
    base = case_at(before, next(pairs).before.places)
    if base is None:
        return None
    cells = [column.cell(key, index) for column, index in zip(columns, after, strict=True)]
    return MovedCase(direction, base, cells)
