"""Queries for selected cases of a run: the cases in order, their totals, and the rows of the grid."""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from array import array
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from math import fsum
from typing import Literal, NamedTuple

import msgspec
from msgspec import json

from agentv.app.compare.matching import CaseScope, places_in_common, shared_names
from agentv.extensions.view.case_rows import CODES, CaseChoice, CaseOrder, CaseWriter
from agentv.model.run.cases import disagree
from agentv.model.run.comparison import CaseKey
from agentv.model.run.trial import Status

_SEVERITY: tuple[Status, ...] = ("failed", "errored", "skipped", "shown", "passed")
_RANK = " ".join(f"WHEN {CODES[status]} THEN {rank}" for rank, status in enumerate(_SEVERITY))
_ORDERS: dict[CaseOrder, tuple[str, ...]] = {
    "worst": (f"CASE status {_RANK} END", "ifnull(score, 2)"),
    "run": (),
    "file": ('suite_rank("group")', "position", 'column_rank("group")'),
    "name": ('suite_name("group")', "natural_key(id)"),
    "slowest": ("-duration",),
    "costliest": ("-ifnull(cost, -1)",),
}
_TERMS = re.compile(r'"([^"]+)"|(\S+)')
_WORDS = re.compile("[^\\W_\u19b0-\u19c0\u19c8\u19c9\u1cf2\u1cf3]+")
"""Letters and digits, except those that SQLite treats as separators."""

_IN_GROUPS = '"group" IN (SELECT value FROM json_each(?))'
_WITH_IDS = "number IN (SELECT number FROM case_names WHERE id IN (SELECT value FROM json_each(?)))"
_WITH_ID_LIKE = "number IN (SELECT number FROM case_names WHERE instr(searched, ?))"
_WITH_TRIALS = 'number IN (SELECT "case" FROM trials WHERE number IN (SELECT value FROM json_each(?)))'
_WITH_GRADES = 'number IN (SELECT "case" FROM trials WHERE grades IN (SELECT value FROM json_each(?)))'
_WITH_WORDS = 'number IN (SELECT "case" FROM trials WHERE number IN (SELECT rowid FROM texts WHERE texts MATCH ?))'


def with_status(choice: CaseChoice) -> str:
    """The SQL condition for the statuses of a choice."""
    codes = ", ".join(str(CODES[one]) for one in choice.statuses if one != "flaky")
    flaky = " OR flaky" if "flaky" in choice.statuses else ""
    return f"(status IN ({codes}){flaky})" if choice.statuses else "1"


def _as_json(values: Sequence[int | str]) -> str:
    return msgspec.json.encode(values).decode()


COLUMNS = 10
"""Number of bins of the histogram of scores."""

_PASSED, _FAILED, _ERRORED = (CODES[status] for status in ("passed", "failed", "errored"))


class ClusterSums(NamedTuple):
    """Sums of judged samples, by cluster.

    Attributes:
        kinds: (number of cases, sum of their rates) of a cluster → number of clusters with these values.
        judged: number of judged samples; a case whose sampling may end early counts once.
        samples: harmonic mean of the cases' numbers of judged samples.
        bounds: the rate if all that errored had failed, and if all had passed.
        errored: number of errored samples, counted like `judged`.
    """

    kinds: Counter[tuple[int, float]]
    judged: int
    samples: float
    bounds: tuple[float, float]
    errored: int


GridFilter = Literal["", "different", "changed", "rated"]

WORST: tuple[Status, ...] = ("errored", "failed", "skipped", "shown", "passed")
"""Statuses in order: a row of the grid has the first one that any of its cells has."""

_BIT = {status: 1 << code for status, code in CODES.items()}
_FLAKY, _CHANGED = 1 << len(CODES), 2 << len(CODES)
_STATUSES = [[status for status, bit in _BIT.items() if bits & bit] for bits in range(256)]
_WORST = [next((status for status in WORST if status in statuses), None) for statuses in _STATUSES]
_DIFFERENT = [disagree(statuses) for statuses in _STATUSES]

_ENDED = [f"{bit} * max(status = {CODES[status]})" for status, bit in _BIT.items()]
_OUTCOMES = (
    f"SELECT same, {' + '.join(_ENDED)} + {_FLAKY} * max(flaky) "  # noqa: S608  # built from constants
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
    """Numbers of rows of the grid.

    Attributes:
        by_status: rows by the status of their worst cell, in the order of `STATUSES`.
        different: rows whose cells disagree.
        flaky: rows with a cell whose samples disagree.
        changed: rows with a cell that has another status in the other run.
    """

    by_status: list[int]
    different: int
    flaky: int
    changed: int


class MatchedCases(NamedTuple):
    """Cases of this run matched with another run.

    Attributes:
        numbers: number of a case → its number in the other run.
        changed: numbers of the cases that have another status there.
    """

    numbers: dict[int, int]
    changed: tuple[int, ...]


class CaseQueries:
    """Selects and counts the cases of an index, and groups them to rows of the grid. Not safe for several threads.

    The temporary table `chosen` contains the cases of the last selection, regardless of statuses. A row of the grid is
    identified by the hash of file, suite and id that its cases have in common (column `same`).
    """

    def __init__(self, database: sqlite3.Connection, writer: CaseWriter) -> None:
        self._database = database
        self._writer = writer
        self._held: CaseChoice | None = None
        database.execute("CREATE TEMP TABLE chosen (number INTEGER PRIMARY KEY)")

    def forget(self) -> None:
        """Invalidate the last selection, because a case was added or changed."""
        self._held = None

    def choose(self, choice: CaseChoice) -> None:
        """Fill the table `chosen` with the cases of a choice, regardless of its statuses."""
        wanted = msgspec.structs.replace(choice, statuses=(), order="run")
        if wanted == self._held:
            return
        conditions = list(self._conditions(choice))
        where = " AND ".join(condition for condition, _ in conditions)
        values = [value for _, of in conditions for value in of]
        self._database.execute("DELETE FROM chosen")
        self._database.execute(f"INSERT INTO chosen SELECT number FROM cases WHERE {where}", values)  # noqa: S608  # built from constants
        self._held = wanted

    def numbers(self, choice: CaseChoice) -> array[int]:
        """The numbers of the selected cases in order."""
        self.choose(choice)
        return array("I", chain.from_iterable(self.in_order("number", choice, with_status(choice))))

    def in_order(self, column: str, choice: CaseChoice, condition: str) -> sqlite3.Cursor:
        """A column of the cases in the table `chosen` that meet a condition, in the order of the choice."""
        names = " JOIN case_names USING (number)" if choice.order == "name" else ""
        terms = ", ".join((*_ORDERS[choice.order], "number"))
        return self._database.execute(
            f"SELECT {column} FROM chosen JOIN cases USING (number){names} WHERE {condition} ORDER BY {terms}"  # noqa: S608
        )

    def _conditions(self, choice: CaseChoice) -> Iterator[tuple[str, list[str]]]:
        """The SQL conditions of a choice, each with its parameters."""
        groups = [number for number, group in self._writer.all_groups() if choice.includes(group)]
        yield _IN_GROUPS, [_as_json(groups)]
        if choice.ids:
            yield _WITH_IDS, [_as_json(choice.ids)]
        if choice.assertion:
            yield _WITH_GRADES, [_as_json(self._graded(choice.assertion))]
        if choice.trials is not None:
            yield _WITH_TRIALS, [_as_json(choice.trials)]
        for quoted, word in _TERMS.findall(choice.q):
            yield self._with_term(quoted or word)

    def _with_term(self, term: str) -> tuple[str, list[str]]:
        """The SQL condition for a search term: part of an id or a name, or prefixes of words in one of the trials."""
        lowered = term.lower()
        named = [
            number
            for number, group in self._writer.all_groups()
            if any(lowered in name.lower() for name in group.names)
        ]
        conditions, values = [_IN_GROUPS, _WITH_ID_LIKE], [_as_json(named), lowered]
        words = _WORDS.findall(unicodedata.normalize("NFC", term))
        if words:
            conditions.append(_WITH_WORDS)
            values.append(" AND ".join(f'"{word}"*' for word in words))
        return f"({' OR '.join(conditions)})", values

    def _graded(self, chosen: str) -> list[int]:
        """The lists of grades that contain an assertion, for `failed` only those in which it did not pass."""
        how, _, wanted = chosen.partition(" ")
        numbers = {number for number, named in enumerate(self._writer.assertions.all()) if wanted in named}
        return [
            number
            for number, grades in self._writer.all_grades()
            if any(
                assertion in numbers and (how != "failed" or state)
                for assertion, state in zip(grades[::2], grades[1::2], strict=True)
            )
        ]

    def by_status(self, choice: CaseChoice) -> list[int]:
        """Number of selected cases by status, ignoring the choice of statuses; in the order of `STATUSES`."""
        self.choose(choice)
        question = "SELECT status, count(*) FROM chosen JOIN cases USING (number) GROUP BY status"
        found = dict(self._database.execute(question))
        return [found.get(code, 0) for code in CODES.values()]

    def flaky(self) -> int:
        """Number of cases whose samples disagree."""
        return self._one("SELECT count(*) FROM cases WHERE flaky")

    def distinct(self, choice: CaseChoice) -> int:
        """Number of distinct selected cases."""
        self.choose(choice)
        return self._one(
            f"SELECT count(DISTINCT same) FROM chosen JOIN cases USING (number) WHERE {with_status(choice)}"  # noqa: S608  # built from constants
        )

    def scores(self) -> list[tuple[int, int]]:
        """The histogram of scores: for each bin, the numbers of passed and of failed cases.

        Cases whose sampling may end early are left out, because their mean scores are biased.
        """
        columns = [[0, 0] for _ in range(COLUMNS)]
        question = (
            f"SELECT min({COLUMNS - 1}, CAST(score * {COLUMNS} + 1e-9 AS INTEGER)) AS place, status, count(*) "  # noqa: S608
            f"FROM cases WHERE score IS NOT NULL AND status IN ({_PASSED}, {_FAILED}) "
            'AND "group" NOT IN (SELECT value FROM json_each(?)) GROUP BY place, status'
        )
        early = [number for number, group in self._writer.all_groups() if group.alpha is not None]
        for place, status, number in self._database.execute(question, (str(early),)):
            columns[place][status == _FAILED] += number
        return [(passed, failed) for passed, failed in columns]

    def rates(self, choice: CaseChoice) -> ClusterSums:
        """The pass rates of the selected cases, unbiased ones if sampling may end early."""
        self.choose(choice)
        question = (
            "SELECT cluster, status, early IS NOT NULL, json_extract(early, '$.rate'), judged, passed, errored FROM "  # noqa: S608
            "(SELECT number AS of, cluster, status FROM chosen JOIN cases USING (number)) "
            "JOIN case_names ON case_names.number = of JOIN ("
            f'SELECT "case", sum(status IN ({_PASSED}, {_FAILED})) AS judged, sum(status = {_PASSED}) AS passed, '
            f'sum(status = {_ERRORED}) AS errored FROM trials GROUP BY "case") ON "case" = of ORDER BY cluster, of'
        )
        found: dict[int, list[float]] = {}
        all_judged = all_errored = possible = 0
        inverse, least, most = [], [], []
        for cluster, status, early, unbiased, judged, passed, errored in self._database.execute(question):
            if early:
                rate = unbiased if unbiased is not None else passed / judged if judged else 0.0
                judged, errored = int(status in (_PASSED, _FAILED)), int(status == _ERRORED)  # noqa: PLW2901
                passed = rate * judged  # noqa: PLW2901
            all_judged, all_errored = all_judged + judged, all_errored + errored
            if judged:
                found.setdefault(cluster, []).append(passed / judged)
                inverse.append(1 / judged)
            if judged or errored:
                possible += 1
                least.append(passed / (judged + errored))
                most.append((passed + errored) / (judged + errored))
        kinds = Counter((len(rates), fsum(rates)) for rates in found.values())
        bounds = (fsum(least) / possible, fsum(most) / possible) if possible else (0.0, 1.0)
        return ClusterSums(kinds, all_judged, len(inverse) / fsum(inverse) if inverse else 1.0, bounds, all_errored)

    def grades(self) -> Iterator[tuple[int, int, int]]:
        """(cluster, number of a list of grades, number of trials of the cluster with this list), ordered by cluster."""
        question = (
            'SELECT cases.cluster, grades, count(*) FROM trials JOIN cases ON cases.number = "case" '
            "GROUP BY cases.cluster, grades ORDER BY cases.cluster"
        )
        yield from self._database.execute(question)

    def _one(self, question: str) -> int:
        (found,) = self._database.execute(question).fetchone()
        return int(found)

    def outcomes(self, choice: CaseChoice, changed: Sequence[int] = ()) -> dict[int, int]:
        """Row → bit set of the statuses of its selected cells, and whether one of them is flaky or changed.

        Args:
            choice: the selection; its statuses are ignored.
            changed: numbers of the cases that have another status in the other run.
        """
        self.choose(choice)
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
        """The rows to show, in the order of the choice.

        Args:
            choice: the selection; its statuses apply to the worst cell of a row, `flaky` to any cell.
            outcomes: outcomes of this choice.
            shown: `different` for rows whose cells disagree, `changed` for rows with another status in the other run.
            among: limits the result to these rows; None for all.
        """
        wanted = [_is_shown(bits, choice, shown) for bits in range(256)]
        self.choose(choice)
        order = dict.fromkeys(row for (row,) in self.in_order("same", choice, "1"))
        return [row for row in order if wanted[outcomes[row]] and (among is None or row in among)]

    def cells(self, rows: Sequence[int], choice: CaseChoice) -> dict[int, list[int]]:
        """Row → numbers of its selected cases."""
        self.choose(choice)
        found: dict[int, list[int]] = {row: [] for row in rows}
        for row, number in self._database.execute(_CELLS, (str(list(rows)),)):
            found[row].append(number)
        return found

    def rows_of(self, cases: Collection[tuple[str, str]]) -> frozenset[int]:
        """The rows of cases that are given by suite and id."""
        suites = {number: group.suite for number, group in self._writer.all_groups()}
        ids = json.encode(sorted({case_id for _, case_id in cases})).decode()
        found = self._database.execute(_OF_IDS, (ids,))
        return frozenset(row for row, group, case_id in found if (suites[group], case_id) in cases)

    def match(self, base: CaseQueries) -> MatchedCases:
        """Match the cases with those of another run as `agentv compare` does."""
        scopes, earlier_scopes = self._scopes(), base._scopes()
        shared = shared_names((scopes.values(), earlier_scopes.values()))
        keys = (
            {number: CaseKey(one.label(shared), "", one.prompt, one.target, one.variant) for number, one in of.items()}
            for of in (earlier_scopes, scopes)
        )
        earlier_places, places = places_in_common(*keys)
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
        return MatchedCases(numbers, tuple(changed))

    def _scopes(self) -> Mapping[int, CaseScope]:
        return {
            number: CaseScope(group.suite, group.path, group.prompt, group.target, group.variant)
            for number, group in self._writer.all_groups()
        }


def _is_shown(bits: int, choice: CaseChoice, shown: GridFilter) -> bool:
    if (shown == "different" and not _DIFFERENT[bits]) or (shown == "changed" and not bits & _CHANGED):
        return False
    return (
        not choice.statuses or _WORST[bits] in choice.statuses or ("flaky" in choice.statuses and bool(bits & _FLAKY))
    )
