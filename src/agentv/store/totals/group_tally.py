"""The totals of a group of cases: counts, rates and their confidence intervals (SPEC section 13)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable
from math import ceil, floor, fsum
from typing import NamedTuple

from msgspec import Struct, field

from agentv.model.run.matrix import Counts, GroupTotals, Interval
from agentv.model.run.row import Row
from agentv.model.run.summary import CaseRule
from agentv.model.run.trial import Status
from agentv.model.values.usage import TokenUsage
from agentv.stats.intervals.design_effect import Estimate, are_verdicts, estimated_mean, estimated_rate
from agentv.stats.intervals.proportion import interval_at
from agentv.store.totals.tally import STATUSES, Profile, TalliedCase, counts_of

_SUMMED = ("judged", "passed", "errored", "score", "score_squares", "passed_at_worst", "passed_at_best")
SCORE_STEPS = 10_000
"""Scores that are equal when rounded to 1/10,000 are summed together."""
_ROUNDING = 1e-9
_DIGITS = 9
"""Decimal places of results: the last bits of sums depend on the order in which trials ended."""


class _Nothing(Struct, frozen=True):
    """Placeholder for an estimate if nothing was graded."""

    mean: None = None
    interval: None = None
    clusters: None = None


_NOTHING = _Nothing()


class _Cluster:
    """Sums over the cases of one cluster, where a case counts once with each target, prompt and variant.

    Attributes:
        known: number of cases with a rate.
        rate, score: sums of their pass rates and mean scores.
        inverse: sum of 1 / (number of graded samples).
        possible: number of cases with a rate or an errored sample.
        worst, best: sums of their pass rates if all errored samples had failed, and if all had passed.
        decided, met: numbers of cases that passed or failed, and that passed.
    """

    __slots__ = ("best", "decided", "inverse", "known", "met", "possible", "rate", "score", "worst")

    def __init__(self) -> None:
        self.known = self.possible = self.decided = self.met = 0
        self.rate = self.score = self.inverse = self.worst = self.best = 0.0

    def add(self, case: TalliedCase) -> None:
        passed, judged, errored = case.trials.passed, case.trials.judged, case.trials.errored
        decided = case.status in ("passed", "failed")
        self.decided += decided
        self.met += case.status == "passed"
        if case.early is not None:
            self._add_early(case, decided=decided)
            return
        if judged:
            self.known += 1
            self.rate += passed / judged
            self.score += case.trials.score / judged
            self.inverse += 1 / judged
        if judged + errored:
            self.possible += 1
            self.worst += passed / (judged + errored)
            self.best += (passed + errored) / (judged + errored)

    def _add_early(self, case: TalliedCase, *, decided: bool) -> None:
        """Add a case with sampling until decided; stopping early biases its share, so an unbiased estimate is used."""
        rate = _unbiased_rate(case) if decided else 0.0
        errored = case.status == "errored"
        self.known += decided
        self.rate += rate
        self.possible += decided or errored
        self.worst += rate
        self.best += errored or rate

    def merge(self, other: _Cluster) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def rounded(self, total: float) -> float:
        """Return a sum over the cases, rounded so that their order does not matter."""
        return total if self.possible <= 1 else round(total, 12)


class _Sums(Struct):
    """Counts of cases and trials, and sums over them.

    Attributes:
        cases: status → number of cases.
        judged, passed, errored: numbers of trials.
        score, score_squares: sums over graded trials.
        passed_at_worst, passed_at_best: cases that would pass if all errored trials had failed, or had passed.
    """

    cases: dict[Status, int]
    judged: int = 0
    passed: int = 0
    errored: int = 0
    score: float = 0.0
    score_squares: float = 0.0
    passed_at_worst: int = 0
    passed_at_best: int = 0


class GroupTally(Struct):
    """Totals of cases with the same profile, or of several such groups.

    Attributes:
        clustered: whether some cases have several trials or are not independent; otherwise clusters are not stored.
    """

    clustered: bool
    _clusters: dict[int, _Cluster] = {}
    _scores: dict[int, tuple[int, float]] = {}
    _sums: _Sums = field(default_factory=lambda: _Sums(dict.fromkeys(STATUSES, 0)))
    _early: bool = False
    _repeated: bool = False
    _keys: set[str] = set()

    def add(self, case: TalliedCase) -> None:
        """Add a case."""
        sums, trials = self._sums, case.trials
        sums.cases[case.status] += 1
        sums.judged += trials.judged
        sums.passed += trials.passed
        sums.errored += trials.errored
        sums.score += trials.score
        sums.score_squares += trials.squares
        sums.passed_at_worst += case.met_at_worst
        sums.passed_at_best += case.met_at_best
        if case.early is not None:
            self._early = True
        if self.clustered:
            found = self._clusters.get(case.cluster)
            if found is None:
                found = self._clusters[case.cluster] = _Cluster()
            found.add(case)
        elif trials.judged:
            self._add_score(round(trials.score * SCORE_STEPS), 1, trials.score)

    def _add_score(self, step: int, number: int, total: float) -> None:
        known, sum_ = self._scores.get(step, (0, 0.0))
        self._scores[step] = known + number, sum_ + total

    def merge(self, profile: Profile, other: GroupTally) -> None:
        """Add a group of cases with the same profile."""
        self._keys.add(profile.clustered_by)
        self._repeated = self._repeated or profile.repeat > 1
        self._early = self._early or other._early
        for status, count in other._sums.cases.items():
            self._sums.cases[status] += count
        for name in _SUMMED:
            setattr(self._sums, name, getattr(self._sums, name) + getattr(other._sums, name))
        for key, cluster in other._clusters.items():
            self._clusters.setdefault(key, _Cluster()).merge(cluster)
        for step, (number, total) in other._scores.items():
            self._add_score(step, number, total)

    def totals(self, planned: int) -> GroupTotals:
        """Return the totals of the merged groups."""
        sums = self._sums
        counts: Counts = counts_of(list(sums.cases.values()), planned)
        decided = counts.passed + counts.failed
        rate = self._rate() or _NOTHING
        met: Estimate | _Nothing = _NOTHING
        if self._repeated and decided:  # share of cases that pass by the rule for their samples
            met = estimated_rate(Counter((one.decided, one.met) for one in self._clusters.values()))
        score = (None if self._early else self._mean()) or _NOTHING
        judged = sum(one.known for one in self._clusters.values()) if self._early else sums.judged
        interval = score.interval
        if interval is not None:
            interval = round(interval[0], _DIGITS), round(interval[1], _DIGITS)
        return GroupTotals(
            cases=counts,
            pass_rate=rate.mean,
            mean_score=None if score.mean is None else round(score.mean, 12),
            pass_rate_interval=rate.interval,
            pass_rate_bounds=self._bounds(),
            judged=judged,
            interval_clusters=rate.clusters,
            clustered_by=tuple(sorted(self._keys)) if judged else (),
            rule_pass_rate=met.mean,
            rule_pass_rate_interval=met.interval,
            rule_pass_rate_bounds=(
                _bounds(sums.passed_at_worst, sums.passed_at_best, decided + counts.errored) if self._repeated else None
            ),
            mean_score_interval=interval,
        )

    def interval_of_all(self, cases: int) -> Interval | None:
        """Return the 95% interval of the pass rate of `cases` cases, of which the graded ones are a random sample.

        The Wilson interval at the effective sample size with finite population correction, rounded outwards to whole
        cases and limited to what the other cases can change. Source: W. G. Cochran, "Sampling techniques", 3rd edition
        (1977), sections 2.6 and 3.6.
        """
        rate = self._rate()
        known = sum(one.known for one in self._clusters.values()) if self.clustered else self._sums.judged
        if rate is None or not rate.effective or known >= cases:
            return None
        low, high = interval_at(rate.mean, rate.effective * (cases - 1) / (cases - known))
        passed, left = rate.mean * known, cases - known
        low, high = floor(low * cases + _ROUNDING), ceil(high * cases - _ROUNDING)
        return max(passed, low) / cases, min(passed + left, high) / cases

    def _rate(self) -> Estimate | None:
        """Return the mean of the cases' pass rates."""
        sums = self._sums
        if not self.clustered:
            return estimated_rate({(1, 1): sums.passed, (1, 0): sums.judged - sums.passed}) if sums.judged else None
        known = self._known()
        if not known:
            return None
        kinds = Counter((one.known, one.rounded(one.rate)) for one in known)
        return estimated_mean(kinds) if self._early else estimated_rate(kinds, samples=self._samples(known))

    def _mean(self) -> Estimate | None:
        """Return the mean of the cases' mean scores."""
        sums = self._sums
        if not sums.judged:
            return None
        verdicts = are_verdicts(sums.score, sums.score_squares)  # all scores are 0 or 1
        if self.clustered:
            known = self._known()
            kinds = Counter((one.known, one.rounded(one.score)) for one in known)
            return estimated_rate(kinds, samples=self._samples(known)) if verdicts else estimated_mean(kinds)
        alone = {(1, total / number): number for number, total in self._scores.values()}
        return estimated_rate(alone) if verdicts else estimated_mean(alone)

    def _known(self) -> list[_Cluster]:
        return [one for one in self._clusters.values() if one.known]

    @staticmethod
    def _samples(known: Collection[_Cluster]) -> float:
        """Return the harmonic mean of the cases' numbers of graded samples."""
        return sum(one.known for one in known) / fsum(one.rounded(one.inverse) for one in known)

    def _bounds(self) -> Interval | None:
        """Return the pass rates if all errored samples had failed, and if all had passed."""
        sums, found = self._sums, self._clusters.values()
        if not self.clustered:
            return _bounds(sums.passed, sums.passed + sums.errored, sums.judged + sums.errored)
        worst, best = fsum(one.rounded(one.worst) for one in found), fsum(one.rounded(one.best) for one in found)
        return _bounds(worst, best, sum(one.possible for one in found))


def _unbiased_rate(case: TalliedCase) -> float:
    """Return an unbiased estimate of the pass rate of a case whose sampling could stop early."""
    from agentv.stats.samples.deciding import unbiased_rate

    rule, stopped = case.profile.rule, case.early.stopped if case.early is not None else None
    if stopped is not None and rule.alpha is not None:
        found = unbiased_rate(stopped, threshold=rule.threshold, alpha=rule.alpha, repeat=rule.repeat)
        if found is not None:
            return found
    return case.trials.passed / case.trials.judged if case.trials.judged else 0.0


def _bounds(least: float, most: float, whole: int) -> Interval | None:
    return (least / whole, most / whole) if whole else None


def merged(found: Iterable[tuple[Profile, GroupTally]]) -> GroupTally:
    """Return one tally of several groups, each given with its profile."""
    groups = list(found)
    whole = GroupTally(clustered=any(one.clustered for _, one in groups))
    for profile, outcomes in groups:
        whole.merge(profile, outcomes)
    return whole


def one_rule(groups: Iterable[Profile]) -> CaseRule | None:
    """Return the rule for verdicts of several samples; None if rules differ or sampling may stop early."""
    rules = {(one.repeat, one.aggregate, one.threshold, one.alpha) for one in groups}
    if len(rules) != 1:
        return None
    ((repeat, aggregate, threshold, alpha),) = rules
    return CaseRule(repeat, aggregate, threshold) if repeat > 1 and alpha is None else None


class Cell(NamedTuple):
    """A combination of target, prompt and variant."""

    target: str
    prompt: str | None
    variant: str | None


class Spending(Struct):
    """Sums over rows; None if not reported. `unpriced` is the number of rows with tokens but no price."""

    _cost: float | None = None
    tokens: TokenUsage | None = None
    unpriced: int = 0

    def add(self, cost_usd: float | None, tokens: TokenUsage | None) -> None:
        """Add the usage in one row."""
        if cost_usd is not None:
            self._cost = (self._cost or 0.0) + cost_usd
        if tokens is not None:
            self.tokens = tokens if self.tokens is None else self.tokens + tokens
            self.unpriced += cost_usd is None

    def merge(self, other: Spending) -> None:
        """Add the sums of other rows."""
        if other._cost is not None:
            self._cost = (self._cost or 0.0) + other._cost
        if other.tokens is not None:
            self.tokens = other.tokens if self.tokens is None else self.tokens + other.tokens
        self.unpriced += other.unpriced

    @property
    def cost_usd(self) -> float | None:
        """Cost in US dollars; None if no row reports a price."""
        return None if self._cost is None else round(self._cost, 10)


class Spent(Struct):
    """Usage of some rows. `reused` is the number of rows whose answer was paid for elsewhere."""

    targets: Spending = field(default_factory=Spending)
    judges: Spending = field(default_factory=Spending)
    users: Spending = field(default_factory=Spending)
    reused: int = 0

    def add(self, row: Row) -> None:
        """Add a row."""
        if row.reused:  # another run paid for the answer
            self.reused += 1
        else:
            self.targets.add(row.cost_usd, row.token_usage)
        self.judges.add(row.judge_cost_usd, row.judge_token_usage)
        self.users.add(row.user_cost_usd, row.user_token_usage)

    def merge(self, other: Spent) -> None:
        """Add other rows."""
        self.targets.merge(other.targets)
        self.judges.merge(other.judges)
        self.users.merge(other.users)
        self.reused += other.reused


class SpentByCell(Struct):
    """Usage of the rows of a run, by target, prompt and variant."""

    _cells: dict[tuple[str, str | None, str | None], Spent] = field(default_factory=lambda: defaultdict(Spent))

    def add(self, row: Row) -> None:
        """Add a row."""
        self._cells[row.target, row.prompt_id, row.variant].add(row)

    def of(self, cells: Container[tuple[str, str | None, str | None]] | None = None) -> Spent:
        """Return the usage of some cells, or of all rows by default."""
        whole = Spent()
        for cell, spent in self._cells.items():
            if cells is None or cell in cells:
                whole.merge(spent)
        return whole
