"""Results of a suite, run after run."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field
from math import inf, sqrt
from statistics import variance
from typing import TYPE_CHECKING, Literal

from agentv.lazy_dataclass import dataclass
from agentv.stats.intervals.proportion import USUAL, quantile
from agentv.stats.series.serial import LEAST, Effect
from agentv.stats.series.trend import FittedLine, theil_sen

if TYPE_CHECKING:
    from agentv.stats.series.case_slopes import SharedCases

Measure = Literal["pass rate", "mean score"]
Direction = Literal["rises", "falls", "no trend is shown", "too few runs"]

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
        rules: how cases are judged or sampled, where that differs, such as `threshold 0.8 → 0.9`.
    """

    run_id: str
    edited: int = 0
    added: int = 0
    gone: int = 0
    targets: bool = False
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Context:
    """What weakens a trend.

    Attributes:
        passed_over: runs that had nothing to say.
        not_new: runs whose answers were another run's, or a cassette's.
        ended_early: runs whose samples ended as soon as a case was decided, left out of mean scores.
        last_failed: runs of `--last-failed`, whose cases were selected by their results.
        changes: of the suite and of what was asked, the oldest first.
        undivided: runs of several suites, which do not say what one target came to in each.
    """

    passed_over: int = 0
    not_new: int = 0
    ended_early: int = 0
    last_failed: int = 0
    changes: tuple[Change, ...] = ()
    undivided: int = 0


@dataclass(frozen=True, slots=True)
class Paired:
    """The cases of the runs, each against itself.

    Attributes:
        runs: of each run, case → its value. What asks, or is judged, otherwise is another case.
        clusters: case → what it depends on others with.
    """

    runs: Sequence[Mapping[Hashable, float]]
    clusters: Mapping[Hashable, Hashable]

    def related(self) -> int:
        """How many of the newest runs are linked by cases that they share; the runs before share none with them."""
        if not self.runs:
            return 0
        seen = set(self.runs[-1])
        for number, run in enumerate(reversed(self.runs[:-1]), 1):
            if seen.isdisjoint(run):
                return number
            seen.update(run)
        return len(self.runs)


@dataclass(frozen=True, slots=True)
class Trend:
    """Runs in the order in which they began.

    Attributes:
        line: the slope of one run, from run `first` on; None where there are fewer than two runs.
        step: how much it changed at run `since`, where that fits better than the line.
        theil_sen: the line that is drawn from run `first` on, counted from there.
        first: the runs before this one share no case with those from it on, and are in no number.
        cases: how many cases at least two of those runs share; 0: none are known, and the runs' values are compared.
        target: whose results alone these are; None: those of all targets together.
    """

    suite: str
    measure: Measure
    points: tuple[Point, ...]
    line: Effect | None
    theil_sen: FittedLine | None
    context: Context = field(default_factory=Context)
    step: Effect | None = None
    since: int | None = None
    first: int = 0
    cases: int = 0
    target: str | None = None

    @classmethod
    def of(
        cls,
        suite: str,
        measure: Measure,
        points: Sequence[Point],
        context: Context | None = None,
        paired: Paired | None = None,
    ) -> Trend:
        """What the runs show: by the cases that they share, where those are known."""
        runs = paired.runs if paired is not None and all(paired.runs) else ()
        first = len(points) - Paired(runs, {}).related() if paired is not None and runs else 0
        later = points[first:]
        shared = None
        if paired is not None and runs:
            from agentv.stats.series.case_slopes import SharedCases

            shared = SharedCases(runs[first:], paired.clusters)
        drawn = theil_sen([point.value for point in later]) if len(later) > 1 else None
        line, step, since = _fitted(later, shared)
        cases = shared.count if shared is not None else 0
        at = None if since is None else first + since
        return cls(suite, measure, tuple(points), line, drawn, context or Context(), step, at, first, cases)

    @property
    def direction(self) -> Direction:
        """What the interval of the step shows where one fits better, else that of the line."""
        if self.line is None or len(self.points) - self.first < LEAST:
            return "too few runs"
        shown = self.line if self.step is None else self.step
        return "rises" if shown.low > 0 else "falls" if shown.high < 0 else "no trend is shown"


def _fitted(points: Sequence[Point], shared: SharedCases | None) -> tuple[Effect | None, Effect | None, int | None]:
    """The line, and the step where it fits better, with intervals that hold for noise of runs and of cases alike.

    Two things make a trend unsure: that runs differ, and stay so for a while, and that there are so many cases. Each
    has an interval of its own, and what is reported is as far as either reaches.
    """
    if len(points) < LEAST:
        return _unsure([point.value for point in points]), None, None
    from agentv.stats.series.serial import serial_fit, shape

    paired = shared if shared is not None and shared.count else None
    values = [point.value for point in points] if paired is None else paired.run_effects()
    found = serial_fit(values)

    def whole(serial: Effect, since: int | None) -> Effect:
        x = shape(len(points), since)
        own = _of_points(points, x) if paired is None else paired.effect(x)
        effect = serial.effect if paired is None else own.effect
        low = min(serial.low, effect - (own.effect - own.low))
        high = max(serial.high, effect + own.high - own.effect)
        # a rate moves by 1 at most; the effect itself stays as it is
        return Effect(effect, min(effect, max(-1.0, low)), max(effect, min(1.0, high)))

    step = None if found.step is None else whole(found.step, found.since)
    return whole(found.line, None), step, found.since


def _unsure(values: Sequence[float]) -> Effect | None:
    return Effect(values[1] - values[0], -inf, inf) if len(values) == 2 else None


def _of_points(points: Sequence[Point], x: Sequence[float]) -> Effect:
    """How far the noise of the single points alone moves an effect, where cases are not known."""
    middle = sum(x) / len(x)
    moved = sqrt(sum(((one - middle) * point.error) ** 2 for one, point in zip(x, points, strict=True)))
    reach = quantile(USUAL) * moved / sum((one - middle) ** 2 for one in x)
    return Effect(0.0, -reach, reach)
