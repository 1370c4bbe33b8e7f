"""Counts over the cases of an index."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from agentv.model.run.trial import Status
from agentv.store.index.case_choice import CaseChoice, Looked, where
from agentv.store.totals.tally import STATUSES

COLUMNS = 10
"""Columns of the distribution of scores."""

_WORST: tuple[Status, ...] = ("errored", "failed", "skipped", "shown", "passed")
_CODES = {status: code for code, status in enumerate(STATUSES)}
_RANK = " ".join(f"WHEN {_CODES[status]} THEN {rank}" for rank, status in enumerate(_WORST))
_PASSED, _FAILED, _ERRORED = (_CODES[status] for status in ("passed", "failed", "errored"))


class ClusterSums(NamedTuple):
    """What was judged, by clusters.

    Attributes:
        kinds: (judged, passed) of a cluster → how many clusters have these.
        squares: sum of the squares of all values.
    """

    kinds: Counter[tuple[int, float]]
    judged: int
    total: float
    squares: float
    errored: int


class CaseTotals:
    """Counts cases. Of those of an index, in the thread that uses it."""

    def __init__(self, database: sqlite3.Connection, looked: Looked) -> None:
        self._database = database
        self._looked = looked

    def by_status(self, choice: CaseChoice) -> list[int]:
        """How many of the chosen cases ended how, whatever statuses are chosen; in the order of `STATUSES`."""
        clause, values = where(self._looked, choice.with_any_status())
        sums = ", ".join(f"ifnull(sum(status = {code}), 0)" for code in range(len(STATUSES)))
        return list(self._database.execute(f"SELECT {sums} FROM cases{clause}", values).fetchone())  # noqa: S608  # made of constants

    def worst_by_status(self) -> list[int]:
        """How many cases ended how, each once with the worst of its results."""
        question = (
            f"SELECT worst, count(*) FROM (SELECT min(CASE status {_RANK} END) AS worst FROM cases GROUP BY same) "  # noqa: S608  # as above
            "GROUP BY worst"
        )
        found = {_WORST[rank]: number for rank, number in self._database.execute(question)}
        return [found.get(status, 0) for status in STATUSES]

    def flaky(self) -> int:
        """How many cases have samples that disagree."""
        return int(self._database.execute("SELECT ifnull(sum(flaky), 0) FROM cases").fetchone()[0])

    def distinct(self, choice: CaseChoice) -> int:
        """How many cases the chosen ones are, whatever they run with."""
        clause, values = where(self._looked, choice)
        question = f"SELECT count(DISTINCT same) FROM cases{clause}"  # noqa: S608  # as above
        return int(self._database.execute(question, values).fetchone()[0])

    def scores(self) -> list[tuple[int, int]]:
        """The distribution of scores: of each column how many cases passed, and how many failed.

        Without cases whose samples may end early: their means lean to the side on which they ended.
        """
        columns = [[0, 0] for _ in range(COLUMNS)]
        question = (
            f"SELECT min({COLUMNS - 1}, CAST(score * {COLUMNS} + 1e-9 AS INTEGER)) AS place, status, count(*) "  # noqa: S608  # as above
            f"FROM cases WHERE score IS NOT NULL AND status IN ({_PASSED}, {_FAILED}) "
            'AND "group" NOT IN (SELECT value FROM json_each(?)) GROUP BY place, status'
        )
        early = [number for number, group in self._looked.groups() if group.alpha is not None]
        for place, status, number in self._database.execute(question, (str(early),)):
            columns[place][status == _FAILED] += number
        return [(passed, failed) for passed, failed in columns]

    def sums_of_trials(self, choice: CaseChoice) -> ClusterSums:
        """The judged trials of the chosen cases."""
        clause, values = where(self._looked, choice)
        question = (
            f"SELECT sum(trials.status IN ({_PASSED}, {_FAILED})), sum(trials.status = {_PASSED}), "  # noqa: S608  # as above
            f"sum(trials.status = {_ERRORED}) FROM trials JOIN (SELECT number AS of, cluster FROM cases{clause}) "
            'ON of = "case" GROUP BY cluster'
        )
        kinds: Counter[tuple[int, float]] = Counter()
        judged = passed = errored = 0
        for size, total, broken in self._database.execute(question, values):
            kinds[size, float(total)] += 1
            judged, passed, errored = judged + size, passed + total, errored + broken
        return ClusterSums(kinds, judged, float(passed), float(passed), errored)

    def sums_of_rates(self, choice: CaseChoice) -> ClusterSums:
        """The judged cases of the chosen ones, each with its rate: unbiased where its samples may end early."""
        clause, values = where(self._looked, choice)
        question = (
            "SELECT cluster, status, ifnull(json_extract(early, '$.rate'), share) FROM "  # noqa: S608  # as above
            f"(SELECT number AS of, cluster, status FROM cases{clause}) "
            "JOIN case_names ON case_names.number = of JOIN ("
            f'SELECT "case", 1.0 * sum(status = {_PASSED}) / sum(status IN ({_PASSED}, {_FAILED})) AS share '
            'FROM trials GROUP BY "case") ON "case" = of ORDER BY cluster'
        )
        kinds: Counter[tuple[int, float]] = Counter()
        found: dict[int, tuple[int, float]] = {}
        judged = errored = 0
        total = squares = 0.0
        for cluster, status, rate in self._database.execute(question, values):
            errored += status == _ERRORED
            if status in (_PASSED, _FAILED):
                size, sum_ = found.get(cluster, (0, 0.0))
                found[cluster] = (size + 1, sum_ + (rate or 0.0))
                judged, total, squares = judged + 1, total + (rate or 0.0), squares + (rate or 0.0) ** 2
        kinds.update(found.values())
        return ClusterSums(kinds, judged, total, squares, errored)

    def grades(self) -> Iterator[tuple[int, int, int]]:
        """Clusters, numbers of lists of grades, and how many trials of the cluster have these, cluster by cluster."""
        question = (
            'SELECT cases.cluster, grades, count(*) FROM trials JOIN cases ON cases.number = "case" '
            "GROUP BY cases.cluster, grades ORDER BY cases.cluster"
        )
        yield from self._database.execute(question)

    def grades_alone(self) -> Iterator[tuple[int, int]]:
        """Numbers of lists of grades, and how many trials have these, where each trial is a cluster of its own."""
        yield from self._database.execute("SELECT grades, count(*) FROM trials GROUP BY grades")
