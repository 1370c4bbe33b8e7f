"""Exams of prompts: checks, promotion and demotion, and the reports that `agentv prompt` shows."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.app.prompt_library import Library, LibraryPrompt
from agentv.app.running.exam_attempt import ExamAttempt, texts_home
from agentv.authoring.fields.request import LoadRequest, Registries
from agentv.authoring.prompt_library import check_prompt, exam_of, library_reading, prompt_file_of
from agentv.authoring.source.files import EXAM_FILES, MARK, META, PROMPT_FILES, repository_root, shown
from agentv.authoring.source.ignores import without_ignored
from agentv.authoring.source.nearest import did_you_mean
from agentv.authoring.source.report import Report
from agentv.errors import Diagnostic, LoadError, StoreError, UsageError
from agentv.model.run.summary import Activation
from agentv.model.run.trial import Status
from agentv.model.suite.exam import DESCRIPTION, STATUSES, Exam, ExamRow, PromptStatus, normalised
from agentv.model.suite.library import (
    Covered,
    ExamReport,
    ListedPrompt,
    Promotion,
    PromotionGate,
    PromptDiff,
    Rendered,
    ShownPrompt,
    TextChange,
    TextDifference,
)
from agentv.model.suite.suite import Suite
from agentv.model.values.values import Span
from agentv.prompts.disk import stored_text
from agentv.prompts.gates import (
    GateEvidence,
    StatusEvidence,
    changes,
    current_digests,
    digests,
    is_complete,
    next_status,
    previous_status,
    refusals,
    status_evidence,
)
from agentv.prompts.reading import Log, last_exam_row, log_path, read_log
from agentv.prompts.status import write_status
from agentv.reports.run.exam_attempts import when
from agentv.stats.intervals.proportion import Query, activation_of


class Examined(Struct, frozen=True):
    """A prompt with its exam and its log.

    Attributes:
        suite: its exam; None if it has none or an invalid one.
        log: the rows that can be read.
        diagnostics: all problems, except those with the evidence for its status.
        evidence_problems: problems with the evidence for its status.
        now: path → sha256 of the exam's current files and of the targets of its latest evidence; empty if the exam
            cannot be read.
    """

    prompt: LibraryPrompt
    suite: Suite | None
    log: Log
    diagnostics: tuple[Diagnostic, ...]
    evidence_problems: tuple[Diagnostic, ...] = ()
    now: Mapping[str, str] = field(default_factory=dict)

    @property
    def evidence(self) -> GateEvidence:
        """The data that promotion gates check."""
        return GateEvidence(self.log.rows, self.now, len(self.diagnostics))


class Examiner:
    """Reads prompts of a library with their exams."""

    def __init__(self, library: Library) -> None:
        self._library = library

    @cached_property
    def _registries(self) -> Registries:
        from agentv.app.registries import registries

        return registries()

    @cached_property
    def _request(self) -> LoadRequest:
        return LoadRequest((), process_env=self._library.env, for_run=False)

    def examine(self, prompt: LibraryPrompt) -> Examined:
        """Read the exam and the log of a prompt and check it, independently of other prompts."""
        exam = exam_of(prompt.directory)
        suite, found = self.load(exam) if exam is not None else (None, ())
        try:
            log = read_log(prompt.directory)
        except StoreError as error:
            log = Log(diagnostics=(Diagnostic("bad-log", str(error), Span.start_of(str(log_path(prompt.directory)))),))
        own = [*prompt.diagnostics, *self._check_files(prompt, exam, suite), *log.diagnostics]
        # comments in these files suppress warnings; for the exam's own, its reader has done so
        marked = {}
        for path in {one.span.file for one in own if one.span is not None and one.severity == "warning"}:
            if path.endswith((".yaml", ".yml")) and MARK in (data := Path(path).read_bytes()):
                marked[path] = data
        remaining = without_ignored(own, marked, reported=()) if marked else own
        diagnostics = (*remaining, *found)
        now = self._now(prompt, suite, log.rows)
        evidence_problems = tuple(_evidence_problems(prompt, log.rows, now)) if suite is not None else ()
        ordered = sorted(diagnostics, key=lambda one: one.order)
        return Examined(prompt, suite, log, tuple(dict.fromkeys(ordered)), evidence_problems, now)

    def _now(self, prompt: LibraryPrompt, suite: Suite | None, rows: Sequence[ExamRow]) -> Mapping[str, str]:
        if suite is None or suite.exam is None:
            return {}
        latest = next((row for row in reversed(rows) if is_complete(row)), None)
        # if the exam names no target, it ran on one from the command line
        of_row = prompt.targets.digests(prompt.directory, latest.files) if latest is not None else {}
        return {**of_row, **digests(suite.exam.texts)}

    def load(self, exam: str) -> tuple[Suite | None, tuple[Diagnostic, ...]]:
        """Load an exam; return it, or None if it is invalid, and its diagnostics."""
        from agentv.authoring.loading.suite import SuiteReader

        reader = SuiteReader(exam, self._request, self._registries, Report())
        suite = reader.read()
        return suite, reader.diagnostics

    def _check_files(self, prompt: LibraryPrompt, exam: str | None, suite: Suite | None) -> Iterator[Diagnostic]:
        """Yield problems with missing and unused files."""
        text = prompt_file_of(prompt.directory)
        at = Span.start_of(str(text)) if text is not None else prompt.meta.path and Span.start_of(prompt.meta.path)
        if prompt.meta.path is None:
            hint = f"agentv prompt init {prompt.id} writes the missing files"
            yield Diagnostic("missing-file", f"this prompt has no {META}", at or None, hint=hint)
        elif "description" not in prompt.meta.places and all(one.severity != "error" for one in prompt.diagnostics):
            hint = "describe what the prompt does and when to use it"
            yield Diagnostic("missing-key", f"{META} needs 'description'", Span.start_of(prompt.meta.path), hint=hint)
        if exam is None:
            yield Diagnostic(
                "missing-file", "this prompt has no exam: there is no eval.yml in its directory", at or None
            )
            yield from self._check_text(prompt)
        if suite is not None and suite.exam is not None:
            yield from unused_files(prompt.directory, suite.exam.texts)

    def _check_text(self, prompt: LibraryPrompt) -> Iterator[Diagnostic]:
        """Yield problems with the text of a prompt without an exam; otherwise, loading the exam reports them."""
        reading = library_reading(prompt.directory, self._library.env)
        if prompt_file_of(prompt.directory) is None:
            message = "this prompt has no text: there is no prompt.xml, prompt.md or prompt.txt"
            yield Diagnostic("missing-file", message, Span.start_of(prompt.meta.path or prompt.directory))
            return
        check_prompt(prompt.directory, reading)
        yield from reading.report.diagnostics


def findings(prompts: Sequence[LibraryPrompt], library: Library) -> Iterator[Diagnostic]:
    """Yield the diagnostics of several prompts without duplicates, and duplicate ids.

    Mistakes in a shared file, such as `targets.yaml`, are reported with the first prompt that uses it.
    """
    examiner = Examiner(library)

    reported: set[tuple[object, ...]] = set()
    first: dict[str, LibraryPrompt] = {}
    for prompt in prompts:
        own = examiner.examine(prompt)
        all_found = [*own.diagnostics, *own.evidence_problems]
        other = first.setdefault(prompt.id, prompt)
        if other is not prompt:
            span = prompt.meta.places.get("id") or Span.start_of(
                prompt.meta.path or str(prompt_file_of(prompt.directory))
            )
            message = f"two prompts have the id '{prompt.id}': the other is {shown(other.directory)}"
            hint = f"give one of them a different 'id' in {META}"
            all_found.append(Diagnostic("duplicate-id", message, span, hint=hint))
        for found in all_found:
            key = (found.code, found.span, found.message)
            if key not in reported:
                reported.add(key)
                yield found


def below(prompts: Iterable[LibraryPrompt], required: PromptStatus) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each prompt whose status is below the one required by `check --require`."""
    for prompt in prompts:
        if STATUSES.index(prompt.meta.status) < STATUSES.index(required):
            message = f"'{prompt.id}' is {prompt.meta.status}, but {required} is required"
            yield Diagnostic("status-too-low", message, _at_status(prompt))


def _evidence_problems(prompt: LibraryPrompt, rows: Sequence[ExamRow], now: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a prompt's status lacks evidence, or its evidence is outdated."""
    status, at = prompt.meta.status, _at_status(prompt)
    if status == "draft":
        return
    found: StatusEvidence = status_evidence(prompt.meta, rows, now)
    again = f"agentv prompt eval {prompt.id}"
    if found.evidence is None:
        what = "no passed exam" if status == "ready" else "no exam"
        hint = f"{again}, or agentv prompt demote {prompt.id}"
        yield Diagnostic("no-evidence", f"its status is {status}, but {what} is on record", at, hint=hint)
    elif found.edited:
        message = f"its status is {status}, but it changed after its exam of {when(found.evidence)}"
        notes = tuple(map(str, changes(found.evidence.files, now)))
        yield Diagnostic("stale-evidence", message, at, hint=again, notes=notes)
    elif found.failed_since is not None:
        message = f"its status is ready, but it did not pass its exam of {when(found.failed_since)}"
        yield Diagnostic("exam-not-passed", message, at, notes=found.failed_since.failed_cases)


def _at_status(prompt: LibraryPrompt) -> Span:
    return prompt.meta.places.get("status") or Span.start_of(prompt.meta.path or prompt.directory)


EXAMPLES = "examples"
"""Directory with a subdirectory for each set of inputs."""

_INPUTS = ("inputs.yml", "inputs.yaml")
_KNOWN_FILES = frozenset({*PROMPT_FILES, *EXAM_FILES, META})
_DOCUMENT_NAMES = ("readme", "license", "licence", "changelog", "notice", "skill.md", "todo", "notes")
"""Lowercase beginnings of the names of documents that may lie beside a prompt without a warning."""


def unused_files(directory: str, read: Collection[str]) -> Iterator[Diagnostic]:
    """Yield a warning for each file of a prompt that is not read by agentv or the exam, and for unused inputs.

    Files in directories other than `examples` are ignored: they belong to the author.

    Args:
        directory: of the prompt, absolute.
        read: files that the exam uses, as paths from the directory.
    """
    with os.scandir(directory) as entries:
        names = sorted(one.name for one in entries if one.is_file())
    for name in names:
        if (
            name in _KNOWN_FILES
            or name in read
            or name.startswith((".", "_"))
            or name.lower().startswith(_DOCUMENT_NAMES)
        ):
            continue
        hint = did_you_mean(name, [*_KNOWN_FILES, *_INPUTS]) or "keep your own files in a separate directory"
        at = Span.start_of(os.path.join(directory, name))  # noqa: PTH118  # fast, for thousands of prompts
        yield Diagnostic("unknown-file", f"unused file '{name}'", at, "warning", hint)
    yield from _unused_inputs(directory, read)


def _unused_inputs(directory: str, read: Collection[str]) -> Iterator[Diagnostic]:
    examples = os.path.join(directory, EXAMPLES)  # noqa: PTH118
    if not os.path.isdir(examples):  # noqa: PTH112
        return
    with os.scandir(examples) as entries:
        names = sorted(one.name for one in entries if one.is_dir())
    for name in names:
        for inputs in _INPUTS:
            path = os.path.join(examples, name, inputs)  # noqa: PTH118
            if f"{EXAMPLES}/{name}/{inputs}" not in read and os.path.isfile(path):  # noqa: PTH113
                message = f"no case uses the inputs in {EXAMPLES}/{name}"
                yield Diagnostic(
                    "unknown-file", message, Span.start_of(path), "warning", "reference it with 'inputs_from' in a case"
                )


def covered_by(examined: Examined) -> Covered:
    """Return the files that the latest exam attempt covered, and those that it would cover now."""
    row = examined.log.rows[-1] if examined.log.rows else None
    return Covered(row.ts if row else None, row.files if row else {}, examined.now)


def gate_of(examined: Examined, to: PromptStatus | None = None) -> PromotionGate:
    """Return whether a prompt may be promoted to the next status, or to the given one, and why not."""
    status = examined.prompt.meta.status
    wanted = to or next_status(status)
    if wanted is None:
        return PromotionGate(None)
    found = refusals(status, wanted, examined.evidence)
    return PromotionGate(wanted, tuple((one.message, one.notes) for one in found))


def promote(examined: Examined, to: PromptStatus | None, *, dry_run: bool) -> Promotion:
    """Write the next status, or the given one, if the gate is open. A prompt that already has it is not changed.

    Raises:
        UsageError: there is no `meta.yaml` to write it to.
        StoreError: `meta.yaml` cannot be written.
    """
    prompt = examined.prompt
    status = prompt.meta.status
    if to is not None and STATUSES.index(to) <= STATUSES.index(status):
        return Promotion(prompt.id, prompt.meta.path, status, PromotionGate(None))
    gate = gate_of(examined, to)
    if gate.open and gate.to is not None and not dry_run:
        write_status(_meta_of(prompt), gate.to)
        return Promotion(prompt.id, prompt.meta.path, status, gate, written=True)
    return Promotion(prompt.id, prompt.meta.path, status, gate)


def demote(prompt: LibraryPrompt, to: PromptStatus | None, *, dry_run: bool) -> Promotion:
    """Write the previous status, or the given one. Needs no evidence.

    Raises:
        UsageError: the given status is not below the prompt's, or there is no `meta.yaml`.
        StoreError: `meta.yaml` cannot be written.
    """
    status = prompt.meta.status
    wanted = to or previous_status(status)
    if wanted is None:
        raise UsageError(f"'{prompt.id}' is a draft, the lowest status")
    if STATUSES.index(wanted) >= STATUSES.index(status):
        raise UsageError(
            f"'{prompt.id}' cannot be demoted from {status} to {wanted}",
            "to raise its status, use agentv prompt promote",
        )
    if not dry_run:
        write_status(_meta_of(prompt), wanted)
    return Promotion(prompt.id, prompt.meta.path, status, PromotionGate(wanted), written=not dry_run)


def _meta_of(prompt: LibraryPrompt) -> Path:
    if prompt.meta.path is None:
        raise UsageError(f"'{prompt.id}' has no {META} to write the status to")
    return Path(prompt.meta.path)


def report_of(attempt: ExamAttempt) -> ExamReport:
    """Return the report of an exam attempt, with the promotion gate if the prompt's own exam ran."""
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
    """Count how well an exam's trigger queries were answered.

    A failed query counts as answered the other way, also if its answers could not be read: the prompt was not loaded
    although it should be, or is not known to have stayed out. An errored query is counted separately.

    Args:
        exam: with its queries.
        outcomes: case id → verdict over all its samples; a missing case did not run.
    """
    name, found = exam.prompt, [(should, outcomes.get(query, "skipped")) for query, should in exam.queries.items()]
    judged: list[Query] = [
        (name if should else None, [name] if should is (status == "passed") else [])
        for should, status in found
        if status in ("passed", "failed")
    ]
    counts = Counter(status for _, status in found)
    return replace(activation_of(name, judged, [name]), errored=counts["errored"], not_run=counts["skipped"])


def shown_prompt(examined: Examined) -> ShownPrompt:
    """Return the report of a prompt for `prompt show`."""
    meta, suite = examined.prompt.meta, examined.suite
    exam = suite.exam if suite is not None else None
    queries = exam.queries if exam is not None else {}
    return ShownPrompt(
        listed=listed(examined.prompt),
        description=meta.description,
        owner=meta.owner,
        tags=meta.tags,
        others=meta.others,
        texts={path: len(data) for path, data in exam.texts.items()} if exam is not None else {},
        cases=(tuple(case.id for case in suite.cases if not case.asks_judge) if suite is not None else ()),
        queries={case.removeprefix("trigger: "): should for case, should in queries.items()},
        exam_rows=examined.log.rows,
        findings=len(examined.diagnostics) + len(examined.evidence_problems),
        gate=gate_of(examined),
    )


def listed(prompt: LibraryPrompt) -> ListedPrompt:
    """Return the list entry of a prompt."""
    wrong = any(one.severity == "error" for one in prompt.diagnostics)
    last: ExamRow | None = None
    edited, now = False, tuple[TextChange, ...]()
    try:
        last = last_exam_row(prompt.directory)
        if last is not None:
            now = _changes(prompt, last)
            edited = _is_edited(prompt, last, now)
    except StoreError:
        wrong = True
    return ListedPrompt(
        id=prompt.id,
        directory=prompt.directory,
        status=prompt.meta.status,
        edited=edited,
        last=last,
        changes=now,
        compared=last is not None and bool(last.files),
        wrong=wrong,
    )


def _is_edited(prompt: LibraryPrompt, last: ExamRow, now: tuple[TextChange, ...]) -> bool:
    """Whether the evidence for a prompt's status is for other texts than the current ones.

    Usually the last row is enough; otherwise the whole log is read.

    Raises:
        StoreError: the log cannot be read.
    """
    if prompt.meta.status == "draft" or (_is_evidence(prompt, last) and not now):
        return False
    rows = [row for row in read_log(prompt.directory).rows if _is_evidence(prompt, row)]
    return bool(rows) and all(now if row == last else _changes(prompt, row) for row in reversed(rows))


def _is_evidence(prompt: LibraryPrompt, row: ExamRow) -> bool:
    return is_complete(row) and (row.all_passed or prompt.meta.status != "ready")


def _changes(prompt: LibraryPrompt, row: ExamRow) -> tuple[TextChange, ...]:
    if not row.files:
        return ()
    targets = prompt.targets.digests(prompt.directory, row.files)
    now = current_digests(prompt.directory, row.files, prompt.meta.description, targets)
    return changes(row.files, now)


def render(prompt: LibraryPrompt, case_id: str | None, examiner: Examiner) -> Rendered:
    """Render the messages of a case, or of the only case if none is named.

    Raises:
        LoadError: the exam is invalid.
        UsageError: there is no exam or no such case, or there are several cases and none is named.
    """
    exam = exam_of(prompt.directory)
    if exam is None:
        raise UsageError(f"'{prompt.id}' has no exam", f"create one with agentv prompt init {prompt.id}")
    suite, found = examiner.load(exam)
    if suite is None:
        raise LoadError(found)
    cases = {case.id: case for case in suite.cases}
    own = [case.id for case in suite.cases if not case.asks_judge]
    if case_id is None and len(own) == 1:
        case_id = own[0]
    if case_id is None:
        raise UsageError(f"'{prompt.id}' has {len(own)} cases; choose one with --case", _listed(own))
    case = cases.get(case_id)
    if case is None:
        raise UsageError(f"'{prompt.id}' has no case '{case_id}'", did_you_mean(case_id, cases) or _listed(own))
    return Rendered(prompt.id, case.id, case.input)


def _listed(cases: list[str]) -> str:
    return f"there are {', '.join(cases[:20])}" + (f" and {len(cases) - 20} more" if len(cases) > 20 else "")


def compare(examined: Examined) -> PromptDiff:
    """Return the texts that differ from those of the latest exam attempt that recorded its texts."""
    prompt = examined.prompt
    exam_row = next((row for row in reversed(examined.log.rows) if row.files), None)
    if exam_row is None:
        return PromptDiff(prompt.id, None)
    now = examined.now or current_digests(prompt.directory, exam_row.files, prompt.meta.description, {})
    texts = examined.suite.exam.texts if examined.suite is not None and examined.suite.exam is not None else {}
    found = []
    for change in changes(exam_row.files, now):
        before = after = None
        if change.kind != "added":
            before = stored_text(texts_home(prompt.directory), exam_row.files[change.path])
        if change.kind != "removed":
            after = texts.get(change.path) if change.path in texts else _now(change.path, prompt)
        lost = before is None and change.kind != "added"
        found.append(TextDifference(change.path, change.kind, before, after, lost))
    return PromptDiff(prompt.id, exam_row, tuple(found))


def _now(path: str, prompt: LibraryPrompt) -> bytes | None:
    """Return the current text of a path in the log of an exam that cannot be loaded, or None."""
    if path == DESCRIPTION:
        return (prompt.meta.description or "").encode()
    place = os.path.realpath(os.path.join(prompt.directory, path))  # noqa: PTH118  # a log may name anything
    root = os.path.realpath(repository_root(prompt.directory))
    if not place.startswith(root + os.sep):
        return None
    try:
        return normalised(Path(place).read_bytes())
    except OSError:
        return None
