"""Consequences of a recorded exam attempt for its prompt."""

from __future__ import annotations

from agentv.app.prompts.examining import Examiner
from agentv.app.prompts.library import Library
from agentv.app.prompts.promoting import gate_of
from agentv.app.running.exam_attempt import ExamAttempt
from agentv.authoring.exams.detection import exam_of
from agentv.model.suite.library import ExamReport
from agentv.prompts.reading import log_path


def report_of(sat: ExamAttempt, *, promotes: bool) -> ExamReport:
    """The report of a sitting; `promotes`: with the gate as it stands after it, where the prompt's own exam was sat."""
    gate = None
    if promotes and exam_of(sat.exam.directory) == sat.suite.path:
        library = Library.here()
        gate = gate_of(Examiner(library).examine(library.read(sat.exam.directory)))
    return ExamReport(
        prompt=sat.exam.prompt,
        sitting=sat.sitting,
        log=str(log_path(sat.exam.directory)),
        notes=sat.notes,
        fault=sat.fault,
        gate=gate,
        partial=sat.partial,
    )
