"""The traces of a stored run's trials: read from artifacts or rows, measured, and exported as OTLP and ATIF."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeGuard

from agentv.app.results.stored import StoredRun
from agentv.authoring.source.nearest import did_you_mean
from agentv.errors import UsageError
from agentv.extensions.agents.traces.atif import atif_of
from agentv.extensions.agents.traces.otlp_export import TraceOrigin, otlp_of, protobuf_of
from agentv.model.values.formatting import plural
from agentv.model.values.json_text import without_breaks
from agentv.model.values.response import Failure
from agentv.model.values.trace import Trace, UsageStep
from agentv.model.values.trace_summary import Spent, summary_of_trace
from agentv.model.values.usage import TokenUsage
from agentv.reports.text import one_line
from agentv.stats.samples.distribution import RunFigures, distribution_of
from agentv.store.files.directory import write_private
from agentv.store.files.traces import artifact, read
from agentv.store.files.whole_file import check_place, write_whole


@dataclass(frozen=True, slots=True)
class TracedTrial:
    """A row of a run, and the trace of its trial or the Failure of reading it."""

    row: Mapping[str, Any]
    trace: Trace | Failure

    @property
    def case(self) -> str:
        """The id of the trial's case."""
        return str(self.row.get("test_id"))

    @property
    def name(self) -> str:
        """The case and what distinguishes the trial from the others of the run: target, variant, prompt and sample."""
        row = self.row
        parts = [f"on {row.get('target')}"] + [f"{row[key]}" for key in ("variant", "prompt_id") if row.get(key)]
        sample = f", sample {row['sample']}" if row.get("sample") not in (None, 1) or row.get("repeat") else ""
        return f"{self.case} {', '.join(parts)}{sample}"


def traced_trials(run: StoredRun) -> Iterator[TracedTrial]:
    """Return the trials of a run with their traces, in the order in which they ended."""
    return (TracedTrial(row, trace_of_row(run.path, row)) for row in _rows(run))


def _rows(run: StoredRun) -> Iterator[dict[str, Any]]:
    from agentv.app.exports import Exported

    return map(json.loads, Exported(run).rows())


def trials_of_case(run: StoredRun, case: str, chosen: Mapping[str, str | int | None]) -> list[TracedTrial]:
    """Return the trials of one case.

    Args:
        run: the run.
        case: id of the case.
        chosen: key of a row → required value; None for any.

    Raises:
        UsageError: the run has no such case, or none of its trials matches.
    """
    rows: list[Mapping[str, Any]] = []
    names: dict[str, None] = {}
    for row in _rows(run):
        names[str(row.get("test_id"))] = None
        if str(row.get("test_id")) == case:
            rows.append(row)
    if not rows:
        raise UsageError(f"no case '{case}' in the run {run.run_id}", did_you_mean(case, names))
    wanted = {key: value for key, value in chosen.items() if value is not None}
    found = [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]
    if not found:
        options = " and ".join(f"--{key} {value}" for key, value in wanted.items())
        there = ", ".join(sorted({str(row.get(key)) for row in rows for key in wanted}))
        raise UsageError(f"no trial of '{case}' in the run {run.run_id} matches {options}", f"there are {there}")
    return [TracedTrial(row, trace_of_row(run.path, row)) for row in found]


def trace_of_row(directory: Path, row: Mapping[str, Any]) -> Trace | Failure:
    """Return the trace of a row's trial. Without a trace file, it consists of the row's messages and usage.

    Args:
        directory: directory of the run, to which `trace_path` is relative.
        row: a row of `index.jsonl`.
    """
    named = row.get("trace_path")
    if not isinstance(named, str) or not named:
        from msgspec.structs import replace

        from agentv.extensions.agents.traces.messages import trace_of_messages
        from agentv.extensions.agents.traces.values import number, tokens_of

        messages = list(row["input"]) if isinstance(row.get("input"), list) else []
        if isinstance(row.get("output"), str) and not row.get("turns"):
            messages.append({"role": "assistant", "content": row["output"]})
        trace = trace_of_messages(messages, "row")
        if isinstance(trace, Failure):
            return Failure("no-output", "the trial has neither a trace nor an answer")
        tokens, took = tokens_of(row.get("token_usage")), number(row.get("duration_ms"))
        used = UsageStep(None, tokens, number(row.get("cost_usd")), 0.0, took)
        return replace(trace, steps=(*trace.steps, used), duration_ms=used.duration_ms)
    path = artifact(directory, named)
    return path if isinstance(path, Failure) else read(path)


MEASURES = ("score", "duration_ms", "cost_usd", "tokens", "tool_calls")


def figures_of(trials: Iterable[TracedTrial]) -> RunFigures:
    """Return the figures of trials. A measure that a trial does not report is left out, not counted as zero."""
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
        if _is_number(value := row.get(name)):
            yield name, float(value)
    usage = row.get("token_usage")
    total = usage.get("total") if isinstance(usage, dict) else None
    if _is_number(total):
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


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


PROTOBUF = frozenset({".pb", ".binpb"})


def export_otlp(run: StoredRun, files: Sequence[Path]) -> Iterator[str]:
    """Write the traces of a run as OTLP. Yield a line for each file, then one for each trial without a trace.

    Args:
        run: the run, or a selection of its trials.
        files: paths to write: `.json`, or `.pb` for protobuf.

    Raises:
        UsageError: no trial has a trace, a file has another suffix, or a library is missing.
        StoreError: a file cannot be written.
    """
    return _export(run, files, ("otlp", (".json", *sorted(PROTOBUF))), partial(_write_otlp, run))


def export_atif(run: StoredRun, files: Sequence[Path]) -> Iterator[str]:
    """Like `export_otlp`, but write trajectories in ATIF: `.jsonl` has one per line, `.json` exactly one."""
    return _export(run, files, ("atif", (".json", ".jsonl")), _write_atif)


_Traces = Sequence[tuple[TracedTrial, Trace]]


def _export(
    run: StoredRun, files: Sequence[Path], form: tuple[str, tuple[str, ...]], write: Callable[[_Traces, Path], None]
) -> Iterator[str]:
    name, suffixes = form
    for path in files:
        if path.suffix.lower() not in suffixes:
            raise UsageError(f"cannot export {name} to {path}: its name must end in {', '.join(suffixes)}")
        check_place(path)
    found: list[tuple[TracedTrial, Trace]] = []
    left_out: list[str] = []
    for trial in traced_trials(run):
        if isinstance(trial.trace, Failure):
            left_out.append(f"{trial.name}: {trial.trace.message}")
        else:
            found.append((trial, trial.trace))
    if not found:
        raise UsageError(f"nothing to export: no trial of the run {run.run_id} has a trace", *left_out[:1])
    for path in files:
        write(found, path)
        yield f"wrote {one_line(str(path))}: {plural(len(found), 'trace')}"
    yield from (f"not exported: {one_line(text)}" for text in left_out)


def _write_otlp(run: StoredRun, found: _Traces, path: Path) -> None:
    document = otlp_of([(trace, _origin(run, trial)) for trial, trace in found])
    if path.suffix.lower() not in PROTOBUF:
        write_whole(path, [json.dumps(document, ensure_ascii=False), "\n"])
        return
    data = protobuf_of(document)
    if isinstance(data, Failure):
        raise UsageError(data.message)
    write_private(path, data)


def _write_atif(found: _Traces, path: Path) -> None:
    if path.suffix.lower() == ".json" and len(found) > 1:
        what = f"{path} can hold one trajectory, and there are {len(found)}"
        raise UsageError(what, "use the suffix .jsonl, or choose one trial with --case")
    write_whole(path, _trajectories(found))


def _trajectories(found: _Traces) -> Iterator[str]:
    for trial, trace in found:
        trajectory = atif_of(trace, _began(trial))
        extra = trajectory.get("extra")
        about = {"case_id": trial.case, "target": trial.row.get("target"), "score": trial.row.get("score")}
        trajectory["extra"] = {**(extra if isinstance(extra, dict) else {}), "agentv": about}
        yield without_breaks(json.dumps(trajectory, ensure_ascii=False).encode()).decode() + "\n"


def _origin(run: StoredRun, trial: TracedTrial) -> TraceOrigin:
    row = trial.row
    began = _began(trial)
    about: dict[str, Any] = {
        "agentv.run.id": run.run_id,
        "agentv.case.id": trial.case,
        "agentv.target": row.get("target"),
        "agentv.variant": row.get("variant"),
        "agentv.sample": row.get("sample"),
        "agentv.status": row.get("status"),
        "agentv.score": row.get("score"),
    }
    known = {key: value for key, value in about.items() if value is not None}
    began_ms = 0.0 if began is None else began.timestamp() * 1000
    return TraceOrigin(f"{run.run_id}\0{row.get('key')}\0{trial.name}", began_ms, known)


def _began(trial: TracedTrial) -> datetime | None:
    """Return when a trial began, from the end and the duration in its row."""
    timestamp, took = trial.row.get("timestamp"), trial.row.get("duration_ms")
    try:
        ended = datetime.fromisoformat(str(timestamp))
    except ValueError:
        return None
    ended = ended if ended.tzinfo is not None else ended.replace(tzinfo=UTC)
    return ended - timedelta(milliseconds=took if isinstance(took, int | float) else 0)
