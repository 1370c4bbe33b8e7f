"""Power of comparisons: how many cases and samples show a difference, simulated with the decision rule of `compare`."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from math import inf, sqrt
from statistics import NormalDist
from typing import Literal
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy import special

from agentv.model.run.matrix import Measure, Verdict
from agentv.stats.difference import Differences, Numbers, not_above_zero_each, unseen
from agentv.stats.rule import ROUNDING, Evidence, decided, fewest_moved

SIZES = (0.25, 0.5, 1, 2, 4, 10)
"""Numbers of cases in the rows of a table, as multiples of the planned number."""
LEAST_CASES = 2
USUAL_CASES = 200
POOL = 8000
"""Number of cases in the population of a plan."""
GRID = 512
NEAR = 1e-9
"""Smallest weight (sum of both parameters) of a beta distribution."""

Way = Literal["drop", "rise"]
WAYS: tuple[Way, ...] = ("drop", "rise")


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Assumptions about two planned runs.

    One verdict of a run with the pass rate P has the variance P · (1 - P). A part of it, `alike` (the intraclass
    correlation), is between the cases, since some are hard and some easy. The rest is within the cases. A part of the
    difficulty of a case, `shared`, is the same in both runs. The true rates of the cases have a beta distribution.

    Source: E. Miller, "Adding error bars to evals" (2024), arXiv:2411.00640, sections 3 and 5.

    Attributes:
        rate: pass rate or mean score of the base, strictly between 0 and 1.
        alike: share of the variance between cases: 0 if all are equally hard, 1 if all samples of a case agree.
        shared: share of a case's difficulty that is the same in both runs.
        alpha: false-positive rate.
        power: probability of showing a true difference.
        margin: largest loss that does not matter; 0 if any loss matters.
        cluster_size, correlation: number of cases per cluster, and their correlation.
        deviation: standard deviation of the score of one sample, or None if scores are verdicts.
        threshold: score from which a sample passes.
    """

    rate: float = 0.8
    alike: float = 0.5
    shared: float = 0.5
    alpha: float = 0.05
    power: float = 0.8
    margin: float = 0.0
    cluster_size: int = 1
    correlation: float = 0.0
    deviation: float | None = None
    threshold: float = 0.8

    @property
    def fewest(self) -> int:
        """Smallest number of cases that can show a difference, whatever the results."""
        return fewest_moved(self.alpha) * self.cluster_size

    def population(self, repeat: int, difference: float) -> Population:
        """Simulated pairs of cases with this mean difference, candidate minus base."""
        rng = np.random.Generator(np.random.PCG64(0))
        clusters, mean = POOL // self.cluster_size, min(1.0, max(0.0, self.rate + difference))
        before_quantiles, new_quantiles, draws = (self._case_quantiles(rng, clusters) for _ in range(3))
        after_quantiles = np.where(draws < self.shared, before_quantiles, new_quantiles)
        before, passed_before = self._sampled(rng, self.rate, before_quantiles, repeat)
        after, passed_after = self._sampled(rng, mean, after_quantiles, repeat)
        if self.deviation is None:
            return Population.drawn([("mean score", before, after)]).tilted(difference)
        measures: list[tuple[Measure, Numbers, Numbers]] = [("mean score", before, after)]
        return Population.drawn([*measures, ("pass rate", passed_before, passed_after)]).tilted(difference)

    def _case_quantiles(self, rng: np.random.Generator, clusters: int) -> Numbers:
        """Uniform numbers in 0..1, one per case, correlated within clusters."""
        drawn = rng.standard_normal((clusters, self.cluster_size))
        common = rng.standard_normal((clusters, 1))
        places: Numbers = special.ndtr(sqrt(self.correlation) * common + sqrt(1 - self.correlation) * drawn)
        return places

    def _sampled(
        self, rng: np.random.Generator, mean: float, quantiles: Numbers, repeat: int
    ) -> tuple[Numbers, Numbers]:
        """Mean score of each case's samples, and the share of them that passed."""
        if self.deviation is None:
            rates = np.clip(_rates(mean, self.alike, quantiles), 0.0, 1.0)
            passed = rng.binomial(repeat, rates) / repeat
            return passed, passed
        noise = rng.standard_normal((*quantiles.shape, repeat))
        places = sqrt(self.alike) * special.ndtri(quantiles)[..., None] + sqrt(1 - self.alike) * noise
        scores = np.interp(special.ndtr(places), *_quantiles(mean, self.deviation**2))
        return scores.mean(axis=-1), (scores >= self.threshold).mean(axis=-1)


def _rates(mean: float, alike: float, quantiles: Numbers) -> Numbers:
    """True pass rates of cases with these quantiles, if a share `alike` of a verdict's variance is between cases."""
    if mean in {0.0, 1.0} or alike == 0:
        return np.full(quantiles.shape, mean)
    if alike == 1:
        return (quantiles > 1 - mean).astype(np.float64)
    return np.interp(quantiles, *_quantiles(mean, alike * mean * (1 - mean)))


@lru_cache(maxsize=64)
def _quantiles(mean: float, variance: float) -> tuple[Numbers, Numbers]:
    """Probabilities and quantiles of the beta distribution with this mean and variance.

    The variance is capped at the largest that is possible for values in 0..1 with this mean.
    """
    weight = max(NEAR, mean * (1 - mean) / variance - 1)
    places = (np.arange(GRID) + 0.5) / GRID
    return places, np.nan_to_num(special.betaincinv(mean * weight, (1 - mean) * weight, places))


@dataclass(frozen=True, slots=True)
class ComparisonPlan:
    """Two planned runs of the same cases.

    Attributes:
        cases: number of cases, at least 2.
        repeat: samples of each case in each run.
        assumed: assumptions about the runs.
    """

    cases: int
    repeat: int
    assumed: Assumptions

    def largest_difference(self, way: Way) -> float:
        """The largest possible difference in this direction."""
        return self.assumed.rate if way == "drop" else 1 - self.assumed.rate

    def ways(self, difference: float) -> tuple[Way, ...]:
        """The directions in which a difference of this size is possible."""
        return tuple(way for way in WAYS if difference <= self.largest_difference(way) + NEAR)

    def chance(self, difference: float, way: Way = "drop", cases: int | None = None) -> float:
        """Probability of showing a difference; for 0, of showing that there is no loss above the margin."""
        assumed = self.assumed
        clusters = round((cases or self.cases) / assumed.cluster_size)
        if not difference:
            return assumed.population(self.repeat, 0.0).chance(clusters, NOT_WORSE, assumed.alpha, assumed.margin)
        return self._population(difference, way).chance(clusters, BETTER, assumed.alpha, assumed.margin)

    def needed(self, difference: float, way: Way = "drop") -> int | None:
        """Approximate number of cases that show the difference with the assumed power, or None if it is impractical."""
        assumed = self.assumed
        population = self._population(difference, way) if difference else assumed.population(self.repeat, 0.0)
        wanted = BETTER if difference else NOT_WORSE
        clusters = population.needed(wanted, assumed.alpha, assumed.margin, assumed.power)
        return None if clusters is None else clusters * assumed.cluster_size

    def least(self, way: Way = "drop", cases: int | None = None, guess: float | None = None) -> float:
        """The smallest difference that is shown with the assumed power, or inf if none is."""
        cases = cases or self.cases
        if cases < self.assumed.fewest:
            return inf
        largest = self.largest_difference(way)
        start = 1.5 / sqrt(cases) + self.assumed.margin if guess is None else guess
        return least_shown(
            lambda difference: self.chance(difference, way, cases), min(start, largest), largest, self.assumed.power
        )

    def least_each(self) -> dict[Way, float]:
        """The smallest difference that is shown, in each direction."""
        return {way: self.least(way) for way in WAYS}

    def table(self) -> dict[int, dict[Way, float]]:
        """The smallest difference that is shown (or inf), by number of cases around the plan and by direction."""
        sizes = sorted({max(LEAST_CASES, round(self.cases * size)) for size in SIZES})
        found: dict[int, dict[Way, float]] = {}
        guesses: dict[Way, float] = {}
        for cases in reversed(sizes):
            line = {way: self.least(way, cases, guesses.get(way)) for way in WAYS}
            guesses = {way: one * 1.45 for way, one in line.items() if one < inf}
            found[cases] = line
        return dict(sorted(found.items()))

    def _population(self, difference: float, way: Way) -> Population:
        """The population with the difference, mirrored if it is a drop, so that the candidate is always better."""
        population = self.assumed.population(self.repeat, -difference if way == "drop" else difference)
        return population.swapped if way == "drop" else population


POWER = 0.8
"""Power with which a detectable difference is shown."""
ROUNDS = 600
"""Simulated comparisons; the standard error of a power of 80 % is then 1.6 points."""
CLOSE = 0.02
"""Tolerance for reaching the requested power."""
TRIES = 7
KINDS = 40
"""Number of distinct differences of one measure above which they are rounded to this many steps."""
MOST = 1_000_000
"""Largest number of clusters to recommend."""
BETTER: frozenset[Verdict] = frozenset({"better"})
NOT_WORSE: frozenset[Verdict] = frozenset({"better", "equivalent", "non-inferior"})


MeasureRounds = tuple[Numbers, Numbers, list[Numbers]]
"""Means, numbers of clusters that moved, and p-values of one measure in all rounds."""


@dataclass(frozen=True)
class Population:
    """Kinds of clusters of paired differences, and how often each occurs.

    Attributes:
        measures: one or two measures.
        sums: sum of the differences of each kind (rows) and measure (columns).
        sizes: number of cases of each kind.
        terms: terms that `unseen` needs summed, for each kind and measure.
        shares: relative frequency of each kind; they sum to 1.
        observed: number of clusters from which the kinds are estimated.
    """

    measures: tuple[Measure, ...]
    sums: Numbers
    sizes: Numbers
    terms: Numbers
    shares: Numbers
    observed: int

    @classmethod
    def of(cls, measures: Sequence[tuple[Measure, Differences]]) -> Population:
        """Create the population from the clusters of a comparison, with the frequencies observed there."""
        known: dict[Hashable, int] = {}
        numbers = np.array([known.setdefault(one, len(known)) for one in measures[0][1].clusters])
        found = [_case_terms(np.array(one.before), np.array(one.after), np.array(one.values)) for _, one in measures]
        return cls.merged(tuple(name for name, _ in measures), np.stack(found, axis=1), numbers)

    @classmethod
    def drawn(cls, measures: Sequence[tuple[Measure, Numbers, Numbers]]) -> Population:
        """Create the population from the values before and after, with a row per cluster and a column per case."""
        clusters, size = measures[0][1].shape
        found = [_case_terms(before.ravel(), after.ravel(), (after - before).ravel()) for _, before, after in measures]
        numbers = np.repeat(np.arange(clusters), size)
        return cls.merged(tuple(name for name, _, _ in measures), np.stack(found, axis=1), numbers)

    @classmethod
    def merged(cls, measures: tuple[Measure, ...], cases: Numbers, numbers: NDArray[np.int64]) -> Population:
        """Create the population with similar clusters merged into their mean: those within 1/40 of the range."""
        count = int(numbers.max()) + 1
        clusters = _summed(cases, numbers, count)
        sizes = np.bincount(numbers).astype(np.float64)
        steps = np.round(clusters[:, :, 0] / sizes[:, None], 9)
        for column in steps.T:
            if np.unique(column).size > KINDS:
                column[:] = np.round(column / (width := np.ptp(column) / KINDS)) * width
        kinds = _kinds(sizes, *steps.T)[1]
        counts = np.bincount(kinds).astype(np.float64)
        means = _summed(clusters, kinds, counts.size) / counts[:, None, None]
        for place, column in enumerate(steps.T):  # for each measure, keep the means of its own kinds
            own = _kinds(sizes, column)[1]
            of_own = np.bincount(own, weights=clusters[:, place, 0]) / np.bincount(own)
            means[kinds, place, 0] = of_own[own]
        of_kind = np.bincount(kinds, weights=sizes)
        sums: Numbers = means[:, :, 0].round(12)
        sums += 0.0  # no negative zeros, since the seed is computed from these bytes
        return cls(measures, sums, of_kind / counts, means[:, :, 1:], counts / count, count)

    @property
    def mean(self) -> float:
        """Mean difference of the first measure."""
        return float(self.shares @ self.sums[:, 0] / (self.shares @ self.sizes))

    @property
    def swapped(self) -> Population:
        """The population with the two runs swapped."""
        order = slice(None, None, -1)
        terms = self.terms[order][:, :, [0, 3, 4, 1, 2, 5]]
        return replace(
            self, sums=0.0 - self.sums[order], sizes=self.sizes[order], terms=terms, shares=self.shares[order]
        )

    def tilted(self, difference: float) -> Population:
        """The population reweighted, with the least change, to this mean difference of the first measure.

        Source: B. Efron, "Nonparametric standard errors and confidence intervals", Canadian Journal of Statistics 9
        (1981), 139-158, section 11: exponential tilting.
        """
        away = self.sums[:, 0] - difference * self.sizes
        if not away.any():
            return self
        low, high = -700 / np.abs(away).max(), 700 / np.abs(away).max()
        for _ in range(60):
            middle = (low + high) / 2
            weights = self.shares * np.exp(middle * away)
            low, high = (middle, high) if float(weights @ away) < 0 else (low, middle)
        return replace(self, shares=weights / weights.sum())

    @property
    def with_extremes(self) -> Population:
        """The population plus half a cluster of the largest gain and half of the largest loss, so that it tilts."""
        size, measures = self.sizes.max(), len(self.measures)
        loss, gain = [size, size, size, 0.0, 0.0, size], [size, 0.0, 0.0, size, size, size]
        down, up = (np.broadcast_to(np.array(way), (1, measures, 6)) for way in (loss, gain))
        shares = np.concatenate(([0.5], self.shares * self.observed, [0.5])) / (self.observed + 1)
        return replace(
            self,
            sums=np.vstack((np.full((1, measures), -size), self.sums, np.full((1, measures), size))),
            sizes=np.concatenate(([size], self.sizes, [size])),
            terms=np.concatenate((down, self.terms, up)),
            shares=shares,
        )

    @cached_property
    def _seed(self) -> int:
        parts = (np.round(one, 9).tobytes() for one in (self.sums, self.sizes, self.shares))
        return crc32(b"".join(parts))

    def chance(self, clusters: int, wanted: Container[Verdict], alpha: float, margin: float = 0.0) -> float:
        """Probability that a comparison of this many clusters ends with one of the `wanted` verdicts."""
        if clusters < 1:
            return 0.0
        counts = self._rounds(clusters)
        levels = alpha / 2 / np.arange(1, len(self.measures) + 1)
        found = [self._evidence(place, counts, levels, margin) for place in range(len(self.measures))]
        # a verdict depends only on which levels its p-values are between: decide once for all rounds alike in that
        bounds = np.sort(levels) * (1 + ROUNDING)
        alike = [np.minimum(moved, fewest_moved(alpha)) for _, moved, _ in found]
        alike += [np.searchsorted(bounds, tail) for _, _, tails in found for tail in tails]
        first, kinds = _kinds(*alike)
        rounds = np.bincount(kinds)
        shown = [decided([self._of_round(place, one, row) for place, one in enumerate(found)], alpha) for row in first]
        return float(sum(number for number, one in zip(rounds, shown, strict=True) if one in wanted)) / ROUNDS

    def _of_round(self, place: int, found: MeasureRounds, row: int) -> Evidence:
        """The evidence of one measure in one round."""
        means, moved, tails = found
        half = len(tails) // 2
        above, below = (tuple(float(tail[row]) for tail in side) for side in (tails[:half], tails[half:]))
        return Evidence(self.measures[place], float(means[row]), int(moved[row]), above, below)

    def _rounds(self, clusters: int) -> Numbers:
        """Number of draws of each kind (columns) in each round (rows)."""
        rng, kinds = np.random.Generator(np.random.PCG64(self._seed)), self.shares.size
        if clusters >= kinds:
            return rng.multinomial(clusters, self.shares, size=ROUNDS).astype(np.float64)
        drawn = rng.choice(kinds, size=(ROUNDS, clusters), p=self.shares) + np.arange(ROUNDS)[:, None] * kinds
        return np.bincount(drawn.ravel(), minlength=ROUNDS * kinds).reshape(ROUNDS, kinds).astype(np.float64)

    def _evidence(self, place: int, counts: Numbers, levels: Numbers, margin: float) -> MeasureRounds:
        """Mean, number of clusters that moved, and p-values (first those of `above`) of one measure in each round."""
        own = self.sums[:, place]
        columns = np.column_stack((own != 0, own**2, self.terms[:, place]))
        summed = np.einsum("rk,kc->rc", counts, columns)  # not @, because BLAS would start threads
        moved, largest = summed[:, 0], np.where(counts > 0, self.sizes, 0).max(axis=1)
        reach, size = unseen(summed[:, 2:], summed[:, 1], moved, largest)
        first, kind_of = _kinds(own, self.sizes)
        sums, sizes = own[first], self.sizes[first]
        order = np.argsort(kind_of, kind="stable")
        counts = np.add.reduceat(counts[:, order], np.searchsorted(kind_of[order], np.arange(first.size)), axis=1)
        every = np.column_stack((counts, np.ones(len(counts))))
        tails = []
        for sign in (1.0, -1.0):
            for null in (-margin, margin) if margin else (0.0,):
                values = np.broadcast_to(sign * (sums - null * sizes), counts.shape)
                against = -size * (reach + sign * null)
                tails.append(not_above_zero_each(np.column_stack((values, against)), every, levels))
        return counts @ sums / (counts @ sizes), moved, tails

    def needed(self, wanted: Container[Verdict], alpha: float, margin: float = 0.0, power: float = POWER) -> int | None:
        """Approximate number of clusters that show a wanted verdict with this power, or None if it is above `MOST`."""
        distance = abs(abs(self.mean) - margin)
        deviation = sqrt(float(self.shares @ (self.sums[:, 0] - self.mean * self.sizes) ** 2))
        size = float(self.shares @ self.sizes)
        normal, fewest = NormalDist(), fewest_moved(alpha)
        wide = normal.inv_cdf(1 - alpha / 2)
        goal = wide + normal.inv_cdf(power)
        if distance * size * sqrt(MOST) <= deviation * goal or distance <= 0:
            return None
        clusters = max(fewest, round((goal * deviation / distance / size) ** 2))
        low, high = fewest - 1, MOST + 1  # too few, and enough
        while high - low > 1 and clusters <= MOST:
            found = self.chance(clusters, wanted, alpha, margin)
            if abs(found - power) <= CLOSE:
                return clusters
            low, high = (clusters, high) if found < power else (low, clusters)
            shown = wide + normal.inv_cdf(min(0.98, max(0.03, found)))
            aimed = round(clusters * (goal / max(shown, goal / 3)) ** 2)
            clusters = aimed if low < aimed < high else (low + min(high, 2 * clusters)) // 2
            clusters = max(low + 1, clusters)
        return high if high <= MOST else None

    def detectable(self, clusters: int, alpha: float, power: float = POWER) -> float:
        """The smallest difference of the first measure that this many clusters show, up and down; inf if none."""
        found = []
        for one in (self.with_extremes, self.with_extremes.swapped):
            deviation = sqrt(float(one.shares @ one.sums[:, 0] ** 2) / clusters) / float(one.shares @ one.sizes)
            chance = partial(_chance_tilted, one, clusters, alpha)
            found.append(least_shown(chance, 3 * deviation, 1 - CLOSE, power))
        return max(found)


def _chance_tilted(population: Population, clusters: int, alpha: float, difference: float) -> float:
    return population.tilted(difference).chance(clusters, BETTER, alpha)


def least_shown(chance: Callable[[float], float], guess: float, largest: float, power: float) -> float:
    """The smallest difference up to `largest` that is shown with this power, or inf if none is."""
    normal = NormalDist()
    goal = 2 + normal.inv_cdf(power)  # approximate effect size: the critical value, plus the quantile of the power
    low, high = 0.0, largest
    difference = min(guess, largest)
    for _ in range(TRIES):
        found = chance(difference)
        if abs(found - power) <= CLOSE:
            return difference
        if found < power and difference >= largest:
            return inf
        low, high = (difference, high) if found < power else (low, difference)
        shown = 2 + normal.inv_cdf(min(0.98, max(0.03, found)))
        aimed = difference * goal / max(shown, goal / 3)
        difference = aimed if low < aimed < high else (low + high) / 2 if found > power or aimed < largest else largest
    return difference


def _kinds(*columns: Numbers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The index of the first row of each distinct combination of the columns, and the combination of each row."""
    code = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        values, numbers = np.unique(column, return_inverse=True)
        code = code * values.size + numbers
    _, first, kinds = np.unique(code, return_index=True, return_inverse=True)
    return first, kinds


def _summed(values: Numbers, numbers: NDArray[np.int64], count: int) -> Numbers:
    """Sums of the rows by their number."""
    columns = values.reshape(len(values), -1).T
    found: Numbers = np.stack(
        [np.bincount(numbers, weights=column, minlength=count) for column in columns], axis=1, dtype=np.float64
    )
    return found.reshape(count, *values.shape[1:])


def _case_terms(before: Numbers, after: Numbers, values: Numbers) -> Numbers:
    """The difference of each case, and the terms that `unseen` needs summed."""
    moved = (values != 0).astype(np.float64)
    return np.column_stack((values, moved, *(moved * one for one in (before, before**2, after, after**2)), values**2))


Advice = Literal["more cases", "a steadier judge"]

NEGLIGIBLE = 1e-12
"""Variance up to which it is a rounding error."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Variance components of a score, each 0 or more in squared scores, or None if the data cannot determine it.

    Attributes:
        cases: variance between the true scores of cases.
        target: variance between the answers to one case. It includes the judge's part if no answer was judged twice.
        judge: variance between the votes on one answer; None if no answer was judged twice.
        counts: numbers of cases, answers and votes.
    """

    cases: float | None
    target: float | None
    judge: float | None
    counts: tuple[int, int, int]

    @property
    def of_mean(self) -> tuple[float, float, float]:
        """Contributions of cases, target and judge to the variance of the mean score, for cases of equal size."""
        parts = (self.cases or 0.0, self.target or 0.0, self.judge or 0.0)
        cases, answers, votes = (part / count for part, count in zip(parts, self.counts, strict=True))
        return cases, answers, votes

    def advice(self) -> Advice | None:
        """What narrows the interval of the mean most, or None if there is no noise.

        For the same number of calls, more cases narrow it at least as much as more samples of each case, which only
        reduce the target's part.
        """
        cases, target, judge = self.of_mean
        if max(self.cases or 0.0, self.target or 0.0, self.judge or 0.0) <= NEGLIGIBLE:
            return None
        return "a steadier judge" if judge > max(cases, target) else "more cases"


def split(votes: Iterable[tuple[Hashable, Hashable, float]]) -> Noise:
    """Variance components, by nested analysis of variance of votes within answers within cases.

    Mean squares are equated with their expectations, level by level, for any numbers of answers and votes. Negative
    estimates become 0. For balanced data without negative estimates, these are also the REML estimates: R's
    `VarCorr(lmer(score ~ 1 + (1 | case/answer)))`.

    Source: S. R. Searle, G. Casella, C. E. McCulloch, Variance Components (1992), section 5.3 and appendix F.1.

    Args:
        votes: case, answer (its sample number) and score of each vote.

    Raises:
        ValueError: there are no votes.
    """
    answers: dict[Hashable, dict[Hashable, list[float]]] = {}
    for case, answer, score in votes:
        answers.setdefault(case, {}).setdefault(answer, []).append(score)
    if not answers:
        raise ValueError("there are no votes")
    return _Nested(answers).noise()


class _Nested:
    """Sums of squares over votes within answers within cases."""

    def __init__(self, scores: Mapping[Hashable, Mapping[Hashable, list[float]]]) -> None:
        every = [list(case.values()) for case in scores.values()]
        sizes = [[len(answer) for answer in case] for case in every]
        self.per_case = [sum(case) for case in sizes]
        self.counts = (len(every), sum(len(case) for case in sizes), sum(self.per_case))
        self.in_case = sum(sum(size * size for size in case) / sum(case) for case in sizes)
        self.in_all = sum(size * size for case in sizes for size in case) / self.counts[2]
        whole = sum(sum(answer) for case in every for answer in case) / self.counts[2]
        means = [sum(map(sum, case)) / size for case, size in zip(every, self.per_case, strict=True)]
        pairs = [(answer, mean) for case, mean in zip(every, means, strict=True) for answer in case]
        self.case_squares = sum(size * (mean - whole) ** 2 for size, mean in zip(self.per_case, means, strict=True))
        self.answer_squares = sum(len(answer) * (sum(answer) / len(answer) - mean) ** 2 for answer, mean in pairs)
        self.vote_squares = sum((one - sum(answer) / len(answer)) ** 2 for answer, _ in pairs for one in answer)

    def noise(self) -> Noise:
        cases, answers, votes = self.counts
        judge = self.vote_squares / (votes - answers) if votes > answers else None
        target = self._target(judge or 0.0) if answers > cases else None
        return Noise(self._cases(judge or 0.0, target or 0.0) if cases > 1 else None, target, judge, self.counts)

    def _target(self, judge: float) -> float:
        cases, answers, votes = self.counts
        return max(0.0, (self.answer_squares - (answers - cases) * judge) / (votes - self.in_case))

    def _cases(self, judge: float, target: float) -> float:
        cases, _, votes = self.counts
        noise = (cases - 1) * judge + (self.in_case - self.in_all) * target
        return max(0.0, (self.case_squares - noise) / (votes - sum(size * size for size in self.per_case) / votes))
