"""Gates of promotion, and the evidence that they ask for: digests of examined texts (SPEC section 11)."""

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
    """Path → sha256, in hexadecimal, of what `Exam.texts` holds."""
    return {path: hashlib.sha256(data).hexdigest() for path, data in texts.items()}


def prompt_sha256(found: Mapping[str, str]) -> str:
    """One hash over all digests: that of the JSON of their sorted pairs, `[["a","…"],["b","…"]]`, in ASCII."""
    return hashlib.sha256(json.dumps(sorted(found.items()), separators=(",", ":")).encode()).hexdigest()


def changes(recorded: Mapping[str, str], now: Mapping[str, str]) -> tuple[TextChange, ...]:
    """Differences between the digests in a row and the current ones, by path."""
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
    """The current digests that a row can be compared with.

    A row that records no target, as older ones do, is compared without. A recorded target that cannot be read here,
    since a variable of the environment is not set, is taken as it was: what names targets is among the texts.
    """
    targets = {path: digest for path, digest in recorded.items() if path.startswith(TARGET)}
    if targets:
        return {**targets, **now}
    return {path: digest for path, digest in now.items() if not path.startswith(TARGET)}


def is_current(row: ExamRow, now: Mapping[str, str]) -> bool:
    """Whether a row is about what there is now."""
    return row.prompt_sha256 == prompt_sha256(comparable(row.files, now))


def current_digests(
    directory: str, recorded: Mapping[str, str], description: str | None, targets: Mapping[str, str]
) -> dict[str, str]:
    """The digests of today of the files that a row names, without loading the exam; what is gone is left out.

    A file that the exam has come to rest on since is not found this way: it is named by one of these, which was edited.

    Args:
        directory: the prompt's.
        recorded: `files` of the row.
        description: of the prompt as it stands.
        targets: digests of today of recorded targets; others are taken as they were.
    """
    found: dict[str, str] = {}
    for path in recorded:
        if path.startswith(TARGET):
            found[path] = targets.get(path, recorded[path])
        elif path != DESCRIPTION and (data := _bytes(os.path.join(directory, path))) is not None:  # noqa: PTH118  # for thousands of prompts
            found[path] = hashlib.sha256(normalised(data)).hexdigest()
    if description is not None:
        found[DESCRIPTION] = hashlib.sha256(description.encode()).hexdigest()
    return found


def _bytes(path: str) -> bytes | None:
    """A file's bytes. A row may name anything: what is no plain file may never end, and is not there."""
    try:
        # a pipe would wait for somebody who writes into it
        with open(path, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as file:  # as above
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
        rows: of the log, the oldest first.
        now: path → sha256 of all that the exam rests on, as it stands.
        findings: how many things doctor finds wrong, but for those about status and evidence.
    """

    rows: Sequence[ExamRow] = ()
    now: Mapping[str, str] = field(default_factory=dict)
    findings: int = 0


@dataclass(frozen=True, slots=True)
class GateRefusal:
    """Why a gate stays shut.

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
        edited: its text has changed since the attempt that its status depends on: `ready (edited)`.
        evidence: the exam attempt that its status depends on, the latest at this exact text if there is one; None: none
            is recorded.
        failed_since: a complete attempt at this exact text that did not pass, after the evidence of a ready prompt.
    """

    edited: bool = False
    evidence: ExamRow | None = None
    failed_since: ExamRow | None = None


def next_status(status: PromptStatus) -> PromptStatus | None:
    """The next status; None after the last."""
    place = STATUSES.index(status) + 1
    return STATUSES[place] if place < len(STATUSES) else None


def previous_status(status: PromptStatus) -> PromptStatus | None:
    """The status that a demotion leads to; None before the first."""
    place = STATUSES.index(status)
    return STATUSES[place - 1] if place else None


def refusals(status: PromptStatus, to: PromptStatus, evidence: GateEvidence) -> tuple[GateRefusal, ...]:
    """Reasons against a promotion; empty if it is allowed. Lower or equal statuses need no evidence.

    Args:
        status: of the prompt.
        to: the status that it shall get; from draft to ready both gates must open.
        evidence: of the prompt as it stands.
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


def is_whole(row: ExamRow) -> bool:
    """Whether a row can be evidence: of the whole exam, judged to its end, on its own model, with its hash."""
    return not row.partial and row.prompt_sha256 is not None and row.total > 0 and not row.errored


def status_evidence(meta: PromptMeta, rows: Sequence[ExamRow], now: Mapping[str, str]) -> StatusEvidence:
    """The evidence for a prompt's status.

    Args:
        meta: of the prompt; a draft rests on nothing.
        rows: of its log, the oldest first.
        now: path → sha256 of all that the exam rests on, as it stands.
    """
    whole = [row for row in rows if is_whole(row)]
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
    """What keeps a prompt from `tested`: a complete attempt at this exact text must be recorded, passed or not."""
    whole = [row for row in evidence.rows if is_whole(row)]
    if any(is_current(row, evidence.now) for row in whole):
        return
    if whole:
        yield _stale(whole[-1], evidence.now)
    elif evidence.rows:
        yield GateRefusal(NO_EVIDENCE, "it has no complete exam on record", (_why_incomplete(evidence.rows[-1]),))
    else:
        yield GateRefusal(NO_EVIDENCE, "its exam has never run")


def _not_passed(evidence: GateEvidence) -> Iterable[GateRefusal]:
    """What keeps a prompt from `ready`: its latest attempt must be complete, at this exact text, and passed."""
    if not evidence.rows:
        return
    last = evidence.rows[-1]
    if not is_whole(last):
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
