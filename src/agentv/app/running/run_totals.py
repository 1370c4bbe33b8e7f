"""Totals of a run, counted in memory while its rows are written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agentv.app.planning.preparation import Prepared
from agentv.engine.calls.circuit_breaker import is_stopped
from agentv.engine.sequential_samples import COST_LIMIT
from agentv.model.run.row import Row
from agentv.model.run.trial import Trial, TrialResult
from agentv.model.secrets.redaction import Redactor
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.formatting import plural
from agentv.registry.types import ProviderSettings
from agentv.reports.text.escaping import one_line
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


class TrialNotes:
    """The first note of each target, and how many of its trials have one."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}
        self._trials: dict[str, int] = {}

    def add(self, result: TrialResult) -> None:
        """Add one finished trial."""
        if not result.notes:
            return
        name = result.trial.target.name
        self._first.setdefault(name, f"case '{result.trial.case.id}': {result.notes[0]}")
        self._trials[name] = self._trials.get(name, 0) + 1

    def notes(self) -> Iterator[str]:
        """`'claude', case 'a': the agent reports …; 3 more trials have notes`."""
        for name, first in self._first.items():
            more = self._trials[name] - 1
            rest = f"; {plural(more, 'more trial')} with 'notes' in the results" if more else ""
            yield f"'{one_line(name)}', {one_line(first)}{rest}"


class Unpriced:
    """Trials whose calls reported tokens but no price, and their models."""

    def __init__(self) -> None:
        self._models: dict[str, None] = {}
        self._trials = {"cost_usd": 0, "judge_cost_usd": 0}

    def add(self, result: TrialResult) -> None:
        """Add one finished trial."""
        free = getattr(result.trial.target.settings, "free", False)  # a replay calls no model
        if result.cost_usd is None and result.token_usage is not None and not free:
            self._count("cost_usd", result.trial.target)
        if result.judge_cost_usd is None and result.judge_token_usage is not None:
            self._count("judge_cost_usd", *_judges_of(result.trial))

    def _count(self, key: str, *specs: TargetSpec) -> None:
        self._trials[key] += 1
        self._models |= dict.fromkeys(map(_model_of, specs))

    def notes(self) -> Iterator[str]:
        """`the price of tiny-model is not known, so cost_usd is null for 12 trials`; nothing where all are known."""
        parts = [f"{key} is null for {plural(count, 'trial')}" for key, count in self._trials.items() if count]
        if parts:
            names = ", ".join(one_line(name) for name in self._models)
            begin = f"the price of {names} is" if len(self._models) == 1 else f"prices among {names} are"
            yield f"{begin} not known, so {' and '.join(parts)}"


def _judges_of(trial: Trial) -> list[TargetSpec]:
    """Judges and embedders that the assertions of a trial may have called."""
    forced = trial.suite.forced_judge
    if forced is not None:
        return [forced]
    return [one for one in (trial.judge, *trial.suite.judges.values()) if one is not None]


def _model_of(spec: TargetSpec) -> str:
    """The model, and where it is asked if that is not at its provider's: most likely that is why it has no price."""
    settings = spec.settings
    model = getattr(settings, "model", None)
    name = model if isinstance(model, str) else spec.name
    place = settings.elsewhere() if isinstance(settings, ProviderSettings) else None
    return name if place is None else f"{name} at {Redactor(spec.secrets).redact(place)}"
