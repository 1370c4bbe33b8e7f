"""Outcome of a run: totals, exit status, and notes on its directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from agentv.errors import ExitStatus
from agentv.model.run.events import RunFinished
from agentv.model.run.summary import Cut, Summary
from agentv.model.values.formatting import plural
from agentv.model.values.usage import BudgetUse
from agentv.model.values.values import EMPTY, JsonObject
from agentv.store.files.directory import HISTORY

if TYPE_CHECKING:
    from agentv.app.running.exam_attempt import ExamAttempt
    from agentv.engine.draws import Draws


class Outcome(Struct, frozen=True):
    """Result of a run.

    Attributes:
        directory: of the results.
        interrupted: Ctrl-C or a signal ended it early.
        notes: notes about the directory, such as a torn line that was removed.
        fail_fast: the run was to stop at the first trial that does not pass, so cases that did not run are expected.
        allow_unchecked: cases that check nothing do not change the exit status.
        problem: a failed side task, such as a cassette or an export that is not written.
        budget: use of the budget; None if there was none.
        uncounted: the cost of the calls is unknown, so a larger budget in dollars would not help.
        exam_attempts: of the exams among the suites, each with its row in the log of its prompt.
        exports: written exports.
        record: the object of `run.json`.
    """

    run_id: str
    directory: Path
    summary: Summary
    interrupted: bool
    notes: tuple[str, ...] = ()
    fail_fast: bool = False
    allow_unchecked: bool = False
    problem: str | None = None
    budget: BudgetUse | None = None
    uncounted: bool = False
    exam_attempts: tuple[ExamAttempt, ...] = ()
    exports: tuple[str, ...] = ()
    record: JsonObject = EMPTY

    @property
    def status(self) -> ExitStatus:
        """The exit status (SPEC section 12). It is 0 only for graded, good enough answers.

        A skipped case adds nothing to the status of its dependency, which failed or errored. Cases
        that were not drawn are no success, however well the others did. An exam whose row could not be appended leaves
        no evidence, which is no success. Cases that are only shown are
        none either, unless that is allowed. Where the corrected pass rate decides, failed cases are no failure. A shard
        without cases passes: the other shards run what was selected.
        """
        cases = self.summary.cases
        if self.interrupted:
            return ExitStatus.INTERRUPTED
        worse = self.summary.against is not None and self.summary.against.verdict == "worse"
        unexplained = (
            self.summary.trials.skipped > self.summary.held_back and not (self.fail_fast and cases.failed) and not worse
        )
        unrecorded = self.problem or any(one.error is not None for one in self.exam_attempts)
        if cases.errored or unexplained or unrecorded:
            return ExitStatus.ERRORED
        if not all(gate.passed for gate in self.summary.gates):
            return ExitStatus.FAILED
        if self.summary.is_empty_shard:
            return ExitStatus.PASSED
        good = cases.passed + (cases.shown if self.allow_unchecked else 0)
        decided = good + self._failed_within_gates
        lacking = cases.total != decided or not decided
        return ExitStatus.FAILED if worse or lacking else ExitStatus.PASSED

    @property
    def _failed_within_gates(self) -> int:
        """Failed cases that gates decide: all of a suite, or its queries."""
        failed: dict[str, int] = {}
        for gate in self.summary.gates:
            failed[gate.suite] = max(failed.get(gate.suite, 0), gate.failed)
        return sum(failed.values())

    @property
    def unchecked(self) -> str | None:
        """The note about cases that are only shown, or None if every case is checked or this is allowed."""
        shown = self.summary.cases.shown
        if not shown or self.allow_unchecked:
            return None
        were = "1 case was" if shown == 1 else f"{shown:,} cases were"
        return f"{were} shown, not checked; --allow-unchecked accepts this"


def cut_by(finished: RunFinished, summary: Summary, draws: Draws | None) -> Cut | None:
    """Why the results of its cases ended the run early; None if it is complete or ended for another reason."""
    if not summary.trials.skipped:
        return None
    if draws is not None and draws.decided:
        return "decided"
    return finished.stopped if finished.stopped in ("fail-fast", "max-errors") and finished.unstarted else None


def journal_damage(lines: int) -> Iterator[str]:
    """Damage that a resumed run found in its journal."""
    if lines:
        number = plural(lines, "answer")
        what = f"journal.jsonl: {number} skipped because of a wrong checksum: the file was changed or damaged"
        yield f"{what}; finished trials keep their rows, all others run again"


def superseded_rows(rows: int) -> Iterator[str]:
    """Rows of a resumed run that are no part of it any more."""
    if rows:
        number, whose, depend = f"{rows:,} outdated rows", "their cases were", "depend"
        if rows == 1:
            number, whose, depend = "1 outdated row", "its case was", "depends"
        why = f"{whose} edited, removed, configured differently, or {depend} on one that was"
        yield f"moved {number} to {HISTORY}: {why}"
