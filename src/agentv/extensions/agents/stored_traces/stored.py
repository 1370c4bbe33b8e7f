"""The trace of each trial of a stored run: its artifact, or what its row says."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentv.app.results.stored import StoredRun
from agentv.authoring.source.nearest import did_you_mean
from agentv.errors import UsageError
from agentv.model.run.trace_summary import Spent, summary_of_trace
from agentv.model.values.response import Failure
from agentv.model.values.trace import Trace
from agentv.model.values.usage import TokenUsage
from agentv.stats.samples.distribution import RunFigures, distribution_of
from agentv.store.files.traces import artifact


@dataclass(frozen=True, slots=True)
class TracedTrial:
    """A row of a run, with the trace of its trial or why it cannot be read."""

    row: Mapping[str, Any]
    trace: Trace | Failure

    @property
    def case(self) -> str:
        """The id of its case."""
        return str(self.row.get("test_id"))

    @property
    def name(self) -> str:
        """The case, with all that tells it from the other trials of the run."""
        row = self.row
        parts = [f"on {row.get('target')}"] + [f"{row[key]}" for key in ("variant", "prompt_id") if row.get(key)]
        sample = f", sample {row['sample']}" if row.get("sample") not in (None, 1) or row.get("repeat") else ""
        return f"{self.case} {', '.join(parts)}{sample}"


def traced_trials(run: StoredRun) -> Iterator[TracedTrial]:
    """The trials of a run with their traces, in the order in which they ended."""
    from agentv.app.exports import Exported

    for line in Exported(run).rows():
        row = json.loads(line)
        if isinstance(row, dict):
            yield TracedTrial(row, trace_of_row(run.path, row))


def trials_of_case(run: StoredRun, case: str, chosen: Mapping[str, str | int | None]) -> list[TracedTrial]:
    """The trials of one case.

    Args:
        run: the run.
        case: id of the case.
        chosen: key of a row → what it must say; None: anything.

    Raises:
        UsageError: the run has no such case, or none of its trials is chosen.
    """
    from agentv.app.exports import Exported

    rows: list[Mapping[str, Any]] = []
    names: dict[str, None] = {}
    for line in Exported(run).rows():
        row = json.loads(line)
        names[str(row.get("test_id"))] = None
        if str(row.get("test_id")) == case:
            rows.append(row)
    if not rows:
        raise UsageError(f"no case '{case}' in the run {run.run_id}", did_you_mean(case, names))
    wanted = {key: value for key, value in chosen.items() if value is not None}
    found = [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]
    if not found:
        said = " and ".join(f"--{key} {value}" for key, value in wanted.items())
        there = ", ".join(sorted({str(row.get(key)) for row in rows for key in wanted}))
        raise UsageError(f"no trial of '{case}' in the run {run.run_id} matches {said}", f"there are {there}")
    return [TracedTrial(row, trace_of_row(run.path, row)) for row in found]


def trace_of_row(directory: Path, row: Mapping[str, Any]) -> Trace | Failure:
    """The trace of the trial of a row.

    Args:
        directory: of the run, which `trace_path` counts from.
        row: of `index.jsonl`.
    """
    named = row.get("trace_path")
    if not isinstance(named, str) or not named:
        return _of_row(row)
    from agentv.store.files.traces import read

    path = artifact(directory, named)
    return path if isinstance(path, Failure) else read(path)


def _of_row(row: Mapping[str, Any]) -> Trace | Failure:
    """What a row says of a trial without a trace: its messages, and what they took."""
    from msgspec.structs import replace

    from agentv.extensions.agents.traces.messages import trace_of_messages
    from agentv.extensions.agents.traces.values import number, tokens_of
    from agentv.model.values.trace import UsageStep

    messages = list(row["input"]) if isinstance(row.get("input"), list) else []
    if isinstance(row.get("output"), str) and not row.get("turns"):
        messages.append({"role": "assistant", "content": row["output"]})
    trace = trace_of_messages(messages, "row")
    if isinstance(trace, Failure):
        return Failure("no-output", "the trial has neither a trace nor an answer")
    used = UsageStep(
        None, tokens_of(row.get("token_usage")), number(row.get("cost_usd")), 0.0, number(row.get("duration_ms"))
    )
    return replace(trace, steps=(*trace.steps, used), duration_ms=used.duration_ms)


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
