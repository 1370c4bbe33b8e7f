"""What an exam attempt came to: its report, and what it says of the prompt's description (SPEC section 11)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from msgspec.structs import replace

from agentv.app.prompts.examining import Examiner
from agentv.app.prompts.library import Library
from agentv.app.prompts.promoting import gate_of
from agentv.app.running.exam_attempt import ExamAttempt
from agentv.authoring.prompt_library import exam_of
from agentv.model.run.summary import Activation
from agentv.model.run.trial import Status
from agentv.model.suite.exam import Exam
from agentv.model.suite.library import ExamReport
from agentv.prompts.reading import log_path
from agentv.stats.intervals.classification import Query, activation_of


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


def confusion(exam: Exam, outcomes: Mapping[str, Status]) -> Activation:
    """The queries of an exam by what became of them.

    A query that failed counts as the other answer, and so does one whose answers could not be read: the prompt was not
    loaded where it should be, or it cannot be said that it stayed out. One that errored counts as neither.

    Args:
        exam: with its queries.
        outcomes: id of a case → its verdict over all its samples; what is not in it was not run.
    """
    name, found = exam.prompt, [(should, outcomes.get(query, "skipped")) for query, should in exam.queries.items()]
    judged: list[Query] = [
        (name if should else None, [name] if should is (status == "passed") else [])
        for should, status in found
        if status in ("passed", "failed")
    ]
    counts = Counter(status for _, status in found)
    return replace(activation_of(name, judged, [name]), errored=counts["errored"], not_run=counts["skipped"])
