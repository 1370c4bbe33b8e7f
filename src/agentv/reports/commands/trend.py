"""A suite's runs as a drawing and in words, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from math import floor, isfinite

from agentv.model.values.formatting import plural
from agentv.model.values.values import Json
from agentv.reports.text.escaping import one_line, percent
from agentv.reports.text.signs import signed
from agentv.stats.series.serial import Effect
from agentv.stats.series.series import Change, Context, Point, Trend

HEIGHT = 12
MARGIN = 9
"""Columns of the axis."""
WIDEST_STEP = 8
FEW = 10
"""Runs below which only steep trends can be shown."""
CHANGES = 5
"""Told one by one; the others are counted."""
NARROW = 0.2
"""Part of the axis that runs must span to be drawn on the whole of it, from 0 to 100%."""
BREAK = "≈"
"""Marks an end of the axis that is not 0% or 100%."""


def render_trend(trend: Trend, *, width: int) -> str:
    """The runs, the Theil–Sen line through them, and what their slope or step shows.

    Args:
        trend: of a suite.
        width: columns to use; where there are more runs than fit, the newest are drawn.
    """
    of = "" if trend.target is None else f", target {one_line(trend.target)}"
    head = f"{one_line(trend.suite)}{of}: {trend.measure} over {plural(len(trend.points), 'run')}"
    drawn = [*_drawing(trend, width), ""] if len(trend.points) > 1 else []
    return "\n".join([head, "", *drawn, *findings(trend), *notes(trend)])


def findings(trend: Trend) -> list[str]:
    """What the runs show, in sentences: the last run, the slope or the step, and whether that is a trend."""
    return [_last(trend.points[-1]), *_slopes(trend)]


def notes(trend: Trend) -> list[str]:
    """What weakens that."""
    return list(_notes(trend))


def _last(point: Point) -> str:
    run_id, cases = one_line(point.run_id), plural(point.judged, "case")
    if point.interval is None:
        return f"last: {point.value:.3f} of {cases} ({run_id})"
    low, high = point.interval
    return f"last: {percent(point.value)} of {cases}, 95% CI {percent(low)} to {percent(high)} ({run_id})"


def trend_json(trend: Trend) -> str:
    """The data of a trend as text."""
    return json.dumps(trend_data(trend), indent=2)


def trend_data(trend: Trend) -> dict[str, Json]:
    """The runs, the line and the step with their intervals, and what they show; null is an interval not known."""
    since = None if trend.since is None else trend.points[trend.since].run_id
    return {
        "suite": trend.suite,
        "target": trend.target,
        "measure": trend.measure.replace(" ", "_"),
        "direction": trend.direction,
        "least_squares": _effect_json(trend.line, "slope"),
        "theil_sen": {"slope": trend.theil_sen.slope, "start": trend.theil_sen.start} if trend.theil_sen else None,
        "step": None if since is None else {**(_effect_json(trend.step, "size") or {}), "since": since},
        "shared_cases": trend.cases,
        "runs_left_out": trend.first,
        "passed_over": trend.context.passed_over,
        "not_new": trend.context.not_new,
        "ended_early": trend.context.ended_early,
        "last_failed": trend.context.last_failed,
        "several_suites": trend.context.undivided,
        "changes": [asdict(change) for change in trend.context.changes],
        "runs": [asdict(point) for point in trend.points],
    }


def _effect_json(effect: Effect | None, name: str) -> dict[str, Json] | None:
    if effect is None:
        return None
    return {name: effect.effect, f"{name}_interval": [effect.low, effect.high] if isfinite(effect.low) else None}


def _slopes(trend: Trend) -> Iterator[str]:
    if trend.line is None:
        return
    yield f"slope: {_points(trend.line)} a run{_interval(trend.line)}"
    since = None if trend.since is None else one_line(trend.points[trend.since].run_id)
    if trend.step is not None:
        better = "; a step fits better than a line" if trend.direction in ("rises", "falls") else " (best-fitting step)"
        yield f"since {since}: {_points(trend.step)}{_interval(trend.step)}{better}"
    at = "" if trend.step is None else f" since {since}"
    if trend.direction in ("rises", "falls"):
        verb = trend.direction if trend.step is None else {"rises": "is higher", "falls": "is lower"}[trend.direction]
        yield f"The {trend.measure} {verb}{at}."
    elif trend.direction == "no trend is shown":
        yield "No trend is shown: the confidence interval contains 0."


def _points(effect: Effect) -> str:
    """Points in a hundred, which is how people speak of rates."""
    return f"{signed(100 * effect.effect, 2)} points"


def _interval(effect: Effect) -> str:
    if not isfinite(effect.low):
        return ""
    return f" (95% CI {signed(100 * effect.low, 2)} to {signed(100 * effect.high, 2)})"


def _notes(trend: Trend) -> Iterator[str]:
    runs = len(trend.points) - trend.first
    if trend.first:
        before = plural(trend.first, "earlier run")
        yield f"note: {before} share no unchanged case with the later ones: excluded"
    if trend.direction == "too few runs":
        yield f"{plural(runs, 'run')}: a trend needs at least 3 runs."
    elif runs < FEW:
        yield f"note: {runs} runs are few; only a steep trend can be shown"
    sizes = sorted({point.total for point in trend.points})
    if len(sizes) > 1:
        yield f"note: the runs had from {sizes[0]} to {sizes[-1]} cases; part of the change may come from the cases"
    if unjudged := sum(point.judged < point.total for point in trend.points):
        yield f"note: in {plural(unjudged, 'run')}, cases errored or did not run; they are not counted"
    other = "another target" if trend.target is None else "other settings of the target"
    yield from _changes(trend.context.changes, other)
    yield from _left_out(trend.context)


def _changes(changes: Sequence[Change], other_target: str) -> Iterator[str]:
    """The newest, for they weigh most; the others are counted."""
    for change in changes[-CHANGES:]:
        parts = [
            f"{plural(change.edited, 'case')} edited" if change.edited else "",
            f"{change.added} new" if change.added else "",
            f"{change.gone} gone" if change.gone else "",
            other_target if change.targets else "",
            *change.rules,
        ]
        summary = ", ".join(part for part in parts if part)
        run = one_line(change.run_id)
        yield f"note: {run} differs from the run before it: {summary}; part of the change may come from that"
    if len(changes) > CHANGES:
        yield f"note: {plural(len(changes) - CHANGES, 'more change')} before these"


def _left_out(context: Context) -> Iterator[str]:
    for count, why in (
        (context.passed_over, "unfinished, interrupted or without a verdict"),
        (context.not_new, "graded stored answers (--regrade, --replay, --cache): no call was made"),
        (
            context.ended_early,
            "stopped sampling each case once decided, so their mean scores are biased",
        ),
        (context.undivided, "had several suites and do not tell the target's results in one of them"),
        (context.last_failed, "ran only cases that had not passed before (--last-failed)"),
    ):
        if count:
            yield f"note: {plural(count, 'run')} excluded: {why}"


def _drawing(trend: Trend, width: int) -> Iterator[str]:
    """Runs as points over the line; an axis that holds both."""
    room = max(width - MARGIN - 1, 2)
    first = max(0, len(trend.points) - room)
    places = range(first, len(trend.points))
    step = max(1, min(WIDEST_STEP, room // len(places)))
    canvas = _Canvas(*_reach(trend, first), columns=step * (len(places) - 1) + 1)
    if trend.theil_sen is not None:
        for column in range(canvas.columns):
            place = first + column / step - trend.first
            if place >= 0 and 0 <= (value := trend.theil_sen.at(place)) <= 1:  # a line may leave the axis, no run does
                canvas.put(column, value, "·")
    for place in places:
        canvas.put(step * (place - first), trend.points[place].value, "●")
    yield from canvas.lines()


def _reach(trend: Trend, first: int) -> tuple[float, float]:
    values = [point.value for point in trend.points[first:]]
    if trend.theil_sen is not None:
        ends = (trend.theil_sen.at(max(0, place - trend.first)) for place in (first, len(trend.points) - 1))
        values += [min(max(end, 0.0), 1.0) for end in ends]
    low, high = min(values), max(values)
    if high - low >= NARROW:
        return min(low, 0.0), max(high, 1.0)
    steps = 1 / NARROW  # a narrow part of the axis between round ends
    around = max(NARROW - (high - low), 0.0) / 2
    begin = floor((low - around) * steps * 2) / (steps * 2)
    begin = min(max(begin, 0.0), 1 - 1.5 * NARROW)
    return min(low, begin), max(high, begin + 1.5 * NARROW)


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
            broken = (number == 0 and self._high < 1) or (number == HEIGHT - 1 and self._low > 0)
            yield f"{axis}{BREAK if broken else '│'}{''.join(row)}".rstrip()
        yield " " * (MARGIN - 1) + "└" + "─" * self.columns
        if self._low > 0 or self._high < 1:
            yield f"{BREAK} the axis shows {percent(self._low)} to {percent(self._high)}, not 0% to 100%"
