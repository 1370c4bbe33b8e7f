"""Output of `agentv results list`, as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import to_builtins

from agentv.model.run.runs import ListedRun
from agentv.model.run.summary import Summary
from agentv.model.values.formatting import duration, plural
from agentv.model.values.values import Json
from agentv.reports.run.totals import cost_of
from agentv.reports.text import GAP, Cell, aligned, listed, one_line, percent, shown_from, widths_of

NAMED = 3
"""Suites and targets that a row names."""

_ROOM = 24
"""Terminal columns for the last column (WHAT); if there are fewer, other columns are left out."""

_HEADINGS = ("RUN", "STARTED", "STATE", "CASES PASSED", "PART", "RATE", "95% CI", "COST", "TIME", "WHAT")
_LEFT_OUT_FIRST = ("TIME", "COST", "95% CI", "STARTED", "STATE")
_UNKNOWN: Cell = ("-", "dim")
_STYLES = {"interrupted": "errored", "being written": "tested", "unreadable": "wrong"}


def render_runs(runs: Sequence[ListedRun], total: int, *, width: int, color: bool = False) -> str:
    """A table of runs, followed by their number.

    Args:
        runs: runs in the order of the rows.
        total: number of all runs, including those that are not shown.
        width: width of the terminal.
        color: use ANSI colors.
    """
    table = [_row(run) for run in runs]
    headings = [name for name in _HEADINGS if name != "PART" or any(run.partial is not None for run in runs)]
    for column in _LEFT_OUT_FIRST:
        taken = widths_of([list(headings), *([row[name] for name in headings] for row in table)])
        if width - sum(taken) - len(GAP) * len(taken) < _ROOM:
            headings.remove(column)
    rows: list[list[Cell]] = [[(name, "bold") for name in headings]]
    rows += [[row[name] for name in headings] for row in table]
    count = plural(total, "run")
    if len(runs) < total:
        count += f", newest first; --limit {total} lists all"
    return "\n".join([*aligned(rows, width, color=color), "", count])


def _row(run: ListedRun) -> dict[str, Cell]:
    summary = run.summary
    row = dict.fromkeys(_HEADINGS, _UNKNOWN)
    row["RUN"] = (one_line(run.run_id, 40), None)
    row["STARTED"] = (started_words(run) or "-", None)
    row["PART"] = ("", None) if run.partial is None else (run.partial.badge, "tested")
    row["STATE"] = (run.state, _STYLES.get(run.state))
    row["WHAT"] = (one_line(run.problem, 300), "wrong") if run.problem else (suites_and_targets(run), None)
    if run.state == "being written":
        of = "" if run.planned is None else f" of {run.planned}"
        row["CASES PASSED"] = (f"{run.done}{of} trials done", "tested")
    if summary is None:
        return row
    cases = summary.cases
    errored = f", {cases.errored} errored" if cases.errored else ""
    gated = "" if all(gate.passed for gate in summary.gates) else ", gate failed"
    style = "errored" if errored else "failed" if gated else None
    row["CASES PASSED"] = (f"{cases.passed} of {cases.total}{errored}{gated}", style)
    row["COST"] = (cost_of(summary) or "-", None)
    if summary.pass_rate is not None:
        style = "failed" if cases.failed or gated else "passed"
        row["RATE"] = (f"{percent(summary.pass_rate)}{_trials_suffix(summary)}", style)
    if summary.pass_rate_interval is not None:
        low, high = summary.pass_rate_interval
        row["95% CI"] = (f"{percent(low)} to {percent(high)}", None)
    if run.duration_ms is not None:
        row["TIME"] = (duration(run.duration_ms), None)
    return row


def _trials_suffix(summary: Summary) -> str:
    """` of 28 trials`, or ` over 60 trials` for cases with several samples; empty if each case has one trial."""
    if summary.trials.total == summary.cases.total or summary.early_stops is not None:
        return ""
    word = "of" if summary.rule_pass_rate is None else "over"  # a mean over cases is not a share of trials
    return f" {word} {plural(summary.judged, 'trial', ',')}"


def suites_and_targets(run: ListedRun) -> str:
    """`refunds, orders on gpt`."""
    suites, targets = (listed(names, NAMED, 60) for names in (run.suites, run.targets))
    return f"{suites} on {targets}" if targets else suites


def run_words(run: ListedRun) -> str:
    """Description of a run in a menu: `2026-11-21 14:03, refunds on gpt, 88.2% of 272 cases`."""
    facts = [started_words(run), suites_and_targets(run)]
    if run.summary is not None and run.summary.pass_rate is not None:
        facts.append(f"{percent(run.summary.pass_rate)} of {plural(run.summary.cases.total, 'case', ',')}")
    if run.state != "finished":
        facts.append(run.state)
    if run.partial is not None:
        facts.append(f"only {run.partial.badge}")
    return ", ".join(fact for fact in facts if fact)


def started_words(run: ListedRun) -> str:
    """`2026-11-21 14:03`, in UTC; empty if unknown."""
    return one_line(run.started[:16].replace("T", " "), 20)


_TOTALS = (
    *("cases", "trials", "pass_rate", "pass_rate_interval", "pass_rate_bounds", "interval_clusters"),
    *("rule_pass_rate", "mean_score"),
)
"""Keys of a summary that the list includes."""


def run_data(run: ListedRun, here: str) -> dict[str, Json]:
    """An entry of the list as a JSON object."""
    summary = run.summary
    return {
        "run_id": run.run_id,
        "path": shown_from(run.directory, here),
        "started": run.started or None,
        "state": run.state,
        "partial": None if run.partial is None else to_builtins(run.partial),
        "suites": list(run.suites),
        "targets": list(run.targets),
        "planned": run.planned,
        "done": run.done,
        **{name: to_builtins(getattr(summary, name, None)) for name in _TOTALS},
        "gates": [] if summary is None else to_builtins(summary.gates),
        "cost_usd": None if summary is None else summary.cost_usd,
        "judge_cost_usd": None if summary is None else summary.judge_cost_usd,
        "duration_ms": run.duration_ms,
        "problem": run.problem,
    }
