"""The trials of a stored run that a person chooses, found through the index of its rows."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, replace

from agentv.app.results.stored import StoredRun
from agentv.errors import UsageError
from agentv.model.selection import Selection
from agentv.model.summary import Counts
from agentv.store.directory import is_being_written
from agentv.store.index import RowIndex


@dataclass(frozen=True, slots=True)
class Chosen:
    """Trials of a run.

    Attributes:
        run: the run, of which only these are looked at, and no more of them than were wanted.
        counts: how many there are in all, whatever was wanted, and how they ended.
        wanted: how many are in `run`.
    """

    run: StoredRun
    counts: Counts
    wanted: int


def choose(run: StoredRun, selection: Selection, limit: int | None = None) -> Chosen:
    """The trials of a run that a selection means, at most `limit` of them, in the order in which they ended.

    Raises:
        UsageError: a name that is given is that of nothing in the run, however it ended.
        StoreError: its rows cannot be read.
    """
    with RowIndex.of(run.path, keep=not is_being_written(run.path)) as index:
        counts = index.counts(selection)
        if not counts.total and _names(selection) and not index.counts(replace(selection, statuses=())).total:
            raise UsageError(f"no trial of the run {run.run_id} matches {' and '.join(_names(selection))}")
        places = array("q", index.places(selection, limit))
    return Chosen(replace(run, places=places), counts, len(places))


def bytes_to_index(run: StoredRun) -> int:
    """How much `choose` has to read before it can choose; nothing where that was read before."""
    index = RowIndex.there(run.path)
    if index is None:
        return run.index.stat().st_size if run.index.exists() else 0
    index.close()
    return 0


def _names(selection: Selection) -> list[str]:
    """What was asked for by name, as a person types it."""
    asked = {
        "--case": selection.cases,
        "--suite": selection.suites,
        "--target": selection.targets,
        "--tag": selection.tags,
    }
    return [" or ".join(f"{flag} '{name}'" for name in names) for flag, names in asked.items() if names]
