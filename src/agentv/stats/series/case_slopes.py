"""Trend over runs, case by case: each case is compared with itself, so hard or new cases are not a trend."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from agentv.stats.intervals.clustered import cr2
from agentv.stats.intervals.proportion import USUAL
from agentv.stats.intervals.student import t_quantile
from agentv.stats.series.serial import Effect

Numbers = NDArray[np.float64]

_ROUNDS = 500
_NEAR = 1e-10


class SharedCases:
    """The values of cases that several runs share.

    Args:
        runs: of each run, case → its value.
        clusters: case → what it depends on others with; a case that is not named stands alone.
    """

    def __init__(
        self, runs: Sequence[Mapping[Hashable, float]], clusters: Mapping[Hashable, Hashable] | None = None
    ) -> None:
        seen: dict[Hashable, int] = {}
        for run in runs:
            for case in run:
                seen[case] = seen.get(case, 0) + 1
        self._cases = [case for case, number in seen.items() if number > 1]
        places = {case: place for place, case in enumerate(self._cases)}
        cells = [
            (number, places[case], value)
            for number, run in enumerate(runs)
            for case, value in run.items()
            if case in places
        ]
        found = np.asarray(cells, dtype=np.float64).reshape(-1, 3)
        self._runs, self._of = found[:, 0].astype(np.int64), found[:, 1].astype(np.int64)
        self._values = found[:, 2]
        self._number = len(runs)
        given = clusters or {}
        self._clusters = [given.get(case, case) for case in self._cases]

    @property
    def count(self) -> int:
        """How many cases at least two runs have."""
        return len(self._cases)

    def run_effects(self) -> list[float]:
        """What is left of each run once every case's own level is taken out: least squares of case and run."""
        effects = np.zeros(self._number)
        for _ in range(_ROUNDS):
            levels = self._mean_by(self._of, self._values - effects[self._runs], self.count)
            found = self._mean_by(self._runs, self._values - levels[self._of], self._number)
            moved = float(np.abs(found - effects).max(initial=0.0))
            effects = found
            if moved < _NEAR:
                break
        return [float(one) for one in effects]

    def effect(self, shape: Sequence[float], level: float = USUAL) -> Effect:
        """How much the cases follow a shape: the mean of their own slopes, each weighed by how much it can tell.

        The interval is that of Student's t with the cluster-robust variance CR2; −inf and inf of one cluster only. R:
        `lm(y ~ x + factor(case))` with `clubSandwich`'s CR2 by case, where all runs have all cases.

        Args:
            shape: of each run.
            level: the confidence, inside 0..1.
        """
        x = np.asarray(shape, dtype=np.float64)[self._runs]
        apart = x - self._mean_by(self._of, x, self.count)[self._of]
        weights = np.bincount(self._of, apart**2, self.count)
        products = np.bincount(self._of, apart * self._values, self.count)
        whole = float(weights.sum())
        if whole <= 0:
            return Effect(0.0, -inf, inf)
        slope = float(products.sum()) / whole
        members: dict[Hashable, list[float]] = {}
        for cluster, weight, product in zip(self._clusters, weights, products, strict=True):
            if weight > 0:
                summed = members.setdefault(cluster, [0.0, 0.0])
                summed[0] += float(weight) / whole
                summed[1] += float(product - weight * slope) / whole
        if len(members) < 2:
            return Effect(slope, -inf, inf)
        variance, freedom = cr2([(size, deviation, 1) for size, deviation in members.values()], 1)
        reach = t_quantile(freedom, level) * sqrt(max(variance, 0.0))
        return Effect(slope, slope - reach, slope + reach)

    def _mean_by(self, keys: NDArray[np.int64], values: Numbers, number: int) -> Numbers:
        counts = np.bincount(keys, minlength=number)
        return np.bincount(keys, values, number) / np.maximum(counts, 1)
