"""`agentv prompt doctor` and `check`: what is wrong with the prompts of a library, each thing at its place."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from agentv.app.prompts.library import Library, LibraryPrompt
from agentv.authoring.prompt_library import check_prompt, exam_of, library_reading, prompt_file_of
from agentv.authoring.source.files import EXAM_FILES, MARK, META, PROMPT_FILES, shown
from agentv.authoring.source.ignores import without_ignored
from agentv.authoring.source.nearest import did_you_mean
from agentv.authoring.source.report import Report
from agentv.errors import Diagnostic, StoreError
from agentv.model.suite.exam import STATUSES, ExamRow, PromptStatus
from agentv.model.suite.suite import Suite
from agentv.model.values.values import Span
from agentv.prompts.evidence import changes, digests
from agentv.prompts.gates import GateEvidence, StatusEvidence, is_whole, status_evidence
from agentv.prompts.reading import Log, log_diagnostics, log_path, read_log
from agentv.reports.run.exam_attempts import when

if TYPE_CHECKING:
    from agentv.authoring.fields.request import LoadRequest, Registries


@dataclass(frozen=True, slots=True)
class Examined:
    """One prompt, with its exam and its log read.

    Attributes:
        suite: its exam; None where it has none, or one that is wrong.
        log: the rows that can be read.
        diagnostics: all that is wrong, but for what its status rests on.
        unfounded: what is wrong with what its status rests on.
        now: path → sha256 of what the exam rests on, with the model that its latest evidence names; empty where it
            cannot be read.
    """

    prompt: LibraryPrompt
    suite: Suite | None
    log: Log
    diagnostics: tuple[Diagnostic, ...]
    unfounded: tuple[Diagnostic, ...] = ()
    now: Mapping[str, str] = field(default_factory=dict)

    @property
    def evidence(self) -> GateEvidence:
        """The data that promotion gates check."""
        return GateEvidence(self.log.rows, self.now, len(self.diagnostics))


class Examiner:
    """Reads prompts with their exams. `library` is where they are looked for."""

    def __init__(self, library: Library) -> None:
        self._library = library

    @cached_property
    def _registries(self) -> Registries:
        from agentv.app.registries import registries

        return registries()

    @cached_property
    def _request(self) -> LoadRequest:
        from agentv.authoring.fields.request import LoadRequest

        return LoadRequest((), process_env=self._library.env, for_run=False)

    def examine(self, prompt: LibraryPrompt) -> Examined:
        """Everything about one prompt, taken alone."""
        exam = exam_of(prompt.directory)
        suite, found = self.load(exam) if exam is not None else (None, ())
        log, logged = _log(prompt)
        own = [*prompt.diagnostics, *self._files(prompt, exam, suite), *logged]
        diagnostics = (*_unsilenced(own), *found)
        now = self._now(prompt, suite, log.rows)
        unfounded = tuple(_unfounded(prompt, log.rows, now)) if suite is not None else ()
        ordered = sorted(diagnostics, key=lambda one: one.order)
        return Examined(prompt, suite, log, tuple(dict.fromkeys(ordered)), unfounded, now)

    def _now(self, prompt: LibraryPrompt, suite: Suite | None, rows: Sequence[ExamRow]) -> Mapping[str, str]:
        if suite is None or suite.exam is None:
            return {}
        latest = next((row for row in reversed(rows) if is_whole(row)), None)
        # an exam that names no model ran on one of the command line
        of_row = prompt.targets.digests(prompt.directory, latest.files) if latest is not None else {}
        return {**of_row, **digests(suite.exam.texts)}

    def load(self, exam: str) -> tuple[Suite | None, tuple[Diagnostic, ...]]:
        """An exam, and what is wrong with it."""
        from agentv.authoring.loading.suite import SuiteReader

        reader = SuiteReader(exam, self._request, self._registries, Report())
        suite = reader.read()
        return suite, reader.diagnostics

    def _files(self, prompt: LibraryPrompt, exam: str | None, suite: Suite | None) -> Iterator[Diagnostic]:
        """Files that lack, and files that nobody reads."""
        text = prompt_file_of(prompt.directory)
        at = _top(str(text)) if text is not None else prompt.meta.path and _top(prompt.meta.path)
        if prompt.meta.path is None:
            hint = f"agentv prompt init {prompt.id} writes the missing files"
            yield Diagnostic("missing-file", f"this prompt has no {META}", at or None, hint=hint)
        elif "description" not in prompt.meta.places and all(one.severity != "error" for one in prompt.diagnostics):
            hint = "describe what the prompt does and when to use it"
            yield Diagnostic("missing-key", f"{META} needs 'description'", _top(prompt.meta.path), hint=hint)
        if exam is None:
            yield Diagnostic(
                "missing-file", "this prompt has no exam: there is no eval.yml in its directory", at or None
            )
            yield from self._text(prompt)
        if suite is not None and suite.exam is not None:
            yield from strange_files(prompt.directory, suite.exam.texts)

    def _text(self, prompt: LibraryPrompt) -> Iterator[Diagnostic]:
        """Problems with the text of a prompt without an exam; reading an exam reports them already."""
        reading = library_reading(prompt.directory, self._library.env)
        if prompt_file_of(prompt.directory) is None:
            message = "this prompt has no text: there is no prompt.xml, prompt.md or prompt.txt"
            yield Diagnostic("missing-file", message, _top(prompt.meta.path or prompt.directory))
            return
        check_prompt(prompt.directory, reading)
        yield from reading.report.diagnostics


def findings(prompts: Sequence[LibraryPrompt], library: Library) -> Iterator[Diagnostic]:
    """Diagnostics of several prompts together: each once, and ids that collide.

    Mistakes in a shared file, such as `targets.yaml`, are reported with the first prompt that uses it.
    """
    examiner = Examiner(library)

    reported: set[tuple[object, ...]] = set()
    first: dict[str, LibraryPrompt] = {}
    for prompt in prompts:
        own = examiner.examine(prompt)
        for found in (*own.diagnostics, *own.unfounded, *_twins(prompt, first)):
            key = (found.code, found.span, found.message)
            if key not in reported:
                reported.add(key)
                yield found


def below(prompts: Iterable[LibraryPrompt], required: PromptStatus) -> Iterator[Diagnostic]:
    """The prompts that have not come as far as `check --require` asks."""
    for prompt in prompts:
        if STATUSES.index(prompt.meta.status) < STATUSES.index(required):
            message = f"'{prompt.id}' is {prompt.meta.status}, but {required} is required"
            yield Diagnostic("status-too-low", message, _at_status(prompt))


def _twins(prompt: LibraryPrompt, first: dict[str, LibraryPrompt]) -> Iterator[Diagnostic]:
    other = first.setdefault(prompt.id, prompt)
    if other is not prompt:
        span = prompt.meta.places.get("id") or _top(prompt.meta.path or str(prompt_file_of(prompt.directory)))
        message = f"two prompts have the id '{prompt.id}': the other is {shown(other.directory)}"
        yield Diagnostic("duplicate-id", message, span, hint=f"give one of them a different 'id' in {META}")


def _log(prompt: LibraryPrompt) -> tuple[Log, tuple[Diagnostic, ...]]:
    try:
        log = read_log(prompt.directory)
    except StoreError as error:
        return Log(), (Diagnostic("bad-log", str(error), _top(str(log_path(prompt.directory)))),)
    return log, log_diagnostics(prompt.directory, log)


def _unfounded(prompt: LibraryPrompt, rows: Sequence[ExamRow], now: Mapping[str, str]) -> Iterator[Diagnostic]:
    """What is wrong with the evidence for a status."""
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
    return prompt.meta.places.get("status") or _top(prompt.meta.path or prompt.directory)


def _unsilenced(found: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """What no comment in the file that it is about silences; reading the exam has heeded those that it tells itself."""
    marked = {}
    for path in {one.span.file for one in found if one.span is not None and one.severity == "warning"}:
        if path.endswith((".yaml", ".yml")) and MARK in (data := Path(path).read_bytes()):
            marked[path] = data
    return without_ignored(found, marked, reported=()) if marked else tuple(found)


EXAMPLES = "examples"
"""The directory of the inputs, each set in a directory of its own."""

_INPUTS = ("inputs.yml", "inputs.yaml")
_OURS = frozenset({*PROMPT_FILES, *EXAM_FILES, META})
_PAPERS = ("readme", "license", "licence", "changelog", "notice", "skill.md", "todo", "notes")
"""What people leave beside a prompt for each other: how such a file's name begins, in small letters."""


def strange_files(directory: str, read: Collection[str]) -> Iterator[Diagnostic]:
    """A warning for each file of the prompt that neither agentv nor the exam reads, and for inputs that no case uses.

    Files in directories other than `examples` are ignored: they belong to the author.

    Args:
        directory: of the prompt, absolute.
        read: files that the exam uses, as paths from the directory.
    """
    with os.scandir(directory) as entries:
        names = sorted(one.name for one in entries if one.is_file())
    for name in names:
        if name in _OURS or name in read or name.startswith((".", "_")) or name.lower().startswith(_PAPERS):
            continue
        hint = did_you_mean(name, [*_OURS, *_INPUTS]) or "keep your own files in a separate directory"
        at = _top(os.path.join(directory, name))  # noqa: PTH118  # for thousands of prompts
        yield Diagnostic("unknown-file", f"unused file '{name}'", at, "warning", hint)
    yield from _unused_inputs(directory, read)


def _unused_inputs(directory: str, read: Collection[str]) -> Iterator[Diagnostic]:
    examples = os.path.join(directory, EXAMPLES)  # noqa: PTH118  # for thousands of prompts
    if not os.path.isdir(examples):  # noqa: PTH112  # as above
        return
    with os.scandir(examples) as entries:
        names = sorted(one.name for one in entries if one.is_dir())
    for name in names:
        for inputs in _INPUTS:
            path = os.path.join(examples, name, inputs)  # noqa: PTH118  # as above
            if f"{EXAMPLES}/{name}/{inputs}" not in read and os.path.isfile(path):  # noqa: PTH113  # as above
                message = f"no case uses the inputs in {EXAMPLES}/{name}"
                yield Diagnostic(
                    "unknown-file", message, _top(path), "warning", "reference it with 'inputs_from' in a case"
                )


def _top(path: str) -> Span:
    return Span(path, 1, 1, 1, 2)
