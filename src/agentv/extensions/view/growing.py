"""A run that is indexed while its rows are written.

The finished index is stored beside the rows, so that later starts need not read them again.
"""

from __future__ import annotations

import os
import secrets
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

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agentv.app.results.place import planned_counts
from agentv.errors import StoreError
from agentv.extensions.view.appended import Collected, FileState, fingerprint, read_batch, state_of
from agentv.extensions.view.case_index import CaseIndex
from agentv.extensions.view.case_rows import CaseChoice, CaseEntry
from agentv.extensions.view.rates import IndexFacts, index_facts, save_facts
from agentv.model.run.summary import Summary
from agentv.model.run.trial import TrialResult
from agentv.model.values.values import JsonObject
from agentv.reports.run.failures import FailureGroup, FailureGroups
from agentv.reports.run.trial_view import TrialView
from agentv.store.files.directory import INDEX, RUN, VIEWED, is_being_written, read_document
from agentv.store.rows.reading import FileOrder
from agentv.store.rows.results import read_results_at

T = TypeVar("T")

_WAIT_S = 0.3
"""Seconds that a request waits for unread rows."""

_CACHED = 16
"""Number of computed results that are cached per run, up to 5 MB each for a million cases."""

_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FORMAT})


class DamagedIndexError(StoreError):
    """SQLite cannot read an index; it was deleted, and is rebuilt at the next access."""


class Progress(Struct, frozen=True):
    """How much of a run has been read.

    Attributes:
        cursor: cursor after which an event stream starts; it differs for every file.
        indexed: share of the rows read so far, 0..1.
        problem: why some rows are left out; "" if none are.
    """

    cursor: str
    indexed: float
    problem: str


class GrowingRun:
    """A run and its index of cases. Safe for several threads.

    Args:
        path: absolute path of its directory.
        root: absolute path of the repository root, which paths in rows are relative to.
        temporary: path of a file of this process for the index while it grows.
    """

    def __init__(self, path: Path, root: str, temporary: Path) -> None:
        self.path = path
        self.root = root
        self._file = path / INDEX
        self._temporary = temporary
        self.lock = RLock()
        self._index: CaseIndex | None = None
        self._is_stored = False
        self._seen: FileState | None = None
        self._inode = 0
        self._generation = secrets.randbits(32)
        self._problem = ""
        self._collected = Collected()
        self._cache: OrderedDict[Hashable, Any] = OrderedDict()
        self._cache_version = 0  # `next_trial` of the index for which results are cached
        self._tried_to_store: int | None = None

    def close(self) -> None:
        """Close the index."""
        with self.lock:
            self._reset()

    def catch_up(self, seconds: float = _WAIT_S) -> Progress:
        """Read appended rows for at most `seconds`.

        Raises:
            StoreError: the rows cannot be read.
        """
        until = time.monotonic() + seconds
        while self._read_some() and time.monotonic() < until:
            pass
        return self.progress()

    def changed(self) -> bool:
        """Whether the rows have changed since they were read."""
        with suppress(StoreError):
            return self._seen != state_of(self._file)
        return False

    def progress(self) -> Progress:
        """How much of the run has been read."""
        with self.lock:
            place = 0 if self._index is None else self._index.read.place
            size = 0 if self._seen is not None else _size_of(self._file)
            return Progress(self._cursor(place), place / size if size > place else 1.0, self._problem)

    @contextmanager
    def index(self) -> Iterator[CaseIndex]:
        """Give one thread access to the index of the rows read so far.

        Raises:
            DamagedIndexError: the file of the index is damaged.
        """
        with self.lock:
            if self._index is None:
                self._index = self._new_index()
            try:
                yield self._index
            except sqlite3.DatabaseError as error:
                if not self._is_stored and getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DAMAGED:
                    raise
                self._reset()
                with suppress(OSError):
                    (self.path / VIEWED).unlink(missing_ok=True)
                raise DamagedIndexError(f"the index of {self.path} was damaged; it is built again: {error}") from error

    def numbers(self, choice: CaseChoice) -> array[int]:
        """The numbers of the selected cases in order, cached until a row is added."""
        return self.cached(choice, lambda index: index.queries.numbers(choice))

    def facts(self, cut: str | None) -> IndexFacts:
        """Counts and rates over all cases. `cut` says why the run was stopped because of its results, if it was."""
        return self.cached("facts", index_facts).with_cut(cut)

    def cached(self, name: Hashable, make: Callable[[CaseIndex], T]) -> T:
        """The result of `make`, cached by name until a row is added or newer results replace it."""
        with self.index() as index:
            if index.read.next_trial != self._cache_version:
                self._cache.clear()
                self._cache_version = index.read.next_trial
            if name not in self._cache:
                self._cache[name] = make(index)
                if len(self._cache) > _CACHED:
                    self._cache.popitem(last=False)
            self._cache.move_to_end(name)
            value: T = self._cache[name]
            return value

    def changed_since(self, cursor: str, limit: int) -> tuple[list[CaseEntry], str] | None:
        """The cases of at most `limit` rows after a cursor, and the next cursor; None for a cursor of another file."""
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
        return None if place is None else _result_at(self._file, self.root, place)

    def failures(self) -> list[FailureGroup]:
        """The failures of the rows that were read, by cause.

        Raises:
            StoreError: a row cannot be read.
        """
        with self.index() as index:
            if self._collected.failures is None:
                saved = index.saved(_failures_name(index))
                if saved is not None:
                    return _groups(saved)
                self._collected.failures = _failures_of(index, self._file, self.root)
            return self._collected.failures.groups()

    def totals(self, record: JsonObject) -> Summary | None:
        """The totals of the rows read so far; None if there are too many, or if not all were read by this process."""
        with self.lock:
            counts, run_id = self._collected.counts, str(record.get("run_id", ""))
            planned = planned_counts(record)
            return None if counts is None else counts.summary(run_id=run_id, planned=planned, duration_ms=0.0)

    @property
    def can_be_stored(self) -> bool:
        """Whether all rows are read and the index is not stored yet, and storing was not tried for these rows."""
        with self.lock:
            index, read = self._index, self._seen is not None
            return index is not None and read and not self._is_stored and self._tried_to_store != index.read.next_trial

    def store_index(self) -> bool:
        """Store the index beside the rows if the run has ended and all rows are read; return False if that failed.

        A copy is finished, so that the index can be used meanwhile.
        """
        copy = self._temporary.with_suffix(".kept")
        with self.lock:
            index, seen = self._index, self._seen
            if index is None or seen is None or not self.can_be_stored:
                return True
            self._tried_to_store = index.read.next_trial
            if self.changed() or _may_be_written(self.path):
                return True
            failures, problem = self._collected.failures, self._problem
            made = index.copied(copy)
        try:
            _finish(made, seen, problem, failures or _failures_of(made, self._file, self.root))
            made.close()
            with self.lock:
                if self._index is index and self._seen == seen and not self.changed():
                    return self._switch_to(copy)
                return True
        finally:
            made.close()
            copy.unlink(missing_ok=True)

    def _switch_to(self, finished: Path) -> bool:
        """Continue with a finished index; return whether it could be stored beside the rows."""
        if not _put_beside_rows(finished, self.path):
            return False
        opened = CaseIndex.open(self.path / VIEWED, self._order())
        if opened is not None and self._index is not None:
            self._index.close()
            self._index, self._is_stored = opened, True
            self._temporary.unlink(missing_ok=True)
        return True

    def _read_some(self) -> bool:
        """Read a batch of rows; return whether there are more."""
        with self.index() as index:
            found = state_of(self._file)
            if found is not None and found == self._seen:
                return False
            current = index
            if found is None or _was_replaced(found, index, self._file, self._inode) or _rewritten(found, self._seen):
                self._generation += bool(index.read.place)
                self._reset()
                current = self._index = CaseIndex.create(self._temporary, self._order())
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

    def _new_index(self) -> CaseIndex:
        """The index stored beside the rows if it belongs to them, otherwise an empty one."""
        with suppress(StoreError, OSError):
            state = state_of(self._file)
            found = _stored_index(self.path, state, self._order())
            if found is not None and state is not None and not _was_replaced(state, found[0], self._file, self._inode):
                self._is_stored, self._inode = True, state.inode
                self._collected = Collected(None, None)
                self._problem = found[1]
                return found[0]
        self._temporary.unlink(missing_ok=True)
        return CaseIndex.create(self._temporary, self._order())

    def _order(self) -> FileOrder:
        """The order of the run's files; that of its rows if its `run.json` cannot be read."""
        with suppress(StoreError):
            return FileOrder(read_document(self.path / RUN), self.root)
        return FileOrder({})

    def _cursor(self, place: int) -> str:
        """The cursor of a place in the rows. Replaced rows get a new generation, which invalidates old cursors."""
        return f"{self._inode:x}.{self._generation:x}-{place:x}"

    def _writable(self, index: CaseIndex) -> CaseIndex:
        """The index, or a copy of a stored one, whose file must not change."""
        if not self._is_stored:
            return index
        self._index, self._is_stored = index.copied(self._temporary), False
        index.close()
        return self._index

    def _reset(self) -> None:
        """Discard the index and everything computed from it."""
        if self._index is not None:
            self._index.close()
        self._index, self._is_stored, self._seen, self._inode, self._problem = None, False, None, 0, ""
        self._collected = Collected()
        self._cache.clear()
        with suppress(OSError):
            self._temporary.unlink(missing_ok=True)


def _rewritten(found: FileState, seen: FileState | None) -> bool:
    """Whether rows were changed in place: the file was written since, but has the same size."""
    return seen is not None and found.size == seen.size and found.changed_ns != seen.changed_ns


def _size_of(path: Path) -> int:
    with suppress(StoreError):
        found = state_of(path)
        return 0 if found is None else found.size
    return 0


def _may_be_written(path: Path) -> bool:
    try:
        return is_being_written(path)
    except StoreError:
        return True


def _failures_of(index: CaseIndex, file: Path, root: str) -> FailureGroups:
    groups = FailureGroups()
    for number, place in list(index.not_passed()):
        groups.add(_result_at(file, root, place), number)
    return groups


def _result_at(file: Path, root: str, place: int) -> TrialResult:
    return next(read_results_at(file, root, [place]))


def _was_replaced(found: FileState, index: CaseIndex, file: Path, inode: int) -> bool:
    """Whether the file was replaced, or the part that was read has changed."""
    read = index.read
    if found.size < read.place or (inode and found.inode != inode):
        return True
    return bool(read.place) and fingerprint(file, read.place) != read.fingerprint


_ROWS_FILE = "rows file"
"""Name under which an index stores the state of the file it was built from."""

_PROBLEM = "problem"


def _stored_index(run: Path, state: FileState | None, order: FileOrder) -> tuple[CaseIndex, str] | None:
    """The index stored beside the rows, and why some rows are left out of it; None if it is not of these rows.

    A modified index is not used.
    """
    found = CaseIndex.open(run / VIEWED, order)
    if found is None or state is None:
        return None
    with suppress(sqlite3.Error):
        stamp = found.saved(_ROWS_FILE)
        # the file is unchanged, or only grew since
        if stamp is not None and (stamp == _stamp(state) or not stamp.startswith(b"%x-" % state.size)):
            return found, (found.saved(_PROBLEM) or b"").decode()
    found.close()
    return None


def _finish(index: CaseIndex, state: FileState, problem: str, failures: FailureGroups) -> None:
    """Save the failures, facts and file state in an index, and seal it.

    Args:
        index: a writable index.
        state: state of the file of rows.
        problem: why some rows are left out; "" if none are.
        failures: failures by cause.
    """
    groups = [replace(one, example=_NO_VIEW, numbers=list(one.numbers)) for one in failures.groups()]
    index.save(_failures_name(index), msgspec.json.encode(groups))
    save_facts(index)
    index.save(_ROWS_FILE, _stamp(state))
    index.save(_PROBLEM, problem.encode(errors="replace"))
    index.seal()


def _put_beside_rows(index: Path, run: Path) -> bool:
    """Copy an index to the directory of its run; return whether that succeeded."""
    new = run / f".{VIEWED}.{os.getpid()}.new"
    try:
        shutil.copyfile(index, new)
        new.chmod(0o600)
        new.replace(run / VIEWED)
    except OSError:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        return False
    return True


_groups = msgspec.json.Decoder(list[FailureGroup]).decode
_NO_VIEW = TrialView("noted", "", "", "", ("", 0), 1, 1, "failed", None, 0.0, None, ())
"""Placeholder for the view of a group's first trial, which no page shows."""


def _failures_name(index: CaseIndex) -> str:
    return f"failures {index.read.next_trial}"


def _stamp(state: FileState) -> bytes:
    return f"{state.size:x}-{state.changed_ns:x}".encode()
