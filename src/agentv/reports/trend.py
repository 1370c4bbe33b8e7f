"""A suite's runs as a drawing and in words, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from math import isfinite

from agentv.model.values import Json
from agentv.reports.text import one_line, percent
from agentv.reports.totals import plural
from agentv.stats.series import Change, Context, Point, Trend
from agentv.stats.trend import Line

HEIGHT = 12
MARGIN = 9
"""Columns of the axis."""
WIDEST_STEP = 8
FEW = 10
"""Runs below which only steep trends can be shown."""
CHANGES = 5
"""Told one by one; the others are counted."""
FLAT = 0.05
"""How far the axis reaches around runs that are all alike."""


def render_trend(trend: Trend, *, width: int) -> str:
    """The runs, the Theil–Sen line through them, and what their slope shows.

    Args:
        trend: of a suite.
        width: columns to use; where there are more runs than fit, the newest are drawn.
    """
    head = f"{one_line(trend.suite)}: {trend.measure} over {plural(len(trend.points), 'run')}"
    drawn = [*_drawing(trend, width), ""] if len(trend.points) > 1 else []
    return "\n".join([head, "", *drawn, _last(trend.points[-1]), *_slopes(trend), *_notes(trend)])


def _last(point: Point) -> str:
    run_id, cases = one_line(point.run_id), plural(point.judged, "case")
    if point.interval is None:
        return f"last: {point.value:.3f} of {cases} ({run_id})"
    low, high = point.interval
    return f"last: {percent(point.value)} of {cases}, 95% interval {percent(low)} to {percent(high)} ({run_id})"


def trend_json(trend: Trend) -> str:
    """The runs, both lines with the interval of their slope, and what it shows; null is an interval not known."""
    shown: dict[str, Json] = {
        "suite": trend.suite,
        "measure": trend.measure.replace(" ", "_"),
        "direction": trend.direction,
        "least_squares": _line_json(trend.least_squares),
        "theil_sen": _line_json(trend.theil_sen),
        "passed_over": trend.context.passed_over,
        "not_new": trend.context.not_new,
        "ended_early": trend.context.ended_early,
        "changes": [asdict(change) for change in trend.context.changes],
        "runs": [asdict(point) for point in trend.points],
    }
    return json.dumps(shown, indent=2)


def _line_json(line: Line | None) -> Json:
    if line is None:
        return None
    interval: Json = [line.low, line.high] if isfinite(line.low) else None
    return {"slope": line.slope, "slope_interval": interval, "start": line.start}


def _slopes(trend: Trend) -> Iterator[str]:
    if trend.least_squares is None or trend.theil_sen is None:
        return
    yield f"slope: {_slope(trend.least_squares)}"
    yield f"Theil–Sen: {_slope(trend.theil_sen)}"
    if trend.direction in ("rises", "falls"):
        yield f"The {trend.measure} {trend.direction}."
    elif trend.direction == "no trend is shown":
        yield "No trend is shown: the intervals of both slopes hold 0."
    elif trend.direction == "cannot tell":
        yield "Cannot tell: the intervals of the two slopes do not lie on the same side of 0."


def _slope(line: Line) -> str:
    """Points in a hundred, which is how people speak of rates."""
    interval = f" (95% interval {100 * line.low:+.2f} to {100 * line.high:+.2f})" if isfinite(line.low) else ""
    return f"{100 * line.slope:+.2f} points a run{interval}"


def _notes(trend: Trend) -> Iterator[str]:
    runs = len(trend.points)
    if trend.direction == "too few runs":
        yield f"{plural(runs, 'run')}: no trend can be told from fewer than 3."
    elif runs < FEW:
        yield f"note: {runs} runs are few; only a steep trend can be shown"
    sizes = sorted({point.total for point in trend.points})
    if len(sizes) > 1:
        yield f"note: the runs had from {sizes[0]} to {sizes[-1]} cases; part of what moved may be the cases"
    if unjudged := sum(point.judged < point.total for point in trend.points):
        yield f"note: in {plural(unjudged, 'run')} cases errored or were not run; they are in no rate"
    yield from _changes(trend.context.changes)
    yield from _left_out(trend.context)


def _changes(changes: Sequence[Change]) -> Iterator[str]:
    """The newest, for they weigh most; the others are counted."""
    for change in changes[-CHANGES:]:
        parts = [
            f"{plural(change.edited, 'case')} edited" if change.edited else "",
            f"{change.added} new" if change.added else "",
            f"{change.gone} gone" if change.gone else "",
            "asks another target" if change.targets else "",
        ]
        told = ", ".join(part for part in parts if part)
        yield f"note: {one_line(change.run_id)} is not as the run before it: {told}; part of what moved may be that"
    if len(changes) > CHANGES:
        yield f"note: {plural(len(changes) - CHANGES, 'more change')} before these"


def _left_out(context: Context) -> Iterator[str]:
    for count, why in (
        (context.passed_over, "still being written, cut short or without a verdict"),
        (context.not_new, "of answers that were there before (--regrade, --replay, --cache): nothing was asked anew"),
        (
            context.ended_early,
            "of samples that ended as soon as a case was decided: their mean scores lie off the truth",
        ),
    ):
        if count:
            yield f"note: {plural(count, 'run')} passed over, {why}"


def _drawing(trend: Trend, width: int) -> Iterator[str]:
    """Runs as points over the line; an axis that holds both."""
    room = max(width - MARGIN - 1, 2)
    first = max(0, len(trend.points) - room)
    places = range(first, len(trend.points))
    step = max(1, min(WIDEST_STEP, room // len(places)))
    canvas = _Canvas(*_reach(trend, first), columns=step * (len(places) - 1) + 1)
    if trend.theil_sen is not None:
        for column in range(canvas.columns):
            canvas.put(column, trend.theil_sen.at(first + column / step), "·")
    for place in places:
        canvas.put(step * (place - first), trend.points[place].value, "●")
    yield from canvas.lines()


def _reach(trend: Trend, first: int) -> tuple[float, float]:
    values = [point.value for point in trend.points[first:]]
    if trend.theil_sen is not None:
        values += [trend.theil_sen.at(first), trend.theil_sen.at(len(trend.points) - 1)]
    low, high = min(values), max(values)
    return (low, high) if high - low > 1e-9 else (low - FLAT, high + FLAT)


class _Canvas:
    """A grid of characters with an axis of shares at its left."""

    def __init__(self, low: float, high: float, *, columns: int) -> None:
        self.columns = columns
        self._low, self._high = low, high
        self._rows = [[" "] * columns for _ in range(HEIGHT)]

    def put(self, column: int, value: float, mark: str) -> None:
        row = round((self._high - value) / (self._high - self._low) * (HEIGHT - 1))
        self._rows[row][column] = mark

    def lines(self) -> Iterator[str]:
        for number, row in enumerate(self._rows):
            share = self._high - number / (HEIGHT - 1) * (self._high - self._low)
            axis = f"{100 * share:6.1f}% " if number % 3 == 0 or number == HEIGHT - 1 else " " * (MARGIN - 1)
            yield f"{axis}│{''.join(row)}".rstrip()
        yield " " * (MARGIN - 1) + "└" + "─" * self.columns
