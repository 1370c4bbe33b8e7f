"""Orders in which the cases of a run are listed, each kept as the numbers of all of its cases."""

from __future__ import annotations

import sqlite3
import sys
from array import array
from collections.abc import Iterator
from itertools import compress

from agentv.extensions.view.index.case_choice import CODES, CaseOrder
from agentv.extensions.view.index.case_columns import CaseColumns, fetched
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
