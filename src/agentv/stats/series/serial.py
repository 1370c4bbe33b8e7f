"""A line or a step through a series of runs whose noise may go on from one run to the next.

A provider that answers badly today does so tomorrow: the noise of runs that follow each other is alike, and an ordinary
interval of a slope then shows a trend in 17 to 37 of 100 series that have none. Here a series without a trend is taken
to be autoregressive, e[t] = ρ·e[t − 1] + noise. A line is fitted, and a step at every place; what fits best is compared
with what fits best in series drawn without either, so that looking for the place costs nothing but width. ρ is not
known, and what is left of a short series tells too little of it: the largest ρ is taken that what is left does not
refute at 10 %.

The seed is fixed: the same series gives the same interval.

Source: D. W. K. Andrews, "Exactly median-unbiased estimation of first order autoregressive/unit root models",
Econometrica 61 (1993), 139–165, for bounds of ρ by simulation; the same, "Tests for parameter instability and
structural change with unknown change point", Econometrica 61 (1993), 821–856, for the largest statistic over places.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from agentv.lazy_dataclass import dataclass
from agentv.stats.intervals.proportion import USUAL

Numbers = NDArray[np.float64]

LEAST = 3
"""Minimum number of runs."""
LEAST_FOR_STEP = 6
BESIDE = 2
"""Runs that a step has on either side at least."""
PLACES = 200
"""Places where a step is looked for at most, evenly apart."""
REFUTED = 0.1
_RHOS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9)
_ROUNDS = 2000
_AT_ONCE = 1_000_000
_NONE = 1e-24
"""A sum of squares up to which it is rounding."""


@dataclass(frozen=True, slots=True)
class Effect:
    """How much a series moves: by one run, or at a step. `low`, `high`: its interval."""

    effect: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class SerialFit:
    """What fits a series.

    Attributes:
        line: its slope, of one run.
        step: how much higher it lies from run `since` on, counted from 0; None where the line fits better.
    """

    line: Effect
    step: Effect | None = None
    since: int | None = None


def serial_fit(values: Sequence[float], level: float = USUAL) -> SerialFit:
    """The line through the values of runs that follow each other, and the step where one fits better.

    Both intervals hold together: where there is neither trend nor step, the chance that one of them excludes 0 is
    1 − level, about.

    Args:
        values: of the runs, `LEAST` at least.
        level: the confidence, inside 0..1.

    Raises:
        ValueError: there are too few values.
    """
    if len(values) < LEAST:
        raise ValueError(f"no trend of {len(values)} values")
    null = _null(len(values))
    series = np.asarray([values], dtype=np.float64)
    effects, errors = null.fitted(series)
    _, best, rest = null.largest(series)
    reach = null.reach(float(rest[0]), level)
    place = int(best[0])
    line = _effect(float(effects[0, 0]), reach * float(errors[0, 0]))
    if place == 0:
        return SerialFit(line)
    return SerialFit(line, _effect(float(effects[0, place]), reach * float(errors[0, place])), null.places[place - 1])


def _effect(effect: float, reach: float) -> Effect:
    return Effect(effect, effect - reach, effect + reach)


def shape(count: int, since: int | None) -> list[float]:
    """Candidate trends of a series of this length: one line, and a step at each run."""
    return [float(place) if since is None else float(place >= since) for place in range(count)]


class _Null:
    """Series of one length without a trend, for every ρ."""

    def __init__(self, count: int) -> None:
        steps = range(BESIDE, count - BESIDE + 1) if count >= LEAST_FOR_STEP else range(0)
        self.places = [*steps][:: max(1, -(-len(steps) // PLACES))]
        shapes = np.asarray([shape(count, since) for since in (None, *self.places)])
        self._shapes = shapes - shapes.mean(axis=1, keepdims=True)
        self._squares = (self._shapes**2).sum(axis=1)
        self._freedom = count - 2
        rounds = max(200, min(_ROUNDS, _AT_ONCE // count))
        noise = np.random.Generator(np.random.PCG64(0)).standard_normal((rounds, count))
        drawn = [self.largest(_autoregressive(noise, rho)) for rho in _RHOS]
        self._statistics = [np.sort(statistic) for statistic, _, _ in drawn]
        self._rests = [rest for _, _, rest in drawn]

    def fitted(self, series: Numbers) -> tuple[Numbers, Numbers]:
        """Effect of each shape and its ordinary standard error, for each series."""
        apart = series - series.mean(axis=1, keepdims=True)
        effects = apart @ self._shapes.T / self._squares
        left = (apart**2).sum(axis=1, keepdims=True) - effects**2 * self._squares
        return effects, np.sqrt(np.maximum(left, _NONE) / self._freedom / self._squares)

    def largest(self, series: Numbers) -> tuple[Numbers, NDArray[np.int64], Numbers]:
        """Of each series: the largest effect in standard errors, its shape, and how alike neighbours are that are left.

        What is left is what the shape does not explain.
        """
        effects, errors = self.fitted(series)
        statistics = np.abs(effects) / errors
        best = statistics.argmax(axis=1)
        rows = np.arange(len(series))
        left = series - series.mean(axis=1, keepdims=True) - effects[rows, best][:, None] * self._shapes[best]
        alike = (left[:, 1:] * left[:, :-1]).sum(axis=1) / np.maximum((left**2).sum(axis=1), _NONE)
        return statistics[rows, best], best, alike

    def reach(self, alike: float, level: float) -> float:
        """Half-width of the interval in standard errors, given the autocorrelation of the residuals."""
        plausible = [place for place, rests in enumerate(self._rests) if np.mean(rests <= alike) >= REFUTED]
        return float(np.quantile(self._statistics[max(plausible, default=0)], level, method="higher"))


@lru_cache(maxsize=8)
def _null(count: int) -> _Null:
    return _Null(count)


def _autoregressive(noise: Numbers, rho: float) -> Numbers:
    series = noise.copy()
    series[:, 0] /= np.sqrt(1 - rho**2)
    for place in range(1, noise.shape[1]):
        series[:, place] += rho * series[:, place - 1]
    return series
