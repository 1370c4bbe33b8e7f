"""A planned comparison: the number of cases and samples, and the assumptions about them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import inf, sqrt
from typing import Literal

import numpy as np
from scipy import special

from agentv.model.run.matrix import Measure
from agentv.stats.comparison.gamma_sums import Numbers
from agentv.stats.comparison.rule import fewest_moved
from agentv.stats.power.simulation import BETTER, NOT_WORSE, Population, least_shown

SIZES = (0.25, 0.5, 1, 2, 4, 10)
"""Parts of the planned cases that a table has lines for."""
LEAST_CASES = 2
USUAL_CASES = 200
POOL = 8000
"""Cases of which the population of a plan consists."""
GRID = 512
NEAR = 1e-9
"""Least weight of a beta distribution."""

Way = Literal["drop", "rise"]
WAYS: tuple[Way, ...] = ("drop", "rise")


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What is taken for granted of two runs that do not exist yet.

    One verdict of a run with the pass rate P has the variance P · (1 - P). A part of it, `alike` (the intraclass
    correlation), lies between the cases: some are hard, some easy. The rest lies within them. Of the hardness of a case
    a part, `shared`, is the same in both runs. The true rates of the cases have a beta distribution.

    Source: E. Miller, "Adding error bars to evals" (2024), arXiv:2411.00640, sections 3 and 5.

    Attributes:
        rate: the pass rate before, or the mean score; above 0 and below 1.
        alike: how much of the variance lies between cases: 0 where all are equally hard, 1 where samples agree.
        shared: how much of what makes a case hard is so in both runs.
        alpha: false-positive rate.
        power: how often a difference that is there shall be seen.
        margin: a loss up to this does not matter; 0: any does.
        cluster_size, correlation: cases of one cluster, and how alike they are.
        deviation: standard deviation of the score of one sample; None: scores are verdicts.
        threshold: of a score, to pass.
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
        """Cases below which nothing can be shown, whatever comes out."""
        return fewest_moved(self.alpha) * self.cluster_size

    def population(self, repeat: int, difference: float) -> Population:
        """Pairs of cases whose mean differs by this, candidate less base."""
        chance = np.random.Generator(np.random.PCG64(0))
        clusters, mean = POOL // self.cluster_size, min(1.0, max(0.0, self.rate + difference))
        own, other, turns = (self._places(chance, clusters) for _ in range(3))
        also = np.where(turns < self.shared, own, other)
        before, passed_before = self._sampled(chance, self.rate, own, repeat)
        after, passed_after = self._sampled(chance, mean, also, repeat)
        if self.deviation is None:
            return Population.drawn([("mean score", before, after)]).tilted(difference)
        measures: list[tuple[Measure, Numbers, Numbers]] = [("mean score", before, after)]
        return Population.drawn([*measures, ("pass rate", passed_before, passed_after)]).tilted(difference)

    def _places(self, chance: np.random.Generator, clusters: int) -> Numbers:
        """A number of 0..1 for each case, alike within clusters."""
        drawn = chance.standard_normal((clusters, self.cluster_size))
        common = chance.standard_normal((clusters, 1))
        places: Numbers = special.ndtr(sqrt(self.correlation) * common + sqrt(1 - self.correlation) * drawn)
        return places

    def _sampled(self, chance: np.random.Generator, mean: float, hard: Numbers, repeat: int) -> tuple[Numbers, Numbers]:
        """Mean score of each case's samples, and the share that passed."""
        if self.deviation is None:
            rates = np.clip(_rates(mean, self.alike, hard), 0.0, 1.0)
            passed = chance.binomial(repeat, rates) / repeat
            return passed, passed
        noise = chance.standard_normal((*hard.shape, repeat))
        places = sqrt(self.alike) * special.ndtri(hard)[..., None] + sqrt(1 - self.alike) * noise
        scores = np.interp(special.ndtr(places), *_quantiles(mean, self.deviation**2))
        return scores.mean(axis=-1), (scores >= self.threshold).mean(axis=-1)


def _rates(mean: float, alike: float, hard: Numbers) -> Numbers:
    """The true rates of cases so hard, by how much of the variance of a verdict lies between them."""
    if mean in {0.0, 1.0} or alike == 0:
        return np.full(hard.shape, mean)
    if alike == 1:
        return (hard > 1 - mean).astype(np.float64)
    return np.interp(hard, *_quantiles(mean, alike * mean * (1 - mean)))


@lru_cache(maxsize=64)
def _quantiles(mean: float, variance: float) -> tuple[Numbers, Numbers]:
    """Places of 0..1 and the values there, of the beta distribution with this mean and variance.

    Where no value of 0..1 varies so much around the mean, as much as any does.
    """
    weight = max(NEAR, mean * (1 - mean) / variance - 1)
    places = (np.arange(GRID) + 0.5) / GRID
    return places, np.nan_to_num(special.betaincinv(mean * weight, (1 - mean) * weight, places))


@dataclass(frozen=True, slots=True)
class ComparisonPlan:
    """Two runs of the same cases.

    Attributes:
        cases: how many, at least 2.
        repeat: samples of each case in each run.
    """

    cases: int
    repeat: int
    assumed: Assumptions

    def room(self, way: Way) -> float:
        """The largest difference that is possible."""
        return self.assumed.rate if way == "drop" else 1 - self.assumed.rate

    def ways(self, difference: float) -> tuple[Way, ...]:
        """The ways in which the rate can differ so much."""
        return tuple(way for way in WAYS if difference <= self.room(way) + NEAR)

    def chance(self, difference: float, way: Way = "drop", cases: int | None = None) -> float:
        """How often a difference is shown, 0..1; of none, how often it is shown that no loss above the margin is."""
        assumed = self.assumed
        clusters = round((cases or self.cases) / assumed.cluster_size)
        if not difference:
            return assumed.population(self.repeat, 0.0).chance(clusters, NOT_WORSE, assumed.alpha, assumed.margin)
        return self._population(difference, way).chance(clusters, BETTER, assumed.alpha, assumed.margin)

    def needed(self, difference: float, way: Way = "drop") -> int | None:
        """About how many cases it takes to show it as often as asked for; None: more than anybody runs."""
        assumed = self.assumed
        population = self._population(difference, way) if difference else assumed.population(self.repeat, 0.0)
        wanted = BETTER if difference else NOT_WORSE
        clusters = population.needed(wanted, assumed.alpha, assumed.margin, assumed.power)
        return None if clusters is None else clusters * assumed.cluster_size

    def least(self, way: Way = "drop", cases: int | None = None, guess: float | None = None) -> float:
        """The smallest difference that is shown as often as asked for; inf: none is."""
        cases = cases or self.cases
        if cases < self.assumed.fewest:
            return inf
        largest = self.room(way)
        start = 1.5 / sqrt(cases) + self.assumed.margin if guess is None else guess
        return least_shown(
            lambda difference: self.chance(difference, way, cases), min(start, largest), largest, self.assumed.power
        )

    def least_each(self) -> dict[Way, float]:
        """The smallest difference that is shown, each way."""
        return {way: self.least(way) for way in WAYS}

    def table(self) -> dict[int, dict[Way, float]]:
        """Cases → way → the smallest difference that is shown, around what is planned; inf: none is."""
        sizes = sorted({max(LEAST_CASES, round(self.cases * size)) for size in SIZES})
        found: dict[int, dict[Way, float]] = {}
        guesses: dict[Way, float] = {}
        for cases in reversed(sizes):
            line = {way: self.least(way, cases, guesses.get(way)) for way in WAYS}
            guesses = {way: one * 1.45 for way, one in line.items() if one < inf}
            found[cases] = line
        return dict(sorted(found.items()))

    def _population(self, difference: float, way: Way) -> Population:
        """Turned so that what differs is better: a fall of one run is a rise of the other."""
        population = self.assumed.population(self.repeat, -difference if way == "drop" else difference)
        return population.turned if way == "drop" else population
