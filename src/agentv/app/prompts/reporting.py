"""What an exam attempt came to: its report, and what it says of the prompt's description (SPEC section 11)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from agentv.app.prompts.examining import Examiner
from agentv.app.prompts.library import Library
from agentv.app.prompts.promoting import gate_of
from agentv.app.running.exam_attempt import ExamAttempt
from agentv.authoring.prompt_library.files import exam_of
from agentv.model.run.trial import Status
from agentv.model.suite.library import ExamReport
from agentv.model.suite.suite import Suite
from agentv.prompts.reading import log_path
from agentv.reports.run.triggering import Confusion
from agentv.stats.intervals.classification import Classified


def report_of(attempt: ExamAttempt) -> ExamReport:
    """The report of an exam attempt, with the state of the promotion gate if the prompt's own exam ran."""
    gate = None
    if exam_of(attempt.exam.directory) == attempt.suite.path:
        library = Library.here()
        gate = gate_of(Examiner(library).examine(library.read(attempt.exam.directory)))
    return ExamReport(
        prompt=attempt.exam.prompt,
        exam_row=attempt.exam_row,
        log=str(log_path(attempt.exam.directory)),
        notes=attempt.notes,
        error=attempt.error,
        gate=gate,
        partial=attempt.partial,
    )


def confusion(suite: Suite, outcomes: Mapping[str, Status]) -> Confusion:
    """The queries of an exam by what became of them; all counts are 0 for a suite that is no exam.

    A query that failed counts as the other answer, and so does one whose answers could not be read: the prompt was not
    loaded where it should be, or it cannot be said that it stayed out. One that errored counts as neither.

    Args:
        suite: the exam.
        outcomes: id of a case → its verdict over all its samples; what is not in it was not run.
    """
    expected = suite.exam.queries if suite.exam is not None else {}
    found = Counter((should, outcomes.get(query, "skipped")) for query, should in expected.items())
    table = Classified(
        true_positives=found[True, "passed"],
        false_positives=found[False, "failed"],
        false_negatives=found[True, "failed"],
        true_negatives=found[False, "passed"],
    )
    of_both = {status: found[True, status] + found[False, status] for status in ("errored", "skipped")}
    return Confusion(table, of_both["errored"], of_both["skipped"])
