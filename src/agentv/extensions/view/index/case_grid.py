"""The rows of a grid: cases, whatever they run with, each with one cell for everything that it ran with."""

from __future__ import annotations

import sqlite3
from array import array
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import compress
from typing import Literal, NamedTuple

from msgspec import json

from agentv.app.compare.cases import CaseScope, shared_names
from agentv.app.compare.matching import places_in_common
from agentv.extensions.view.index.case_choice import CODES, CaseChoice
from agentv.extensions.view.index.case_chooser import CaseChooser
from agentv.extensions.view.index.case_columns import CaseColumns, either
from agentv.model.run.cases import disagree
from agentv.model.run.comparison import CaseKey
from agentv.model.run.trial import Status

GridFilter = Literal["", "different", "changed", "rated"]

WORST: tuple[Status, ...] = ("errored", "failed", "skipped", "shown", "passed")
"""What a case came to is the first of these that one of its cells is."""

_BIT = {status: 1 << code for status, code in CODES.items()}
_FLAKY, _CHANGED = 1 << len(CODES), 2 << len(CODES)
_BITS = bytes(_BIT.values()).ljust(256, b"\0")
_FLAKY_BITS, _CHANGED_BITS = bytes([0, _FLAKY]).ljust(256, b"\0"), bytes([0, _CHANGED]).ljust(256, b"\0")
_STATUSES = [[status for status, bit in _BIT.items() if bits & bit] for bits in range(256)]
_WORST = [next((status for status in WORST if status in statuses), None) for statuses in _STATUSES]
_DIFFERENT = [disagree(statuses) for statuses in _STATUSES]

_OF_IDS = """
SELECT number, id, "group" FROM case_names JOIN cases USING (number) WHERE id IN (SELECT value FROM json_each(?))
"""


class GridCounts(NamedTuple):
    """How many rows there are of a kind.

    Attributes:
        by_status: by their worst cell, in the order of `STATUSES`.
        different: their cells disagree.
        flaky: the samples of a cell disagree.
        changed: a cell ended otherwise in another run.
    """

    by_status: list[int]
    different: int
    flaky: int
    changed: int


class Beside(NamedTuple):
    """Another run beside this one, by the numbers of cases of this run.

    Attributes:
        numbers: of the same cases in the other run; 0: it does not have the case.
        changed: 1: the case ended otherwise there.
    """

    numbers: array[int]
    changed: bytes


class CaseGrid:
    """Groups the cases of an index by what they are. A row's number is the one in `CaseColumns.same`."""

    def __init__(self, database: sqlite3.Connection, columns: CaseColumns, chooser: CaseChooser) -> None:
        self._database = database
        self._columns = columns
        self._chooser = chooser

    def outcomes(self, choice: CaseChoice, changed: bytes = b"") -> bytearray:
        """A set of bits by row: statuses of its chosen cells, and whether one is flaky or changed; 0: none is chosen.

        Args:
            choice: its statuses do not matter.
            changed: 1 at the number of each case that ended otherwise in another run.
        """
        found = bytearray(self._columns.distinct + 1)
        chosen = self._chooser.chosen(choice.with_any_status())
        ended = bytearray(self._columns.status.tobytes().translate(_BITS))
        ended = either(ended, bytearray(self._columns.flaky.tobytes().translate(_FLAKY_BITS)))
        ended = either(ended, bytearray(changed.translate(_CHANGED_BITS)))
        for row, bits in zip(compress(self._columns.same, chosen), compress(ended, chosen), strict=True):
            found[row] |= bits
        return found

    @staticmethod
    def counts(outcomes: bytearray) -> GridCounts:
        """Count the rows of `outcomes`."""
        rows = Counter(outcomes)
        by_status = [0] * len(CODES)
        for bits, number in rows.items():
            if (worst := _WORST[bits]) is not None:
                by_status[CODES[worst]] += number
        return GridCounts(
            by_status,
            sum(number for bits, number in rows.items() if _DIFFERENT[bits]),
            sum(number for bits, number in rows.items() if bits & _FLAKY),
            sum(number for bits, number in rows.items() if bits & _CHANGED),
        )

    def rows(
        self, choice: CaseChoice, outcomes: bytearray, shown: GridFilter, among: frozenset[int] | None = None
    ) -> array[int]:
        """The numbers of the rows that are shown, in the order of the choice.

        Args:
            choice: its statuses are those of the worst cell of a row; `flaky`: one of its cells is.
            outcomes: of this choice.
            shown: `different`: cells disagree; `changed`: one ended otherwise in the other run.
            among: only rows with these numbers; None: all.
        """
        wanted = [bool(bits) and _shows(bits, choice, shown) for bits in range(256)]
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

    def rows_of(self, cases: Collection[tuple[str, str]]) -> frozenset[int]:
        """The rows of cases, by their suites and ids."""
        suites = {number: group.suite for number, group in self._chooser.tables.groups()}
        ids = json.encode(sorted({case_id for _, case_id in cases})).decode()
        found = self._database.execute(_OF_IDS, (ids,))
        return frozenset(self._columns.same[number] for number, one, group in found if (suites[group], one) in cases)

    def beside(self, base: CaseGrid) -> Beside:
        """The same cases in another run, matched as `agentv compare` does."""
        scopes, earlier_scopes = self._scopes(), base._scopes()
        shared = shared_names((scopes.values(), earlier_scopes.values()))
        earlier_places, places = places_in_common(
            *({number: _key(scope, shared) for number, scope in of.items()} for of in (earlier_scopes, scopes))
        )
        earlier = {(earlier_places[group], case_id): number for number, group, case_id in base._cases()}
        numbers = array("I", bytes(4 * len(self._columns.status)))
        changed = bytearray(len(numbers))
        for number, group, case_id in self._cases():
            other = earlier.get((places[group], case_id), 0)
            numbers[number] = other
            changed[number] = bool(other) and self._columns.status[number] != base._columns.status[other]
        return Beside(numbers, bytes(changed))

    def _scopes(self) -> Mapping[int, CaseScope]:
        return {
            number: CaseScope(group.suite, group.path, group.prompt, group.target, group.variant)
            for number, group in self._chooser.tables.groups()
        }

    def _cases(self) -> sqlite3.Cursor:
        """The number, group and id of every case."""
        return self._database.execute('SELECT number, "group", id FROM cases JOIN case_names USING (number)')


def _key(scope: CaseScope, shared: frozenset[str]) -> CaseKey:
    return CaseKey(scope.label(shared), "", scope.prompt, scope.target, scope.variant)


def _shows(bits: int, choice: CaseChoice, shown: GridFilter) -> bool:
    if (shown == "different" and not _DIFFERENT[bits]) or (shown == "changed" and not bits & _CHANGED):
        return False
    return (
        not choice.statuses or _WORST[bits] in choice.statuses or ("flaky" in choice.statuses and bool(bits & _FLAKY))
    )
