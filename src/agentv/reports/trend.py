"""Report of a series of runs: a table with sentences, or JSON."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from msgspec import to_builtins

from agentv.model.run.runs import RunDifference, Trend, TrendRun
from agentv.model.values.formatting import plural
from agentv.model.values.values import Json
from agentv.reports.run.rates import signed
from agentv.reports.text import Cell, aligned, one_line, percent

USUAL = 0.05
"""Two-sided p-value up to which a 95 % interval excludes 0."""
_COMMIT = 9
"""Digits shown of a commit."""
_LISTED = 20
"""Runs that a note lists."""


def render_trend(trend: Trend, *, width: int, color: bool = False) -> str:
    """Sentences on what the runs show, the runs as a table, and notes.

    Args:
        trend: the runs of a suite.
        width: width of the terminal.
        color: use ANSI colors.
    """
    on = f" on {one_line(trend.target)}" if trend.target else ""
    head = f"{one_line(trend.suite)}{on}: {trend.measure} of {plural(len(trend.runs), 'run')}, oldest first"
    titles = ("run", "commit", trend.measure, "95% CI", "from the run before (95% CI)")
    rows: list[list[Cell]] = [[(title, "dim") for title in titles]]
    for run in trend.runs:
        interval = "" if run.interval is None else " to ".join(_number(trend, end) for end in run.interval)
        change = ""
        if run.change is not None:
            moved = f"{_signed(trend, run.change.difference)} ({_interval(trend, run.change)})"
            change = f"{moved} {run.change.direction or ''}".rstrip()
        texts = (one_line(run.run_id), _commit(run), _number(trend, run.value), interval, change)
        rows.append([(text, None) for text in texts])
    return "\n".join([*findings(trend), "", head, *aligned(rows, width, color=color), "", *notes(trend)]).rstrip()


def notes(trend: Trend) -> list[str]:
    """Notes on caveats and on runs that are left out."""
    return [f"note: {note}" for note in _notes(trend)]


def trend_data(trend: Trend) -> dict[str, Json]:
    """The runs and the differences between them, as a JSON object."""
    return {
        "suite": trend.suite,
        "target": trend.target,
        "measure": trend.measure.replace(" ", "_"),
        "runs": [{**to_builtins(run), "error": run.error} for run in trend.runs],
        "earlier_runs": trend.earlier,
        "baseline": {"run_id": trend.baseline, "pinned": trend.pinned},
        "from_baseline": None if trend.from_baseline is None else to_builtins(trend.from_baseline),
        "left_out": [to_builtins(one) for one in trend.left_out],
    }


def findings(trend: Trend) -> Iterator[str]:
    """What the runs show, in sentences."""
    latest = trend.runs[-1]
    compared = [(before, run, run.change) for before, run in pairwise(trend.runs) if run.change is not None]
    shown = [(before, run, found) for before, run, found in compared if found.direction is not None]
    for before, run, found in shown:
        verb = "rose" if found.direction == "higher" else "fell"
        yield (
            f"The {trend.measure} {verb} after {_named(before)}: {_number(trend, before.value)} there, "
            f"{_number(trend, run.value)} in {_named(run)}; {_paired(trend, found)}."
        )
    if not compared:
        first = "is the first whole run" if len(trend.runs) == 1 else "has no case in common with the one before it"
        value = _number(trend, latest.value)
        yield f"Nothing to compare: {_named(latest)} {first}; its {trend.measure} is {value}."
    elif not shown:
        yield f"No change from one run to the next is shown; {_last(trend, latest)}."
    elif shown[-1][1] is not latest:
        yield f"No further change is shown since; {_last(trend, latest)}."
    base = trend.from_baseline
    if base is not None and base != latest.change:
        named = f"{'the pinned' if trend.pinned else 'the first run shown as'} baseline {one_line(base.before)}"
        if base.direction is not None:
            better = f"is {base.direction} than {named}"
            yield f"The latest run, {one_line(latest.run_id)}, {better}; {_paired(trend, base)}."
        else:
            yield f"No difference of the latest run from {named} is shown: {_paired(trend, base)}."


def _last(trend: Trend, latest: TrendRun) -> str:
    found = latest.change
    if found is None:
        return f"the latest, {_named(latest)}, has no case in common with the one before it"
    return f"from {one_line(found.before)} to {one_line(latest.run_id)}: {_paired(trend, found)}"


def _paired(trend: Trend, found: RunDifference) -> str:
    """`difference -29.0 points (95% CI -38.9 to -19.8, 100 cases)`."""
    unit = "" if trend.measure == "mean score" else " points"
    difference, cases = _signed(trend, found.difference), plural(found.cases, "case")
    return f"difference {difference}{unit} (95% CI {_interval(trend, found)}, {cases})"


def _interval(trend: Trend, found: RunDifference) -> str:
    return " to ".join(_signed(trend, end) for end in found.interval)


def _signed(trend: Trend, difference: float) -> str:
    return signed(difference, 3) if trend.measure == "mean score" else signed(100 * difference, 1)


def _number(trend: Trend, value: float) -> str:
    return f"{value:.3f}" if trend.measure == "mean score" else percent(value)


def _named(run: TrendRun) -> str:
    commit = _commit(run)
    return one_line(run.run_id) + (f" (commit {commit})" if commit else "")


def _commit(run: TrendRun) -> str:
    return one_line(run.commit or "")[:_COMMIT]


def _notes(trend: Trend) -> Iterator[str]:
    differences = [run.change for run in trend.runs if run.change is not None]
    if trend.from_baseline is not None and trend.from_baseline not in differences:
        differences.append(trend.from_baseline)
    unsure = sum(one.direction is None and not one.errors_decide and one.p <= USUAL for one in differences)
    if unsure:
        yield (
            f"{plural(unsure, 'more interval')} excluded 0, but a series of comparisons does that by chance; a "
            "difference is shown only if its p is at most its part of the 5% that the whole series may err"
        )
    if errors := sum(one.errors_decide for one in differences):
        yield f"{plural(errors, 'difference')} not shown, because errored cases could have decided otherwise"
    if unjudged := sum(run.judged < run.total for run in trend.runs):
        yield f"in {plural(unjudged, 'run')}, cases errored or did not run; they are not in the {trend.measure}"
    for run in trend.runs:
        if run.notes:
            yield f"{one_line(run.run_id)} differs from the run before it: {'; '.join(map(one_line, run.notes))}"
    if trend.earlier:
        yield f"{plural(trend.earlier, 'earlier run')} not listed (--last)"
    reasons: dict[str, list[str]] = defaultdict(list)
    for one in trend.left_out:
        reasons[one.reason].append(one.run_id)
    for reason, runs in reasons.items():
        more = f" and {len(runs) - _LISTED} more" if len(runs) > _LISTED else ""
        listed = ", ".join(map(one_line, runs[-_LISTED:]))
        yield f"{plural(len(runs), 'run')} left out: {one_line(reason)}: {listed}{more}"
