"""The rows of a grid: cases, whatever they run with, each with one cell for everything that it ran with."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple

from msgspec import json

from agentv.app.compare.cases import CaseScope, shared_names
from agentv.app.compare.matching import places_in_common
from agentv.extensions.view.index.case_chooser import CaseChooser
from agentv.extensions.view.index.case_entries import CODES, CaseChoice
from agentv.extensions.view.index.case_writer import CaseWriter
from agentv.model.run.cases import disagree
from agentv.model.run.comparison import CaseKey
from agentv.model.run.trial import Status

GridFilter = Literal["", "different", "changed", "rated"]

WORST: tuple[Status, ...] = ("errored", "failed", "skipped", "shown", "passed")
"""What a case came to is the first of these that one of its cells is."""

_BIT = {status: 1 << code for status, code in CODES.items()}
_FLAKY, _CHANGED = 1 << len(CODES), 2 << len(CODES)
_STATUSES = [[status for status, bit in _BIT.items() if bits & bit] for bits in range(256)]
_WORST = [next((status for status in WORST if status in statuses), None) for statuses in _STATUSES]
_DIFFERENT = [disagree(statuses) for statuses in _STATUSES]

_ENDED = [f"{bit} * max(status = {CODES[status]})" for status, bit in _BIT.items()]
_OUTCOMES = (
    f"SELECT same, {' + '.join(_ENDED)} + {_FLAKY} * max(flaky) "  # noqa: S608  # made of constants
    f"+ {_CHANGED} * max(number IN (SELECT value FROM json_each(?))) "
    "FROM chosen JOIN cases USING (number) GROUP BY same"
)
_CELLS = """
SELECT same, number FROM chosen JOIN cases USING (number) WHERE same IN (SELECT value FROM json_each(?))
"""
_OF_IDS = """
SELECT same, "group", id FROM case_names JOIN cases USING (number) WHERE id IN (SELECT value FROM json_each(?))
"""
_ALL = 'SELECT number, "group", id, status FROM cases JOIN case_names USING (number)'


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
        numbers: of the same cases in the other run.
        changed: cases that ended otherwise there.
    """

    numbers: dict[int, int]
    changed: tuple[int, ...]


class CaseGrid:
    """Groups the cases of an index by what they are: a row's number is the hash of that."""

    def __init__(self, database: sqlite3.Connection, writer: CaseWriter, chooser: CaseChooser) -> None:
        self._database = database
        self._writer = writer
        self._chooser = chooser

    def outcomes(self, choice: CaseChoice, changed: Sequence[int] = ()) -> dict[int, int]:
        """A set of bits by row: statuses of its chosen cells, and whether one is flaky or changed.

        Args:
            choice: its statuses do not matter.
            changed: numbers of the cases that ended otherwise in another run.
        """
        self._chooser.choose(choice)
        return dict(self._database.execute(_OUTCOMES, (str(list(changed)),)))

    @staticmethod
    def counts(outcomes: Mapping[int, int]) -> GridCounts:
        """Count the rows of `outcomes`."""
        rows = Counter(outcomes.values())
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
        self,
        choice: CaseChoice,
        outcomes: Mapping[int, int],
        shown: GridFilter,
        among: frozenset[int] | None = None,
    ) -> list[int]:
        """The numbers of the rows that are shown, in the order of the choice.

        Args:
            choice: its statuses are those of the worst cell of a row; `flaky`: one of its cells is.
            outcomes: of this choice.
            shown: `different`: cells disagree; `changed`: one ended otherwise in the other run.
            among: only rows with these numbers; None: all.
        """
        wanted = [_shows(bits, choice, shown) for bits in range(256)]
        self._chooser.choose(choice)
        order = dict.fromkeys(row for (row,) in self._chooser.in_order("same", choice, "1"))
        return [row for row in order if wanted[outcomes[row]] and (among is None or row in among)]

    def cells(self, rows: Sequence[int], choice: CaseChoice) -> dict[int, list[int]]:
        """The numbers of the chosen cases of rows, by row."""
        self._chooser.choose(choice)
        found: dict[int, list[int]] = {row: [] for row in rows}
        for row, number in self._database.execute(_CELLS, (str(list(rows)),)):
            found[row].append(number)
        return found

    def rows_of(self, cases: Collection[tuple[str, str]]) -> frozenset[int]:
        """The rows of cases, by their suites and ids."""
        suites = {number: group.suite for number, group in self._writer.all_groups()}
        ids = json.encode(sorted({case_id for _, case_id in cases})).decode()
        found = self._database.execute(_OF_IDS, (ids,))
        return frozenset(row for row, group, case_id in found if (suites[group], case_id) in cases)

    def beside(self, base: CaseGrid) -> Beside:
        """The same cases in another run, matched as `agentv compare` does."""
        scopes, earlier_scopes = self._scopes(), base._scopes()
        shared = shared_names((scopes.values(), earlier_scopes.values()))
        earlier_places, places = places_in_common(
            *({number: _key(scope, shared) for number, scope in of.items()} for of in (earlier_scopes, scopes))
        )
        earlier = {
            (earlier_places[group], case_id): (number, status)
            for number, group, case_id, status in base._database.execute(_ALL)
        }
        numbers: dict[int, int] = {}
        changed: list[int] = []
        for number, group, case_id, status in self._database.execute(_ALL):
            other, before = earlier.get((places[group], case_id), (0, status))
            if other:
                numbers[number] = other
            if status != before:
                changed.append(number)
        return Beside(numbers, tuple(changed))

    def _scopes(self) -> Mapping[int, CaseScope]:
        return {
            number: CaseScope(group.suite, group.path, group.prompt, group.target, group.variant)
            for number, group in self._writer.all_groups()
        }


def _key(scope: CaseScope, shared: frozenset[str]) -> CaseKey:
    return CaseKey(scope.label(shared), "", scope.prompt, scope.target, scope.variant)


def _shows(bits: int, choice: CaseChoice, shown: GridFilter) -> bool:
    if (shown == "different" and not _DIFFERENT[bits]) or (shown == "changed" and not bits & _CHANGED):
        return False
    return (
        not choice.statuses or _WORST[bits] in choice.statuses or ("flaky" in choice.statuses and bool(bits & _FLAKY))
    )
