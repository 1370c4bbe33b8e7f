"""The totals of a group of cases: counts, rates and how sure they are (SPEC section 13)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from agentv.model.run.summary import CaseRule, Counts, Group, Interval
from agentv.stats.intervals.design_effect import Estimate, Sums, estimated_mean, estimated_mean_alone, estimated_rate
from agentv.store.totals.tally import STATUSES, CaseOutcome, Profile, counts_of

_RATES = ("_rates", "_rate_squares")
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

    def add(self, other: _Cluster) -> None:
        self.judged += other.judged
        self.passed += other.passed
        self.cases += other.cases
        self.met += other.met
        self.score += other.score
        self.rates += other.rates


class GroupTally:
    """Takes in cases, all of one profile, or other such groups.

    Args:
        clustered: some cases have more than one trial, or depend on each other; otherwise no cluster is held.
    """

    def __init__(self, *, clustered: bool) -> None:
        self.clustered = clustered
        self._clusters: dict[int, _Cluster] | None = {} if clustered else None
        self._numbers = dict.fromkeys(STATUSES, 0)
        self._judged = self._passed = self._errored = 0
        self._score = self._squares = self._rates = self._rate_squares = 0.0
        self._worst = self._best = 0
        self._early = self._repeated = False
        self._keys: set[str] = set()

    def add(self, case: CaseOutcome) -> None:
        """Take in a case."""
        samples, status = case.trials, case.status
        self._numbers[status] += 1
        self._judged += samples.judged
        self._passed += samples.passed
        self._errored += samples.errored
        self._score += samples.score
        self._squares += samples.squares
        self._worst += case.met_at_worst
        self._best += case.met_at_best
        if case.early is not None:
            self._early = True
        if self._clusters is None:
            return
        decided = status in ("passed", "failed")
        rate = _rate_of(case) if decided else 0.0
        self._rates += rate
        self._rate_squares += rate * rate
        if decided or samples.judged:
            found = self._clusters.get(case.cluster)
            if found is None:
                found = self._clusters[case.cluster] = _Cluster()
            found.judged += samples.judged
            found.passed += samples.passed
            found.score += samples.score
            found.cases += decided
            found.met += status == "passed"
            found.rates += rate

    def merge(self, profile: Profile, other: GroupTally) -> None:
        """Take in a group of cases, all of one profile."""
        self._keys.add(profile.clustered_by)
        self._repeated = self._repeated or profile.repeat > 1
        self._early = self._early or other._early
        for status, number in other._numbers.items():
            self._numbers[status] += number
        for name in ("_judged", "_passed", "_errored", "_score", "_squares", "_worst", "_best", *_RATES):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if self._clusters is not None:
            for key, cluster in (other._clusters or {}).items():
                self._clusters.setdefault(key, _Cluster()).add(cluster)

    def group(self, planned: int) -> Group:
        """The totals of what was merged."""
        counts: Counts = counts_of(list(self._numbers.values()), planned)
        cases = (counts.passed, counts.passed + counts.failed, counts.errored)
        found = (self._rates, *cases[1:]) if self._early else (self._passed, self._judged, self._errored)
        passed, judged, errored = found
        rate = (self._early_rate(judged) if self._early else self._rate(self._passed, judged)) or _NOTHING
        met = (self._rate(*cases[:2], of_cases=True) if self._repeated else None) or _NOTHING
        score = (None if self._early else self._mean()) or _NOTHING
        return Group(
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
            rule_pass_rate_bounds=_bounds(self._worst, self._best, sum(cases[1:])) if self._repeated else None,
            mean_score_interval=_rounded(score.interval),
        )

    def _early_rate(self, judged: int) -> Estimate | None:
        """The mean of the rates of cases, where samples could end early and so lean to where they ended."""
        if not judged or self._clusters is None:  # cases with several samples are clusters
            return None
        sums: Sums = Counter((one.cases, one.rates) for one in self._clusters.values())
        return estimated_mean(sums, self._rate_squares)

    def _rate(self, passed: int, judged: int, *, of_cases: bool = False) -> Estimate | None:
        if not judged:
            return None
        if self._clusters is None:
            return estimated_rate({(1, 1): passed, (1, 0): judged - passed})
        found = self._clusters.values()
        sums: Sums = Counter((one.cases, one.met) if of_cases else (one.judged, one.passed) for one in found)
        return estimated_rate(sums)

    def _mean(self) -> Estimate | None:
        if not self._judged:
            return None
        if self._clusters is None:
            return estimated_mean_alone(self._judged, self._score, self._squares)
        sums: Sums = Counter((one.judged, one.score) for one in self._clusters.values())
        return estimated_mean(sums, self._squares)


def _rate_of(case: CaseOutcome) -> float:
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


def one_rule(groups: Iterable[Profile]) -> CaseRule | None:
    """The rule by which samples became verdicts, where all cases have the same; None: they differ, or end early."""
    rules = {(one.repeat, one.aggregate, one.threshold, one.alpha) for one in groups}
    if len(rules) != 1:
        return None
    ((repeat, aggregate, threshold, alpha),) = rules
    return CaseRule(repeat, aggregate, threshold) if repeat > 1 and alpha is None else None
