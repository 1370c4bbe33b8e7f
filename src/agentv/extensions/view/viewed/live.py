"""What happened in a run, and in the project, since somebody looked last."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from typing import Literal

from msgspec import Struct

from agentv.errors import StoreError
from agentv.extensions.view.viewed.cases import StatusCounts, ViewedCase
from agentv.extensions.view.viewed.growing import GrowingRun
from agentv.extensions.view.viewed.runs import RunList, ViewedRun
from agentv.reports.text.escaping import without_directories
from agentv.store.files.directory import RUN, is_being_written, read_document

LiveState = Literal["running", "ended", "deleted", "unreadable"]

_AT_ONCE = 200
"""Rows of one event."""

_HELD = 8
"""Changes that are held, for others who look from the same place."""


class RowsEvent(Struct, frozen=True):
    """Rows were added.

    Attributes:
        cases: those with a new row, as they are now, with all their trials.
        done, planned: trials with a row, and trials to do; null: unknown.
        counts: how the cases of the run ended so far.
        cursor: the place after these rows.
    """

    cases: list[ViewedCase]
    done: int
    planned: int | None
    counts: StatusCounts
    cursor: str


class StateEvent(Struct, frozen=True):
    """The state of a run changed.

    Attributes:
        state: `ended`: it is finished or was interrupted, as `/api/runs/{id}` says.
    """

    state: LiveState
    problem: str = ""


class ResetEvent(Struct, frozen=True):
    """The rows were replaced or cut: all that was read of them must be read again."""

    cursor: str


class RunChanges:
    """Changes of one run for all who watch it: read once, however many they are."""

    def __init__(self, run: GrowingRun) -> None:
        self.run = run
        self._held: OrderedDict[tuple[str, str], RowsEvent | ResetEvent | None] = OrderedDict()

    def read(self) -> bool:
        """Read what was appended; whether anything was.

        Raises:
            StoreError: the rows cannot be read.
        """
        if not self.run.changed():
            return False
        self.run.catch_up(0.1)
        return True

    def state(self) -> StateEvent:
        """Whether the run goes on."""
        if not self.run.path.is_dir():
            return StateEvent("deleted")
        try:
            return StateEvent("running" if is_being_written(self.run.path) else "ended")
        except StoreError as error:
            return StateEvent("unreadable", without_directories(str(error)))

    def cursor(self) -> str:
        """The place after the rows that were read."""
        return self.run.progress().cursor

    def after(self, cursor: str) -> RowsEvent | ResetEvent | None:
        """What happened after a place; None: nothing."""
        key = (cursor, self.cursor())
        if cursor == key[1]:
            return None
        if key not in self._held:
            self._held[key] = self._found(*key)
            while len(self._held) > _HELD:
                self._held.popitem(last=False)
        return self._held[key]

    def _found(self, cursor: str, now: str) -> RowsEvent | ResetEvent | None:
        with self.run.lock:
            found = self.run.changed_since(cursor, _AT_ONCE)
            if found is None:
                return ResetEvent(now)
            entries, following = found
            with self.run.index() as index:
                counts, done = StatusCounts.of(index.counts), index.trials
        return RowsEvent([ViewedCase.of(entry) for entry in entries], done, self._planned(), counts, following)

    def _planned(self) -> int | None:
        with suppress(StoreError):
            planned = read_document(self.run.path / RUN).get("planned")
            number = planned.get("trials") if isinstance(planned, dict) else None
            return number if isinstance(number, int) else None
        return None


class ListChanges:
    """Changes of the list of runs, for all who watch it."""

    def __init__(self, runs: RunList) -> None:
        self._runs = runs
        self.known: dict[str, ViewedRun] = {}

    def read(self) -> bool:
        """Look at all runs; whether one is new, changed, or gone."""
        found = {run.run_id: run for run in self._runs.all()}
        changed = found != self.known
        self.known = found
        return changed
