"""Corrected rates of two runs, and their difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from agentv.app.results.stored import StoredRun
from agentv.extensions.labels.shown_rates import ENDED_EARLY, labels_of_suites, rated_trials
from agentv.model.run.labelled.corrected import CorrectedComparison, CorrectedRate
from agentv.store.labels.label_files import labels_directory

if TYPE_CHECKING:
    from agentv.extensions.labels.corrected_rates import DrawnRate

Part = tuple[Path, frozenset[str]]
"""A run and the targets of it that are compared."""


@dataclass(slots=True)
class RatesOfRuns:
    """What is known of runs that were compared before, so that a base is read once.

    Attributes:
        answers: the answers that a judge graded.
        rates: with the draws of a seed.
    """

    answers: dict[Part, Counter[object]] = field(default_factory=dict)
    rates: dict[tuple[Part, int], DrawnRate | str] = field(default_factory=dict)


def compared_rates(
    runs: tuple[StoredRun, StoredRun],
    targets: tuple[Collection[str], Collection[str]],
    known: RatesOfRuns | None = None,
) -> CorrectedComparison | None:
    """The corrected rates of a base and a candidate; None where no labels give either of them.

    Args:
        runs: base and candidate.
        targets: of each run those that are compared.
        known: of runs that were compared before, to which these two are added; None: there are none.

    Raises:
        StoreError: a run cannot be read.
    """
    if not any(labels_directory(run.project).is_dir() for run in runs):
        return None
    from agentv.extensions.labels.stats.posterior import estimated  # imports numpy, for runs with labels

    known = RatesOfRuns() if known is None else known
    paired = _answers(runs[0], targets[0], known) == _answers(runs[1], targets[1], known)
    seeds = (0, 0) if paired else (0, 1)
    base, candidate = (_known_rate(*one, known) for one in zip(runs, targets, seeds, strict=True))
    if isinstance(base, str) and isinstance(candidate, str):
        return None
    if isinstance(base, str) or isinstance(candidate, str):
        return CorrectedComparison(_shown(base), _shown(candidate))
    found = estimated(candidate.draws - base.draws)
    difference = candidate.rate.rate - base.rate.rate
    return CorrectedComparison(base.rate, candidate.rate, difference, (found.low, found.high))


def _answers(run: StoredRun, targets: Collection[str], known: RatesOfRuns) -> Counter[object]:
    """The answers that a judge graded: two runs with the same ones have the same labels."""
    part = run.path, frozenset(targets)
    if part not in known.answers:
        trials = (trial for trial in rated_trials(run) if trial.part[1] in targets)
        known.answers[part] = Counter(one.key for trial in trials for one in trial.judged)
    return known.answers[part]


def _known_rate(run: StoredRun, targets: Collection[str], seed: int, known: RatesOfRuns) -> DrawnRate | str:
    key = (run.path, frozenset(targets)), seed
    if key not in known.rates:
        known.rates[key] = _rate(run, targets, seed)
    return known.rates[key]


def _shown(found: DrawnRate | str) -> CorrectedRate | str:
    return found if isinstance(found, str) else found.rate


def _rate(run: StoredRun, targets: Collection[str], seed: int) -> DrawnRate | str:
    """The rate as every view of the run shows it, with draws apart from those of the other run."""
    if run.summary is not None and (run.summary.get("cut") or run.summary.get("early_stops")):
        return ENDED_EARLY
    from agentv.extensions.labels.corrected_rates import RunLabels, run_rate

    trials = rated_trials(run)
    read = labels_of_suites({trial.part[0] for trial in trials}, run.project)
    if read.problem is not None:
        return f"labels cannot be read: {read.problem}"
    counting = RunLabels.of(trials, read.labels, run.run_id)
    chosen = [trial for trial in trials if trial.part[1] in targets]
    shown, drawn = run_rate(chosen, counting), run_rate(chosen, counting, seed)
    return drawn if isinstance(shown, str) or isinstance(drawn, str) else replace(drawn, rate=shown.rate)
