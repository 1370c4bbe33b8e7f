"""`agentv results merge`: combine shards (`agentv eval --shard I/N`) into one run."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agentv.app.gates import with_gates
from agentv.app.labelled_runs import has_gate, labelled_runs
from agentv.app.results.listing import compared_totals_of, listed_run
from agentv.app.results.place import RESULTS, partial_in, project_of, project_with
from agentv.app.results.stored import StoredRun, find_run
from agentv.app.running.run_record import SIGNATURE, gated_suite, signature_of, with_agent_versions
from agentv.app.settings import parse_shard
from agentv.authoring.source.files import repository_root
from agentv.errors import StoreError, UsageError
from agentv.model.run.runs import ListedRun
from agentv.model.run.summary import PartialRun, Summary
from agentv.model.values.formatting import plural
from agentv.model.values.values import Json, objects_in
from agentv.store.files.directory import (
    ARTIFACTS,
    HISTORY,
    INDEX,
    JOURNAL,
    KEPT_WORKSPACES,
    RUN,
    RunDirectory,
    read_document,
)
from agentv.store.files.lines import append_private, read_lines
from agentv.store.journal.answers import HEADER
from agentv.store.journal.journal import Journal
from agentv.store.journal.verification import check_rows
from agentv.store.rows.reading import is_torn, key_in

_NAMED = 5
"""Maximum number of files or trials in a message."""

_PER_SHARD_SETTINGS = frozenset(
    {"paths", "workers", "executor", "shard", "timeout_s", "budget_usd", "budget_tokens", "rerun", "cache"}
)
"""Settings in which shards of one run may differ, as one may have been resumed with other values."""


class _Shard(Struct, frozen=True):
    """A run of one shard."""

    path: Path
    listed: ListedRun
    record: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> _Shard:
        """Read the run in a directory.

        Raises:
            StoreError: its files cannot be read, or a row was changed.
        """
        check_rows(path)
        return cls(path, listed_run(path), read_document(path / RUN))

    @property
    def shard(self) -> str | None:
        found = self.record.get("settings", {}).get("shard")
        return found if isinstance(found, str) else None

    @property
    def count(self) -> int:
        """Number of shards of the run."""
        return parse_shard(self.shard or "")[1]

    @property
    def settings(self) -> dict[str, Json]:
        """Settings that all shards must share, including the seed of `--sample` but not that of `--shuffle`."""
        found = {name: value for name, value in self.record["settings"].items() if name not in _PER_SHARD_SETTINGS}
        if found.get("sample") is None:
            found.pop("seed", None)
        return {**found, "agentv": self.record.get("agentv")}


class MergedRun(Struct, frozen=True):
    """The merged run of several shards.

    Attributes:
        notes: missing shards and unfinished trials.
    """

    path: Path
    notes: tuple[str, ...]


def merge_runs(named: Sequence[str], out: str | None = None, *, partial: bool = False) -> MergedRun:
    """Write the run that shards are parts of: rows, answers, totals and artifacts.

    Args:
        named: ids or directories of the shards.
        out: the directory to write to; None: a new one in `.agentv/results`.
        partial: also merge if shards are missing, or did not finish.

    Raises:
        UsageError: the runs are not shards of one run, or some are missing.
        StoreError: a run cannot be read, or the new one cannot be written.
    """
    root = project_with(RESULTS)
    paths = dict.fromkeys(find_run(name, root, action="merge").absolute() for name in named)
    shards = [_Shard.read(path) for path in paths]
    problems = [*_not_shards(shards)] or [*_differences(shards), *_duplicates(shards)]
    if problems:
        raise UsageError("cannot merge: " + "; ".join(problems))
    incomplete = list(_incomplete(shards))
    if incomplete and not partial:
        raise UsageError("cannot merge: " + "; ".join(incomplete), "finish those first, or use --partial")
    at = Path(out) if out is not None else None
    with RunDirectory.create(project_of(str(Path.cwd())), datetime.now(UTC), out=at) as directory:
        _copy(shards, directory.path)
        project = repository_root(str(directory.path.parent))
        record = _record(shards, directory.run_id, project)
        with Journal(directory, project) as journal:
            directory.write(RUN, record)
            summaries = [one.listed.summary for one in shards if one.listed.summary is not None]
            found = replace(
                compared_totals_of(directory.path, record),
                duration_ms=sum(one.duration_ms for one in summaries),
                processes=sum(one.processes for one in summaries),
                held_back=sum(one.held_back for one in summaries),
                judges=tuple(dict.fromkeys(name for one in summaries for name in one.judges)),
            )
            run = StoredRun(directory.path, project, directory.run_id, record, None)
            journal.write_summary(_with_gates(found, shards, run).as_json())
    return MergedRun(directory.path, tuple(incomplete))


def _with_gates(summary: Summary, shards: Sequence[_Shard], run: StoredRun) -> Summary:
    """Return the totals with the results of the suites' gates, decided by all cases instead of per shard."""
    suites = list(map(gated_suite, objects_in(run.record["suites"])))
    labels = labelled_runs().of_suites((one.name for one in suites), run.project)
    if labels.problem is not None and any(map(has_gate, suites)):
        raise StoreError(labels.problem)
    failed: Counter[str] = Counter()
    for gate in (gate for one in shards if one.listed.summary is not None for gate in one.listed.summary.gates):
        failed[gate.suite] += gate.failed if gate.gate == "activation" else 0
    changed = any(one.record.get("labels_sha256", labels.sha256) != labels.sha256 for one in shards)
    return with_gates(summary, suites, replace(run, labels=labels), failed.__getitem__, changed=changed)


def _not_shards(shards: Sequence[_Shard]) -> Iterator[str]:
    for one in shards:
        if one.listed.state == "being written":
            yield f"the run {one.path.name} is still being written"
        elif one.shard is None:
            yield f"the run {one.path.name} is no shard (agentv eval --shard I/N)"


def _differences(shards: Sequence[_Shard]) -> Iterator[str]:
    """Yield the reasons why runs are not shards of one run, comparing each with the first."""
    first, *others = shards
    for one in others:
        ours, theirs, runs = first.settings, one.settings, f"the runs {first.path.name} and {one.path.name}"
        names = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
        parts = [f"{name} ({_shown(ours.get(name))}, {_shown(theirs.get(name))})" for name in names]
        if first.count != one.count:
            parts.append(f"shard ({first.shard}, {one.shard})")
        if parts:
            yield f"{runs} have other settings: {', '.join(parts)}"
        if files := list(dict.fromkeys(_other_files(first.record["suites"], one.record["suites"]))):
            more = f" and {len(files) - _NAMED} more" if len(files) > _NAMED else ""
            yield f"{runs} are of other files: {', '.join(files[:_NAMED])}{more}"


def _shown(value: Json) -> str:
    return msgspec.json.encode(value).decode()


def _other_files(suites: list[dict[str, Any]], others: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the eval files, and files that they use, that differ."""
    before = {(one["path"], one["name"]): one for one in suites}
    after = {(one["path"], one["name"]): one for one in others}
    for path, name in {**before, **after}:
        one, other = before.get((path, name)), after.get((path, name))
        if one is None or other is None:
            yield path or name
        elif one != other:
            files = {**one["files"], **other["files"]}
            changed = [file for file in files if one["files"].get(file) != other["files"].get(file)]
            yield from changed or [f"{path or name} ({', '.join(key for key in one if one[key] != other.get(key))})"]


def _duplicates(shards: Sequence[_Shard]) -> Iterator[str]:
    """Yield messages about shards that are given twice, and trials that ran in several shards."""
    names: dict[str | None, str] = {}
    for one in shards:
        if one.shard in names:
            yield f"the runs {names[one.shard]} and {one.path.name} are both shard {one.shard}"
        names[one.shard] = one.path.name
    if len(names) < len(shards):
        return
    seen: set[int] = set()
    for one in shards:
        own = {hash(key.trial): key.test_id for _, line in read_lines(one.path / INDEX) if (key := key_in(line))}
        if twice := [own[key] for key in own.keys() & seen]:
            named = ", ".join(sorted(twice)[:_NAMED])
            yield f"{plural(len(twice), 'trial')} of the run {one.path.name} also ran in another shard: {named}"
        seen |= own.keys()


def _incomplete(shards: Sequence[_Shard]) -> Iterator[str]:
    given, count = {one.shard for one in shards}, shards[0].count
    if missing := [name for number in range(1, count + 1) if (name := f"{number}/{count}") not in given]:
        yield f"{'shard' if len(missing) == 1 else 'shards'} {', '.join(missing)} missing"
    for one in shards:
        if one.listed.state != "finished":
            yield f"the run {one.path.name} (shard {one.shard}) ran {one.listed.done} of {one.listed.planned} trials"


def _copy(shards: Sequence[_Shard], path: Path) -> None:
    append_private(path / JOURNAL, [HEADER])
    for one in shards:
        append_private(
            path / JOURNAL, (line for _, line in read_lines(one.path / JOURNAL) if line != HEADER and not is_torn(line))
        )
        for name in (INDEX, HISTORY):
            if (one.path / name).exists():
                append_private(path / name, (line for _, line in read_lines(one.path / name) if not is_torn(line)))
        for name in (ARTIFACTS, KEPT_WORKSPACES):
            if (one.path / name).is_dir():
                shutil.copytree(one.path / name, path / name, symlinks=True, dirs_exist_ok=True)


def _record(shards: Sequence[_Shard], run_id: str, root: str) -> dict[str, Json]:
    """Return the `run.json` of the merged run."""
    records = [one.record for one in shards]
    planned = {name: sum(one["planned"][name] for one in records) for name in ("cases", "trials")}
    settings = {name: value for name, value in records[0]["settings"].items() if name != "shard"}
    reruns = [one["settings"].get("rerun") for one in records]
    settings["rerun"] = next((one for one in ("failed", "errored") if one in reruns), None)
    settings["cache"] = any(one["settings"].get("cache") for one in records)
    record: dict[str, Json] = {
        **{name: value for name, value in records[0].items() if name != SIGNATURE},
        "run_id": run_id,
        "started": min(str(one["started"]) for one in records),
        "processes": sum(one.get("processes", 1) for one in records),
        "planned": planned,
        "partial": msgspec.to_builtins(_partial(shards, planned)),
        "settings": settings,
        "merged": [one.path.name for one in shards],
    }
    for one in records[1:]:
        record = {**(with_agent_versions(record, one.get("agent_versions") or {}) or record)}
    if (signature := signature_of(record, root)) is not None:
        record[SIGNATURE] = signature
    return record


def _partial(shards: Sequence[_Shard], planned: dict[str, int]) -> PartialRun | None:
    """Return which part of the suites the shards ran together, or None if all."""
    parts = [part for one in shards if (part := partial_in(one.record)) is not None]
    if not parts or planned["trials"] == parts[0].of_trials:
        return None
    complete = len(shards) == shards[0].count
    why = tuple(name for name in parts[0].why if name != "shard" or not complete)
    return PartialRun(planned["cases"], parts[0].of, why, planned["trials"], parts[0].of_trials)
