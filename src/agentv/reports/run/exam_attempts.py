"""Sittings of exams in words, and as JSON for programs (SPEC section 11)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict

from agentv.model.suite.exam import Sitting
from agentv.model.suite.library import ExamReport, PromotionGate
from agentv.model.values.formatting import plural
from agentv.model.values.values import Json
from agentv.reports.text.escaping import one_line
from agentv.reports.text.paths import shown_from

_ISO_MINUTES = 16
"""Characters of an ISO 8601 timestamp up to its minutes."""

NEVER = "never"

_HEAD = "exam of "
_PAINTED = {"passed": "32", "failed": "31", "errored": "35"}


def result(sitting: Sitting | None) -> str:
    """`5/5`, `3/5`, `3/5 errored`, `2/2 partial`, `never`."""
    if sitting is None:
        return NEVER
    marks = ("errored" if sitting.errored else "", "partial" if sitting.partial else "")
    return " ".join([f"{sitting.passed}/{sitting.total}", *filter(None, marks)])


def when(sitting: Sitting | None) -> str:
    """`2026-11-22 08:35`, in UTC; rows of eva may hold other text, which is shown as it is."""
    if sitting is None:
        return ""
    text = sitting.ts
    iso = text[:_ISO_MINUTES].replace("T", " ") if text[10:11] == "T" and text[:4].isdigit() else text
    return one_line(iso, _ISO_MINUTES)


def verdict(sitting: Sitting) -> str:
    """`passed, 5 of 5`; `failed, 3 of 5 passed, 1 errored`."""
    if sitting.all_passed:
        return f"passed, {sitting.passed} of {sitting.total}"
    errored = f", {sitting.errored} errored" if sitting.errored else ""
    return f"{outcome(sitting)}, {sitting.passed} of {sitting.total} passed{errored}"


def outcome(sitting: Sitting) -> str:
    """`passed`, `failed`; `errored` where nothing failed, and something could not be judged or was not run."""
    if sitting.all_passed:
        return "passed"
    return "failed" if len(sitting.failed_cases) > sitting.errored else "errored"


def exam_lines(report: ExamReport, triggering: Iterable[str], here: str) -> list[str]:
    """The result of an exam, where it is recorded, and the promotion it allows.

    Args:
        report: of the exam.
        triggering: what is to be said of its queries.
        here: absolute path of the directory that paths are shown from.
    """
    return list(_lines(report, triggering, here))


def _lines(report: ExamReport, triggering: Iterable[str], here: str) -> Iterator[str]:
    sitting = report.sitting
    yield f"{_HEAD}{one_line(report.prompt)}: {verdict(sitting)}"
    if sitting.partial:
        why = "; ".join(map(one_line, report.partial)) or "a part of the exam, or with settings other than the exam's"
        yield f"  partial, so not evidence for a promotion: {why}"
    for line in triggering:
        yield f"  {line}"
    log = one_line(shown_from(report.log, here))
    yield f"  recorded in {log}" if report.fault is None else f"  not recorded: {one_line(report.fault)}"
    for note in report.notes:
        yield f"  note: {one_line(note)}"
    if report.gate is None:
        return
    if report.gate.to is None and not (sitting.all_passed or sitting.partial):
        yield f"  it is ready but did not pass: agentv prompt demote {one_line(report.prompt)}"
    else:
        yield from (f"  {line}" for line in gate_lines(report.prompt, report.gate))


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
    """What is in the way of a promotion."""
    for reason, notes in gate.reasons:
        yield f"  - {one_line(reason)}"
        yield from (f"    {one_line(note)}" for note in notes)


def painted(line: str, *, color: bool) -> str:
    """A line of `exam_lines` with its verdict in colour."""
    for words, style in _PAINTED.items() if color and line.startswith(_HEAD) else ():
        line = line.replace(f": {words},", f": \x1b[{style}m{words}\x1b[0m,", 1)
    return line


def sitting_json(sitting: Sitting | None) -> Json:
    """The keys of a row of the log, in its order."""
    if sitting is None:
        return None
    row: dict[str, Json] = asdict(sitting)
    del row["line"]
    return row


def gate_json(gate: PromotionGate) -> dict[str, Json]:
    """`to`, `open`, and the `reasons` against it."""
    reasons = [{"message": reason, "notes": list(notes)} for reason, notes in gate.reasons]
    return {"to": gate.to, "open": gate.open, "reasons": reasons}


def exam_json(report: ExamReport, triggering: Mapping[str, Json] | None, here: str) -> Json:
    """One exam of a run: the row, whose it is and where it stands."""
    return {
        "prompt": report.prompt,
        "log": shown_from(report.log, here),
        "recorded": report.fault is None,
        "fault": report.fault,
        "sitting": sitting_json(report.sitting),
        **({"triggering": dict(triggering)} if triggering is not None else {}),
        **({"promotion": gate_json(report.gate)} if report.gate is not None else {}),
    }


def sittings_heading(number: int, shown: int) -> str:
    """`3 sittings`, `12 sittings, the last 10`."""
    return plural(number, "sitting") + (f", the last {shown}" if shown < number else "")
