"""The trials of a stored run that a person chooses, found through the index of its rows."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from msgspec import structs

from agentv.app.results.stored import StoredRun
from agentv.authoring.source.nearest import did_you_mean
from agentv.errors import UsageError
from agentv.model.run.group_totals import Counts
from agentv.model.run.selection import Selection
from agentv.store.files.directory import is_being_written
from agentv.store.index.search_index import RowIndex
from agentv.store.journal.verification import check_rows

_GUESSED_FROM = 10_000
"""Names that a slip of the pen is held against."""


@dataclass(frozen=True, slots=True)
class SelectedTrials:
    """Trials of a run.

    Attributes:
        run: the run, restricted to the selected trials.
        counts: number of matching trials by outcome, without the limit.
        wanted: number of trials in `run`.
    """

    run: StoredRun
    counts: Counts
    wanted: int


def choose(
    run: StoredRun, selection: Selection, limit: int | None = None, *, failures_first: bool = False
) -> SelectedTrials:
    """The trials of a run that match a selection, at most `limit`, in the order of the eval files.

    Args:
        run: the run.
        selection: of its trials.
        limit: at most so many; None: all.
        failures_first: those that failed or errored come first, and those that passed last.

    Raises:
        UsageError: a given name does not occur in the run.
        StoreError: its rows cannot be read, or one was changed.
    """
    with checked_index(run, selection) as index:
        counts = index.counts(selection)
        places = array("q", index.places(selection, limit, failures_first=failures_first))
    return SelectedTrials(replace(run, places=places), counts, len(places))


@contextmanager
def checked_index(run: StoredRun, selection: Selection) -> Iterator[RowIndex]:
    """The index of a run in which everything that a selection names occurs.

    Raises:
        UsageError, StoreError: as `choose`.
    """
    there = RowIndex.there(run.path)
    if there is None:
        check_rows(run.path)
    else:
        there.close()
    with RowIndex.of(run.path, keep=not is_being_written(run.path)) as index:
        _check_names(index, selection, run.run_id)
        named = _named_options(selection)
        if named and not index.counts(structs.replace(selection, statuses=())).total:
            described = " and ".join(" or ".join(f"{flag} '{name}'" for name in names) for flag, names in named)
            raise UsageError(f"no trial of the run {run.run_id} matches {described}", _nearest(index, selection))
        yield index


def _check_names(index: RowIndex, selection: Selection, run_id: str) -> None:
    """Refuse a name that nothing in the run has, beside others that something has too.

    Raises:
        UsageError: as `choose`.
    """
    chosen = {"--case": "cases", "--suite": "suites", "--target": "targets", "--tag": "tags"}
    for flag, names in _named_options(selection):
        for name in names:
            only: dict[str, Any] = {chosen[flag]: (name,)}
            if not index.counts(Selection(**only)).total:
                message = f"no trial of the run {run_id} matches {flag} '{name}'"
                raise UsageError(message, _nearest(index, Selection(**only)))


def bytes_to_index(run: StoredRun) -> int:
    """Number of bytes that `choose` must read first; 0 if they are indexed."""
    index = RowIndex.there(run.path)
    if index is None:
        return run.index.stat().st_size if run.index.exists() else 0
    index.close()
    return 0


def _named_options(selection: Selection) -> list[tuple[str, tuple[str, ...]]]:
    """What was asked for by name, with the options that do."""
    options = (
        ("--case", selection.cases),
        ("--suite", selection.suites),
        ("--target", selection.targets),
        ("--tag", selection.tags),
    )
    return [(flag, names) for flag, names in options if names]


def _nearest(index: RowIndex, selection: Selection) -> str | None:
    """What was meant by a name that nothing has, as far as that can be guessed."""
    for kind in ("cases", "suites", "targets", "tags"):
        there = index.names(kind, _GUESSED_FROM)
        for name in getattr(selection, kind):
            if name not in there and (hint := did_you_mean(name, there)):
                return hint
    return None
