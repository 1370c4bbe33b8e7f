"""Rows read in batches, and what is collected of them while they pass."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from agentv.errors import StoreError
from agentv.extensions.view.index.case_entries import IndexedTrial
from agentv.extensions.view.viewed.appended import appended_lines
from agentv.extensions.view.viewed.indexing import indexed_trial
from agentv.model.run.trial import TrialResult
from agentv.reports.run.failures import FailureGroups
from agentv.store.rows.reading import row_in
from agentv.store.rows.results import result_in
from agentv.store.totals.summary import RunCounts

_BATCH_S = 0.1
"""Seconds for which rows are read before others may ask."""

_BATCH_BYTES = 16_000_000

TOTALLED = 200_000
"""Trials of a run that goes on whose totals are computed while it does."""


@dataclass(slots=True)
class Collected:
    """What is computed of rows beside their index.

    Attributes:
        failures: by cause; None: rows were replaced, so that they must be read again.
        counts: totals; None: there are too many rows, or not all of them were read by this process.
    """

    failures: FailureGroups | None = field(default_factory=FailureGroups)
    counts: RunCounts | None = field(default_factory=RunCounts)

    def add(self, result: TrialResult, number: int, line: bytes) -> None:
        """Take in a row."""
        if self.failures is not None:
            self.failures.add(result, number)
        if self.counts is not None and number > TOTALLED:
            self.counts = None
        if self.counts is not None:
            self.counts.add(row_in(line))


@dataclass(frozen=True, slots=True)
class Batch:
    """Trials that were read.

    Attributes:
        end: where the next one begins, in bytes.
        more: there are others.
        problem: the first line that is not a row; empty: all are.
    """

    trials: list[IndexedTrial]
    end: int
    more: bool = False
    problem: str = ""


def read_batch(file: Path, root: str, start: int, first: int, collected: Collected) -> Batch:
    """The trials of the next rows of a file, read for a moment.

    A line that is not a row is passed over and reported; at a row of a newer version all later ones are left.

    Args:
        file: the `index.jsonl`.
        root: which paths in rows are relative to.
        start: where to begin, in bytes.
        first: number of the first trial.
        collected: takes in the rows too.

    Raises:
        StoreError: the file cannot be read, or a newer agentv wrote it.
    """
    until = time.monotonic() + _BATCH_S
    trials: list[IndexedTrial] = []
    end, problem = start, ""
    for place, line in appended_lines(file, start):
        if end > start and (time.monotonic() > until or place - start > _BATCH_BYTES):
            return Batch(trials, end, more=True, problem=problem)
        end = place + len(line)
        if line.isspace():
            continue
        try:
            result = result_in(line, root)
            collected.add(result, first + len(trials), line)
        except ValueError as error:
            problem = problem or f"{file.name}: no row of a run starts at byte {place}: {error}"
            continue
        except StoreError as error:
            raise StoreError(f"{file}: {error}") from error
        trials.append(indexed_trial(place, result))
    return Batch(trials, end, problem=problem)
