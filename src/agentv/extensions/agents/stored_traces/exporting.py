"""The traces of a run in the formats of others: OTLP and ATIF."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agentv.app.results.stored import StoredRun
from agentv.errors import UsageError
from agentv.extensions.agents.stored_traces.stored import TracedTrial, traced_trials
from agentv.extensions.agents.traces.atif import atif_of
from agentv.extensions.agents.traces.otlp_export import TraceOrigin, otlp_of, protobuf_of
from agentv.model.values.json_lines import without_breaks
from agentv.model.values.response import Failure
from agentv.model.values.trace import Trace
from agentv.store.files.directory import write_private
from agentv.store.files.whole_file import check_place, write_whole

FORMATS = ("otlp", "atif")
PROTOBUF = frozenset({".pb", ".binpb"})


@dataclass(frozen=True, slots=True)
class ExportedTraces:
    """How many traces were written, and which trials have none that could be."""

    written: int
    left_out: tuple[str, ...]


def check_trace_file(form: str, path: Path) -> None:
    """Refuse a file that the traces cannot be written to.

    Raises:
        UsageError: its suffix is none of the format's.
        StoreError: the system refuses.
    """
    known = (".json", *sorted(PROTOBUF)) if form == "otlp" else (".json", ".jsonl")
    if path.suffix.lower() not in known:
        raise UsageError(f"cannot export {form} to {path}: its name must end in {', '.join(known)}")
    check_place(path)


def export_traces(run: StoredRun, form: str, path: Path) -> ExportedTraces:
    """Write the traces of a run.

    Args:
        run: or some of its trials.
        form: one of `FORMATS`.
        path: of the file. `.pb` is OTLP in protobuf; `.jsonl` has one ATIF trajectory a line, `.json` a single one.

    Raises:
        UsageError: there is no trace, or several where one is wanted; a library is missing.
        StoreError: the system refuses.
    """
    check_trace_file(form, path)
    found: list[tuple[TracedTrial, Trace]] = []
    left_out: list[str] = []
    for trial in traced_trials(run):
        if isinstance(trial.trace, Failure):
            left_out.append(f"{trial.name}: {trial.trace.message}")
        else:
            found.append((trial, trial.trace))
    if not found:
        raise UsageError(f"nothing to export: no trial of the run {run.run_id} has a trace", *left_out[:1])
    if form == "otlp":
        _write_otlp(run, found, path)
    else:
        _write_atif(found, path)
    return ExportedTraces(len(found), tuple(left_out))


def _write_otlp(run: StoredRun, found: Sequence[tuple[TracedTrial, Trace]], path: Path) -> None:
    document = otlp_of([(trace, _origin(run, trial)) for trial, trace in found])
    if path.suffix.lower() not in PROTOBUF:
        write_whole(path, [json.dumps(document, ensure_ascii=False), "\n"])
        return
    data = protobuf_of(document)
    if isinstance(data, Failure):
        raise UsageError(data.message)
    write_private(path, data)


def _write_atif(found: Sequence[tuple[TracedTrial, Trace]], path: Path) -> None:
    if path.suffix.lower() == ".json" and len(found) > 1:
        what = f"{path} can hold one trajectory, and there are {len(found)}"
        raise UsageError(what, "use the suffix .jsonl, or choose one trial with --case")
    write_whole(path, _trajectories(found))


def _trajectories(found: Sequence[tuple[TracedTrial, Trace]]) -> Iterator[str]:
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
    return TraceOrigin(
        f"{run.run_id}\0{row.get('key')}\0{trial.name}",
        0.0 if began is None else began.timestamp() * 1000,
        {key: value for key, value in about.items() if value is not None},
    )


def _began(trial: TracedTrial) -> datetime | None:
    """When a trial began: its row says when it ended, and how long it took."""
    said, took = trial.row.get("timestamp"), trial.row.get("duration_ms")
    try:
        ended = datetime.fromisoformat(str(said))
    except ValueError:
        return None
    ended = ended if ended.tzinfo is not None else ended.replace(tzinfo=UTC)
    return ended - timedelta(milliseconds=took if isinstance(took, int | float) else 0)
