"""The line that is drawn through a series of runs: its slope is the median of all slopes (Theil and Sen)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from statistics import median

from agentv.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class FittedLine:
    """A line through points: y = start + slope · x.

    Attributes:
        slope: in the unit of y for one of x.
        start: y where x is 0.
    """

    slope: float
    start: float

    def at(self, place: float) -> float:
        """Value of the line at x."""
        return self.start + self.slope * place


def theil_sen(values: Sequence[float]) -> FittedLine:
    """The line whose slope is the median of the slopes of all pairs, which a few odd runs do not bend.

    It starts so that half of the points lie above it: median of y less slope times median of x. Agrees with
    `scipy.stats.theilslopes`.

    Source: H. Theil, "A rank-invariant method of linear and polynomial regression analysis", Indagationes Mathematicae
    12 (1950), 85–91; P. K. Sen, "Estimates of the regression coefficient based on Kendall's tau", JASA 63 (1968),
    1379–1389.

    Args:
        values: y at x = 0, 1, 2, …; at least two.

    Raises:
        ValueError: there are fewer than two.
    """
    if len(values) < 2:
        raise ValueError(f"no line through {len(values)} values")
    slope = median(
        (later - value) / (end - place) for (place, value), (end, later) in combinations(enumerate(values), 2)
    )
    return FittedLine(slope, median(values) - slope * (len(values) - 1) / 2)
