"""`agentv results list`: the runs of a repository, newest first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path

import msgspec

from agentv.app.results.finding import runs_in
from agentv.app.results.place import RESULTS, place_holding
from agentv.app.results.planned import planned_counts
from agentv.errors import StoreError
from agentv.lazy_dataclass import dataclass
from agentv.model.run.runs import ListedRun, RunState
from agentv.model.run.selection import Selection
from agentv.model.run.summary import SelectedCases, Summary
from agentv.model.values.values import Json, JsonObject
from agentv.store.files.decoded_types import described
from agentv.store.files.directory import INDEX, RUN, SUMMARY, is_being_written, read_document, results_directory
from agentv.store.files.lines import count_lines
from agentv.store.index.search_index import RowIndex
from agentv.store.rows.history import replaced_rows
from agentv.store.rows.reading import RowFacts, count_interrupted, read_rows
from agentv.store.totals.summary import read_summary, summarize

_LARGE = 8_000_000
"""Bytes of rows that are not read at every look: their totals are kept in their index."""


@dataclass(frozen=True, slots=True)
class RunListing:
    """Runs, newest first, and how many there are in all."""

    runs: Iterator[ListedRun]
    total: int
    directory: str


def listed_runs(limit: int | None) -> RunListing:
    """The newest runs of the working directory's repository. Reads only as many as requested."""
    results = results_directory(place_holding(RESULTS))
    found = runs_in(results)[::-1]
    return RunListing(map(listed_run, found[:limit]), len(found), str(results))


def interrupted_in(path: Path) -> int:
    """How many rows of a run are of agents that were interrupted."""
    return count_interrupted(path / INDEX)


def listed_run(path: Path, interrupted: Callable[[Path], int] = interrupted_in) -> ListedRun:
    """The list entry of one run, or why its files cannot be read.

    Args:
        path: its directory.
        interrupted: counts its rows of agents that were interrupted.
    """
    try:
        return _listed(path, interrupted)
    except StoreError as error:
        return ListedRun(path.name, str(path), "unreadable", problem=str(error))


def compared_run(path: Path) -> ListedRun:
    """As `listed_run`, with the comparisons of a run with several targets, prompts or variants."""
    found = listed_run(path)
    if found.summary is None:
        return found
    try:
        return replace(found, summary=_compared(found.summary, path, read_document(path / RUN)))
    except StoreError as error:
        return ListedRun(path.name, str(path), "unreadable", problem=str(error))


def _listed(path: Path, interrupted: Callable[[Path], int]) -> ListedRun:
    record = read_document(path / RUN)
    planned = _number(record, "trials")
    began = ListedRun(
        str(record.get("run_id", path.name)),
        str(path),
        "being written",
        suites=tuple(dict.fromkeys(_names(record.get("suites")))),
        targets=tuple(dict.fromkeys(_targets(record.get("suites")))),
        planned=planned,
    )
    if is_being_written(path):
        return replace(began, done=count_lines(path / INDEX))
    summary, timed = totals_of(path, record)
    # rows are counted only where the totals say that some trials did not end: the others have one each
    done = _rows(path) if summary.trials.skipped else summary.trials.total
    done -= interrupted(path) if summary.trials.errored else 0
    spared = summary.early_stops.spared if summary.early_stops is not None else 0
    whole = planned is not None and done >= planned - spared
    timing = summary.duration_ms if timed else None
    state: RunState = "finished" if whole else "interrupted"
    if whole:  # only a part of its suites, on a part of their targets, may have been selected
        suites, targets = _ran(began.suites, summary.by_suite), _ran(began.targets, summary.by_target)
        began = replace(began, suites=suites, targets=targets)
    return replace(began, state=state, done=done, summary=summary, duration_ms=timing)


def _ran(names: tuple[str, ...], results: Collection[str]) -> tuple[str, ...]:
    """Those with results, in their order; all of them where no result has one of these names."""
    return tuple(name for name in names if name in results) or names


def totals_of(path: Path, record: JsonObject) -> tuple[Summary, bool]:
    """The totals of a run that no process writes to, and whether its duration is known.

    From `summary.json`, unless rows were written after it, as in a killed run: then from the rows.

    Raises:
        StoreError: its files cannot be read.
    """
    if _is_current(path):
        return read_summary(path / SUMMARY), True
    found = _from_rows(path, record)
    written = read_summary(path / SUMMARY) if (path / SUMMARY).exists() else None
    if written is not None and _outcome(written) == _outcome(found):
        return written, True  # the directory was copied, and its files have other times
    return found, False


def compared_totals_of(path: Path, record: JsonObject) -> Summary:
    """As `totals_of`, with the matrix of a run that has several targets, prompts or variants, and its comparisons.

    Raises:
        StoreError: as `totals_of`.
    """
    return _compared(totals_of(path, record)[0], path, record)


def _compared(summary: Summary, path: Path, record: JsonObject) -> Summary:
    if summary.matrix is None and max(map(len, (summary.by_target, summary.by_prompt, summary.by_variant))) > 1:
        summary = replace(summary, matrix=_from_rows(path, record).matrix)  # an earlier agentv wrote it
    if summary.matrix is None or summary.matrix.comparisons is not None:
        return summary
    from agentv.app.compare.within import with_comparisons  # imports numpy

    return with_comparisons(summary, path / INDEX, record)


def _outcome(summary: Summary) -> tuple[object, ...]:
    return summary.cases, summary.trials, summary.mean_score, summary.cost_usd


def _from_rows(path: Path, record: JsonObject) -> Summary:
    run_id = str(record.get("run_id", path.name))
    planned = planned_counts(record)

    def summing(rows: Iterator[RowFacts]) -> Summary:
        replaced = replaced_rows(path)
        summary = summarize(rows, run_id=run_id, planned=planned, duration_ms=0.0, replaced=replaced)
        return replace(summary, selected=_selected(record))

    if not (path / INDEX).exists() or (path / INDEX).stat().st_size < _LARGE:
        return summing(read_rows(path / INDEX))
    with RowIndex.of(path, summing=summing, keep=not is_being_written(path)) as index:
        return index.totals() or summing(read_rows(path / INDEX))


def _rows(path: Path) -> int:
    """How many trials of a run have a row."""
    index = RowIndex.there(path)
    if index is None:
        return count_lines(path / INDEX)
    with index:
        return index.counts(Selection()).total


def _is_current(path: Path) -> bool:
    """Whether the summary was written after the last row."""
    try:
        summed = (path / SUMMARY).stat().st_mtime_ns
        return not (path / INDEX).exists() or (path / INDEX).stat().st_mtime_ns <= summed
    except OSError:
        return False


def _selected(record: JsonObject) -> SelectedCases | None:
    found = record.get("selected")
    try:
        return None if found is None else msgspec.convert(found, described(SelectedCases))
    except msgspec.ValidationError:
        return None


def _number(record: JsonObject, of: str) -> int | None:
    planned = record.get("planned")
    number = planned.get(of) if isinstance(planned, dict) else None
    return number if isinstance(number, int) else None


def _names(found: Json) -> Iterator[str]:
    """The names of the objects of a list."""
    for one in found if isinstance(found, list) else ():
        if isinstance(one, dict) and isinstance(name := one.get("name"), str):
            yield name


def _targets(suites: Json) -> Iterator[str]:
    for suite in suites if isinstance(suites, list) else ():
        if isinstance(suite, dict):
            yield from _names(suite.get("targets"))
