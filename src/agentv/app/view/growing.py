"""One run whose rows are read as they are written, through its index of cases."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from array import array
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

from agentv.app.results.planned import planned_counts
from agentv.app.view.batches import Collected, read_batch
from agentv.app.view.saved_failures import read_groups, written_groups
from agentv.errors import StoreError
from agentv.lazy_dataclass import dataclass
from agentv.model.run.summary import Summary
from agentv.model.run.trial import TrialResult
from agentv.model.values.values import JsonObject
from agentv.reports.run.failures import FailureGroup, FailureGroups
from agentv.store.files.appended import FileState, fingerprint, line_at, state_of
from agentv.store.files.directory import INDEX, VIEWED, is_being_written
from agentv.store.index.case_choice import CaseChoice
from agentv.store.index.case_entries import CaseEntry
from agentv.store.index.case_index import CaseIndex
from agentv.store.rows.results import result_in

T = TypeVar("T")

_FIRST_S = 0.3
"""Seconds for which an answer waits for rows that are not read yet."""

_CHOICES = 4
"""Choices whose order is held: 4 MB each of a million cases."""


_ROWS_FILE = "rows file"
"""What an index keeps of the file that it was made of."""

_REMEMBERED = 16
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FORMAT})


class DamagedIndexError(StoreError):
    """An index that SQLite cannot read: it is thrown away, and built again at the next question."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is read.

    Attributes:
        cursor: what an event stream starts after; another file has another one.
        indexed: share of the rows that is read, 0..1.
        problem: why some rows are left out; empty: none is.
    """

    cursor: str
    indexed: float
    problem: str


class GrowingRun:
    """A run and its index of cases. For several threads.

    Args:
        path: absolute, of its directory.
        root: absolute path of the repository root, which paths in rows are relative to.
        temporary: a file of this process in which the index grows.
    """

    def __init__(self, path: Path, root: str, temporary: Path) -> None:
        self.path = path
        self.root = root
        self._file = path / INDEX
        self._temporary = temporary
        self.lock = RLock()
        self._index: CaseIndex | None = None
        self._kept = False
        self._seen: FileState | None = None
        self._inode = 0
        self._generation = 0
        self._problem = ""
        self._collected = Collected()
        self._chosen: OrderedDict[tuple[CaseChoice, int], array[int]] = OrderedDict()
        self._remembered: OrderedDict[tuple[Hashable, int], Any] = OrderedDict()

    def close(self) -> None:
        """Let go of the index."""
        with self.lock:
            self._begin_again()

    def catch_up(self, seconds: float = _FIRST_S) -> Progress:
        """Read what was appended, for so long at most.

        Raises:
            StoreError: the rows cannot be read.
        """
        until = time.monotonic() + seconds
        while self._read_some() and time.monotonic() < until:
            pass
        return self.progress()

    def changed(self) -> bool:
        """Whether the file is another than the one that was read."""
        try:
            return self._seen != state_of(self._file)
        except StoreError:
            return False

    def progress(self) -> Progress:
        """How far it is read."""
        with self.lock:
            place = 0 if self._index is None else self._index.read.place
            size = 0 if self._seen is not None else _size_of(self._file)
            return Progress(self._cursor(place), place / size if size > place else 1.0, self._problem)

    @contextmanager
    def index(self) -> Iterator[CaseIndex]:
        """The index, as far as it is read, for one thread.

        Raises:
            DamagedIndexError: its file was damaged.
        """
        with self.lock:
            if self._index is None:
                self._index = self._new_index()
            try:
                yield self._index
            except sqlite3.DatabaseError as error:
                if not self._kept and getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DAMAGED:
                    raise
                self._begin_again()
                with suppress(OSError):
                    (self.path / VIEWED).unlink(missing_ok=True)
                raise DamagedIndexError(f"the index of {self.path} was damaged; it is built again: {error}") from error

    def numbers(self, choice: CaseChoice) -> array[int]:
        """The numbers of the chosen cases in their order; computed once as long as no row is added."""
        with self.index() as index:
            key = (choice, index.read.next_trial)
            found = self._chosen.get(key)
            if found is None:
                found = self._chosen[key] = index.numbers(choice)
                while len(self._chosen) > _CHOICES:
                    self._chosen.popitem(last=False)
            self._chosen.move_to_end(key)
            return found

    def remember(self, name: Hashable, make: Callable[[CaseIndex], T]) -> T:
        """What is computed of the index, once as long as no row is added."""
        with self.index() as index:
            key = (name, index.read.next_trial)
            if key not in self._remembered:
                self._remembered[key] = make(index)
                while len(self._remembered) > _REMEMBERED:
                    self._remembered.popitem(last=False)
            found: T = self._remembered[key]
            return found

    def changed_since(self, cursor: str, limit: int) -> tuple[list[CaseEntry], str] | None:
        """Cases with a row after a cursor, of so many rows at most, and the cursor after them; None: another file."""
        with self.index() as index:
            try:
                start = int(cursor.partition("-")[2], 16)
            except ValueError:
                return None
            if cursor != self._cursor(start) or start > index.read.place:
                return None
            changed, end = index.changed_since(start, limit)
            return index.entries(changed), self._cursor(end)

    def result(self, trial: int) -> TrialResult | None:
        """The trial with a number in the index.

        Raises:
            StoreError: its row cannot be read.
        """
        with self.index() as index:
            place = index.place_of(trial)
        return None if place is None else self._result_at(place)

    def failures(self) -> list[FailureGroup]:
        """The failures of the rows that were read, by cause.

        Raises:
            StoreError: as `result`.
        """
        with self.index() as index:
            if self._collected.failures is None:
                saved = index.saved(f"failures {index.read.next_trial}")
                if saved is not None:
                    return read_groups(saved)
                found = FailureGroups()
                for number, place in list(index.not_passed()):
                    found.add(self._result_at(place), number)
                self._collected.failures = found
            return self._collected.failures.groups()

    def totals(self, record: JsonObject) -> Summary | None:
        """The totals of the rows that were read; None where there are too many to count them again and again."""
        with self.lock:
            counts, planned = self._collected.counts, planned_counts(record)
            if counts is None:
                return None
            return counts.summary(run_id=str(record.get("run_id", "")), planned=planned, duration_ms=0.0)

    def keep(self) -> None:
        """Keep the index beside the rows, if that can be, once the run is over and all of it is read."""
        with self.lock:
            if self._kept or self._index is None or self._seen is None or self._problem or self.changed():
                return
            new = self.path / f".{VIEWED}.{os.getpid()}.new"
            try:
                if is_being_written(self.path):
                    return
                self._index.save(f"failures {self._index.read.next_trial}", written_groups(self.failures()))
                self._index.save(_ROWS_FILE, _stamp(self._seen))
                self._index.commit()
                shutil.copyfile(self._temporary, new)
                new.chmod(0o600)
                new.replace(self.path / VIEWED)
            except (OSError, StoreError):  # it stays where it is
                with suppress(OSError):
                    new.unlink(missing_ok=True)
            self._kept = True

    def _result_at(self, place: int) -> TrialResult:
        try:
            return result_in(line_at(self._file, place), self.root)
        except ValueError as error:
            raise StoreError(f"{self._file}: no row of a run starts at byte {place}: {error}") from error

    def _read_some(self) -> bool:
        """Read rows for a moment; whether there are more."""
        with self.index() as index:
            found = state_of(self._file)
            if found is not None and found == self._seen:
                return False
            current = index
            if found is None or self._is_another(found, index) or _rewritten(found, self._seen):
                self._generation += bool(index.read.place)
                self._begin_again()
                current = self._index = CaseIndex.create(self._temporary)
            return found is not None and self._read_batch(found, current)

    def _read_batch(self, found: FileState, index: CaseIndex) -> bool:
        self._inode = found.inode
        before, start = index.replaced, index.read
        batch = read_batch(self._file, self.root, start.place, start.next_trial, self._collected)
        grown = index
        if batch.end > start.place:
            grown = self._writable(index)
            grown.append(batch.trials, batch.end, fingerprint(self._file, batch.end))
        if grown.replaced > before:
            self._collected.failures = None
        self._problem = self._problem or batch.problem
        if not batch.more:
            grown.commit()
            self._seen = found
        return batch.more

    def _is_another(self, found: FileState, index: CaseIndex) -> bool:
        """Whether the file is not the one that was read so far, or not any more."""
        read = index.read
        if found.size < read.place or (self._inode and found.inode != self._inode):
            return True
        return bool(read.place) and fingerprint(self._file, read.place) != read.fingerprint

    def _new_index(self) -> CaseIndex:
        """The index that was kept beside the rows, where it is of them; else an empty one."""
        if (found := CaseIndex.open(self.path / VIEWED)) is not None:
            with suppress(StoreError, sqlite3.Error):
                state = state_of(self._file)
                if state is not None and not self._is_another(state, found) and _fits(state, found.saved(_ROWS_FILE)):
                    self._kept = True
                    self._inode = state.inode
                    self._collected = Collected(None, None)
                    return found
            found.close()
        self._temporary.unlink(missing_ok=True)
        return CaseIndex.create(self._temporary)

    def _cursor(self, place: int) -> str:
        """Names a place in the rows; of rows that were replaced in the same file, another generation."""
        return f"{self._inode:x}.{self._generation:x}-{place:x}"

    def _writable(self, index: CaseIndex) -> CaseIndex:
        """The index; of one that was kept a copy, for its file never changes."""
        if not self._kept:
            return index
        index.close()
        self._kept = False
        shutil.copyfile(self.path / VIEWED, self._temporary)
        copied = CaseIndex.open(self._temporary, writable=True)
        if copied is None:
            raise StoreError(f"cannot copy {self.path / VIEWED}")
        self._index = copied
        return copied

    def _begin_again(self) -> None:
        """Forget all that was read."""
        if self._index is not None:
            self._index.close()
        self._index, self._kept, self._seen, self._inode, self._problem = None, False, None, 0, ""
        self._collected = Collected()
        self._chosen.clear()
        self._remembered.clear()
        with suppress(OSError):
            self._temporary.unlink(missing_ok=True)


def _rewritten(found: FileState, seen: FileState | None) -> bool:
    """Whether rows were changed in their place: the file has the same size, and was written since."""
    return seen is not None and found.size == seen.size and found.changed_ns != seen.changed_ns


def _stamp(state: FileState) -> bytes:
    return f"{state.size:x}-{state.changed_ns:x}".encode()


def _fits(found: FileState, kept: bytes | None) -> bool:
    """Whether an index was kept of this file, or of one that was only appended to since."""
    return kept is not None and (kept == _stamp(found) or not kept.startswith(b"%x-" % found.size))


def _size_of(path: Path) -> int:
    with suppress(StoreError):
        found = state_of(path)
        return 0 if found is None else found.size
    return 0
