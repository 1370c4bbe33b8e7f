"""Mean and percentiles of measurements. Plain Python: reports of runs use it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import floor, fsum

PERCENTILES = (50, 90, 95, 99)


@dataclass(frozen=True, slots=True)
class Distribution:
    """Figures over `count` values. `percentiles` are those of `PERCENTILES`, in their order."""

    count: int
    mean: float
    percentiles: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class RunFigures:
    """Figures of a run.

    Attributes:
        trials: that were looked at.
        measures: name → its distribution; None where no trial has it.
        unread: why traces could not be read, with the trial.
        partial: trials whose trace is partial; their tool calls are not counted.
    """

    trials: int
    measures: Mapping[str, Distribution | None]
    unread: tuple[str, ...]
    partial: int


def distribution_of(values: Iterable[float]) -> Distribution | None:
    """Mean and percentiles; None where there are no values.

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
