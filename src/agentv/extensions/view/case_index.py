"""The index of cases that `agentv view` queries: one SQLite file that can always be rebuilt from the rows.

`append` adds the rows that were appended to `index.jsonl`. If a trial has several rows, the last one counts.
"""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from agentv.extensions.view.case_queries import CaseQueries
from agentv.extensions.view.case_rows import (
    SCHEMA,
    SET_VERSION,
    SETTINGS,
    UNSAFE_WRITES,
    VERSION,
    CaseChoice,
    CaseEntry,
    CaseTrial,
    CaseWriter,
    IndexedTrial,
    route_of,
)
from agentv.model.values.hashes import text_hash
from agentv.store.rows.reading import FileOrder
from agentv.store.totals.tally import STATUSES

_GRADED = frozenset({"passed", "shown"})
_PAGE = 500
"""Maximum number of cases per query."""

_DIGITS = re.compile(r"\d+")
_COUNTER = slice(24, 28)
"""Position of the change counter in the header of an SQLite file."""

_numbers = msgspec.json.Decoder(list[int])


class ReadState(NamedTuple):
    """How far the rows are read: position in bytes, number of the next trial, and fingerprint of the file."""

    place: int
    next_trial: int
    fingerprint: int


class CaseIndex:
    """An index of a run's cases. Not safe for several threads.

    Attributes:
        read: how far the rows are read.
        queries: selects and counts cases.
        order: order of suites, prompts, targets and variants.
    """

    def __init__(self, database: sqlite3.Connection, order: FileOrder) -> None:
        self._database = database
        self.order = order
        database.executescript(SETTINGS)
        self.read = ReadState(*database.execute("SELECT place, trials, fingerprint FROM read").fetchone())
        self._writer = CaseWriter(database)
        database.create_function("natural_key", 1, _natural_key, deterministic=True)
        database.create_function("suite_name", 1, cache(self._suite_name), deterministic=True)
        database.create_function("suite_rank", 1, cache(self._suite_rank), deterministic=True)
        database.create_function("column_rank", 1, cache(self._column_rank), deterministic=True)
        self.groups, self.grades = self._writer.all_groups, self._writer.all_grades
        self.queries = CaseQueries(database, self._writer)

    @classmethod
    def create(cls, path: Path, order: FileOrder) -> CaseIndex:
        """An empty index in a new file."""
        database = _connected(path)
        database.executescript(SCHEMA + SET_VERSION)
        return cls(database, order)

    @classmethod
    def open(cls, path: Path, order: FileOrder) -> CaseIndex | None:
        """The sealed index in a file; None if it is missing, of another version, or modified since."""
        if path.is_symlink() or not path.is_file():
            return None
        address = f"file:{quote(str(path))}?mode=ro"
        database = sqlite3.connect(address, uri=True, check_same_thread=False, isolation_level=None)
        with suppress(sqlite3.Error, TypeError, ValueError, OSError):
            known = database.execute("PRAGMA user_version").fetchone() == (VERSION,)
            sealed: tuple[int] = database.execute("PRAGMA application_id").fetchone()
            if known and sealed[0] == _changes(path):
                return cls(database, order)
        database.close()
        return None

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    @property
    def _path(self) -> Path:
        return Path(self._database.execute("PRAGMA database_list").fetchone()[2])

    @property
    def counts(self) -> list[int]:
        """Number of cases by status, in the order of `STATUSES`."""
        return list(self._writer.statuses)

    @property
    def trials(self) -> int:
        """Number of trials with a row."""
        return self._writer.trials

    @property
    def replaced(self) -> int:
        """Number of rows replaced by later ones since the index was opened."""
        return self._writer.replaced

    @property
    def assertions(self) -> list[tuple[str, str | None]]:
        """Type and name of each assertion, by number. The name is None if there are too many."""
        return self._writer.assertions.all()

    def append(self, trials: Iterable[IndexedTrial], end: int, fingerprint: int) -> None:
        """Add trials that were read up to `end`."""
        if not self._database.in_transaction:
            self._database.execute("BEGIN")
        number = self._writer.add(trials, self.read.next_trial)
        self.queries.forget()
        self.read = ReadState(end, number, fingerprint)
        self._database.execute("UPDATE read SET place = ?, trials = ?, fingerprint = ?", self.read)

    def commit(self) -> None:
        """Write the added trials to the file."""
        if self._database.in_transaction:
            self._database.execute("COMMIT")

    def save(self, name: str, value: bytes) -> None:
        """Store a value that was computed from all rows."""
        self._database.execute("INSERT OR REPLACE INTO saved VALUES (?, ?)", (name, value))

    def saved(self, name: str) -> bytes | None:
        """The value stored under a name, or None."""
        found = self._database.execute("SELECT value FROM saved WHERE name = ?", (name,)).fetchone()
        return None if found is None else bytes(found[0])

    def seal(self) -> None:
        """Write all changes, and mark the file as finished by storing its change counter."""
        self.commit()
        self._database.execute(f"PRAGMA application_id = {_changes(self._path) + 1}")  # counts this change, too

    def copied(self, path: Path) -> CaseIndex:
        """A writable copy in a new file. The original file may be missing, as resuming a run deletes it."""
        self.commit()
        copy = _connected(path)
        self._database.backup(copy)
        return CaseIndex(copy, self.order)

    def entries(self, numbers: Sequence[int]) -> list[CaseEntry]:
        """The cases with these numbers and their trials, in the same order."""
        found: dict[int, CaseEntry] = {}
        for start in range(0, len(numbers), _PAGE):
            found.update((entry.number, entry) for entry in self._entries(numbers[start : start + _PAGE]))
        return [found[number] for number in numbers if number in found]

    def case_at(self, route: str) -> int | None:
        """The number of the case with a route, or None."""
        return self._one("SELECT number FROM case_names WHERE route = ?", text_hash(route))

    def first_trials(self, choice: CaseChoice) -> Iterator[tuple[int, int]]:
        """Number of the first trial of each case of a choice, regardless of status, and the position of its row."""
        self.queries.choose(choice)
        question = 'SELECT min(trials.number), place FROM chosen JOIN trials ON "case" = chosen.number GROUP BY "case"'
        yield from self._database.execute(f"{question} ORDER BY 1")

    def case_of(self, trial: int) -> int | None:
        """The number of a trial's case, or None."""
        return self._one('SELECT "case" FROM trials WHERE number = ?', trial)

    def place_of(self, trial: int) -> int | None:
        """The position of a trial's row in bytes, or None."""
        return self._one("SELECT place FROM trials WHERE number = ?", trial)

    def trial_at(self, place: int) -> int | None:
        """The number of the trial whose row begins at a position, or None if it was replaced."""
        number = self._first_at(place)
        return number if self.place_of(number) == place else None

    def not_passed(self) -> Iterator[tuple[int, int]]:
        """Number and row position of each trial that failed, errored or was skipped."""
        codes = ", ".join(str(code) for code, status in enumerate(STATUSES) if status not in _GRADED)
        yield from self._database.execute(f"SELECT number, place FROM trials WHERE status IN ({codes}) ORDER BY number")  # noqa: S608

    def changed_since(self, place: int, limit: int) -> tuple[list[int], int]:
        """The cases of at most `limit` rows at or after a position, and the end of those rows."""
        first = self._first_at(place)
        question = 'SELECT "case", place FROM trials WHERE number >= ? ORDER BY number LIMIT ?'
        rows = self._database.execute(question, (first, limit + 1)).fetchall()
        end = rows[limit][1] if len(rows) > limit else max(place, self.read.place)
        return list(dict.fromkeys(case for case, _ in rows[:limit])), end

    def _suite_name(self, number: int) -> str:
        return self._writer.group(number).suite

    def _suite_rank(self, number: int) -> int:
        group = self._writer.group(number)
        return self.order.suite(group.path, group.suite)

    def _column_rank(self, number: int) -> str:
        group = self._writer.group(number)
        return "".join(f"{rank:08x}" for rank in self.order.column(group.prompt, group.target, group.variant))

    def _one(self, question: str, value: int) -> int | None:
        found = self._database.execute(question, (value,)).fetchone()
        return None if found is None else int(found[0])

    def _first_at(self, place: int) -> int:
        """The number of the first trial whose row begins at or after a position. Trials are numbered in row order."""
        low, high = 1, self.read.next_trial
        while low < high:
            middle = (low + high) // 2
            found = self._one("SELECT place FROM trials WHERE number >= ? ORDER BY number LIMIT 1", middle)
            low, high = (low, middle) if found is None or found >= place else (middle + 1, high)
        return low

    def _entries(self, numbers: Sequence[int]) -> Iterator[CaseEntry]:
        marks = ", ".join("?" * len(numbers))
        trials: dict[int, list[tuple[int, CaseTrial]]] = defaultdict(list)
        question = (
            'SELECT "case", trials.number, place, sample, status, score, duration, cost, value, teaser FROM trials '  # noqa: S608
            "JOIN trial_texts ON trial_texts.number = trials.number JOIN grades ON grades.number = trials.grades "
            f'WHERE "case" IN ({marks}) ORDER BY sample, trials.number'
        )
        for case, number, place, sample, status, score, duration, cost, grades, teaser in self._database.execute(
            question, numbers
        ):
            listed = _numbers.decode(grades)
            pairs = [list(pair) for pair in zip(listed[::2], listed[1::2], strict=True)]
            trials[case].append(
                (number, CaseTrial(number, place, sample, STATUSES[status], score, duration, cost, pairs, teaser))
            )
        question = (
            'SELECT cases.number, "group", status, score, id, copy, sha, told_by, early FROM cases '  # noqa: S608
            f"JOIN case_names USING (number) WHERE cases.number IN ({marks})"
        )
        for number, group, status, score, case_id, copy, sha, told_by, early in self._database.execute(
            question, numbers
        ):
            own, common = trials[number], self._writer.group(group)
            yield CaseEntry(
                number,
                route_of(common, case_id, copy),
                case_id,
                common,
                STATUSES[status],
                score,
                next((one.teaser for at, one in own if at == told_by), ""),
                sha,
                None if early is None else msgspec.json.decode(early),
                [one for _, one in own],
            )


def _connected(path: Path) -> sqlite3.Connection:
    """A connection to a file for writing."""
    database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    database.executescript(UNSAFE_WRITES)
    return database


def _changes(path: Path) -> int:
    with path.open("rb") as file:
        return int.from_bytes(file.read(_COUNTER.stop)[_COUNTER], "big") & 0x7FFFFFFF


def _natural_key(name: str) -> str:
    """A sort key for natural order: `case-9` before `case-10`, ignoring upper and lower case."""
    return _DIGITS.sub(_as_number, name.casefold())


def _as_number(found: re.Match[str]) -> str:
    digits = found[0].lstrip("0") or "0"
    return f"{len(digits):04d}{digits}"
