"""Columns of the index of cases that are held in memory: what is filtered and counted without reading tables."""

from __future__ import annotations

import sqlite3
import sys
from array import array
from collections.abc import Iterable, Iterator
from itertools import chain, compress

from agentv.model.values.hashes import NumberedHashes

_TYPES = {"status": "B", "flaky": "B", "group": "I", "same": "I", "case_of": "I"}


class CaseColumns:
    """Properties of cases by their numbers, and the case of each trial; place 0 is of nothing. 14 bytes a case.

    Attributes:
        status: code of how a case ended.
        flaky: 1: its samples disagree.
        group: number of its group.
        same: number, from 1, of what it is whatever it runs with.
        case_of: number of the case that a trial is of; 0: the trial was replaced.
    """

    def __init__(self) -> None:
        self.status = array("B", [0])
        self.flaky = array("B", [0])
        self.group = array("I", [0])
        self.same = array("I", [0])
        self.case_of = array("I", [0])
        self._hashes: NumberedHashes | None = NumberedHashes()

    @classmethod
    def of(cls, database: sqlite3.Connection, trials: int, *, writable: bool) -> CaseColumns:
        """Those that an index kept, or else out of its tables.

        Args:
            database: of the index.
            trials: number of the next trial.
            writable: cases will be added.
        """
        found = cls()
        kept = {} if writable else found._kept(database, trials)
        if len(kept) < len(_TYPES):
            found._read(database, trials)
            return found
        for name, column in kept.items():
            setattr(found, name, column)
        found._hashes = None
        return found

    def __len__(self) -> int:
        """How many cases there are."""
        return len(self.status) - 1

    @property
    def distinct(self) -> int:
        """How many cases they are, whatever they run with."""
        return max(self.same)

    def add(self, status: int, group: int, same: int) -> int:
        """Take in a case, `same` being the hash of what it is whatever it runs with; its number."""
        self.status.append(status)
        self.flaky.append(0)
        self.group.append(group)
        self.same.append(self._number(same))
        return len(self)

    def saved(self, trials: int) -> Iterator[tuple[str, bytes]]:
        """What an index keeps of them, one at a time."""
        for name in _TYPES:
            yield _saved_as(name, trials), getattr(self, name).tobytes()

    def of_trials(self, trials: Iterable[int]) -> bytearray:
        """The cases of trials: 1 at the number of each."""
        found = self.none()
        # as many trials as cases: each is of a case of its own, which has the same number
        for number in trials if len(self.case_of) == len(found) else map(self.case_of.__getitem__, trials):
            found[number] = 1
        found[0] = 0
        return found

    def of_groups(self, groups: set[int]) -> bytearray:
        """The cases of groups: 1 at the number of each."""
        wanted = bytearray(max(self.group) + 1)
        for number in groups:
            wanted[number] = 1
        found = bytearray(map(wanted.__getitem__, self.group))
        found[0] = 0
        return found

    def of_statuses(self, codes: set[int]) -> bytearray:
        """The cases that ended so: 1 at the number of each."""
        found = bytearray(self.status.tobytes().translate(bytes(code in codes for code in range(256))))
        found[0] = 0
        return found

    def none(self) -> bytearray:
        """No case."""
        return bytearray(len(self.status))

    def all(self) -> bytearray:
        """Every case."""
        return bytearray(1) + b"\1" * len(self)

    def numbers(self, chosen: bytearray) -> array[int]:
        """The numbers of chosen cases, in their order."""
        return array("I", compress(range(len(chosen)), chosen))

    def _number(self, same: int) -> int:
        if self._hashes is None:
            raise RuntimeError("columns that were kept take in no cases")
        return self._hashes.number(same) + 1

    def _kept(self, database: sqlite3.Connection, trials: int) -> dict[str, array[int]]:
        found: dict[str, array[int]] = {}
        for name, kind in _TYPES.items():
            saved = database.execute("SELECT value FROM saved WHERE name = ?", (_saved_as(name, trials),)).fetchone()
            if saved is not None:
                found[name] = array(kind)
                found[name].frombytes(saved[0])
        return found

    def _read(self, database: sqlite3.Connection, trials: int) -> None:
        for status, flaky, group, same in database.execute(
            'SELECT status, flaky, "group", same FROM cases ORDER BY number'
        ):
            self.flaky[self.add(status, group, same)] = flaky
        self.case_of = array("I", bytes(4 * trials))
        for number, case in database.execute('SELECT number, "case" FROM trials'):
            self.case_of[number] = case


def both(one: bytearray, other: bytearray) -> bytearray:
    """What is in both."""
    found = int.from_bytes(one, "little") & int.from_bytes(other, "little")
    return bytearray(found.to_bytes(len(one), "little"))


def either(one: bytearray, other: bytearray) -> bytearray:
    """What is in one of two."""
    found = int.from_bytes(one, "little") | int.from_bytes(other, "little")
    return bytearray(found.to_bytes(len(one), "little"))


def fetched(rows: sqlite3.Cursor) -> array[int]:
    """The numbers of a question for one column."""
    return array("I", chain.from_iterable(rows))


def _saved_as(name: str, trials: int) -> str:
    return f"column {name} {trials} {sys.byteorder}"
