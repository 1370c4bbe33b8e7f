"""Consequences of a recorded exam attempt for its prompt."""

from __future__ import annotations

from agentv.app.prompts.examining import Examiner
from agentv.app.prompts.library import Library
from agentv.app.prompts.promoting import gate_of
from agentv.app.running.exam_attempt import ExamAttempt
from agentv.authoring.prompt_library.files import exam_of
from agentv.model.suite.library import ExamReport
from agentv.prompts.reading import log_path


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
