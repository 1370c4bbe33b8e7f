"""Exam attempts as text and as JSON (SPEC section 11)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import to_builtins

from agentv.model.suite.exam import ExamRow
from agentv.model.suite.library import ExamReport, PromotionGate
from agentv.model.values.formatting import plural
from agentv.model.values.values import Json
from agentv.reports.text import one_line, paint, shown_from

_ISO_MINUTES = 16
"""Characters of an ISO 8601 timestamp up to its minutes."""

NEVER = "never"

_HEAD = "exam of "
_VERDICTS = ("passed", "failed", "errored")


def result(exam_row: ExamRow | None) -> str:
    """`5/5`, `3/5`, `3/5 errored`, `2/2 partial`, `never`."""
    if exam_row is None:
        return NEVER
    marks = ("errored" if exam_row.errored else "", "partial" if exam_row.partial else "")
    return " ".join([f"{exam_row.passed}/{exam_row.total}", *filter(None, marks)])


def when(exam_row: ExamRow | None) -> str:
    """The time of an exam attempt, `2026-11-22 08:35` in UTC. Other text, as in rows of eva, is unchanged."""
    if exam_row is None:
        return ""
    text = exam_row.ts
    iso = text[:_ISO_MINUTES].replace("T", " ") if text[10:11] == "T" and text[:4].isdigit() else text
    return one_line(iso, _ISO_MINUTES)


def verdict(exam_row: ExamRow) -> str:
    """`passed, 5 of 5`; `failed, 3 of 5 passed, 1 errored`."""
    if exam_row.all_passed:
        return f"passed, {exam_row.passed} of {exam_row.total}"
    errored = f", {exam_row.errored} errored" if exam_row.errored else ""
    return f"{outcome(exam_row)}, {exam_row.passed} of {exam_row.total} passed{errored}"


def outcome(exam_row: ExamRow) -> str:
    """`passed`, `failed`, or `errored` if nothing failed but a case errored or did not run."""
    if exam_row.all_passed:
        return "passed"
    return "failed" if len(exam_row.failed_cases) > exam_row.errored else "errored"


def exam_lines(report: ExamReport, triggering: Iterable[str], here: str) -> list[str]:
    """The result of an exam, where it is recorded, and the promotion it allows.

    Args:
        report: report of the exam.
        triggering: lines on its queries.
        here: absolute path of the directory that paths are relative to.
    """
    exam_row = report.exam_row
    lines = []
    if exam_row.partial:
        why = "; ".join(map(one_line, report.partial)) or "a part of the exam, or with settings other than the exam's"
        lines.append(f"partial, so not evidence for a promotion: {why}")
    log = one_line(shown_from(report.log, here))
    lines += [*triggering, f"recorded in {log}" if report.error is None else f"not recorded: {one_line(report.error)}"]
    lines += [f"note: {one_line(note)}" for note in report.notes]
    if report.gate is not None and report.gate.to is None and not (exam_row.all_passed or exam_row.partial):
        lines.append(f"it is ready but did not pass: agentv prompt demote {one_line(report.prompt)}")
    elif report.gate is not None:
        lines += gate_lines(report.prompt, report.gate)
    return [f"{_HEAD}{one_line(report.prompt)}: {verdict(exam_row)}", *(f"  {line}" for line in lines)]


def gate_lines(prompt: str, gate: PromotionGate) -> Iterator[str]:
    """Whether a prompt may be promoted, and if not, every reason."""
    if gate.to is None:
        yield "it is already ready"
    elif gate.open:
        yield f"can be promoted to {gate.to}: agentv prompt promote {one_line(prompt)}"
    else:
        yield f"cannot be promoted to {gate.to} yet:"
        yield from reason_lines(gate)


def reason_lines(gate: PromotionGate) -> Iterator[str]:
    """Reasons against a promotion."""
    for reason, notes in gate.reasons:
        yield f"  - {one_line(reason)}"
        yield from (f"    {one_line(note)}" for note in notes)


def painted(line: str, *, color: bool) -> str:
    """A line of `exam_lines` with its verdict in color."""
    for word in _VERDICTS if line.startswith(_HEAD) else ():
        line = line.replace(f": {word},", f": {paint(word, word, color=color)},", 1)
    return line


def exam_row_json(exam_row: ExamRow | None) -> Json:
    """A row of the log as a JSON object, with the keys in the same order, or None without a row."""
    if exam_row is None:
        return None
    row: dict[str, Json] = to_builtins(exam_row)
    del row["line"]
    return row


def gate_json(gate: PromotionGate) -> dict[str, Json]:
    """The gate as a JSON object: `to`, `open`, and the `reasons` against a promotion."""
    reasons = [{"message": reason, "notes": list(notes)} for reason, notes in gate.reasons]
    return {"to": gate.to, "open": gate.open, "reasons": reasons}


def exam_json(report: ExamReport, triggering: Mapping[str, Json] | None, here: str) -> Json:
    """An exam of a run as a JSON object: its prompt, its row, and the path of its log."""
    return {
        "prompt": report.prompt,
        "log": shown_from(report.log, here),
        "recorded": report.error is None,
        "fault": report.error,
        "sitting": exam_row_json(report.exam_row),
        **({"triggering": dict(triggering)} if triggering is not None else {}),
        **({"promotion": gate_json(report.gate)} if report.gate is not None else {}),
    }


def exam_rows_heading(number: int, shown: int) -> str:
    """`3 exam attempts`, `12 exam attempts, the last 10`."""
    return plural(number, "exam attempt") + (f", the last {shown}" if shown < number else "")
