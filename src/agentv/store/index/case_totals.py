"""Counts over the cases of an index."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import compress
from typing import NamedTuple

from agentv.model.run.trial import Status
from agentv.store.index.case_choice import CODES, CaseChoice
from agentv.store.index.case_chooser import CaseChooser
from agentv.store.index.case_columns import CaseColumns
from agentv.store.index.case_entries import CaseGroup
from agentv.store.totals.tally import STATUSES

COLUMNS = 10
"""Columns of the distribution of scores."""

_WORST: tuple[Status, ...] = ("errored", "failed", "skipped", "shown", "passed")
_RANKS = bytes(_WORST.index(status) for status in STATUSES).ljust(256, b"\xff")
_PASSED, _FAILED, _ERRORED = (CODES[status] for status in ("passed", "failed", "errored"))
_CHOSEN = " WHERE number IN (SELECT value FROM json_each(?))"


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

    def __init__(self, database: sqlite3.Connection, columns: CaseColumns, chooser: CaseChooser) -> None:
        self._database = database
        self._columns = columns
        self._chooser = chooser

    def by_status(self, choice: CaseChoice) -> list[int]:
        """How many of the chosen cases ended how, whatever statuses are chosen; in the order of `STATUSES`."""
        chosen = self._chooser.chosen(choice.with_any_status())
        ended = bytes(compress(self._columns.status, chosen))
        return [ended.count(code) for code in range(len(STATUSES))]

    def worst_by_status(self) -> list[int]:
        """How many cases ended how, each once with the worst of its results."""
        worst = bytearray([len(_WORST)]) * (self._columns.distinct + 1)
        for same, rank in zip(self._columns.same, self._columns.status.tobytes().translate(_RANKS), strict=True):
            worst[same] = min(worst[same], rank)
        return [worst.count(_WORST.index(status), 1) for status in STATUSES]

    def flaky(self) -> int:
        """How many cases have samples that disagree."""
        return self._columns.flaky.count(1)

    def distinct(self, choice: CaseChoice) -> int:
        """How many cases the chosen ones are, whatever they run with."""
        chosen = self._chooser.chosen(choice)
        if self._columns.distinct == len(self._columns):
            return chosen.count(1)
        found = bytearray(self._columns.distinct + 1)
        for same in compress(self._columns.same, chosen):
            found[same] = 1
        return found.count(1)

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
        early = [number for number, group in self._groups() if group.alpha is not None]
        for place, status, number in self._database.execute(question, (str(early),)):
            columns[place][status == _FAILED] += number
        return [(passed, failed) for passed, failed in columns]

    def sums_of_trials(self, choice: CaseChoice) -> ClusterSums:
        """The judged trials of the chosen cases."""
        question = (
            f"SELECT sum(trials.status IN ({_PASSED}, {_FAILED})), sum(trials.status = {_PASSED}), "  # noqa: S608  # as above
            f"sum(trials.status = {_ERRORED}) FROM trials JOIN (SELECT number AS of, cluster FROM cases{_CHOSEN}) "
            'ON of = "case" GROUP BY cluster'
        )
        kinds: Counter[tuple[int, float]] = Counter()
        judged = passed = errored = 0
        for size, total, broken in self._database.execute(question, (self._as_json(choice),)):
            kinds[size, float(total)] += 1
            judged, passed, errored = judged + size, passed + total, errored + broken
        return ClusterSums(kinds, judged, float(passed), float(passed), errored)

    def sums_of_rates(self, choice: CaseChoice) -> ClusterSums:
        """The judged cases of the chosen ones, each with its rate: unbiased where its samples may end early."""
        question = (
            "SELECT cluster, status, ifnull(json_extract(early, '$.rate'), share) FROM "  # noqa: S608  # as above
            f"(SELECT number AS of, cluster, status FROM cases{_CHOSEN}) "
            "JOIN case_names ON case_names.number = of JOIN ("
            f'SELECT "case", 1.0 * sum(status = {_PASSED}) / sum(status IN ({_PASSED}, {_FAILED})) AS share '
            'FROM trials GROUP BY "case") ON "case" = of ORDER BY cluster'
        )
        kinds: Counter[tuple[int, float]] = Counter()
        found: dict[int, tuple[int, float]] = {}
        judged = errored = 0
        total = squares = 0.0
        for cluster, status, rate in self._database.execute(question, (self._as_json(choice),)):
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

    def _as_json(self, choice: CaseChoice) -> str:
        """The numbers of the chosen cases."""
        return str(self._columns.numbers(self._chooser.chosen(choice)).tolist())

    def _groups(self) -> Iterable[tuple[int, CaseGroup]]:
        return self._chooser.tables.groups()
