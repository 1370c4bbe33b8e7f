"""Trend of a series of runs: least squares, and the median of all slopes (Theil and Sen)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import inf, sqrt
from statistics import fmean, median

from agentv.lazy_dataclass import dataclass
from agentv.stats.intervals.proportion import USUAL, quantile

LEAST = 3
"""Points that a line needs before anything can be said of how sure it is."""


@dataclass(frozen=True, slots=True)
class FittedLine:
    """A line through points: y = start + slope · x.

    Attributes:
        slope: in the unit of y for one of x.
        start: y where x is 0.
        low, high: the interval of the slope; −inf and inf where there are too few points to tell.
    """

    slope: float
    start: float
    low: float
    high: float

    def at(self, place: float) -> float:
        """Value of the line at x."""
        return self.start + self.slope * place


def least_squares(
    values: Sequence[float],
    places: Sequence[float] | None = None,
    *,
    level: float = USUAL,
    errors: Sequence[float] | None = None,
) -> FittedLine:
    """The line of least squares, with Student's interval of its slope. R: `confint(lm(y ~ x))`. Needs scipy.

    Source: N. R. Draper, H. Smith, Applied Regression Analysis, 3rd ed. (1998), section 1.4.

    Args:
        values: y, at least two.
        places: x; None: 0, 1, 2, …
        level: the confidence, inside 0..1.
        errors: the standard error of each y, where it is known: the interval reaches at least as far as these make it,
            so that points which happen to lie on a line do not make it certain.

    Raises:
        ValueError: fewer than two points, or all of them at one place.
    """
    from scipy.special import stdtrit

    x, y = _points(values, places)
    spread = sum((one - fmean(x)) ** 2 for one in x)
    slope = sum((one - fmean(x)) * other for one, other in zip(x, y, strict=True)) / spread
    start = fmean(y) - slope * fmean(x)
    if len(x) < LEAST:
        return FittedLine(slope, start, -inf, inf)
    rest = sum((other - start - slope * one) ** 2 for one, other in zip(x, y, strict=True))
    reach = float(stdtrit(len(x) - 2, (1 + level) / 2)) * sqrt(rest / (len(x) - 2) / spread)
    reach = max(reach, _least_reach(x, errors, level))
    return FittedLine(slope, start, slope - reach, slope + reach)


def theil_sen(
    values: Sequence[float],
    places: Sequence[float] | None = None,
    *,
    level: float = USUAL,
    errors: Sequence[float] | None = None,
) -> FittedLine:
    """The line whose slope is the median of the slopes of all pairs, which a few odd runs do not bend; Sen's interval.

    It starts so that half of the points lie above it: median of y less slope times median of x. Agrees with
    `scipy.stats.theilslopes`. With fewer than 10 points the interval is no better than its normal approximation.

    Source: H. Theil, "A rank-invariant method of linear and polynomial regression analysis", Indagationes Mathematicae
    12 (1950), 85–91; P. K. Sen, "Estimates of the regression coefficient based on Kendall's tau", JASA 63 (1968),
    1379–1389, for the interval, with his correction for ties.

    Args:
        values: y, at least two.
        places: x; None: 0, 1, 2, …
        level: the confidence, inside 0..1.
        errors: the standard error of each y, where it is known: the interval reaches at least as far as these make it,
            so that points which happen to lie on a line do not make it certain.

    Raises:
        ValueError: fewer than two points, or all of them at one place.
    """
    x, y = _points(values, places)
    pairs = ((one, other) for one in range(len(x)) for other in range(one) if x[one] != x[other])
    slopes = sorted((y[one] - y[other]) / (x[one] - x[other]) for one, other in pairs)
    slope = median(slopes)
    start = median(y) - slope * median(x)
    if len(x) < LEAST:
        return FittedLine(slope, start, -inf, inf)
    reach = quantile(level) * _kendall_deviation(x, y)
    first, last = round((len(slopes) - reach) / 2) - 1, round((len(slopes) + reach) / 2)
    least = _least_reach(x, errors, level)
    low, high = slopes[max(first, 0)], slopes[min(last, len(slopes) - 1)]
    return FittedLine(slope, start, min(low, slope - least), max(high, slope + least))


def _least_reach(x: Sequence[float], errors: Sequence[float] | None, level: float) -> float:
    """How far the noise of the single points alone moves a slope of least squares; that of medians moves no less."""
    if errors is None:
        return 0.0
    middle = fmean(x)
    moved = sum(((one - middle) * error) ** 2 for one, error in zip(x, errors, strict=True))
    return quantile(level) * sqrt(moved) / sum((one - middle) ** 2 for one in x)


def _points(values: Sequence[float], places: Sequence[float] | None) -> tuple[Sequence[float], Sequence[float]]:
    x = range(len(values)) if places is None else places
    if len(x) != len(values) or len(set(x)) < 2:
        raise ValueError(f"no line through {len(values)} values at {len(set(x))} places")
    return x, values


def _kendall_deviation(x: Sequence[float], y: Sequence[float]) -> float:
    """The standard deviation of Kendall's S, with ties in either taken off."""
    count = len(x)
    tied = sum(_ordered(ties) for series in (x, y) for ties in Counter(series).values() if ties > 1)
    return sqrt(max(0, _ordered(count) - tied) / 18)


def _ordered(count: int) -> int:
    return count * (count - 1) * (2 * count + 5)
