"""The cases of a run, in columns: the values that a comparison needs.

As objects, the cases of two runs of 100,000 would take 200 MB; as columns they take 30 MB.
"""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar, get_args

from agentv.model.run.comparison import CaseKey, CaseOutcome
from agentv.model.run.matrix import RESOURCES, CaseUsage, Dimension
from agentv.model.run.trial import Status
from agentv.stats.samples.deciding import Rule

T = TypeVar("T")

STATUSES: tuple[Status, ...] = get_args(Status)
STATUS_NUMBERS = {status: number for number, status in enumerate(STATUSES)}
NONE = float("nan")
"""A missing number in a column."""


def known(number: float) -> float | None:
    """A number of a column; None in place of `NONE`."""
    return None if number != number else number  # noqa: PLR0124  # all but NaN equal themselves


class CaseScope(NamedTuple):
    """Identity of a group of cases: suite, file, target, prompt and variant."""

    suite: str
    path: str | None
    prompt: str | None
    target: str
    variant: str | None = None

    def label(self, shared: Container[str]) -> str:
        """The suite; with its file where several suites share the name."""
        return f"{self.suite} ({self.path})" if self.suite in shared else self.suite


class NumberedValues(Generic[T]):
    """Values that many cases of several runs share: each is stored once, and has a number."""

    def __init__(self) -> None:
        self._numbers: dict[T, int] = {}
        self.values: list[T] = []

    def number(self, value: T) -> int:
        """The number of a value, 0, 1, 2, … in the order of first sight."""
        found = self._numbers.setdefault(value, len(self.values))
        if found == len(self.values):
            self.values.append(value)
        return found

    def close(self) -> None:
        """From now on, values are looked up only by number."""
        self._numbers.clear()


class Common:
    """Values that several cases share."""

    def __init__(self) -> None:
        self.ids = NumberedValues[str]()
        self.places = NumberedValues[CaseScope]()
        self.rules = NumberedValues[Rule]()
        self.tags = NumberedValues[tuple[str, ...]]()
        self.clusters = NumberedValues[str | None]()


class RunCases:
    """The cases of a run, each known by a number, 0, 1, 2, … in the order in which they were added."""

    def __init__(self, common: Common) -> None:
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
        """Outcome of a case."""
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
        """Verdict of a case."""
        return STATUSES[self._statuses[number]]

    def case_id(self, number: int) -> str:
        """Id of a case in its suite."""
        return self.common.ids.values[self._ids[number]]

    def place_number(self, number: int) -> int:
        """Number of a case's group in `common`."""
        return self._places[number]

    def place(self, number: int) -> CaseScope:
        """Group of a case."""
        return self.common.places.values[self._places[number]]


class ChosenCases:
    """Some cases of a run, such as those on one target.

    Attributes:
        numbers: those among `cases`.
        places: where they belong, each place once, in the order of first sight.
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
        """Number of distinct cases: one may have several targets, prompts and variants."""
        if len({(place.suite, place.path) for place in self.places}) == len(self.places):
            return len(self.numbers)
        of = self.cases
        return len({(of.case_id(one), of.place(one).suite, of.place(one).path) for one in self.numbers})

    def of(self, by: Dimension, name: str) -> ChosenCases:
        """Those with this target, prompt or variant."""
        return self.among(by, (name,))

    def among(self, by: Dimension, names: Container[str]) -> ChosenCases:
        """Those with one of these targets, prompts or variants."""
        cases, places = self.cases, self.cases.common.places.values
        wanted = {number for number, place in enumerate(places) if getattr(place, by) in names}
        return ChosenCases(cases, array("I", (one for one in self.numbers if cases.place_number(one) in wanted)))


class KeyedCases:
    """Cases of a run with the keys that they have in a comparison.

    Args:
        chosen: the cases.
        shared: names that several suites of a run share; they are distinguished by their files.
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
        """The key of a case."""
        return self._keys[self.place_number(number)]._replace(case_id=self.case_id(number))


def shared_names(runs: Iterable[Iterable[CaseScope]]) -> frozenset[str]:
    """The names that several suites of a run share."""
    return frozenset(name for run in runs for name in _shared_in(run))


def _shared_in(run: Iterable[CaseScope]) -> Iterator[str]:
    paths: dict[str, set[str | None]] = {}
    for place in run:
        paths.setdefault(place.suite, set()).add(place.path)
    return (name for name, found in paths.items() if len(found) > 1)
