"""The traces of a run in the formats of others: OTLP and ATIF."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from agentv.app.results.stored import StoredRun
from agentv.errors import UsageError
from agentv.extensions.agents.stored_traces.stored import TracedTrial, traced_trials
from agentv.extensions.agents.traces.atif import atif_of
from agentv.extensions.agents.traces.otlp_export import TraceOrigin, otlp_of, protobuf_of
from agentv.model.values.formatting import plural
from agentv.model.values.json_lines import without_breaks
from agentv.model.values.response import Failure
from agentv.model.values.trace import Trace
from agentv.reports.text.escaping import one_line
from agentv.store.files.directory import write_private
from agentv.store.files.whole_file import check_place, write_whole

PROTOBUF = frozenset({".pb", ".binpb"})


def export_otlp(run: StoredRun, files: Sequence[Path]) -> Iterator[str]:
    """Write the traces of a run, or of some of its trials, as OTLP; a line for each file, then for what was left out.

    Args:
        run: of the traces.
        files: to write: `.json`, or `.pb` for protobuf.

    Raises:
        UsageError: there is no trace; a file has another suffix; a library is missing.
        StoreError: the system refuses.
    """
    return _exported(run, files, ("otlp", (".json", *sorted(PROTOBUF))), partial(_write_otlp, run))


def export_atif(run: StoredRun, files: Sequence[Path]) -> Iterator[str]:
    """As `export_otlp`, as trajectories of ATIF: `.jsonl` has one a line, `.json` a single one."""
    return _exported(run, files, ("atif", (".json", ".jsonl")), _write_atif)


def _exported(
    run: StoredRun,
    files: Sequence[Path],
    form: tuple[str, tuple[str, ...]],
    write: Callable[[Sequence[tuple[TracedTrial, Trace]], Path], None],
) -> Iterator[str]:
    name, suffixes = form
    for path in files:
        if path.suffix.lower() not in suffixes:
            raise UsageError(f"cannot export {name} to {path}: its name must end in {', '.join(suffixes)}")
        check_place(path)
    left_out: list[str] = []
    for path in files:
        found: list[tuple[TracedTrial, Trace]] = []
        left_out = []
        for trial in traced_trials(run):
            if isinstance(trial.trace, Failure):
                left_out.append(f"{trial.name}: {trial.trace.message}")
            else:
                found.append((trial, trial.trace))
        if not found:
            raise UsageError(f"nothing to export: no trial of the run {run.run_id} has a trace", *left_out[:1])
        write(found, path)
        yield f"wrote {one_line(str(path))}: {plural(len(found), 'trace')}"
    yield from (f"not exported: {one_line(text)}" for text in left_out)


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
