"""Results of all trials in 42 bytes each, so that a million fit in memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from math import isnan, nan
from typing import TYPE_CHECKING, get_args

from msgspec import Struct
from msgspec.structs import replace

from agentv.model.run.cases import CASE, RequiredGrade, Sample, cluster_of, key_of_cluster
from agentv.model.run.matrix import Counts
from agentv.model.run.row import Row
from agentv.model.run.trial import SamplingStop, Status
from agentv.model.suite.suite import Aggregate
from agentv.model.values.hashes import NumberedHashes

if TYPE_CHECKING:
    from agentv.stats.samples.case_samples import CaseSamples
    from agentv.stats.samples.deciding import Rule

STATUSES: tuple[Status, ...] = get_args(Status)
_CODES = {status: code for code, status in enumerate(STATUSES)}


class Profile(Struct, frozen=True):
    """Properties that many cases share, stored once."""

    suite: str
    target: str
    prompt: str | None
    tags: tuple[str, ...]
    threshold: float
    repeat: int
    aggregate: Aggregate
    alpha: float | None = None
    clustered_by: str = CASE
    variant: str | None = None

    @property
    def rule(self) -> Rule:
        """The rule for the verdict of a case from its samples."""
        from agentv.stats.samples.deciding import Rule

        return Rule(self.repeat, self.threshold, self.aggregate, self.alpha)


class Early(Struct, frozen=True):
    """Sampling of a case that may stop early: the number of samples, and why it stopped; None if it has not stopped."""

    samples: int
    stopped: SamplingStop | None


class Trials(Struct, frozen=True):
    """Samples of one case on one target: numbers by outcome, and the sums of their scores and squared scores."""

    judged: int
    passed: int
    errored: int
    score: float
    squares: float


class TalliedCase(Struct, frozen=True):
    """The verdict of one case on one target, and the results of its samples.

    `case` is the hash of the case without target, prompt and variant. `samples` is set if it has several, and `early`
    if sampling may stop early. `met_at_worst` and `met_at_best` say whether it would pass if all its errored samples
    had failed, and if all had passed.
    """

    status: Status
    profile: Profile
    cluster: int
    trials: Trials
    met_at_worst: bool
    met_at_best: bool
    samples: CaseSamples | None = None
    early: Early | None = None
    case: int = 0


class Tally:
    """Counts trials and cases in rows. The last of several rows of one trial counts."""

    def __init__(self) -> None:
        self._numbers = NumberedHashes()
        self._codes = bytearray()
        self._scores = array("d")
        self._durations, self._prices = array("f"), array("d")
        self._profile_of = array("I")
        self._clusters = array("q")
        self._cases = array("q")
        self._profile_numbers: dict[tuple[object, ...], int] = {}
        self._profiles: list[Profile] = []
        self._samples: dict[int, tuple[str, list[int]]] = {}
        self._gates: dict[int, tuple[RequiredGrade, ...]] = {}

    def add(self, row: Row) -> None:
        """Add a row."""
        case = (row.eval_path, row.suite, row.test_id, row.target, row.prompt_id, row.variant)
        number = self._numbers.number(hash((*case, row.sample)))
        score = nan if row.score is None else row.score
        price = nan if row.cost_usd is None else row.cost_usd
        rule = (row.threshold, max(row.repeat, 1), row.aggregate or "mean", row.alpha)
        shared = (row.suite, row.target, row.prompt_id, row.tags, *rule, key_of_cluster(row) or CASE, row.variant)
        profile = self._profile_numbers.get(shared)
        if profile is None:
            profile = self._profile_numbers[shared] = len(self._profiles)
            self._profiles.append(Profile(*shared))
        if number == len(self._codes):
            self._codes.append(_CODES[row.status])
            self._scores.append(score)
            self._durations.append(row.duration_ms)
            self._prices.append(price)
            self._profile_of.append(profile)
            self._clusters.append(hash(cluster_of(row)))
            self._cases.append(case_of(row))
        else:
            self._codes[number] = _CODES[row.status]
            self._scores[number] = score
            self._durations[number] = row.duration_ms
            self._prices[number] = price
            self._profile_of[number] = profile
            self._clusters[number] = hash(cluster_of(row))
        if row.repeat > 1:
            self._add_sample(hash(case), number, row)

    def trials(self, planned: int) -> Counts:
        """Return the number of trials with each status; planned ones without a row count as skipped."""
        return counts_of([self._codes.count(code) for code in range(len(STATUSES))], planned)

    def answers(self) -> Iterator[tuple[Profile, float, float | None]]:
        """Yield the profile, the duration in ms and the price in US dollars of every graded or shown answer."""
        answered = {_CODES[status] for status in ("passed", "failed", "shown")}
        for code, number, duration_ms, price in zip(
            self._codes, self._profile_of, self._durations, self._prices, strict=True
        ):
            if code in answered:
                yield self._profiles[number], duration_ms, _none_if_nan(price)

    def cases(self) -> Iterator[TalliedCase]:
        """Yield every case once with each target, prompt and variant."""
        profiles = self._profiles
        ended = zip(self._codes, self._scores, self._profile_of, self._clusters, self._cases, strict=True)
        for code, score, number, cluster, case in ended:
            profile = profiles[number]
            if profile.repeat == 1:
                status = STATUSES[code]
                met, errored = status == "passed", status == "errored"
                trials = Trials(0, 0, errored, 0.0, 0.0)
                if met or status == "failed":
                    known = 0.0 if isnan(score) else score
                    trials = Trials(1, met, False, known, known * known)
                yield TalliedCase(status, profile, cluster, trials, met, met or errored, case=case)
        for test_id, numbers in self._samples.values():
            current = [number for number in numbers if profiles[self._profile_of[number]].repeat > 1]
            if current:
                yield self._repeated(test_id, current, profiles[self._profile_of[current[-1]]])

    @property
    def clustered(self) -> bool:
        """Whether a case has several trials or is not independent; otherwise each case is a cluster of its own."""
        return self.several or any(one.repeat > 1 or one.clustered_by != CASE for one in self._profiles)

    @property
    def several(self) -> bool:
        """Whether a case may have several results, by target, prompt or variant."""
        return len({(one.target, one.prompt, one.variant) for one in self._profiles}) > 1

    def missing(self, planned: int) -> int:
        """Return the maximum number of results of cases without a row, given the number of planned trials."""
        trials = max(0, planned - len(self._codes))
        return -(-trials // min((one.repeat for one in self._profiles), default=1))

    def _add_sample(self, case: int, number: int, row: Row) -> None:
        _, numbers = self._samples.setdefault(case, (row.test_id, []))
        if number not in numbers:
            numbers.append(number)
        gates = row.gates
        if gates:
            self._gates[number] = gates
        else:
            self._gates.pop(number, None)  # of an earlier row

    def _repeated(self, test_id: str, numbers: list[int], profile: Profile) -> TalliedCase:
        from agentv.stats.samples.case_samples import CaseSamples
        from agentv.stats.samples.deciding import stopped_by, verdict_over

        scores = [_none_if_nan(self._scores[number]) for number in numbers]
        samples = [
            Sample(STATUSES[self._codes[number]], score, self._gates.get(number, ()))
            for number, score in zip(numbers, scores, strict=True)
        ]
        verdict = verdict_over(samples, profile.rule)
        known = [score for score in scores if score is not None]
        passed = sum(sample.status == "passed" for sample in samples)
        judged = passed + sum(sample.status == "failed" for sample in samples)
        errored = sum(sample.status == "errored" for sample in samples)
        counted = CaseSamples(test_id, profile.suite, profile.target, profile.prompt, judged, passed)
        early = None
        if profile.alpha is not None:
            early = Early(len(samples), stopped_by(samples, profile.rule))
        trials = Trials(judged, passed, errored, sum(known), sum(score * score for score in known))
        worst, best = _met(verdict, samples, profile.rule)
        last = numbers[-1]
        found = TalliedCase(verdict, profile, self._clusters[last], trials, worst, best, counted, early)
        return replace(found, case=self._cases[last])


def case_of(row: Row) -> int:
    """Return the hash of a row's case, without target, prompt and variant."""
    return hash((row.eval_path, row.suite, row.test_id))


def _met(verdict: Status, samples: list[Sample], rule: Rule) -> tuple[bool, bool]:
    """Whether the case passes if all its errored samples had failed, and if all had passed."""
    from agentv.stats.samples.deciding import verdict_over

    if verdict != "errored":
        return verdict == "passed", verdict == "passed"
    gates = max((sample.gates for sample in samples), key=len)
    failed = Sample("failed", 0.0, tuple(RequiredGrade(gate.mark, 0.0) for gate in gates))
    passed = Sample("passed", 1.0, tuple(RequiredGrade(gate.mark, gate.mark) for gate in gates))
    worst, best = ([other if one.status == "errored" else one for one in samples] for other in (failed, passed))
    if rule.alpha is not None:  # more samples would have run and could give either verdict
        return False, True
    return verdict_over(worst, rule) == "passed", verdict_over(best, rule) != "failed"


def _none_if_nan(score: float) -> float | None:
    return None if isnan(score) else score


def counts_of(by_code: list[int], planned: int) -> Counts:
    """Return counts from numbers in the order of `STATUSES`; planned ones that did not finish count as skipped."""
    passed, failed, errored, skipped, shown = by_code
    total = max(planned, passed + failed + errored + skipped + shown)
    return Counts(total, passed, failed, errored, total - passed - failed - errored - shown, shown)
