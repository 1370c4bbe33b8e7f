"""Distributions over the trials of a run: score, time, cost, tokens, tool calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from agentv.extensions.agents.stored_traces.stored import TracedTrial
from agentv.model.run.trace_summary import Spent, summary_of_trace
from agentv.model.values.response import Failure
from agentv.model.values.usage import TokenUsage
from agentv.stats.samples.distribution import RunFigures, distribution_of

MEASURES = ("score", "duration_ms", "cost_usd", "tokens", "tool_calls")


def figures_of(trials: Iterable[TracedTrial]) -> RunFigures:
    """The figures of trials. What a trial does not say is left out of that measure, and is no zero."""
    values: dict[str, list[float]] = {name: [] for name in MEASURES}
    number, partial = 0, 0
    unread: list[str] = []
    for trial in trials:
        number += 1
        trace = trial.trace
        if isinstance(trace, Failure) and trace.code != "no-output":
            unread.append(f"{trial.name}: {trace.message}")
        partial += not isinstance(trace, Failure) and bool(trace.partial)
        for name, value in _measured(trial):
            values[name].append(value)
    return RunFigures(number, {name: distribution_of(found) for name, found in values.items()}, tuple(unread), partial)


def _measured(trial: TracedTrial) -> Iterator[tuple[str, float]]:
    row, trace = trial.row, trial.trace
    for name in ("score", "duration_ms", "cost_usd"):
        if _is_number(row.get(name)):
            yield name, float(row[name])
    usage = row.get("token_usage")
    total = usage.get("total") if isinstance(usage, dict) else None
    if isinstance(total, int | float) and not isinstance(total, bool):
        yield "tokens", float(total)
    if isinstance(trace, Failure) or trace.source == "row":
        return
    summary = summary_of_trace(trace, Spent())
    if not trace.partial:
        yield "tool_calls", float(summary.tool_calls)
    tokens = (summary.token_usage or TokenUsage()).total
    if not _is_number(total) and tokens is not None:
        yield "tokens", float(tokens)
    if not _is_number(row.get("cost_usd")) and summary.cost_usd is not None:
        yield "cost_usd", summary.cost_usd


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
