"""What became of every trial, held small: 30 bytes a trial, so that a million of them fit."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isnan, nan
from typing import NamedTuple, get_args

from agentv.model.cases import Gate, Sample
from agentv.model.sampling import Stopped
from agentv.model.suite import Aggregate
from agentv.model.summary import Counts
from agentv.model.trial import Status
from agentv.stats.deciding import Rule, stopped_by, verdict_over
from agentv.store.hashes import NumberedHashes
from agentv.store.reading import RowFacts

STATUSES: tuple[Status, ...] = get_args(Status)
_CODES = {status: code for code, status in enumerate(STATUSES)}


class Profile(NamedTuple):
    """What many cases have in common, so that it is held once."""

    suite: str
    target: str
    prompt: str | None
    tags: tuple[str, ...]
    threshold: float
    repeat: int
    aggregate: Aggregate
    alpha: float | None = None

    @property
    def rule(self) -> Rule:
        """How samples become the verdict of a case."""
        return Rule(self.repeat, self.threshold, self.aggregate, self.alpha)


class Early(NamedTuple):
    """Of a case whose samples may end early: how many there were, and why there are no more; None: some are to come."""

    samples: int
    stopped: Stopped | None


class CaseSamples(NamedTuple):
    """Of one case on one target: how many samples were judged, and how many of them passed."""

    test_id: str
    suite: str
    target: str
    prompt_id: str | None
    judged: int
    passed: int


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """The verdict of one case on one target, and the mean score of its samples; None where it was not judged.

    `samples` is there of a case with several, `early` of one whose samples may end early.
    """

    status: Status
    score: float | None
    profile: Profile
    samples: CaseSamples | None = None
    early: Early | None = None


class Tally:
    """Counts trials and cases out of rows. Of several rows of one trial the last counts."""

    def __init__(self) -> None:
        self._numbers = NumberedHashes()
        self._codes = bytearray()
        self._scores = array("d")
        self._profile_of = array("I")
        self._profiles: dict[tuple[object, ...], int] = {}
        self._samples: dict[int, tuple[str, list[int]]] = {}
        self._gates: dict[int, tuple[Gate, ...]] = {}

    def add(self, row: RowFacts) -> None:
        """Take in one row."""
        case = (row.eval_path, row.suite, row.test_id, row.target, row.prompt_id)
        number = self._numbers.number(hash((*case, row.sample)))
        score = nan if row.score is None else row.score
        profile = self._profile(row)
        if number == len(self._codes):
            self._codes.append(_CODES[row.status])
            self._scores.append(score)
            self._profile_of.append(profile)
        else:
            self._codes[number] = _CODES[row.status]
            self._scores[number] = score
            self._profile_of[number] = profile
        if row.repeat > 1:
            self._add_sample(hash(case), number, row)

    def trials(self, planned: int) -> Counts:
        """How many trials ended how, out of the number that there were to do."""
        return counts_of([self._codes.count(code) for code in range(len(STATUSES))], planned)

    def cases(self) -> Iterator[CaseOutcome]:
        """Every case on every target, once."""
        profiles = [Profile(*key) for key in self._profiles]  # type: ignore[arg-type]  # the keys are made by _profile
        for code, score, number in zip(self._codes, self._scores, self._profile_of, strict=True):
            profile = profiles[number]
            if profile.repeat == 1:
                yield CaseOutcome(STATUSES[code], _known(score), profile)
        for test_id, numbers in self._samples.values():
            current = [number for number in numbers if profiles[self._profile_of[number]].repeat > 1]
            if current:
                yield self._repeated(test_id, current, profiles[self._profile_of[current[-1]]])

    def _profile(self, row: RowFacts) -> int:
        repeat = max(row.repeat, 1)
        key = (row.suite, row.target, row.prompt_id, row.tags, row.threshold, repeat, row.aggregate, row.alpha)
        return self._profiles.setdefault(key, len(self._profiles))

    def _add_sample(self, case: int, number: int, row: RowFacts) -> None:
        _, numbers = self._samples.setdefault(case, (row.test_id, []))
        if number not in numbers:
            numbers.append(number)
        gates = row.gates
        if gates:
            self._gates[number] = gates
        else:
            self._gates.pop(number, None)  # a row that stands in place of another

    def _repeated(self, test_id: str, numbers: list[int], profile: Profile) -> CaseOutcome:
        scores = [_known(self._scores[number]) for number in numbers]
        samples = [
            Sample(STATUSES[self._codes[number]], score, self._gates.get(number, ()))
            for number, score in zip(numbers, scores, strict=True)
        ]
        verdict = verdict_over(samples, profile.rule)
        known = [score for score in scores if score is not None]
        passed = sum(sample.status == "passed" for sample in samples)
        judged = passed + sum(sample.status == "failed" for sample in samples)
        counted = CaseSamples(test_id, profile.suite, profile.target, profile.prompt, judged, passed)
        early = None
        if profile.alpha is not None:
            early = Early(len(samples), stopped_by(samples, profile.rule))
        return CaseOutcome(verdict, sum(known) / len(known) if known else None, profile, counted, early)


def _known(score: float) -> float | None:
    return None if isnan(score) else score


def counts_of(by_code: list[int], planned: int) -> Counts:
    """Counts out of numbers in the order of `STATUSES`; what was planned and did not end is skipped."""
    passed, failed, errored, skipped = by_code
    total = max(planned, passed + failed + errored + skipped)
    return Counts(total, passed, failed, errored, total - passed - failed - errored)


class Asked(NamedTuple):
    """Where cases were run: those that were run in two such places may be the same."""

    suite: str
    target: str
    prompt: str | None


def counted_once(judged: Mapping[Asked, int]) -> int:
    """How many judged cases there are if each counts once, whatever it was run on; where that is not sure, too few.

    Of each suite: the largest number on one target and with one prompt. A case with an input of its own has no prompt,
    and is none of those that have.
    """
    own: Counter[tuple[str, str]] = Counter()
    prompted: dict[tuple[str, str], int] = {}
    for (suite, target, prompt), number in judged.items():
        if prompt is None:
            own[suite, target] = number
        else:
            prompted[suite, target] = max(prompted.get((suite, target), 0), number)
    most: dict[str, int] = {}
    for suite, target in {*own, *prompted}:
        most[suite] = max(most.get(suite, 0), own[suite, target] + prompted.get((suite, target), 0))
    return sum(most.values())
