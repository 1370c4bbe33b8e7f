"""Corrected rates beside the totals of a run, as the labels stand when it is shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from agentv.errors import StoreError
from agentv.model.run.labelled.corrected import CorrectedRates
from agentv.model.run.labelled.labels import ReadLabels
from agentv.model.run.summary import Summary
from agentv.model.suite.suite import Suite
from agentv.store.labels.label_files import is_rating_line, labels_directory, labels_file, read_labels

if TYPE_CHECKING:
    from agentv.app.results.stored import StoredRun
    from agentv.extensions.labels.depending import RatedTrial

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


def with_corrected_rates(summary: Summary, run: StoredRun) -> Summary:
    """The totals of a run with its corrected rates, where a judge graded. Rows are read only where labels exist.

    Raises:
        StoreError: the run cannot be read.
    """
    read = run.labels if run.labels is not None else labels_of_suites(summary.by_suite, run.project)
    if read.problem is not None and summary.judges:
        return structs.replace(summary, corrected=CorrectedRates(reason=f"labels cannot be read: {read.problem}"))
    if not read.labels:
        unchecked = CorrectedRates(unchecked=summary.judges)
        return structs.replace(summary, corrected=unchecked) if summary.judges else summary
    from agentv.extensions.labels.corrected_rates import (
        RunLabels,
        corrected_rates,
    )  # imports numpy, for runs with labels

    trials = rated_trials(run)
    if not any(trial.judged for trial in trials):
        return summary
    found = corrected_rates(trials, RunLabels.of(trials, read.labels, run.run_id))
    if (summary.cut is not None or summary.early_stops is not None) and len(found.unchecked) < len(summary.judges):
        found = structs.replace(found, run=None, reason=ENDED_EARLY)
    return structs.replace(summary, corrected=found)


def rated_trials(run: StoredRun) -> list[RatedTrial]:
    """The trials of a run that passed or failed, in the order of their rows.

    Raises:
        StoreError: the run cannot be read.
    """
    from agentv.extensions.labels.depending import rated_trial

    whole = replace(run, places=None)
    return [found for result in whole.results() if (found := rated_trial(result, run.run_id)) is not None]


def with_gates(summary: Summary, run: StoredRun, suites: Sequence[Suite], *, changed: bool) -> Summary:
    """The totals of a run that has just ended, with what its gates come to.

    Args:
        summary: of the run.
        run: with the labels from before it began.
        suites: that it ran.
        changed: its labels are others than those before an earlier process of it.

    Raises:
        StoreError: the run cannot be read.
    """
    from agentv.extensions.labels.corrected_rates import RunLabels
    from agentv.extensions.labels.gates import GradedRun, gate_results

    trials = rated_trials(run)
    labels = run.labels.labels if run.labels is not None else ()
    problem = LABELS_CHANGED if changed else None
    if summary.cut is not None or summary.early_stops is not None:
        problem = f"there is no corrected pass rate: {ENDED_EARLY}"
    graded = GradedRun(trials, RunLabels.of(trials, labels, run.run_id), f"agentv label {run.run_id}", problem)
    return structs.replace(summary, gates=gate_results(suites, graded))
