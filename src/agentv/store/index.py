"""The rows of a run, made to be searched: one SQLite file beside them, built from them and never the truth.

It says where in `index.jsonl` the rows of which trials begin. It is built when it is first asked for, and again when a
file of the run is another than the one that it was built from. Where it cannot be kept, as in a directory that is
read-only, it is built for the moment.
"""

from __future__ import annotations

import os
import re
import sqlite3
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from agentv.errors import StoreError
from agentv.model.run.matrix import Counts
from agentv.model.run.row import Row, trial_name
from agentv.model.run.runs import Selection
from agentv.model.run.summary import Summary
from agentv.model.values.hashes import NumberedHashes, text_hash
from agentv.store.files.directory import (
    HISTORY,
    INDEX,
    JOURNAL,
    REJECTED,
    RUN,
    SEARCHED,
    SUMMARY,
    VIEWED,
    Closing,
    has_answers,
    is_being_written,
    read_document,
)
from agentv.store.files.encoding import decodable
from agentv.store.files.whole_file import refusals
from agentv.store.rows.reading import FileOrder, read_placed_rows
from agentv.store.totals.tally import STATUSES

VERSION = 6

_SCHEMA = f"""
PRAGMA journal_mode = OFF;  -- a build that fails is thrown away
PRAGMA synchronous = OFF;
CREATE TABLE built_from (  -- one row
    stamp TEXT NOT NULL,   -- sizes and times of the files that this was built from
    totals TEXT            -- summary.json of a run that has none, as computed from its rows
);
CREATE TABLE groups (      -- what many trials have in common
    number INTEGER PRIMARY KEY,
    suite TEXT NOT NULL,
    target TEXT NOT NULL,
    tags TEXT NOT NULL     -- a JSON array
);
CREATE TABLE trials (          -- those whose row counts: of several rows of one trial the last
    place INTEGER PRIMARY KEY, -- where its row begins in index.jsonl, in bytes
    "order" BLOB NOT NULL,     -- the order of the eval files
    test_id TEXT NOT NULL,
    "group" INTEGER NOT NULL,
    status INTEGER NOT NULL    -- {", ".join(f"{code} {status}" for code, status in enumerate(STATUSES))}
);
PRAGMA user_version = {VERSION};
"""
_INDICES = """
CREATE INDEX trials_by_status ON trials (status);
CREATE INDEX trials_by_case ON trials (test_id);
"""
_NAMES = {
    "cases": "SELECT DISTINCT test_id FROM trials",
    "suites": "SELECT DISTINCT suite FROM groups",
    "targets": "SELECT DISTINCT target FROM groups",
    "tags": "SELECT DISTINCT value FROM groups, json_each(tags)",
}
_RANKS = {"failed": 0, "errored": 0, "skipped": 1, "shown": 2, "passed": 3}
_FAILURES_FIRST = f"CASE status {' '.join(f'WHEN {code} THEN {_RANKS[one]}' for code, one in enumerate(STATUSES))} END"
_IN_ORDER = '"order", place'
_BATCH = 1000
_SPECIAL = frozenset("*?[")
_RANGE = re.compile(r"(.)-(.)")
"""Of a range that ends before it begins the shell matches nothing, SQLite its first letter."""

_ALIKE = re.compile(r"(?:[^\[]|\[!?(?:[A-Za-z0-9]-[A-Za-z0-9]|[A-Za-z0-9_.])+\])*")
"""Patterns that SQLite reads as a shell does, but for how it writes `[!a]`."""

Summing = Callable[[Iterator[Row]], Summary]


class RowIndex(Closing):
    """Positions of the rows of trials. A context manager; `close` closes the file."""

    def __init__(self, database: sqlite3.Connection, path: Path | None = None) -> None:
        self._database = database
        self._path = path
        database.create_function("matches", 2, _matches, deterministic=True)

    @classmethod
    def of(cls, run: Path, *, summing: Summing | None = None, keep: bool = True) -> RowIndex:
        """The index of a run, built unless a current one exists.

        Args:
            run: the run's directory.
            summing: makes the totals of a run that has no current summary out of its rows, which are read once only.
            keep: write it to the run's directory, if that can be; not while somebody writes there.

        Raises:
            StoreError: the rows cannot be read.
        """
        stamp = _stamp(run)
        found = _opened(run / SEARCHED, stamp)
        if found is not None and (summing is None or found.totals() is not None):
            return found
        if found is not None:
            found.close()
        built = _build_in(run, stamp, summing) if keep else None
        return built or cls(_built(sqlite3.connect(""), run, stamp, summing))

    @classmethod
    def there(cls, run: Path) -> RowIndex | None:
        """The index of a run if there is one that is current."""
        return _opened(run / SEARCHED, _stamp(run))

    def totals(self) -> Summary | None:
        """The totals that were made when this was built."""
        (text,) = self._database.execute("SELECT totals FROM built_from").fetchone()
        return None if text is None else msgspec.json.decode(text, type=decodable(Summary))

    def counts(self, selection: Selection) -> Counts:
        """The number of chosen trials with each status."""
        where, values = self._where(selection)
        # sums, for to group them SQLite would walk through the index of statuses and look every trial up
        sums = ", ".join(f"ifnull(sum(status = {code}), 0)" for code in range(len(STATUSES)))
        with self._refusals():
            numbers = self._database.execute(f"SELECT {sums} FROM trials{where}", values).fetchone()  # noqa: S608  # made of constants
        return Counts(sum(numbers), *numbers)

    def places(self, selection: Selection, limit: int | None = None, *, failures_first: bool = False) -> Iterator[int]:
        """The offsets of the rows of the chosen trials, in bytes, in the order of the eval files.

        Args:
            selection: of the trials.
            limit: at most so many.
            failures_first: trials that passed come after all others, and those that failed or errored before them.
        """
        where, values = self._where(selection)
        order = f"{_FAILURES_FIRST}, {_IN_ORDER}" if failures_first else _IN_ORDER
        question = f"SELECT place FROM trials{where} ORDER BY {order} LIMIT ?"  # noqa: S608  # as above
        with self._refusals():
            for (place,) in self._database.execute(question, (*values, -1 if limit is None else limit)):
                yield place

    def case_names(self, selection: Selection) -> Iterator[tuple[str, str]]:
        """Ids and suites of the cases with a chosen trial, in the order of the eval files."""
        where, values = self._where(replace(selection, statuses=()))
        codes = [STATUSES.index(status) for status in selection.statuses or STATUSES]
        question = (
            f'SELECT test_id, suite FROM trials JOIN groups ON number = "group"{where} '  # noqa: S608  # as above
            f"GROUP BY test_id, suite HAVING max(status IN ({', '.join('?' * len(codes))})) "
            f'ORDER BY min("order"), min(place)'
        )
        with self._refusals():
            yield from self._database.execute(question, (*values, *codes))

    def _where(self, selection: Selection) -> tuple[str, tuple[str | int, ...]]:
        clauses: list[str] = []
        values: list[str | int] = []
        if selection.statuses:
            codes = sorted(STATUSES.index(status) for status in selection.statuses)
            clauses.append(f"status IN ({', '.join('?' * len(codes))})")
            values += codes
        if selection.suites or selection.targets or selection.tags:
            clauses.append('"group" IN (SELECT value FROM json_each(?))')  # they may be more than there can be marks
            values.append(_as_json(self._groups(selection)))
        if selection.cases:
            patterns = [_clause(pattern) for pattern in selection.cases]
            clauses.append(f"({' OR '.join(clause for clause, _ in patterns)})")
            values += [value for _, added in patterns for value in added]
        return (f" WHERE {' AND '.join(clauses)}" if clauses else ""), tuple(values)

    def _groups(self, selection: Selection) -> list[int]:
        """The numbers of the groups that are chosen."""
        with self._refusals():
            return [
                number
                for number, suite, target, tags in self._database.execute("SELECT * FROM groups")
                if _any(selection.suites, (suite,))
                and _any(selection.targets, (target,))
                and _any(selection.tags, msgspec.json.decode(tags))
            ]

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            mend = f" in {self._path}: delete that file to rebuild it" if self._path else ""
            raise StoreError(f"cannot search the rows: {error}{mend}") from error

    def names(self, kind: Literal["cases", "suites", "targets", "tags"], limit: int) -> list[str]:
        """Available values of one kind of name, up to a maximum number."""
        with self._refusals():
            return [name for (name,) in self._database.execute(f"{_NAMES[kind]} LIMIT ?", (limit,))]

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()


def _clause(pattern: str) -> tuple[str, tuple[str, ...]]:
    """How SQLite matches a pattern, and with what. Where its way is not the shell's it asks us: five times the time."""
    if not _SPECIAL & set(pattern):
        return "test_id = ?", (pattern,)
    if "[" not in pattern:
        return "test_id GLOB ?", (pattern,)  # alone, so that what begins it is looked up
    if _ALIKE.fullmatch(pattern) and all(low <= high for low, high in _RANGE.findall(pattern)):
        return "test_id GLOB ? OR test_id = ?", (pattern.replace("[!", "[^"), pattern)
    return "matches(test_id, ?)", (pattern,)


def _matches(name: str, pattern: str) -> bool:
    return name == pattern or fnmatchcase(name, pattern)  # `a[locale=de]` is an id, and a pattern too


def _any(patterns: Sequence[str], names: Sequence[str]) -> bool:
    return not patterns or any(_matches(name, pattern) for name in names for pattern in patterns)


def _stamp(run: Path) -> str:
    """Sizes and times of the files of a run on which its index stands: another file, another stamp."""
    return " ".join(_file_stamp(run / name) for name in (INDEX, RUN, HISTORY))


def _file_stamp(path: Path) -> str:
    try:
        found = path.stat()
    except OSError:
        return "-"
    return f"{found.st_size}:{found.st_mtime_ns}"


def _opened(path: Path, stamp: str) -> RowIndex | None:
    """The index in a file, or None if the file is missing, not an index, or was built from other rows."""
    if not path.is_file():
        return None
    with suppress(sqlite3.Error):
        database = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)
        with suppress(sqlite3.Error, ValueError):
            version = database.execute("PRAGMA user_version").fetchone()
            if version == (VERSION,) and database.execute("SELECT stamp FROM built_from").fetchone() == (stamp,):
                return RowIndex(database, path)
        database.close()
    return None


def _build_in(run: Path, stamp: str, summing: Summing | None) -> RowIndex | None:
    """An index that was built into the run's directory; None where nothing can be written there."""
    new = run / f".{SEARCHED}.{os.getpid()}.new"
    try:
        with suppress(FileNotFoundError):
            new.unlink()
        with closing(_built(sqlite3.connect(new), run, stamp, summing)):
            pass
        new.replace(run / SEARCHED)
    except (sqlite3.Error, OSError):
        return None
    finally:  # nothing is left of a build that failed or was interrupted
        with suppress(OSError):
            new.unlink()
    return _opened(run / SEARCHED, stamp)


def _built(database: sqlite3.Connection, run: Path, stamp: str, summing: Summing | None) -> sqlite3.Connection:
    """The database with all rows of a run in it.

    Raises:
        StoreError: a line is no row; the text names it.
        sqlite3.Error: it cannot be written.
    """
    with ExitStack() as on_error:
        on_error.callback(database.close)
        database.executescript(_SCHEMA)
        with database:
            try:
                record = read_document(run / RUN)
            except StoreError:  # the rows are there without it
                record = {}
            rows = _IndexBuilder(database, FileOrder(record)).passed_through(run / INDEX)
            totals = None if summing is None else msgspec.json.encode(summing(rows)).decode()
            for _ in rows:  # what the totals did not read, which is all where nobody wants them
                pass
            database.execute("INSERT INTO built_from VALUES (?, ?)", (stamp, totals))
            for statement in _INDICES.strip().splitlines():
                database.execute(statement)
        on_error.pop_all()
        return database


class _IndexBuilder:
    """Takes in rows as they pass."""

    def __init__(self, database: sqlite3.Connection, order: FileOrder) -> None:
        self._database = database
        self._order = order
        self._numbers = NumberedHashes()
        self._places = array("q")
        self._groups: dict[tuple[str, str, tuple[str, ...]], int] = {}
        self._fresh: list[tuple[int, bytes, str, int, int]] = []

    def passed_through(self, path: Path) -> Iterator[Row]:
        """The rows of a file. When the last one has passed all are in the database."""
        codes = {status: code for code, status in enumerate(STATUSES)}
        for place, row in read_placed_rows(path):
            self._replace(place, trial_name(row.eval_path, row.key))
            key = self._order.key(row)
            group = self._groups.setdefault((row.suite, row.target, row.tags), len(self._groups))
            self._fresh.append((place, key, row.test_id, group, codes[row.status]))
            if len(self._fresh) == _BATCH:
                self._write()
            yield row
        self._write()
        rows = ((number, suite, target, _as_json(tags)) for (suite, target, tags), number in self._groups.items())
        self._database.executemany("INSERT INTO groups VALUES (?, ?, ?, ?)", rows)

    def _replace(self, place: int, key: str) -> None:
        """Remove the row that this one replaces."""
        number = self._numbers.number(text_hash(key))
        if number == len(self._places):
            self._places.append(place)
            return
        self._write()
        self._database.execute("DELETE FROM trials WHERE place = ?", (self._places[number],))
        self._places[number] = place

    def _write(self) -> None:
        self._database.executemany("INSERT INTO trials VALUES (?, ?, ?, ?, ?)", self._fresh)
        self._fresh.clear()


def _as_json(values: Sequence[int | str]) -> str:
    return msgspec.json.encode(values).decode()


_LAST = (RUN, JOURNAL)
"""What goes last: as long as there is a `run.json` it can be deleted again, and the lock is on the journal."""

_OWN = frozenset({INDEX, SUMMARY, HISTORY, REJECTED, SEARCHED, VIEWED, *_LAST})
_LEFTOVER = re.compile(rf"\.({'|'.join(map(re.escape, sorted(_OWN)))})(\.\d+)?\.new")
"""What a process left behind that was killed while it replaced a file."""

_IGNORE = ".gitignore"


def size_of_run(path: Path) -> int:
    """The bytes that `remove_run` would free."""
    found = 0
    with suppress(OSError), os.scandir(path) as entries:
        found = sum(entry.stat(follow_symlinks=False).st_size for entry in entries if _is_own(entry.name))
    return found


def check_removable(path: Path) -> None:
    """Refuse a path that is not a run directory, or is a symlink to one.

    A run whose `run.json` is gone or damaged is reported by its journal, which begins as no other file does.

    Raises:
        StoreError: it is; the text says why.
    """
    if path.is_symlink():
        raise StoreError(f"cannot delete {path}: it is a symlink; use the run's own path")
    try:
        record = read_document(path / RUN)
    except StoreError:
        if has_answers(path):
            return
        raise
    known = isinstance(record.get("run_id"), str) and isinstance(record.get("schema_version"), int)
    if not known and not has_answers(path):
        raise StoreError(f"cannot delete {path}: its {RUN} was not written by agentv")


def remove_run(path: Path) -> tuple[str, ...]:
    """Remove a run. Links in its directory are removed, never followed.

    Returns:
        The names of what is left, because it is no part of the run: then the directory stays.

    Raises:
        StoreError: it is no run, something writes to it, or the system refuses.
    """
    check_removable(path)
    if is_being_written(path):
        raise StoreError(f"cannot delete {path}: it is still being written")
    with refusals("delete", path):
        left = _emptied(path)
        if not left:
            path.rmdir()
    return left


def _emptied(run: Path) -> tuple[str, ...]:
    """Remove what is the run's; the names of what is left."""
    names = os.listdir(run)  # noqa: PTH208  # names
    own = [name for name in names if _is_own(name) and ((run / name).is_symlink() or not (run / name).is_dir())]
    for name in sorted(own, key=lambda name: (name in _LAST, name == JOURNAL, name)):
        (run / name).unlink()
    left = sorted({*names} - {*own})
    if left == [_IGNORE] and (run / _IGNORE).read_bytes() == b"*\n":  # which a run brings along
        (run / _IGNORE).unlink()
        return ()
    return tuple(left)


def _is_own(name: str) -> bool:
    return name in _OWN or _LEFTOVER.fullmatch(name) is not None
