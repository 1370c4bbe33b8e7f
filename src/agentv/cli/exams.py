"""Exam results at the end of a run: verdicts, where they are recorded, and the promotions they allow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentv.app.running.exam_attempt import ExamAttempt
from agentv.model.suite.library import ExamReport
from agentv.model.values.values import Json
from agentv.reports.run.exam_attempts import exam_json, exam_lines, painted

if TYPE_CHECKING:
    from agentv.model.run.summary import Activation


@dataclass(frozen=True, slots=True)
class Exams:
    """The exams of a run; `here` is the directory that paths are shown from."""

    found: Sequence[tuple[ExamAttempt, ExamReport]]
    here: str

    def text(self, *, color: bool) -> str:
        """A paragraph for each, for people."""
        return "\n".join(painted(line, color=color) for line in self._lines())

    def as_json(self) -> list[Json]:
        """An object for each, for programs."""
        from agentv.reports.run.activation import triggering_json

        rows = ((report, confusion_of(attempt)) for attempt, report in self.found)
        return [exam_json(report, None if one is None else triggering_json(one), self.here) for report, one in rows]

    def _lines(self) -> Iterator[str]:
        from agentv.reports.run.activation import triggering_lines

        for attempt, report in self.found:
            confusion = confusion_of(attempt)
            yield from exam_lines(report, triggering_lines(confusion) if confusion is not None else (), self.here)


def confusion_of(attempt: ExamAttempt) -> Activation | None:
    """Confusion matrix of an exam's queries; None if it has none."""
    if not attempt.exam.queries:
        return None
    from agentv.app.prompts.reporting import confusion

    return confusion(attempt.exam, attempt.verdicts)


def is_quiet(attempt: ExamAttempt) -> bool:
    """Whether an attempt passed, was complete and is recorded, so that there is nothing else to report."""
    return attempt.exam_row.all_passed and not attempt.exam_row.partial and attempt.error is None


def exams_of(attempts: Sequence[ExamAttempt], here: str) -> Exams:
    """Report on the exams of a run, with the promotion gates after it."""
    from agentv.app.prompts.reporting import report_of

    return Exams([(attempt, report_of(attempt)) for attempt in attempts], here)
