"""What a sitting means for its prompt, once it is on record."""

from __future__ import annotations

from agentv.app.prompts.examining import Examiner
from agentv.app.prompts.library import Library
from agentv.app.prompts.promoting import gate_of
from agentv.app.sitting import Sat
from agentv.model.library import ExamReport
from agentv.prompts.log import log_path
from agentv.spec.exam import exam_of


def report_of(sat: Sat, *, promotes: bool) -> ExamReport:
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
