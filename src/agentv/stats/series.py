"""What a suite came to, run after run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt
from statistics import variance
from typing import Literal

from agentv.stats.trend import LEAST, Line, least_squares, theil_sen

Measure = Literal["pass rate", "mean score"]
Direction = Literal["rises", "falls", "no trend is shown", "cannot tell", "too few runs"]

NO_SPREAD = 1e-12
"""A variance up to which it is rounding."""


@dataclass(frozen=True, slots=True)
class Point:
    """One run.

    Attributes:
        value: the share of cases that passed, or the mean score: 0..1.
        interval: of the pass rate, Wilson's at 95 %; None of a mean score.
        judged, total: cases that were judged, and that there were.
        error: the standard error of the value, for the cases are few.
    """

    run_id: str
    value: float
    interval: tuple[float, float] | None
    judged: int
    total: int
    error: float = 0.0


def error_of_rate(rate: float, cases: int) -> float:
    """The standard error of a share, √(p(1 − p) / cases), within which p is moved by half a case towards one half.

    So nothing is certain where all passed, or none. Of a mean of scores of 0..1 no error is larger.

    Args:
        rate: 0..1.
        cases: at least 1.
    """
    p = (rate * cases + 0.5) / (cases + 1)
    return sqrt(p * (1 - p) / cases)


def error_of_mean(means: Sequence[float]) -> float:
    """The standard error of a mean score, by how much its cases differ; of those that are all alike that of a share.

    Args:
        means: the mean score of each case, 0..1; at least one.
    """
    spread = variance(means) if len(means) > 1 else 0.0
    return sqrt(spread / len(means)) if spread > NO_SPREAD else error_of_rate(sum(means) / len(means), len(means))


@dataclass(frozen=True, slots=True)
class Change:
    """What was not the same in a run as in the one before it.

    Attributes:
        edited: cases of both that ask something else, or are graded otherwise.
        added, gone: cases that only this one, or only the one before it had.
        targets: other ones were asked.
    """

    run_id: str
    edited: int = 0
    added: int = 0
    gone: int = 0
    targets: bool = False


@dataclass(frozen=True, slots=True)
class Context:
    """What weakens a trend.

    Attributes:
        passed_over: runs that had nothing to say.
        not_new: runs whose answers were another run's, or a cassette's.
        ended_early: runs whose samples ended as soon as a case was decided, left out of mean scores.
        changes: of the suite and of what was asked, the oldest first.
    """

    passed_over: int = 0
    not_new: int = 0
    ended_early: int = 0
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Trend:
    """Runs in the order in which they began; both lines count runs from 0, and are None where there is one run."""

    suite: str
    measure: Measure
    points: tuple[Point, ...]
    least_squares: Line | None
    theil_sen: Line | None
    context: Context = field(default_factory=Context)

    @classmethod
    def of(cls, suite: str, measure: Measure, points: Sequence[Point], context: Context | None = None) -> Trend:
        """The lines through the points; neither is surer than the noise of the single points lets it be."""
        values, errors = [point.value for point in points], [point.error for point in points]
        straight = least_squares(values, errors=errors) if len(values) > 1 else None
        robust = theil_sen(values, errors=errors) if len(values) > 1 else None
        return cls(suite, measure, tuple(points), straight, robust, context or Context())

    @property
    def direction(self) -> Direction:
        """What the intervals of both slopes show, where they agree; below three runs they show nothing."""
        if self.least_squares is None or self.theil_sen is None or len(self.points) < LEAST:
            return "too few runs"
        straight, robust = _side(self.least_squares), _side(self.theil_sen)
        if straight != robust:
            return "cannot tell"
        return "no trend is shown" if straight == 0 else "rises" if straight > 0 else "falls"


def _side(line: Line) -> int:
    """On which side of 0 the whole interval of a slope lies: 1, −1, or 0 where it holds 0."""
    return (line.low > 0) - (line.high < 0)
