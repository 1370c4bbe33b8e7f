"""The totals of a group of cases: counts, rates and how sure they are (SPEC section 13)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from agentv.lazy_dataclass import dataclass
from agentv.model.run.group_totals import Counts, GroupTotals, Interval
from agentv.model.run.summary import CaseRule
from agentv.model.run.trial import Status
from agentv.stats.intervals.design_effect import Estimate, Sums, estimated_mean, estimated_mean_alone, estimated_rate
from agentv.store.totals.tally import STATUSES, Profile, TalliedCase, counts_of

_DIGITS = 9
"""Trials end in any order, and the last bits of a sum of scores depend on it."""


@dataclass(frozen=True, slots=True)
class _Nothing:
    """Stands for the estimate of what was not judged."""

    mean: None = None
    interval: None = None
    clusters: None = None


_NOTHING = _Nothing()


class _Cluster:
    """Counts of one cluster: graded samples and graded cases."""

    __slots__ = ("cases", "judged", "met", "passed", "rates", "score")

    def __init__(self) -> None:
        self.judged = self.passed = self.cases = self.met = 0
        self.score = self.rates = 0.0

    def merge(self, other: _Cluster) -> None:
        self.judged += other.judged
        self.passed += other.passed
        self.cases += other.cases
        self.met += other.met
        self.score += other.score
        self.rates += other.rates


@dataclass(slots=True)
class _Sums:
    """Numbers of cases and trials, and sums over them.

    Attributes:
        cases: how many ended with each status.
        judged, passed, errored: numbers of trials.
        score, score_squares: over judged trials.
        rates, rate_squares: over cases that passed or failed; nothing if no cluster is held.
        passed_at_worst, passed_at_best: cases that would pass if all trials that errored had failed, or had passed.
    """

    cases: dict[Status, int]
    judged: int = 0
    passed: int = 0
    errored: int = 0
    score: float = 0.0
    score_squares: float = 0.0
    rates: float = 0.0
    rate_squares: float = 0.0
    passed_at_worst: int = 0
    passed_at_best: int = 0

    def add(self, case: TalliedCase) -> None:
        trials = case.trials
        self.cases[case.status] += 1
        self.judged += trials.judged
        self.passed += trials.passed
        self.errored += trials.errored
        self.score += trials.score
        self.score_squares += trials.squares
        self.passed_at_worst += case.met_at_worst
        self.passed_at_best += case.met_at_best

    def merge(self, other: _Sums) -> None:
        for status, number in other.cases.items():
            self.cases[status] += number
        self.judged += other.judged
        self.passed += other.passed
        self.errored += other.errored
        self.score += other.score
        self.score_squares += other.score_squares
        self.rates += other.rates
        self.rate_squares += other.rate_squares
        self.passed_at_worst += other.passed_at_worst
        self.passed_at_best += other.passed_at_best


class GroupTally:
    """Takes in cases, all of one profile, or other such groups.

    Args:
        clustered: some cases have more than one trial, or depend on each other; otherwise no cluster is held.
    """

    def __init__(self, *, clustered: bool) -> None:
        self.clustered = clustered
        self._clusters: dict[int, _Cluster] | None = {} if clustered else None
        self._sums = _Sums(dict.fromkeys(STATUSES, 0))
        self._early = self._repeated = False
        self._keys: set[str] = set()

    def add(self, case: TalliedCase) -> None:
        """Take in a case."""
        self._sums.add(case)
        if case.early is not None:
            self._early = True
        if self._clusters is not None:
            self._add_to_cluster(case, self._clusters)

    def _add_to_cluster(self, case: TalliedCase, clusters: dict[int, _Cluster]) -> None:
        trials, status = case.trials, case.status
        decided = status in ("passed", "failed")
        rate = _rate_of(case) if decided else 0.0
        self._sums.rates += rate
        self._sums.rate_squares += rate * rate
        if decided or trials.judged:
            found = clusters.get(case.cluster)
            if found is None:
                found = clusters[case.cluster] = _Cluster()
            found.judged += trials.judged
            found.passed += trials.passed
            found.score += trials.score
            found.cases += decided
            found.met += status == "passed"
            found.rates += rate

    def merge(self, profile: Profile, other: GroupTally) -> None:
        """Take in a group of cases, all of one profile."""
        self._keys.add(profile.clustered_by)
        self._repeated = self._repeated or profile.repeat > 1
        self._early = self._early or other._early
        self._sums.merge(other._sums)
        if self._clusters is not None:
            for key, cluster in (other._clusters or {}).items():
                self._clusters.setdefault(key, _Cluster()).merge(cluster)

    def group(self, planned: int) -> GroupTotals:
        """The totals of what was merged."""
        sums = self._sums
        counts: Counts = counts_of(list(sums.cases.values()), planned)
        cases = (counts.passed, counts.passed + counts.failed, counts.errored)
        found = (sums.rates, *cases[1:]) if self._early else (sums.passed, sums.judged, sums.errored)
        passed, judged, errored = found
        rate = (self._early_rate(judged) if self._early else self._rate(sums.passed, judged)) or _NOTHING
        met = (self._rate(*cases[:2], of_cases=True) if self._repeated else None) or _NOTHING
        score = (None if self._early else self._mean()) or _NOTHING
        return GroupTotals(
            cases=counts,
            pass_rate=rate.mean,
            mean_score=None if score.mean is None else round(score.mean, 12),
            pass_rate_interval=rate.interval,
            pass_rate_bounds=_bounds(passed, passed + errored, judged + errored),
            judged=judged,
            interval_clusters=rate.clusters,
            clustered_by=tuple(sorted(self._keys)) if judged else (),
            rule_pass_rate=met.mean,
            rule_pass_rate_interval=met.interval,
            rule_pass_rate_bounds=(
                _bounds(sums.passed_at_worst, sums.passed_at_best, cases[1] + cases[2]) if self._repeated else None
            ),
            mean_score_interval=_rounded(score.interval),
        )

    def _early_rate(self, judged: int) -> Estimate | None:
        """The mean of the rates of cases, where samples could end early and so lean to where they ended."""
        if not judged or self._clusters is None:  # cases with several samples are clusters
            return None
        sums: Sums = Counter((one.cases, one.rates) for one in self._clusters.values())
        return estimated_mean(sums, self._sums.rate_squares)

    def _rate(self, passed: int, judged: int, *, of_cases: bool = False) -> Estimate | None:
        if not judged:
            return None
        if self._clusters is None:
            return estimated_rate({(1, 1): passed, (1, 0): judged - passed})
        found = self._clusters.values()
        sums: Sums = Counter((one.cases, one.met) if of_cases else (one.judged, one.passed) for one in found)
        return estimated_rate(sums)

    def _mean(self) -> Estimate | None:
        if not self._sums.judged:
            return None
        if self._clusters is None:
            return estimated_mean_alone(self._sums.judged, self._sums.score, self._sums.score_squares)
        sums: Sums = Counter((one.judged, one.score) for one in self._clusters.values())
        return estimated_mean(sums, self._sums.score_squares)


def _rate_of(case: TalliedCase) -> float:
    """The share of a case's samples that passed; where they could end early, an unbiased estimate of its rate."""
    if case.early is not None and case.early.stopped is not None and case.profile.alpha is not None:
        from agentv.stats.samples.stopped import unbiased_rate  # few runs end samples early

        rule = case.profile.rule
        found = unbiased_rate(
            case.early.stopped, threshold=rule.threshold, alpha=case.profile.alpha, repeat=rule.repeat
        )
        if found is not None:
            return found
    return case.trials.passed / case.trials.judged if case.trials.judged else 0.0


def _bounds(least: float, most: float, whole: int) -> Interval | None:
    """What a rate would be if all that errored had failed, and if all had passed."""
    return (least / whole, most / whole) if whole else None


def _rounded(interval: Interval | None) -> Interval | None:
    return None if interval is None else (round(interval[0], _DIGITS), round(interval[1], _DIGITS))


def merged(found: Iterable[tuple[Profile, GroupTally]]) -> GroupTally:
    """The cases of several groups, each with their profile."""
    groups = list(found)
    whole = GroupTally(clustered=any(one.clustered for _, one in groups))
    for profile, outcomes in groups:
        whole.merge(profile, outcomes)
    return whole


def one_rule(groups: Iterable[Profile]) -> CaseRule | None:
    """The rule by which samples became verdicts, where all cases have the same; None: they differ, or end early."""
    rules = {(one.repeat, one.aggregate, one.threshold, one.alpha) for one in groups}
    if len(rules) != 1:
        return None
    ((repeat, aggregate, threshold, alpha),) = rules
    return CaseRule(repeat, aggregate, threshold) if repeat > 1 and alpha is None else None
