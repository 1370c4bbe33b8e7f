"""The cases of a run that are chosen: which they are, and in what order they are listed."""

from __future__ import annotations

import re
import sqlite3
import sys
import unicodedata
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress

import msgspec

from agentv.extensions.view.index.case_choice import CODES, CaseChoice, CaseOrder, names_of
from agentv.extensions.view.index.case_columns import CaseColumns, both, either, fetched
from agentv.extensions.view.index.case_entries import CaseGroup
from agentv.extensions.view.index.case_search import CaseIds, CaseTexts
from agentv.model.run.trial import Status

_SEVERITY: tuple[Status, ...] = ("failed", "errored", "skipped", "shown", "passed")
_RANK = " ".join(f"WHEN {CODES[status]} THEN {rank}" for rank, status in enumerate(_SEVERITY))
_ORDERS: dict[CaseOrder, tuple[str, ...]] = {
    "worst": (f"CASE status {_RANK} END", "ifnull(score, 2)"),
    "file": ('suite_rank("group")', "position", 'column_rank("group")'),
    "name": ('suite_name("group")', "natural_key(id)"),
    "slowest": ("-duration",),
    "costliest": ("-ifnull(cost, -1)",),
}
_FEW = 20_000
"""Cases that are sorted by themselves; where there are more, all are sorted once and the chosen ones picked out."""

_HELD = 2
"""Orders that are held in memory: 4 MB each of a million cases."""


class CaseOrders:
    """Sorts cases of an index.

    Needs the functions `suite_name`, `suite_rank`, `column_rank` and `natural_key` of its database.
    """

    def __init__(self, database: sqlite3.Connection, columns: CaseColumns) -> None:
        self._database = database
        self._columns = columns
        self._held: dict[CaseOrder, array[int]] = {}
        self._held_at = 0

    def sorted(self, chosen: bytearray, order: CaseOrder, trials: int) -> array[int]:
        """The numbers of chosen cases in an order.

        Args:
            chosen: 1 at the number of each.
            order: their order.
            trials: number of the next trial, which another state of the index has not.
        """
        if order == "run" or 1 not in chosen:
            return self._columns.numbers(chosen)
        every = self._known(order, trials)
        if every is None and chosen.count(1) <= _FEW:
            return self._asked(order, self._columns.numbers(chosen))
        if every is None:
            every = self._asked(order, None)
            self._hold(order, every)
        if chosen.count(1) == len(every):
            return every
        return array("I", compress(every, map(chosen.__getitem__, every)))

    def saved(self, trials: int) -> Iterator[tuple[str, bytes]]:
        """What an index keeps: every order of all its cases, one at a time."""
        for order in _ORDERS:
            yield _saved_as(order, trials), self._asked(order, None).tobytes()

    def _known(self, order: CaseOrder, trials: int) -> array[int] | None:
        if self._held_at != trials:  # what is held is of another state of the index
            self._held.clear()
            self._held_at = trials
        if order in self._held:
            return self._held[order]
        saved = self._database.execute("SELECT value FROM saved WHERE name = ?", (_saved_as(order, trials),)).fetchone()
        if saved is None:
            return None
        found = array("I")
        found.frombytes(saved[0])
        self._hold(order, found)
        return found

    def _hold(self, order: CaseOrder, numbers: array[int]) -> None:
        self._held[order] = numbers
        while len(self._held) > _HELD:
            del self._held[next(iter(self._held))]

    def _asked(self, order: CaseOrder, numbers: array[int] | None) -> array[int]:
        tables = "cases JOIN case_names USING (number)" if order == "name" else "cases"
        some = "" if numbers is None else " WHERE cases.number IN (SELECT value FROM json_each(?))"
        terms = ", ".join((*_ORDERS[order], "cases.number"))
        question = f"SELECT cases.number FROM {tables}{some} ORDER BY {terms}"  # noqa: S608  # made of constants
        return fetched(self._database.execute(question, () if numbers is None else (str(numbers.tolist()),)))


def _saved_as(order: CaseOrder, trials: int) -> str:
    return f"order {order} {trials} {sys.byteorder}"


_TERMS = re.compile(r'"([^"]+)"|(\S+)')
_WORDS = re.compile("[^\\W_\u19b0-\u19c0\u19c8\u19c9\u1cf2\u1cf3]+")
"""Letters and digits, but for those that SQLite takes for separators."""

_HELD = 4
"""Choices, and searches, whose cases are held: 1 MB each of a million cases."""


class IndexTables(msgspec.Struct, frozen=True):
    """Tables of an index that are read whole, for they are small.

    Attributes:
        groups: every group with its number.
        assertions: type and name of every assertion, by number.
        grades: the lists of grades with their numbers.
        trials: number of the next trial, which another state of the index has not.
    """

    groups: Callable[[], Iterable[tuple[int, CaseGroup]]]
    assertions: Callable[[], Sequence[tuple[str, str | None]]]
    grades: Callable[[], Iterable[tuple[int, list[int]]]]
    trials: Callable[[], int]


class CaseChooser:
    """Chooses cases of an index, in the thread that uses it."""

    def __init__(self, database: sqlite3.Connection, columns: CaseColumns, tables: IndexTables, ids: CaseIds) -> None:
        self._database = database
        self._columns = columns
        self._ids = ids
        self._texts = CaseTexts(database)
        self.tables = tables
        self.orders = CaseOrders(database, columns)
        self._held: OrderedDict[CaseChoice | str, bytearray] = OrderedDict()
        self._held_at = 0

    def numbers(self, choice: CaseChoice) -> array[int]:
        """The numbers of the chosen cases in their order."""
        return self.orders.sorted(self.chosen(choice), choice.order, self.tables.trials())

    def chosen(self, choice: CaseChoice) -> bytearray:
        """The chosen cases: 1 at the number of each."""
        return self._holding(msgspec.structs.replace(choice, order="run"), lambda: self._chosen(choice))

    def _chosen(self, choice: CaseChoice) -> bytearray:
        found = self._columns.all()
        if choice.statuses:
            found = both(found, self._of_statuses(choice))
        if choice.by_group:
            groups = {number for number, group in self.tables.groups() if choice.takes(group)}
            found = both(found, self._columns.of_groups(groups))
        if choice.ids:
            found = both(found, self._of_cases(_WITH_IDS, _as_json(choice.ids)))
        if choice.assertion:
            graded = fetched(self._database.execute(_GRADED, (_as_json(self._graded(choice.assertion)),)))
            found = both(found, self._columns.of_trials(graded))
        if choice.trials is not None:
            found = both(found, self._columns.of_trials(array("I", choice.trials)))
        if choice.q.strip():
            found = both(found, self._holding(choice.q, lambda: self._searched(choice.q)))
        return found

    def _of_statuses(self, choice: CaseChoice) -> bytearray:
        found = self._columns.of_statuses({CODES[one] for one in choice.statuses if one != "flaky"})
        return either(found, bytearray(self._columns.flaky.tobytes())) if "flaky" in choice.statuses else found

    def _of_cases(self, question: str, value: str) -> bytearray:
        found = self._columns.none()
        for (number,) in self._database.execute(question, (value,)):
            found[number] = 1
        return found

    def _searched(self, q: str) -> bytearray:
        """The cases that have all terms: in an id or a name anywhere, or as words of one of their trials."""
        found = self._columns.all()
        for quoted, word in _TERMS.findall(q):
            found = both(found, self._with_term(quoted or word))
        return found

    def _with_term(self, term: str) -> bytearray:
        found = self._columns.none()
        words = _WORDS.findall(unicodedata.normalize("NFC", term))
        if words:
            found = self._columns.of_trials(self._texts.trials_with(words, self.tables.trials()))
        if found.count(1) == len(self._columns):
            return found
        lowered = term.lower()
        named = {
            number for number, group in self.tables.groups() if any(lowered in name.lower() for name in names_of(group))
        }
        if named:
            found = either(found, self._columns.of_groups(named))
        return either(found, self._ids.containing(term))

    def _graded(self, chosen: str) -> list[int]:
        """The lists of grades in which an assertion occurs; with `failed` those where it did not pass."""
        how, _, wanted = chosen.partition(" ")
        numbers = {number for number, named in enumerate(self.tables.assertions()) if wanted in named}
        return [
            number
            for number, grades in self.tables.grades()
            if any(
                assertion in numbers and (how != "failed" or state)
                for assertion, state in zip(grades[::2], grades[1::2], strict=True)
            )
        ]

    def _holding(self, what: CaseChoice | str, find: Callable[[], bytearray]) -> bytearray:
        if self._held_at != self.tables.trials():  # what is held is of another state of the index
            self._held.clear()
            self._held_at = self.tables.trials()
        if what not in self._held:
            found = find()
            self._held[what] = found
            while len(self._held) > 2 * _HELD:
                self._held.popitem(last=False)
        self._held.move_to_end(what)
        return self._held[what]


_WITH_IDS = "SELECT number FROM case_names WHERE id IN (SELECT value FROM json_each(?))"
_GRADED = "SELECT number FROM trials WHERE grades IN (SELECT value FROM json_each(?))"


def _as_json(values: Sequence[int | str]) -> str:
    return msgspec.json.encode(values).decode()
