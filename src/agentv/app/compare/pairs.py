"""Pairs of cases of two runs: two numbers are stored for each, and the pair is built on access."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from msgspec.structs import replace

from agentv.app.compare.cases import KeyedCases
from agentv.model.run.comparison import CaseOutcome, CasePair


class Pairs(Sequence[CasePair]):
    """Some cases of two runs, two by two.

    Args:
        base, candidate: the cases.
        filled: count errored samples as failed.
    """

    def __init__(self, base: KeyedCases, candidate: KeyedCases, *, filled: bool = False) -> None:
        self._base, self._candidate, self._filled = base, candidate, filled
        self._before, self._after = array("I"), array("I")

    def add(self, before: int, after: int) -> CasePair:
        """Put in the pair of these cases."""
        self._before.append(before)
        self._after.append(after)
        return self._pair(before, after)

    def chosen(self, places: Iterable[int]) -> Pairs:
        """Those at these places, in this order."""
        found = Pairs(self._base, self._candidate, filled=self._filled)
        for place in places:
            found._before.append(self._before[place])
            found._after.append(self._after[place])
        return found

    def distinct(self) -> int:
        """Number of distinct cases: one with two prompts is one."""
        base = self._base
        return len({(base.places[base.place_number(one)].suite, base.case_id(one)) for one in self._before})

    def __len__(self) -> int:
        return len(self._before)

    @overload
    def __getitem__(self, place: int) -> CasePair: ...
    @overload
    def __getitem__(self, place: slice) -> Pairs: ...
    def __getitem__(self, place: int | slice) -> CasePair | Pairs:
        if isinstance(place, slice):
            return self.chosen(range(*place.indices(len(self))))
        return self._pair(self._before[place], self._after[place])

    def __iter__(self) -> Iterator[CasePair]:
        return map(self._pair, self._before, self._after)

    def _pair(self, before: int, after: int) -> CasePair:
        pair = paired(self._base, before, self._candidate, after)
        return pair.filled(0, 0) if self._filled else pair


def paired(base: KeyedCases, before: int, candidate: KeyedCases, after: int) -> CasePair:
    """The pair, with verdicts in the place of scores where one side was sampled until decided."""
    pair = CasePair(base.key(before), candidate.key(after), base.outcome(before), candidate.outcome(after))
    if not pair.by_verdict:
        return pair
    return replace(pair, before=_by_verdict(pair.before), after=_by_verdict(pair.after))


def _by_verdict(case: CaseOutcome) -> CaseOutcome:
    if case.status == "errored":  # what the samples that did not error say is no verdict
        return replace(case, score=None, rate=None, samples=0)
    return replace(case, score=float(case.status == "passed")) if case.judged else case
