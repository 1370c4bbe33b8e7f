"""Matching of cases between two runs, with the reasons why cases are left out, and compact storage of cases."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, TypeVar, get_args, overload

from msgspec import Struct
from msgspec.structs import replace

from agentv.model.run.comparison import CaseKey, CaseOutcome, CasePair, Change, Errored, LeftOut, Loss
from agentv.model.run.matrix import RESOURCES, CaseUsage, Dimension
from agentv.model.run.trial import Status
from agentv.stats.samples.deciding import Rule

if TYPE_CHECKING:
    from agentv.stats.verdicts import Settings

_Category = Literal["compared", "edited", "errored", "unfinished"]


class Matched(Struct, frozen=True):
    """The matched cases of two runs.

    Attributes:
        pairs: cases that have a score in both runs.
        errored: cases that errored in a run and have no score there, if errors are compared by bounds.
        common: number of cases in both runs.
        edited: number of pairs whose texts differ.
        lost: cases that passed in the base and do not pass in the candidate, including edited and missing cases.
        settings: how the pairs were judged and sampled.
    """

    pairs: Pairs
    errored: Pairs
    common: int
    edited: int
    left_out: LeftOut
    lost: Mapping[CaseKey, Loss]
    settings: Settings


def match(
    base: KeyedCases,
    candidate: KeyedCases,
    *,
    edited: bool = False,
    errored: Errored = "bounds",
    within: Dimension | None = None,
) -> Matched:
    """Match two runs by suite and case, and by target and prompt if a run has several.

    If both runs have one target, the targets' names do not matter; the same applies to the only prompt of a suite, and
    to the only variant of each run.

    Args:
        base: cases of the base.
        candidate: cases of the candidate.
        edited: include cases whose texts differ, although their scores answer different questions.
        errored: how errored samples count.
        within: both are parts of one run that differ only in this dimension.
    """
    matching = _Matching(base, candidate, edited=edited, errored=errored)
    if within is None:
        old, new = places_in_common(base.places, candidate.places)
    else:
        old, new = _numbered(base.places, candidate.places, lambda place: without(place, within))
    after = {(candidate.case_id(one), new[candidate.place_number(one)]): one for one in candidate.numbers}
    only_base = array("I")
    for number in base.numbers:
        other = after.pop((base.case_id(number), old[base.place_number(number)]), None)
        if other is None:
            only_base.append(number)
        else:
            matching.add(number, other)
    return matching.result(only_base, after.values())


class _Matching:
    """The pairs added so far, by whether and why they are left out."""

    def __init__(self, base: KeyedCases, candidate: KeyedCases, *, edited: bool, errored: Errored) -> None:
        self._base, self._candidate = base, candidate
        self._include_edited, self._errored = edited, errored
        self._pairs = Pairs(base, candidate, filled=errored == "fail")
        self._uncertain = Pairs(base, candidate)
        self._left: dict[_Category, list[CaseKey]] = {"errored": [], "unfinished": []}
        self._changes: dict[CaseKey, tuple[Change, ...]] = {}
        self._lost: dict[_Category, dict[CaseKey, Loss]] = {}
        from agentv.stats.verdicts import Settings  # imports numpy

        self._settings = Settings()
        self._common = self._edited = 0

    def add(self, before: int, after: int) -> None:
        """Add a pair of cases, given by their numbers."""
        pair = paired(self._base, before, self._candidate, after)
        category = _category_of(pair, edited=self._include_edited, errored=self._errored)
        if category == "compared":
            pair = self._pairs.add(before, after)
            self._edited += _is_edited(pair)
            self._settings.add(pair)
        elif category == "edited":
            self._changes[pair.after_key] = tuple(_changes(pair))
        else:
            self._left[category].append(pair.after_key)
        if category == "errored" and _ran(pair) and self._errored == "bounds":
            self._uncertain.add(before, after)
        self._common += 1
        lost = self._lost.setdefault(category, {})
        status = pair.after.status
        if pair.before.status == "passed" and status != "passed":
            lost[pair.after_key] = status

    def result(self, only_base: Sequence[int], only_candidate: Iterable[int]) -> Matched:
        """Return the result, given the cases that only one of the runs has."""
        left_out = LeftOut(
            only_base=tuple(map(self._base.key, only_base)),
            only_candidate=tuple(map(self._candidate.key, only_candidate)),
            edited=self._changes,
            errored=tuple(self._left["errored"]),
            unfinished=tuple(self._left["unfinished"]),
        )
        lost = {key: loss for found in self._lost.values() for key, loss in found.items()}
        outcome = self._base.outcome
        for number, key in zip(only_base, left_out.only_base, strict=True):
            if outcome(number).status == "passed":
                lost[key] = "missing"
        return Matched(self._pairs, self._uncertain, self._common, self._edited, left_out, lost, self._settings)


def _category_of(pair: CasePair, *, edited: bool, errored: Errored) -> _Category:
    if _is_edited(pair) and not edited:
        return "edited"
    if _ran(pair) and (not pair.errored or errored == "fail" or (errored == "bounds" and pair.comparable)):
        return "compared"
    return "errored" if pair.errored else "unfinished"


def _ran(pair: CasePair) -> bool:
    return not {"skipped", "shown"} & {pair.before.status, pair.after.status}


def _is_edited(pair: CasePair) -> bool:
    return pair.before.text != pair.after.text


def _changes(pair: CasePair) -> Iterator[Change]:
    """Yield what an edit changed, as far as rows show. Checks are only compared if both cases were judged."""
    before, after = pair.before, pair.after
    judged = before.judged and after.judged
    touched: dict[Change, bool] = {
        "input": before.input != after.input,
        "checks": judged and before.checks != after.checks,
        "threshold": before.threshold != after.threshold,
    }
    yield from [what for what, differs in touched.items() if differs] or ["text"]


def places_in_common(
    base: Mapping[int, CaseKey], candidate: Mapping[int, CaseKey]
) -> tuple[Mapping[int, int], Mapping[int, int]]:
    """Number the places of two runs, so that places whose cases match have the same number."""
    runs = (base.values(), candidate.values())
    single_target = all(len({place.target for place in places}) == 1 for places in runs)
    single_variant = all(len({place.variant for place in places}) == 1 for places in runs)
    prompts: list[dict[str, set[str | None]]] = []  # for each run: suite → prompts of its cases
    for places in runs:
        found: dict[str, set[str | None]] = defaultdict(set)
        for place in places:
            found[place.suite].add(place.prompt)
        prompts.append(found)
    single_prompt = {suite for suite in prompts[0] if all(len(found.get(suite, ())) == 1 for found in prompts)}

    def name(place: CaseKey) -> CaseKey:
        return place._replace(
            target="" if single_target else place.target,
            prompt=None if place.suite in single_prompt else place.prompt,
            variant=None if single_variant else place.variant,
        )

    return _numbered(base, candidate, name)


def _numbered(
    base: Mapping[int, CaseKey], candidate: Mapping[int, CaseKey], name: Callable[[CaseKey], CaseKey]
) -> tuple[Mapping[int, int], Mapping[int, int]]:
    """Number the places of two runs, so that places with the same name have the same number."""
    known: dict[CaseKey, int] = {}
    old, new = (
        {number: known.setdefault(name(place), len(known)) for number, place in places.items()}
        for places in (base, candidate)
    )
    return old, new


def without(place: CaseKey, within: Dimension) -> CaseKey:
    """Return the key without its target, prompt or variant."""
    if within == "target":
        return place._replace(target="")
    return place._replace(prompt=None) if within == "prompt" else place._replace(variant=None)


class Pairs(Sequence[CasePair]):
    """A sequence of pairs of cases of two runs, stored as numbers and built on access.

    Args:
        base, candidate: the cases of the runs.
        filled: count errored samples as failed.
    """

    def __init__(self, base: KeyedCases, candidate: KeyedCases, *, filled: bool = False) -> None:
        self._base, self._candidate, self._filled = base, candidate, filled
        self._before, self._after = array("I"), array("I")

    def add(self, before: int, after: int) -> CasePair:
        """Add the pair of these cases, and return it."""
        self._before.append(before)
        self._after.append(after)
        return self._pair(before, after)

    def chosen(self, places: Iterable[int]) -> Pairs:
        """Return the pairs at these indexes, in this order."""
        found = Pairs(self._base, self._candidate, filled=self._filled)
        for place in places:
            found._before.append(self._before[place])
            found._after.append(self._after[place])
        return found

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
    """Return a pair of cases, with verdicts instead of scores if one of them was sampled until decided."""
    pair = CasePair(base.key(before), candidate.key(after), base.outcome(before), candidate.outcome(after))
    if not pair.by_verdict:
        return pair
    return replace(pair, before=_by_verdict(pair.before), after=_by_verdict(pair.after))


def _by_verdict(case: CaseOutcome) -> CaseOutcome:
    if case.status == "errored":  # the other samples do not give a verdict
        return replace(case, score=None, rate=None, samples=0)
    return replace(case, score=float(case.status == "passed")) if case.judged else case


T = TypeVar("T")

STATUSES: tuple[Status, ...] = get_args(Status)
STATUS_NUMBERS = {status: number for number, status in enumerate(STATUSES)}
NONE = float("nan")
"""Missing number in a column."""


def known(number: float) -> float | None:
    """Return a number from a column, with None for `NONE`."""
    return None if number != number else number  # noqa: PLR0124  # only NaN differs from itself


class CaseScope(NamedTuple):
    """Identity of a group of cases: suite, file, target, prompt and variant."""

    suite: str
    path: str | None
    prompt: str | None
    target: str
    variant: str | None = None

    def label(self, shared: Container[str]) -> str:
        """Return the suite's name, with its file if several suites share the name."""
        return f"{self.suite} ({self.path})" if self.suite in shared else self.suite


class NumberedValues(Generic[T]):
    """Values that many cases share; each distinct value is stored once and has a number."""

    def __init__(self) -> None:
        self._numbers: dict[T, int] = {}
        self.values: list[T] = []

    def number(self, value: T) -> int:
        """Return the number of a value: 0, 1, 2, … in the order of first use."""
        found = self._numbers.setdefault(value, len(self.values))
        if found == len(self.values):
            self.values.append(value)
        return found

    def close(self) -> None:
        """Free the memory for lookups by value; values can then only be read by number."""
        self._numbers.clear()


class SharedValues:
    """Values that the cases of all compared runs share."""

    def __init__(self) -> None:
        self.ids = NumberedValues[str]()
        self.places = NumberedValues[CaseScope]()
        self.rules = NumberedValues[Rule]()
        self.tags = NumberedValues[tuple[str, ...]]()
        self.clusters = NumberedValues[str | None]()


class RunCases:
    """The cases of a run in columns, each identified by its number: 0, 1, 2, … in the order of addition."""

    def __init__(self, common: SharedValues) -> None:
        self.common = common
        self._ids, self._places, self._rules, self._tags, self._clusters = (array("I") for _ in range(5))
        self._texts, self._inputs, self._checks = (array("q") for _ in range(3))
        self._statuses, self._samples = array("b"), array("I")
        self._scores, self._rates = array("d"), array("d")
        self._usage = [array("d") for _ in RESOURCES]
        self._rows, self._ends = array("q"), array("I")

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, place: CaseScope, case_id: str, outcome: CaseOutcome) -> None:
        """Add a case."""
        common = self.common
        self._places.append(common.places.number(place))
        self._ids.append(common.ids.number(case_id))
        rule = Rule(outcome.repeat, outcome.threshold, outcome.aggregate, outcome.alpha)
        self._rules.append(common.rules.number(rule))
        self._tags.append(common.tags.number(outcome.tags))
        self._clusters.append(common.clusters.number(outcome.cluster))
        self._texts.append(outcome.text)
        self._inputs.append(outcome.input)
        self._checks.append(outcome.checks)
        self._statuses.append(STATUS_NUMBERS[outcome.status])
        self._samples.append(outcome.samples)
        self._scores.append(NONE if outcome.score is None else outcome.score)
        self._rates.append(NONE if outcome.rate is None else outcome.rate)
        for column, used in zip(self._usage, outcome.usage, strict=True):
            column.append(NONE if used is None else used)
        self._rows.extend(outcome.places)
        self._ends.append(len(self._rows))

    def outcome(self, number: int) -> CaseOutcome:
        """Return the outcome of a case."""
        common, rule = self.common, self.common.rules.values[self._rules[number]]
        return CaseOutcome(
            self.status(number),
            known(self._scores[number]),
            self._samples[number],
            rule.threshold,
            self._texts[number],
            self._inputs[number],
            self._checks[number],
            common.tags.values[self._tags[number]],
            common.clusters.values[self._clusters[number]],
            tuple(self._rows[self._ends[number - 1] if number else 0 : self._ends[number]]),
            rule.repeat,
            rule.aggregate,
            rule.alpha,
            known(self._rates[number]),
            CaseUsage(*(known(column[number]) for column in self._usage)),
        )

    def status(self, number: int) -> Status:
        """Return the verdict of a case."""
        return STATUSES[self._statuses[number]]

    def case_id(self, number: int) -> str:
        """Return the id of a case in its suite."""
        return self.common.ids.values[self._ids[number]]

    def place_number(self, number: int) -> int:
        """Return the number of a case's group in `common.places`."""
        return self._places[number]

    def place(self, number: int) -> CaseScope:
        """Return the group of a case."""
        return self.common.places.values[self._places[number]]


class ChosenCases:
    """Some cases of a run, such as those on one target.

    Attributes:
        numbers: the numbers of the chosen cases in `cases`.
        places: their distinct groups, in the order of first use.
    """

    def __init__(self, cases: RunCases, numbers: Sequence[int]) -> None:
        self.cases, self.numbers = cases, numbers
        self.places = tuple(
            map(cases.common.places.values.__getitem__, dict.fromkeys(map(cases.place_number, numbers)))
        )

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def distinct(self) -> int:
        """Number of distinct cases, regardless of target, prompt and variant."""
        if len({(place.suite, place.path) for place in self.places}) == len(self.places):
            return len(self.numbers)
        cases = self.cases
        return len({(cases.case_id(one), cases.place(one).suite, cases.place(one).path) for one in self.numbers})

    def of(self, by: Dimension, name: str) -> ChosenCases:
        """Return the cases with this target, prompt or variant."""
        return self.among(by, (name,))

    def among(self, by: Dimension, names: Container[str]) -> ChosenCases:
        """Return the cases with one of these targets, prompts or variants."""
        cases, places = self.cases, self.cases.common.places.values
        wanted = {number for number, place in enumerate(places) if getattr(place, by) in names}
        return ChosenCases(cases, array("I", (one for one in self.numbers if cases.place_number(one) in wanted)))


class KeyedCases:
    """Cases of a run with their keys in a comparison.

    Args:
        chosen: the cases.
        shared: suite names used in several files; the suites are distinguished by file.
    """

    def __init__(self, chosen: ChosenCases, shared: Container[str] = ()) -> None:
        self.numbers, self._cases = chosen.numbers, chosen.cases
        places = chosen.cases.common.places.values
        self._keys = [CaseKey(place.label(shared), "", place.prompt, place.target, place.variant) for place in places]
        self.outcome, self.case_id, self.place_number = (
            self._cases.outcome,
            self._cases.case_id,
            self._cases.place_number,
        )
        used = dict.fromkeys(map(self.place_number, self.numbers))
        self.places = {number: self._keys[number] for number in used}

    def key(self, number: int) -> CaseKey:
        """Return the key of a case."""
        return self._keys[self.place_number(number)]._replace(case_id=self.case_id(number))


def shared_names(runs: Iterable[Iterable[CaseScope]]) -> frozenset[str]:
    """Return the suite names that occur in several files of a run."""
    return frozenset(name for run in runs for name in _shared_in(run))


def _shared_in(run: Iterable[CaseScope]) -> Iterator[str]:
    paths: dict[str, set[str | None]] = {}
    for place in run:
        paths.setdefault(place.suite, set()).add(place.path)
    return (name for name, found in paths.items() if len(found) > 1)
