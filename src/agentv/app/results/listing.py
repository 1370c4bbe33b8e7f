"""`agentv results list`: the runs of a repository, newest first, and their totals."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agentv.app.results.place import RESULTS, partial_in, planned_counts, project_with, runs_in
from agentv.errors import StoreError
from agentv.model.run.runs import ListedRun, RunState
from agentv.model.run.summary import Summary
from agentv.model.values.values import Json, JsonObject, objects_in
from agentv.store.files.directory import INDEX, RUN, SUMMARY, is_being_written, read_document, results_directory
from agentv.store.files.encoding import to_document
from agentv.store.files.lines import count_lines
from agentv.store.journal.verification import check_rows, stored_summary
from agentv.store.rows.reading import count_interrupted, read_rows, replaced_rows
from agentv.store.totals.summary import summarize, summary_in


class RunListing(Struct, frozen=True):
    """Runs, newest first, and the total number of runs in the results directory."""

    runs: Iterator[ListedRun]
    total: int
    directory: str


def listed_runs(limit: int | None) -> RunListing:
    """Return the newest runs of the working directory's repository, reading only as many as requested."""
    results = results_directory(project_with(RESULTS))
    found = runs_in(results)[::-1]
    return RunListing(map(listed_run, found[:limit]), len(found), str(results))


def listed_run(path: Path) -> ListedRun:
    """Return the list entry of a run; if its files cannot be read, the entry says why."""
    try:
        record = read_document(path / RUN)
        counts = record.get("planned")
        number = counts.get("trials") if isinstance(counts, dict) else None
        planned = number if isinstance(number, int) else None
        targets = (name for suite in objects_in(record.get("suites")) for name in _names(suite.get("targets")))
        began = ListedRun(
            str(record.get("run_id", path.name)),
            str(path),
            "being written",
            suites=tuple(dict.fromkeys(_names(record.get("suites")))),
            targets=tuple(dict.fromkeys(targets)),
            planned=planned,
            started=started if isinstance(started := record.get("started"), str) else "",
            partial=partial_in(record),
        )
        if is_being_written(path):
            return replace(began, done=count_lines(path / INDEX))
        summary, timed = totals_of(path, record)
        # count rows only if some trials did not end; otherwise each trial has one row
        done = count_lines(path / INDEX) if summary.trials.skipped else summary.trials.total
        if summary.trials.errored:
            done -= count_interrupted(path / INDEX)
        spared = summary.early_stops.spared if summary.early_stops is not None else 0
        whole = planned is not None and done >= planned - spared - summary.held_back
        timing = summary.duration_ms if timed else None
        state: RunState = "finished" if whole else "interrupted"
        if whole:  # suites and targets may not have been selected
            suites = _with_results(began.suites, summary.by_suite)
            began = replace(began, suites=suites, targets=_with_results(began.targets, summary.by_target))
        return replace(began, state=state, done=done, summary=summary, duration_ms=timing)
    except StoreError as error:
        return ListedRun(path.name, str(path), "unreadable", problem=str(error))


def compared_run(path: Path) -> ListedRun:
    """Return the list entry of a run, with comparisons if it has several targets, prompts or variants."""
    found = listed_run(path)
    if found.summary is None:
        return found
    try:
        return replace(found, summary=with_matrix(found.summary, path, read_document(path / RUN)))
    except StoreError as error:
        return ListedRun(path.name, str(path), "unreadable", problem=str(error))


def _with_results(names: tuple[str, ...], results: Collection[str]) -> tuple[str, ...]:
    """Return the names with results, or all names if none has results."""
    return tuple(name for name in names if name in results) or names


def _names(found: Json) -> Iterator[str]:
    return (name for one in objects_in(found) if isinstance(name := one.get("name"), str))


_NOT_IN_ROWS = ("duration_ms", "processes", "budget", "against", "held_back", "judges", "gates")
"""Keys of a summary that cannot be computed from rows."""

_SPENT = tuple(
    f"{whose}{what}" for whose in ("", "judge_", "user_") for what in ("cost_usd", "token_usage", "unpriced_trials")
)
"""Keys of a summary that include replaced rows, which are not pushed."""


def totals_of(path: Path, record: JsonObject) -> tuple[Summary, bool]:
    """Return the totals of a run that no process writes to, and whether its duration is known.

    Raises:
        StoreError: its files cannot be read, or rows or `summary.json` were changed after they were written.
    """
    stored = stored_summary(path)
    written = None if stored is None else summary_in(stored.path, stored.content)
    if stored is not None and written is not None and stored.verified and _is_current(path):
        return written, True
    check_rows(path)
    if written is None:
        return _from_rows(path, record), False
    return _completed(_from_rows(path, record), written), True


def compared_totals_of(path: Path, record: JsonObject) -> Summary:
    """Return the totals of a run, with comparisons if it has several targets, prompts or variants.

    Raises:
        StoreError: as `totals_of`.
    """
    return with_matrix(totals_of(path, record)[0], path, record)


def with_matrix(summary: Summary, path: Path, record: JsonObject) -> Summary:
    """Add the comparisons of a run's targets, prompts or variants to its totals, if it has several.

    Raises:
        StoreError: its rows cannot be read.
    """
    if summary.matrix is None or summary.matrix.comparisons is not None:
        return summary
    from agentv.app.compare.gathering import with_comparisons  # imports numpy, for the few runs with several targets

    return with_comparisons(summary, path / INDEX, record)


def totals_of_upload(path: Path, pushed: bytes) -> bytes:
    """Return the `summary.json` to store for a pushed run, with all totals computed from its rows.

    The pushed file is not trusted. Only values that cannot be computed are taken from it: `_NOT_IN_ROWS`, `cut`, and
    the run's spending, because replaced rows are not pushed.

    Args:
        path: the directory of the run, with its `run.json` and all its rows.
        pushed: content of the pushed `summary.json`.

    Raises:
        StoreError: its files cannot be read.
    """
    record = read_document(path / RUN)
    found = _from_rows(path, record)
    try:
        written = summary_in(path / SUMMARY, pushed)
    except StoreError:
        return to_document(found.as_json())
    spent = {name: getattr(written, name) for name in _SPENT}
    return to_document(with_matrix(replace(_completed(found, written), **spent), path, record).as_json())


def _completed(found: Summary, written: Summary) -> Summary:
    """Return totals computed from rows, completed by the values that only `summary.json` contains."""
    kept = {name: getattr(written, name) for name in _NOT_IN_ROWS}
    whole = replace(found, **kept, partial=written.partial or found.partial)
    return whole if written.cut is None else whole.cut_short(written.cut)


def _from_rows(path: Path, record: JsonObject) -> Summary:
    """Compute the totals of a run from its rows."""
    run_id, planned = str(record.get("run_id", path.name)), planned_counts(record)
    rows, replaced = read_rows(path / INDEX), replaced_rows(path)
    summary = summarize(rows, run_id=run_id, planned=planned, duration_ms=0.0, replaced=replaced)
    return replace(summary, partial=partial_in(record))


def _is_current(path: Path) -> bool:
    """Whether the summary was written after the last row."""
    try:
        summed = (path / SUMMARY).stat().st_mtime_ns
        return not (path / INDEX).exists() or (path / INDEX).stat().st_mtime_ns <= summed
    except OSError:
        return False
