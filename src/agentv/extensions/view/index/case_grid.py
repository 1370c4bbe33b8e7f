"""The rows of a grid: cases, whatever they run with, each with one cell for everything that it ran with."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Collection, Sequence
from itertools import compress
from typing import Literal, NamedTuple

from msgspec import json

from agentv.extensions.view.index.case_choice import CODES, CaseChoice
from agentv.extensions.view.index.case_chooser import CaseChooser
from agentv.extensions.view.index.case_columns import CaseColumns
from agentv.extensions.view.index.case_totals import WORST
from agentv.model.run.trial import Status

GridFilter = Literal["", "different", "changed", "rated"]

_BIT = {status: 1 << code for status, code in CODES.items()}
_SETS = range(1 << len(CODES))
"""Every set of statuses, as bits."""

_JUDGED = _BIT["passed"] | _BIT["failed"] | _BIT["errored"]

_OF_IDS = """
SELECT number, id, "group" FROM case_names JOIN cases USING (number) WHERE id IN (SELECT value FROM json_each(?))
"""


class GridCounts(NamedTuple):
    """Rows by their worst cell, in the order of `STATUSES`, and how many rows have cells that disagree."""

    by_status: list[int]
    different: int


class CaseGrid:
    """Groups the cases of an index by what they are. A row's number is the one in `CaseColumns.same`."""

    def __init__(self, database: sqlite3.Connection, columns: CaseColumns, chooser: CaseChooser) -> None:
        self._database = database
        self._columns = columns
        self._chooser = chooser

    def outcomes(self, choice: CaseChoice) -> bytearray:
        """A set of bits by row, one for each status of its chosen cells; 0 for a row without any."""
        found = bytearray(self._columns.distinct + 1)
        chosen = self._chooser.chosen(choice.with_any_status())
        bits = bytes(1 << code for code in range(len(CODES)))
        ended = self._columns.status.tobytes().translate(bits.ljust(256, b"\0"))
        for row, bit in zip(compress(self._columns.same, chosen), compress(ended, chosen), strict=True):
            found[row] |= bit
        return found

    @staticmethod
    def counts(outcomes: bytearray) -> GridCounts:
        """Count the rows of `outcomes`."""
        by_status = [0] * len(CODES)
        for bits in _SETS[1:]:
            if number := outcomes.count(bits):
                by_status[CODES[_worst(bits)]] += number
        return GridCounts(by_status, sum(outcomes.count(bits) for bits in _SETS if _disagree(bits)))

    def rows(
        self, choice: CaseChoice, outcomes: bytearray, shown: GridFilter, among: frozenset[int] | None = None
    ) -> array[int]:
        """The numbers of the rows that are shown, in the order of the choice.

        Args:
            choice: its statuses are those of the worst cell of a row.
            outcomes: of this choice.
            shown: `different`: cells disagree.
            among: only rows with these numbers; None: all.
        """
        wanted = bytes(_shows(bits, choice, shown) for bits in _SETS)
        numbers = self._chooser.numbers(choice.with_any_status())
        order = dict.fromkeys(map(self._columns.same.__getitem__, numbers))
        return array("I", (row for row in order if wanted[outcomes[row]] and (among is None or row in among)))

    def cells(self, rows: Sequence[int], choice: CaseChoice) -> dict[int, list[int]]:
        """The numbers of the chosen cases of rows, by row."""
        wanted = bytearray(self._columns.distinct + 1)
        for row in rows:
            wanted[row] = 1
        found: dict[int, list[int]] = {row: [] for row in rows}
        chosen = self._chooser.chosen(choice.with_any_status())
        for number in compress(range(len(chosen)), chosen):
            row = self._columns.same[number]
            if wanted[row]:
                found[row].append(number)
        return found

    def by_route(self) -> dict[int, int]:
        """The number of every case by the hash of its route."""
        return dict(self._database.execute("SELECT route, number FROM case_names"))

    def rows_of(self, cases: Collection[tuple[str, str]]) -> frozenset[int]:
        """The rows of cases, by their suites and ids."""
        suites = {number: group.suite for number, group in self._chooser.tables.groups()}
        ids = json.encode(sorted({case_id for _, case_id in cases})).decode()
        found = self._database.execute(_OF_IDS, (ids,))
        return frozenset(self._columns.same[number] for number, one, group in found if (suites[group], one) in cases)

    def changed(self, base: CaseGrid) -> frozenset[int]:
        """The rows with a cell that ended otherwise in another run."""
        before = base.by_route()
        status, other = self._columns.status, base._columns.status
        return frozenset(
            self._columns.same[number]
            for route, number in self.by_route().items()
            if route in before and status[number] != other[before[route]]
        )


def _worst(bits: int) -> Status:
    return next(status for status in WORST if bits & _BIT[status])


def _disagree(bits: int) -> bool:
    return (bits & _JUDGED).bit_count() > 1


def _shows(bits: int, choice: CaseChoice, shown: GridFilter) -> bool:
    if not bits or (shown == "different" and not _disagree(bits)):
        return False
    return not choice.statuses or _worst(bits) in choice.statuses
