"""`agentv results list`: the runs of a repository, newest first."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from agentv.app.results.place import RESULTS, partial_in, place_holding, runs_in
from agentv.app.results.totals import rows_of, totals_of, with_matrix
from agentv.errors import StoreError
from agentv.model.run.runs import ListedRun, RunState
from agentv.model.values.values import Json, JsonObject, objects_in
from agentv.store.files.directory import INDEX, RUN, is_being_written, read_document, results_directory
from agentv.store.files.lines import count_lines
from agentv.store.journal.verification import stored_summary
from agentv.store.rows.reading import count_interrupted


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


def listed_run(path: Path) -> ListedRun:
    """The list entry of one run, or why its files cannot be read."""
    try:
        return _listed(path)
    except StoreError as error:
        return ListedRun(path.name, str(path), "unreadable", problem=str(error))


def compared_run(path: Path) -> ListedRun:
    """As `listed_run`, with the comparisons of a run with several targets, prompts or variants."""
    found = listed_run(path)
    if found.summary is None:
        return found
    try:
        return replace(found, summary=with_matrix(found.summary, path, read_document(path / RUN)))
    except StoreError as error:
        return ListedRun(path.name, str(path), "unreadable", problem=str(error))


def _listed(path: Path) -> ListedRun:
    record = read_document(path / RUN)
    planned = _number(record, "trials")
    began = ListedRun(
        str(record.get("run_id", path.name)),
        str(path),
        "being written",
        suites=tuple(dict.fromkeys(_names(record.get("suites")))),
        targets=tuple(dict.fromkeys(_targets(record.get("suites")))),
        planned=planned,
        started=started if isinstance(started := record.get("started"), str) else "",
        partial=partial_in(record),
    )
    if is_being_written(path):
        return replace(began, done=count_lines(path / INDEX))
    summary, timed = totals_of(path, record)
    # rows are counted only where the totals say that some trials did not end: the others have one each
    done = rows_of(path) if summary.trials.skipped else summary.trials.total
    done -= _interrupted(path) if summary.trials.errored else 0
    spared = summary.early_stops.spared if summary.early_stops is not None else 0
    whole = planned is not None and done >= planned - spared - summary.held_back
    timing = summary.duration_ms if timed else None
    state: RunState = "finished" if whole else "interrupted"
    if whole:  # only a part of its suites, on a part of their targets, may have been selected
        suites, targets = _ran(began.suites, summary.by_suite), _ran(began.targets, summary.by_target)
        began = replace(began, suites=suites, targets=targets)
    return replace(began, state=state, done=done, summary=summary, duration_ms=timing)


def _interrupted(path: Path) -> int:
    """How many rows of a run are of agents that were interrupted; they are read if its journal does not say."""
    stored = stored_summary(path)
    noted = stored.interrupted if stored is not None else None
    return count_interrupted(path / INDEX) if noted is None else noted


def _ran(names: tuple[str, ...], results: Collection[str]) -> tuple[str, ...]:
    """Those with results, in their order; all of them where no result has one of these names."""
    return tuple(name for name in names if name in results) or names


def _number(record: JsonObject, of: str) -> int | None:
    planned = record.get("planned")
    number = planned.get(of) if isinstance(planned, dict) else None
    return number if isinstance(number, int) else None


def _names(found: Json) -> Iterator[str]:
    """The names of the objects of a list."""
    return (name for one in objects_in(found) if isinstance(name := one.get("name"), str))


def _targets(suites: Json) -> Iterator[str]:
    return (name for suite in objects_in(suites) for name in _names(suite.get("targets")))
