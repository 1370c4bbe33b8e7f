"""The port `LabelledRuns`: corrected rates, gates and ratings that labels add to runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agentv.app.labelled_runs import LabelledRuns, has_gate
from agentv.app.planning.preparation import results_of
from agentv.errors import StoreError
from agentv.model.run.labels import Ratings, ReadLabels
from agentv.model.run.summary import Summary
from agentv.model.suite.suite import Suite

if TYPE_CHECKING:
    from agentv.app.results.stored import StoredRun
    from agentv.extensions.labels.run_rates import RatedTrial


ENDED_EARLY = "how its cases ended decided how many of them ran, so that no interval holds"

LABELS_CHANGED = "labels were changed after the run began and before it was resumed; start a new run"


def rated_trials(run: StoredRun) -> list[RatedTrial]:
    """Return the trials of a run that passed or failed, in the order of their rows.

    Raises:
        StoreError: the run cannot be read.
    """
    from agentv.extensions.labels.run_rates import rated_trial

    whole = replace(run, places=None)
    return [found for result in whole.results() if (found := rated_trial(result, run.run_id)) is not None]


class StoredLabels(LabelledRuns):
    """What labels add to runs. Imports are deferred to first use, since most repositories have no labels."""

    def before(self, suites: tuple[Suite, ...]) -> ReadLabels:
        """Return the labels of the suites to run, if a gate needs them or there are any."""
        root, gated = results_of(suites), any(map(has_gate, suites))
        if not gated and not (root / ".agentv" / "labels").is_dir():
            return ReadLabels()
        found = self.of_suites((suite.name for suite in suites), root)
        if not gated:
            return found
        if found.problem is not None:
            raise StoreError(found.problem)
        return found

    def of_suites(self, suites: Iterable[str], root: Path) -> ReadLabels:
        """Return the labels of the suites with these names; if a file cannot be read, `problem` says so.

        Ratings of whole answers do not affect verdicts, so the hash leaves them out.
        """
        from agentv.store.labels import is_rating_line, labels_directory, labels_file, read_labels

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

    def ratings(self, run: Path, root: Path, store: Any = None) -> Ratings:
        """Return each person's latest ratings of the current answers of a run."""
        from agentv.extensions.labels.labelling import LabelFiles
        from agentv.extensions.labels.ratings import ratings_of_run

        return ratings_of_run(run, store or LabelFiles(root))

    def with_rates(self, summary: Summary, run: StoredRun) -> Summary:
        """Return the totals with corrected rates if judges graded the run. Rows are read only if there are labels."""
        from agentv.model.run.summary import CorrectedRates

        read = run.labels if run.labels is not None else self.of_suites(summary.by_suite, run.project)
        if read.problem is not None and summary.judges:
            return replace(summary, corrected=CorrectedRates(reason=f"labels cannot be read: {read.problem}"))
        if not read.labels:
            unchecked = CorrectedRates(unchecked=summary.judges)
            return replace(summary, corrected=unchecked) if summary.judges else summary
        from agentv.extensions.labels.run_rates import RunLabels, corrected_rates

        trials = rated_trials(run)
        if not any(trial.judged for trial in trials):
            return summary
        found = corrected_rates(trials, RunLabels.of(trials, read.labels, run.run_id))
        if (summary.cut is not None or summary.early_stops is not None) and len(found.unchecked) < len(summary.judges):
            found = replace(found, run=None, reason=ENDED_EARLY)
        return replace(summary, corrected=found)

    def with_gates(self, summary: Summary, run: StoredRun, suites: Sequence[Suite], *, changed: bool) -> Summary:
        """Return the totals with the results of the gates."""
        from agentv.extensions.labels.gates import GradedRun, gate_results
        from agentv.extensions.labels.run_rates import RunLabels

        trials = rated_trials(run)
        labels = run.labels.labels if run.labels is not None else ()
        problem = LABELS_CHANGED if changed else None
        if summary.cut is not None or summary.early_stops is not None:
            problem = f"there is no corrected pass rate: {ENDED_EARLY}"
        read, command = RunLabels.of(trials, labels, run.run_id), f"agentv label {run.run_id}"
        failed = {name: totals.cases.failed for name, totals in summary.by_suite.items()}
        graded = GradedRun(trials, read, command, problem, failed)
        return replace(summary, gates=gate_results(suites, graded))
