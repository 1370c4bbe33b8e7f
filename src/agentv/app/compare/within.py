"""The targets, prompts and variants of one run compared with each other: the one place where this is computed.

Each is compared with the first one that has cases in common with it, in the order of the run. All of these comparisons
are made together, so their p-values and intervals are corrected together.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from agentv.app.compare.cases import CaseScope, ChosenCases, KeyedCases, shared_names
from agentv.app.compare.gathering import cases_of, in_order_of_run
from agentv.app.compare.matching import Matched, match, without
from agentv.model.run.comparison import CaseKey, ComparisonSettings, Judgement, Loss
from agentv.model.run.matrix import DIMENSIONS, Dimension, MatrixComparison, MatrixGroup, RunMatrix
from agentv.model.run.summary import Summary
from agentv.model.values.values import JsonObject
from agentv.stats.verdicts import Part, judge_parts
from agentv.store.rows.reading import read_placed_rows, replaced_lines


def with_comparisons(summary: Summary, index: Path, record: JsonObject) -> Summary:
    """The totals with the columns of their matrix in the order of the run, and compared; the same without a matrix.

    Args:
        summary: of the run.
        index: its rows.
        record: its `run.json`.

    Raises:
        StoreError: the rows cannot be read.
    """
    if summary.matrix is None or summary.matrix.comparisons is not None:
        return summary
    matrix = in_order(summary.matrix, record)
    if summary.cut is not None:  # a test for samples of a fixed size does not hold for such a run
        return replace(summary, matrix=matrix.cut_short())
    cases = cases_of(read_placed_rows(index, replaced_lines(index)))
    names = {by: [name for name in matrix.names(by) if name is not None] for by in DIMENSIONS}
    found = compared_within(ChosenCases(cases, range(len(cases))), names, ComparisonSettings())
    return replace(summary, matrix=replace(matrix, comparisons=found.comparisons, tests=found.tests))


@dataclass(frozen=True, slots=True)
class ComparedWithin:
    """Comparisons of the parts of one run.

    Attributes:
        tests: number of tests that they are corrected for.
        lost: of each comparison the cases that passed with the base and do not with the candidate.
    """

    comparisons: tuple[MatrixComparison, ...]
    tests: int
    lost: tuple[Mapping[CaseKey, Loss], ...] = ()


@dataclass(frozen=True, slots=True)
class _Paired:
    """Two parts of a run that have cases in common."""

    by: Dimension
    base: str
    candidate: str
    matched: Matched


def compared_within(
    cases: ChosenCases, names: Mapping[Dimension, Sequence[str]], settings: ComparisonSettings
) -> ComparedWithin:
    """Compare the parts of a run.

    Args:
        cases: of the run.
        names: targets, prompts and variants to compare, the base of each first.
        settings: of all comparisons together.
    """
    parts = Parts(cases)
    found = [pair for by in DIMENSIONS for pair in parts.pairs(by, names.get(by, ()), settings)]
    judged = [one for one in found if one.matched.pairs]
    judgements = (
        judge_parts([Part(one.matched.pairs, one.matched.errored) for one in judged], settings) if judged else []
    )
    judgement_of = {id(one): judgement for one, judgement in zip(judged, judgements, strict=True)}
    tests = max((one.tested for one in judgements), default=1)
    comparisons = tuple(_comparison(one, judgement_of.get(id(one))) for one in found)
    return ComparedWithin(comparisons, tests, tuple(one.matched.lost for one in found))


class Parts:
    """The cases of a run by their place, so that each part is gathered without a look at all cases.

    They are sorted by id: rows stand in the order in which trials ended, and the last digits of a p-value may depend on
    the order of the cases.
    """

    def __init__(self, chosen: ChosenCases) -> None:
        self._cases = chosen.cases
        self._at: dict[int, array[int]] = {}
        for number in sorted(chosen.numbers, key=self._cases.case_id):
            self._at.setdefault(self._cases.place_number(number), array("I")).append(number)
        self._shared = shared_names([chosen.places])

    def pairs(self, by: Dimension, names: Sequence[str], settings: ComparisonSettings) -> Iterator[_Paired]:
        """Each part with the first one that has cases in common with it; nothing of one that has none."""
        before: list[tuple[str, KeyedCases]] = []
        for name in names:
            part = KeyedCases(self.part(by, name), self._shared)
            for base, other in before:
                if not _may_match(other, part, by):
                    continue
                matched = match(other, part, edited=True, errored=settings.errored, within=by)
                if matched.common:
                    yield _Paired(by, base, name, matched)
                    break
            before.append((name, part))

    def part(self, by: Dimension, name: str) -> ChosenCases:
        """The cases with this target, prompt or variant."""
        places, numbers = self._cases.common.places.values, array("I")
        for place in sorted(self._at, key=lambda place: _text_of(places[place])):
            if getattr(places[place], by) == name:
                numbers.extend(self._at[place])
        return ChosenCases(self._cases, numbers)


def _text_of(place: CaseScope) -> list[str]:
    return [part or "" for part in place]


def _may_match(base: KeyedCases, candidate: KeyedCases, by: Dimension) -> bool:
    known = {without(place, by) for place in base.places.values()}
    return any(without(place, by) in known for place in candidate.places.values())


def _comparison(paired: _Paired, judgement: Judgement | None) -> MatrixComparison:
    left = paired.matched.left_out
    names = paired.by, paired.base, paired.candidate
    if judgement is None:
        found = MatrixComparison(*names, None, errored=len(left.errored))
    else:
        found = judgement.between(*names)
    return replace(
        found,
        only_base=len(left.only_base),
        only_candidate=len(left.only_candidate),
        unfinished=len(left.unfinished),
    )


def in_order(matrix: RunMatrix, record: JsonObject) -> RunMatrix:
    """The matrix with its targets, prompts and variants in the order of the run instead of sorted."""
    names = {by: in_order_of_run(record, by, matrix.names(by)) for by in DIMENSIONS}
    place_of = {by: {name: place for place, name in enumerate(names[by])} for by in DIMENSIONS}

    def groups(by: Dimension) -> tuple[MatrixGroup, ...]:
        return tuple(sorted(matrix.groups(by), key=lambda one: place_of[by][one.name]))

    cells = sorted(
        matrix.cells,
        key=lambda one: (
            place_of["prompt"][one.prompt],
            place_of["target"][one.target],
            place_of["variant"][one.variant],
        ),
    )
    return replace(
        matrix,
        targets=tuple(name for name in names["target"] if name is not None),
        prompts=names["prompt"],
        variants=names["variant"],
        cells=tuple(cells),
        by_target=groups("target"),
        by_prompt=groups("prompt"),
        by_variant=groups("variant"),
    )
