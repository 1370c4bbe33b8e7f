"""Counts over the cases of an index."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from math import fsum
from typing import NamedTuple

from agentv.extensions.view.index.case_chooser import CaseChooser, with_status
from agentv.extensions.view.index.case_entries import CODES, CaseChoice
from agentv.extensions.view.index.case_writer import CaseWriter

COLUMNS = 10
"""Columns of the distribution of scores."""

_PASSED, _FAILED, _ERRORED = (CODES[status] for status in ("passed", "failed", "errored"))


class ClusterSums(NamedTuple):
    """What was judged, by clusters.

    Attributes:
        kinds: (cases, sum of their rates) of a cluster → how many clusters have these.
        judged: samples; of cases whose samples may end early, the cases.
        samples: the harmonic mean of the cases' numbers of judged samples.
        bounds: the rate if all that errored had failed, and if all had passed.
        errored: samples, or cases, likewise.
    """

    kinds: Counter[tuple[int, float]]
    judged: int
    samples: float
    bounds: tuple[float, float]
    errored: int


class CaseTotals:
    """Counts cases. Of those of an index, in the thread that uses it."""

    def __init__(self, database: sqlite3.Connection, writer: CaseWriter, chooser: CaseChooser) -> None:
        self._database = database
        self._writer = writer
        self._chooser = chooser

    def by_status(self, choice: CaseChoice) -> list[int]:
        """How many of the chosen cases ended how, whatever statuses are chosen; in the order of `STATUSES`."""
        self._chooser.choose(choice)
        question = "SELECT status, count(*) FROM chosen JOIN cases USING (number) GROUP BY status"
        found = dict(self._database.execute(question))
        return [found.get(code, 0) for code in CODES.values()]

    def flaky(self) -> int:
        """How many cases have samples that disagree."""
        return self._one("SELECT count(*) FROM cases WHERE flaky")

    def distinct(self, choice: CaseChoice) -> int:
        """How many cases the chosen ones are, whatever they run with."""
        self._chooser.choose(choice)
        return self._one(
            f"SELECT count(DISTINCT same) FROM chosen JOIN cases USING (number) WHERE {with_status(choice)}"  # noqa: S608  # made of constants
        )

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
        early = [number for number, group in self._writer.all_groups() if group.alpha is not None]
        for place, status, number in self._database.execute(question, (str(early),)):
            columns[place][status == _FAILED] += number
        return [(passed, failed) for passed, failed in columns]

    def rates(self, choice: CaseChoice) -> ClusterSums:
        """The pass rates of the chosen cases, unbiased ones where samples may end early."""
        self._chooser.choose(choice)
        question = (
            "SELECT cluster, status, early IS NOT NULL, json_extract(early, '$.rate'), judged, passed, errored FROM "  # noqa: S608  # as above
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
        """Clusters, numbers of lists of grades, and how many trials of the cluster have these, cluster by cluster."""
        question = (
            'SELECT cases.cluster, grades, count(*) FROM trials JOIN cases ON cases.number = "case" '
            "GROUP BY cases.cluster, grades ORDER BY cases.cluster"
        )
        yield from self._database.execute(question)

    def _one(self, question: str) -> int:
        (found,) = self._database.execute(question).fetchone()
        return int(found)
