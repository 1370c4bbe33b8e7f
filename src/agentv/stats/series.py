"""What a suite came to, run after run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agentv.stats.trend import LEAST, Line, least_squares, theil_sen

Measure = Literal["pass rate", "mean score"]
Direction = Literal["rises", "falls", "no trend is shown", "too few runs"]


@dataclass(frozen=True, slots=True)
class Point:
    """One run.

    Attributes:
        value: the share of cases that passed, or the mean score: 0..1.
        interval: of the pass rate, Wilson's at 95 %; None of a mean score.
        judged, total: cases that were judged, and that there were.
    """

    run_id: str
    value: float
    interval: tuple[float, float] | None
    judged: int
    total: int


@dataclass(frozen=True, slots=True)
class Trend:
    """Runs in the order in which they began; both lines count runs from 0, and are None where there is one run.

    Attributes:
        passed_over: runs that had nothing to say.
    """

    suite: str
    measure: Measure
    points: tuple[Point, ...]
    least_squares: Line | None
    theil_sen: Line | None
    passed_over: int = 0

    @classmethod
    def of(cls, suite: str, measure: Measure, points: Sequence[Point], passed_over: int = 0) -> Trend:
        """The lines through the points."""
        values = [point.value for point in points]
        straight, robust = (least_squares(values), theil_sen(values)) if len(values) > 1 else (None, None)
        return cls(suite, measure, tuple(points), straight, robust, passed_over)

    @property
    def direction(self) -> Direction:
        """What the interval of the slope of least squares shows; below three runs it shows nothing."""
        line = self.least_squares
        if line is None or len(self.points) < LEAST:
            return "too few runs"
        if line.low > 0:
            return "rises"
        return "falls" if line.high < 0 else "no trend is shown"
