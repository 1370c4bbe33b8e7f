"""Results of triggering queries, as text and as JSON."""

from __future__ import annotations

from dataclasses import dataclass

from agentv.model.values.values import Json
from agentv.reports.text.escaping import percent
from agentv.stats.intervals.classification import Classified, MeasuredShare


@dataclass(frozen=True, slots=True)
class Confusion:
    """Results of the queries of an exam.

    Attributes:
        table: those that were judged. Yes is said where the prompt would be loaded, and right where it should be.
        errored, not_run: how many were not judged; they are in no share.
    """

    table: Classified
    errored: int = 0
    not_run: int = 0

    @property
    def queries(self) -> int:
        """All that the exam asks about."""
        return self.table.total + self.errored + self.not_run


def triggering_lines(found: Confusion) -> list[str]:
    """A few lines for people; none where the exam has no queries."""
    if not found.queries:
        return []
    table = found.table
    loaded = table.true_positives + table.false_positives
    wanted = table.true_positives + table.false_negatives
    precision, recall, f1 = table.precision(), table.recall(), table.f1()
    return [
        f"triggering: {_judged(found)}",
        f"  precision {_share(precision, f'{table.true_positives} of {loaded} that load it should', 'none loads it')}",
        f"  recall    {_share(recall, f'{table.true_positives} of {wanted} that should load it do', 'none should')}",
        f"  F1        {_share(f1, '', 'none loads it and none should')}",
    ]


def _judged(found: Confusion) -> str:
    table = found.table
    right = table.true_positives + table.true_negatives
    parts = [f"{right} of {table.total} quer{'y' if table.total == 1 else 'ies'} right"] if table.total else []
    parts += [f"{found.errored} errored"] if found.errored else []
    parts += [f"{found.not_run} not run"] if found.not_run else []
    return ", ".join(parts)


def _share(measured: MeasuredShare | None, counts: str, why: str) -> str:
    if measured is None:
        return f"undefined: {why}"
    interval = f"95% CI {percent(measured.low)} to {percent(measured.high)}"
    return f"{percent(measured.value)} ({counts}; {interval})" if counts else f"{percent(measured.value)} ({interval})"


def triggering_json(found: Confusion) -> dict[str, Json]:
    """The same for programs: counts, and for each measure `{"value", "interval": [low, high]}`, all in 0..1.

    A measure that is not defined is null.
    """
    table = found.table
    return {
        "queries": found.queries,
        "judged": table.total,
        "errored": found.errored,
        "not_run": found.not_run,
        "true_positives": table.true_positives,
        "false_positives": table.false_positives,
        "false_negatives": table.false_negatives,
        "true_negatives": table.true_negatives,
        "precision": _measure(table.precision()),
        "recall": _measure(table.recall()),
        "f1": _measure(table.f1()),
    }


def _measure(found: MeasuredShare | None) -> Json:
    return None if found is None else {"value": found.value, "interval": [found.low, found.high]}
