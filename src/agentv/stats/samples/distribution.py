"""Mean and percentiles of measurements, in plain Python so that reports of runs need not import numpy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import floor, fsum

PERCENTILES = (50, 90, 95, 99)


@dataclass(frozen=True, slots=True)
class Distribution:
    """Mean and percentiles of `count` values. `percentiles` has the order of `PERCENTILES`."""

    count: int
    mean: float
    percentiles: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class RunFigures:
    """Distributions of the measures of a run.

    Attributes:
        trials: number of trials that were read.
        measures: name of a measure → its distribution, or None if no trial has the measure.
        unread: trials whose traces could not be read, each with the reason.
        partial: number of trials with a partial trace, whose tool calls are not counted.
    """

    trials: int
    measures: Mapping[str, Distribution | None]
    unread: tuple[str, ...]
    partial: int


def distribution_of(values: Iterable[float]) -> Distribution | None:
    """Mean and percentiles of the values, or None if none exist.

    Percentiles by linear interpolation between order statistics: method 7 of R. J. Hyndman and Y. Fan, "Sample
    quantiles in statistical packages", The American Statistician 50 (1996), 361–365, the default of numpy and R.
    """
    ordered = sorted(values)
    if not ordered:
        return None
    mean = fsum(ordered) / len(ordered)
    return Distribution(len(ordered), mean, tuple(_percentile(ordered, percent) for percent in PERCENTILES))


def _percentile(ordered: list[float], percent: int) -> float:
    at = (len(ordered) - 1) * percent / 100
    low = floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)
