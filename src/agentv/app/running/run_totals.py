"""Totals of a run, counted in memory while its rows are written."""

from __future__ import annotations

from collections.abc import Iterable

from agentv.app.planning.preparation import Prepared
from agentv.app.running.trial_notes import TrialNotes
from agentv.app.running.unpriced import Unpriced
from agentv.engine.calls.circuit_breaker import is_stopped
from agentv.engine.sequential_samples import COST_LIMIT
from agentv.model.run.row import Row
from agentv.model.run.trial import TrialResult
from agentv.store.totals.summary import RunCounts


class RunTotals:
    """Counts of rows and trials. They are not read back from where the system under test is.

    Attributes:
        counts: of all rows.
        exam_rows: the rows of exams, by the key of their trial.
        unpriced: calls whose price is not known.
        trial_notes: what trials note of their model calls.
        held_back: number of trials that were skipped because a dependency did not pass.
        agent_versions: name of a target → the versions that its agents report.
        judges: names of the judges that graded, in the order of their first grade.
    """

    def __init__(self, prepared: Prepared) -> None:
        self.counts = RunCounts()
        self.exam_rows: dict[str, Row] = {}
        self.unpriced = Unpriced()
        self.trial_notes = TrialNotes()
        self.agent_versions: dict[str, set[str]] = {}
        self._exams = frozenset(suite.name for suite in prepared.suites if suite.exam is not None)
        self.held_back = 0
        self.judges: dict[str, None] = {}

    def add_row(self, row: Row) -> None:
        """Count a row as written."""
        self.counts.add(row)
        if row.suite in self._exams:
            self.exam_rows[row.key] = row

    def add_replaced(self, rows: Iterable[Row]) -> None:
        """Count what rows cost that newer ones replace."""
        for row in rows:
            self.counts.add_replaced(row)

    def add_result(self, result: TrialResult) -> None:
        """Count a trial that ended in this process."""
        self.add_judges(result)
        self.unpriced.add(result)
        self.trial_notes.add(result)
        if result.stored is not None and result.stored.agent_version:
            self.agent_versions.setdefault(result.trial.target.name, set()).add(result.stored.agent_version)
        if result.status == "skipped" and not is_stopped(result.error) and not _costs_too_much(result):
            self.held_back += 1

    def add_judges(self, result: TrialResult) -> None:
        """Note which judges graded a trial."""
        for score in result.scores:
            asked = score.grade.asked_judge
            if asked is not None:
                self.judges.setdefault(asked.judge)


def _costs_too_much(result: TrialResult) -> bool:
    return result.error is not None and result.error.code == COST_LIMIT
