"""What labels add to runs, as the core asks for it: corrected rates, gates, and the labels that a run began with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from agentv.app.labelled_runs import CompareRates, LabelledRuns, has_gate
from agentv.app.planning.preparation import results_of
from agentv.app.results.stored import StoredRun
from agentv.engine.plan import Plan
from agentv.errors import StoreError, UsageError
from agentv.model.run.labelled.corrected import CorrectedComparison, CorrectedRate, CorrectedRates
from agentv.model.run.labelled.labels import Ratings, ReadLabels
from agentv.model.run.summary import Summary
from agentv.model.suite.suite import Suite
from agentv.store.labels.label_files import is_rating_line, labels_directory, labels_file, read_labels

if TYPE_CHECKING:
    from agentv.app.results.stored import StoredRun
    from agentv.extensions.labels.run_rates import DrawnRate, RatedTrial


ENDED_EARLY = "how its cases ended decided how many of them ran, so that no interval holds"

LABELS_CHANGED = "labels were changed after the run began and before it was resumed; start a new run"


def labels_of_suites(suites: Iterable[str], root: Path) -> ReadLabels:
    """The labels of suites, by their names, as they lie on the disk; a file that cannot be read is a problem.

    Ratings of whole answers decide nothing, and are not in its hash.
    """
    if not labels_directory(root).is_dir():
        return ReadLabels()
    paths = sorted({path for suite in suites if (path := labels_file(root, suite)).is_file()})
    digest, found = sha256(), False
    try:
        for path in paths:
            lines = [line for line in path.read_bytes().splitlines(keepends=True) if not is_rating_line(line)]
            if lines:
                digest.update(path.name.encode() + b"\0" + b"".join(lines))
                found = True
        return ReadLabels(tuple(read_labels(paths)), digest.hexdigest() if found else "")
    except (OSError, StoreError) as error:
        return ReadLabels(problem=str(error))


def rated_trials(run: StoredRun) -> list[RatedTrial]:
    """The trials of a run that passed or failed, in the order of their rows.

    Raises:
        StoreError: the run cannot be read.
    """
    from agentv.extensions.labels.run_rates import rated_trial

    whole = replace(run, places=None)
    return [found for result in whole.results() if (found := rated_trial(result, run.run_id)) is not None]


Part = tuple[Path, frozenset[str]]
"""A run and the targets of it that are compared."""


class RatesOfRuns:
    """Corrected rates of runs that are compared. Each run is read once."""

    def __init__(self) -> None:
        self._answers: dict[Part, Counter[object]] = {}
        self._rates: dict[tuple[Part, int], DrawnRate | str] = {}

    def compared(
        self, runs: tuple[StoredRun, StoredRun], targets: tuple[Collection[str], Collection[str]]
    ) -> CorrectedComparison | None:
        """The corrected rates of a base and a candidate; None where no labels give either of them.

        Args:
            runs: base and candidate.
            targets: of each run those that are compared.

        Raises:
            StoreError: a run cannot be read.
        """
        if not any(labels_directory(run.project).is_dir() for run in runs):
            return None
        from agentv.extensions.labels.stats.posterior import estimated

        answers = [self._answers_of(*one) for one in zip(runs, targets, strict=True)]
        seeds = (0, 0 if answers[0] == answers[1] else 1)
        base, candidate = (self._rate_of(*one) for one in zip(runs, targets, seeds, strict=True))
        if isinstance(base, str) and isinstance(candidate, str):
            return None
        if isinstance(base, str) or isinstance(candidate, str):
            return CorrectedComparison(_shown(base), _shown(candidate))
        found = estimated(candidate.draws - base.draws)
        return CorrectedComparison(base.rate, candidate.rate, candidate.rate.rate - base.rate.rate, found.interval)

    def _answers_of(self, run: StoredRun, targets: Collection[str]) -> Counter[object]:
        """The answers that a judge graded: two runs with the same ones have the same labels."""
        part = run.path, frozenset(targets)
        if part not in self._answers:
            trials = (trial for trial in rated_trials(run) if trial.part[1] in targets)
            self._answers[part] = Counter(one.key for trial in trials for one in trial.judged)
        return self._answers[part]

    def _rate_of(self, run: StoredRun, targets: Collection[str], seed: int) -> DrawnRate | str:
        key = (run.path, frozenset(targets)), seed
        if key not in self._rates:
            self._rates[key] = _rate_of(run, targets, seed)
        return self._rates[key]


def _shown(found: DrawnRate | str) -> CorrectedRate | str:
    return found if isinstance(found, str) else found.rate


def _rate_of(run: StoredRun, targets: Collection[str], seed: int) -> DrawnRate | str:
    """The rate as every view of the run shows it, with draws apart from those of the other run."""
    if run.summary is not None and (run.summary.get("cut") or run.summary.get("early_stops")):
        return ENDED_EARLY
    from agentv.extensions.labels.run_rates import RunLabels, run_rate

    trials = rated_trials(run)
    read = labels_of_suites({trial.part[0] for trial in trials}, run.project)
    if read.problem is not None:
        return f"labels cannot be read: {read.problem}"
    counting = RunLabels.of(trials, read.labels, run.run_id)
    chosen = [trial for trial in trials if trial.part[1] in targets]
    shown, drawn = run_rate(chosen, counting), run_rate(chosen, counting, seed)
    return drawn if isinstance(shown, str) or isinstance(drawn, str) else replace(drawn, rate=shown.rate)


class OfRuns(LabelledRuns):
    """What labels add. Each part is imported at its first use: most repositories have no labels."""

    def before(self, suites: tuple[Suite, ...], plan: Plan) -> ReadLabels:
        """Return the labels of the suites that run, if they decide it or there are any."""
        root, gated = results_of(suites), any(map(has_gate, suites))
        if not gated and not (root / ".agentv" / "labels").is_dir():
            return ReadLabels()
        found = self.of_suites((suite.name for suite in suites), root)
        if not gated:
            return found
        if found.problem is not None:
            raise StoreError(found.problem)
        if found.labels:
            _refuse_judges(suites, plan, found)
        return found

    def of_suites(self, suites: Iterable[str], root: Path) -> ReadLabels:
        """Return the labels of suites; a file that cannot be read is a problem of them."""
        return labels_of_suites(suites, root)

    def ratings(self, run: Path, root: Path, kept: Any = None) -> Ratings:
        """Return the latest rating of each person of the answers that a run has now."""
        from agentv.extensions.labels.labelling import LabelFiles
        from agentv.extensions.labels.ratings import ratings_of_run

        return ratings_of_run(run, kept or LabelFiles(root))

    def with_rates(self, summary: Summary, run: StoredRun) -> Summary:
        """Return the totals with corrected rates, where a judge graded. Rows are read only where labels exist."""
        read = run.labels if run.labels is not None else labels_of_suites(summary.by_suite, run.project)
        if read.problem is not None and summary.judges:
            return structs.replace(summary, corrected=CorrectedRates(reason=f"labels cannot be read: {read.problem}"))
        if not read.labels:
            unchecked = CorrectedRates(unchecked=summary.judges)
            return structs.replace(summary, corrected=unchecked) if summary.judges else summary
        from agentv.extensions.labels.run_rates import RunLabels, corrected_rates

        trials = rated_trials(run)
        if not any(trial.judged for trial in trials):
            return summary
        found = corrected_rates(trials, RunLabels.of(trials, read.labels, run.run_id))
        if (summary.cut is not None or summary.early_stops is not None) and len(found.unchecked) < len(summary.judges):
            found = structs.replace(found, run=None, reason=ENDED_EARLY)
        return structs.replace(summary, corrected=found)

    def with_gates(self, summary: Summary, run: StoredRun, suites: Sequence[Suite], *, changed: bool) -> Summary:
        """Return the totals with what the gates come to."""
        from agentv.extensions.labels.gates import GradedRun, gate_results
        from agentv.extensions.labels.run_rates import RunLabels

        trials = rated_trials(run)
        labels = run.labels.labels if run.labels is not None else ()
        problem = LABELS_CHANGED if changed else None
        if summary.cut is not None or summary.early_stops is not None:
            problem = f"there is no corrected pass rate: {ENDED_EARLY}"
        graded = GradedRun(trials, RunLabels.of(trials, labels, run.run_id), f"agentv label {run.run_id}", problem)
        return structs.replace(summary, gates=gate_results(suites, graded))

    def comparing(self) -> CompareRates:
        """Return what compares the rates of runs."""
        return RatesOfRuns().compared


def _refuse_judges(suites: Sequence[Suite], plan: Plan, labels: ReadLabels) -> None:
    if all(suite.judge_minimums is None for suite in suites):
        return
    from agentv.extensions.labels.gates import known_refusals  # imports numpy

    refusals = list(known_refusals(plan, labels.labels))
    if refusals:
        raise UsageError(
            "\n".join(refusals), "improve the judge or its prompt, or choose another one; nothing was called"
        )
