"""Promotion gates, and the evidence that they require: digests of examined texts (SPEC section 11)."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from stat import S_ISREG

from agentv.model.suite.exam import DESCRIPTION, STATUSES, TARGET, ExamRow, PromptMeta, PromptStatus, normalised
from agentv.model.suite.library import TextChange
from agentv.model.values.formatting import plural


def digests(texts: Mapping[str, bytes]) -> dict[str, str]:
    """Return path → hexadecimal SHA-256 of the texts in `Exam.texts`."""
    return {path: hashlib.sha256(data).hexdigest() for path, data in texts.items()}


def prompt_sha256(found: Mapping[str, str]) -> str:
    """Return one hash of all digests: of their sorted pairs as ASCII JSON, `[["a","…"],["b","…"]]`."""
    return hashlib.sha256(json.dumps(sorted(found.items()), separators=(",", ":")).encode()).hexdigest()


def changes(recorded: Mapping[str, str], now: Mapping[str, str]) -> tuple[TextChange, ...]:
    """Return the differences between the digests in a row and the current ones, by path."""
    now, found = comparable(recorded, now), []
    for path in sorted(recorded.keys() | now.keys()):
        if path not in recorded:
            found.append(TextChange(path, "added"))
        elif path not in now:
            found.append(TextChange(path, "removed"))
        elif recorded[path] != now[path]:
            found.append(TextChange(path, "edited"))
    return tuple(found)


def comparable(recorded: Mapping[str, str], now: Mapping[str, str]) -> Mapping[str, str]:
    """Return the current digests that a row can be compared with.

    An older row, which records no target, is compared without targets. A recorded target that cannot be read here,
    because an environment variable is not set, counts as unchanged: the files that name targets are among the texts.
    """
    targets = {path: digest for path, digest in recorded.items() if path.startswith(TARGET)}
    if targets:
        return {**targets, **now}
    return {path: digest for path, digest in now.items() if not path.startswith(TARGET)}


def is_current(row: ExamRow, now: Mapping[str, str]) -> bool:
    """Return whether a row's exam tested the current texts."""
    return row.prompt_sha256 == prompt_sha256(comparable(row.files, now))


def current_digests(
    directory: str, recorded: Mapping[str, str], description: str | None, targets: Mapping[str, str]
) -> dict[str, str]:
    """Return the current digests of the files that a row names, without loading the exam; missing files are left out.

    A file that the exam depends on only since then is not found, but a file that names it was edited, which is found.

    Args:
        directory: directory of the prompt.
        recorded: `files` of the row.
        description: current description of the prompt.
        targets: current digests of recorded targets; other targets count as unchanged.
    """
    found: dict[str, str] = {}
    for path in recorded:
        if path.startswith(TARGET):
            found[path] = targets.get(path, recorded[path])
        elif path != DESCRIPTION and (data := _bytes(os.path.join(directory, path))) is not None:  # noqa: PTH118  # faster, for thousands of prompts
            found[path] = hashlib.sha256(normalised(data)).hexdigest()
    if description is not None:
        found[DESCRIPTION] = hashlib.sha256(description.encode()).hexdigest()
    return found


def _bytes(path: str) -> bytes | None:
    """Return a file's bytes, or None if it is not a regular file, since others may never end."""
    try:
        # opening a pipe would wait for a writer
        with open(path, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as file:
            return file.read() if S_ISREG(os.fstat(file.fileno()).st_mode) else None
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return None


NO_EVIDENCE = "no-evidence"
STALE_EVIDENCE = "stale-evidence"
EXAM_NOT_PASSED = "exam-not-passed"
DOCTOR_FINDINGS = "doctor-findings"


@dataclass(frozen=True, slots=True)
class GateEvidence:
    """Data that promotion gates check.

    Attributes:
        rows: rows of the log, oldest first.
        now: path → current SHA-256 of everything that the exam depends on.
        findings: number of problems that doctor finds, except those about status and evidence.
    """

    rows: Sequence[ExamRow] = ()
    now: Mapping[str, str] = field(default_factory=dict)
    findings: int = 0


@dataclass(frozen=True, slots=True)
class GateRefusal:
    """Why a gate refuses a promotion.

    Attributes:
        code: a key of `agentv.codes.CODES`.
        notes: further lines, such as each text that changed.
    """

    code: str
    message: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StatusEvidence:
    """Evidence for a prompt's status.

    Attributes:
        edited: whether its text has changed since the attempt that its status depends on: `ready (edited)`.
        evidence: the exam attempt that its status depends on, if possible the latest with the current text; None if
            none is recorded.
        failed_since: a complete attempt with the current text that failed after the evidence of a ready prompt.
    """

    edited: bool = False
    evidence: ExamRow | None = None
    failed_since: ExamRow | None = None


def next_status(status: PromptStatus) -> PromptStatus | None:
    """Return the next status, or None after the last."""
    place = STATUSES.index(status) + 1
    return STATUSES[place] if place < len(STATUSES) else None


def previous_status(status: PromptStatus) -> PromptStatus | None:
    """Return the status that a demotion leads to, or None for the first."""
    place = STATUSES.index(status)
    return STATUSES[place - 1] if place else None


def refusals(status: PromptStatus, to: PromptStatus, evidence: GateEvidence) -> tuple[GateRefusal, ...]:
    """Return the reasons against a promotion; empty if it is allowed. Lower or equal statuses need no evidence.

    Args:
        status: current status of the prompt.
        to: its new status; from draft to ready, both gates must allow it.
        evidence: evidence for the current prompt.
    """
    if STATUSES.index(to) <= STATUSES.index(status):
        return ()
    found = []
    if evidence.findings:
        findings = plural(evidence.findings, "thing")
        found.append(GateRefusal(DOCTOR_FINDINGS, f"doctor finds {findings} to fix", ("see agentv prompt doctor",)))
    if not evidence.now:
        why = "its exam cannot be read, so no recorded exam can be evidence"
        return (*found, GateRefusal(NO_EVIDENCE, why))
    found += _not_attempted(evidence)
    if to == "ready":
        codes = {one.code for one in found}
        found += [one for one in _not_passed(evidence) if one.code not in codes]
    return tuple(found)


def is_complete(row: ExamRow) -> bool:
    """Return whether a row can be evidence: of the whole exam, fully judged, on its own model, with its hash."""
    return not row.partial and row.prompt_sha256 is not None and row.total > 0 and not row.errored


def status_evidence(meta: PromptMeta, rows: Sequence[ExamRow], now: Mapping[str, str]) -> StatusEvidence:
    """Return the evidence for a prompt's status.

    Args:
        meta: metadata of the prompt; a draft needs no evidence.
        rows: rows of its log, oldest first.
        now: path → current SHA-256 of everything that the exam depends on.
    """
    whole = [row for row in rows if is_complete(row)]
    ready = meta.status == "ready"
    good = [row for row in whole if row.all_passed] if ready else whole
    same = [row for row in good if is_current(row, now)]
    evidence = _last(same) or _last(good)
    if meta.status == "draft" or evidence is None:
        return StatusEvidence(evidence=evidence)
    latest = _last([row for row in whole if is_current(row, now)])
    failed = latest if ready and latest is not None and not latest.all_passed else None
    return StatusEvidence(not same, evidence, failed)


def _last(rows: Sequence[ExamRow]) -> ExamRow | None:
    return rows[-1] if rows else None


def _not_attempted(evidence: GateEvidence) -> Iterable[GateRefusal]:
    """Yield why a prompt cannot be `tested`: it needs a complete attempt with the current text, passed or not."""
    whole = [row for row in evidence.rows if is_complete(row)]
    if any(is_current(row, evidence.now) for row in whole):
        return
    if whole:
        yield _stale(whole[-1], evidence.now)
    elif evidence.rows:
        yield GateRefusal(NO_EVIDENCE, "it has no complete exam on record", (_why_incomplete(evidence.rows[-1]),))
    else:
        yield GateRefusal(NO_EVIDENCE, "its exam has never run")


def _not_passed(evidence: GateEvidence) -> Iterable[GateRefusal]:
    """Yield why a prompt cannot be `ready`: its latest attempt must be complete, with the current text, and passed."""
    if not evidence.rows:
        return
    last = evidence.rows[-1]
    if not is_complete(last):
        yield GateRefusal(NO_EVIDENCE, f"its most recent exam ({last.ts}) does not count", (_why_incomplete(last),))
    elif not is_current(last, evidence.now):
        yield _stale(last, evidence.now)
    if not last.all_passed:
        errored = f", {last.errored} of them errored" if last.errored else ""
        failures = (f"{last.total - last.passed} of {last.total} did not pass{errored}", *last.failed_cases)
        yield GateRefusal(EXAM_NOT_PASSED, f"its most recent exam ({last.ts}) did not pass", failures)


def _stale(row: ExamRow, now: Mapping[str, str]) -> GateRefusal:
    notes = tuple(str(change) for change in changes(row.files, now))
    return GateRefusal(STALE_EVIDENCE, f"it changed after its exam of {row.ts}", notes)


def _why_incomplete(row: ExamRow) -> str:
    if row.partial:
        return f"the exam of {row.ts} was partial: only some cases, with other flags, or on another model or judge"
    if row.prompt_sha256 is None:
        return f"the row of {row.ts} does not record the examined text; run the exam again"
    if row.errored:
        return f"in the exam of {row.ts}, {row.errored} of {row.total} errored, and none was graded"
    return f"the exam of {row.ts} contained no cases"
