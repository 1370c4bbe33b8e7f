"""The prompts of a project: the list, and one prompt with its texts, exam attempts and gates.

The data is computed as for `agentv prompt list` and `agentv prompt show`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from msgspec import Struct

from agentv.app.prompt_exams import Examined, Examiner, listed, shown_prompt
from agentv.app.prompt_library import Library, LibraryPrompt
from agentv.app.results.project import Project
from agentv.app.running.exam_attempt import texts_home
from agentv.errors import AgentvError
from agentv.model.suite.exam import STATUSES, ExamRow
from agentv.model.suite.library import display_name
from agentv.prompts.disk import stored_text
from agentv.prompts.gates import prompt_sha256, refusals
from agentv.reports.prompts import changed, listed_data, prompt_data, status_of, totals
from agentv.reports.run.exam_attempts import outcome, result, when

MOST_ATTEMPTS = 200
"""Maximum number of exam attempts in a response, the newest ones; all are counted."""

MOST_VERSIONS = 20
"""Maximum number of versions of one prompt with texts in a response."""

LONGEST_TEXT = 100_000
"""Maximum number of characters of one text in a response."""

MOST_TEXT = 2_000_000
"""Maximum number of characters of all texts in a response."""


class NoSuchPromptError(AgentvError):
    """The requested prompt does not exist, or no longer exists."""

    http_error = (404, "no-such-prompt")


class ViewedPrompt(Struct, frozen=True):
    """A prompt in the list.

    Attributes:
        name: value for `/api/prompts/{name}`: its id, with a number if several prompts have the same id.
        words: status in words, such as `ready (edited)`.
        result: result of its last exam, such as `3/5`, or `never`.
        changed: what changed since the exam, in words.
        facts: data as in `agentv prompt list --json`.
    """

    name: str
    words: str
    result: str
    passed: bool | None
    when: str
    changed: str
    facts: dict[str, Any]


class PromptList(Struct, frozen=True):
    """The prompts of the library, by directory.

    Attributes:
        totals: number of prompts by status, in words.
    """

    prompts: list[ViewedPrompt]
    totals: str


class PromptGate(Struct, frozen=True):
    """The requirements of a status, checked for the current prompt.

    Attributes:
        reached: whether the prompt has this status or a higher one.
        passed: whether all requirements are met.
        reasons: the unmet requirements, each with `message` and `notes`.
    """

    status: str
    reached: bool
    passed: bool
    reasons: list[dict[str, Any]]


class ExamAttemptRow(Struct, frozen=True):
    """One exam attempt.

    Attributes:
        outcome: `passed`, `failed` or `errored`.
        run_id: id of its run; empty if not recorded.
        has_run: whether the run still exists.
        version: index of the evaluated version in `versions`; null if not recorded.
    """

    when: str
    result: str
    outcome: str
    partial: bool
    failed_cases: list[str]
    run_id: str
    has_run: bool
    model: str
    judge: str
    version: int | None


class PromptText(Struct, frozen=True):
    """A text of a version. `sha256` is its key in `texts`; texts that are not stored here are missing there."""

    path: str
    sha256: str


class PromptVersion(Struct, frozen=True):
    """A version of the texts that an exam depends on.

    Attributes:
        current: whether this is the current version.
        attempts: number of its exam attempts.
        first, last: end times of its first and last exam attempt; empty without attempts.
    """

    sha256: str
    current: bool
    attempts: int
    first: str
    last: str
    texts: list[PromptText]


class WholePrompt(Struct, frozen=True):
    """All data on one prompt.

    Attributes:
        facts: data as in `agentv prompt show --json`, without the attempts.
        exam, doctor: commands that run its exam and that report its problems.
        promote: command that promotes it; null if it does not pass its gate or has the highest status.
        attempts: exam attempts, newest first; `total_attempts` counts all.
        versions: the current version, then the others, newest first.
        texts: texts by SHA-256; a long one is `{cut, length}`.
    """

    name: str
    words: str
    facts: dict[str, Any]
    exam: str
    doctor: str
    promote: str | None
    gates: list[PromptGate]
    attempts: list[ExamAttemptRow]
    total_attempts: int
    versions: list[PromptVersion]
    total_versions: int
    texts: dict[str, Any]


def has_library(project: Project) -> bool:
    """Whether there are prompts to show."""
    library = _library(project)
    try:
        return library is not None and bool(library.all())
    except AgentvError:
        return False


def prompt_list(project: Project) -> PromptList:
    """The list of the project's prompts.

    Raises:
        UsageError: there is no library, or it contains no prompt.
        LoadError: the project's config is wrong.
    """
    entries = {name: listed(prompt) for name, prompt in _named(project).items()}
    shown = []
    for name, one in entries.items():
        viewed = ViewedPrompt(
            name=name,
            words=status_of(one),
            result=result(one.last),
            passed=None if one.last is None else one.last.all_passed,
            when=when(one.last),
            changed=changed(one)[0],
            facts=listed_data(one, str(project.root)),
        )
        shown.append(viewed)
    return PromptList(shown, totals(list(entries.values())))


def whole_prompt(project: Project, name: str, runs: Collection[str]) -> WholePrompt:
    """One prompt of the list.

    Args:
        project: project with the prompts.
        name: name from the list. It is only looked up, never made part of a path.
        runs: ids of the existing runs.

    Raises:
        NoSuchPromptError: no prompt has this name.
    """
    prompt = _named(project).get(name)
    library = _library(project)
    if prompt is None or library is None:
        raise NoSuchPromptError("this project has no such prompt; it may have been deleted or renamed")
    examined = Examiner(library).examine(prompt)
    shown = shown_prompt(examined)
    versions = _versions(examined)
    places = {one.sha256: place for place, one in enumerate(versions)}
    rows = examined.log.rows[::-1][:MOST_ATTEMPTS]
    now = STATUSES.index(examined.prompt.meta.status)
    gates = []
    for place, status in enumerate(STATUSES[1:], 1):
        found = refusals(STATUSES[0], status, examined.evidence)
        reasons = [{"message": one.message, "notes": list(one.notes)} for one in found]
        gates.append(PromptGate(status, now >= place, not reasons, reasons))
    return WholePrompt(
        name=name,
        words=status_of(shown.listed),
        facts={key: value for key, value in prompt_data(shown, str(project.root)).items() if key != "sittings"},
        exam=f"agentv prompt eval {quote(prompt.id)}",
        doctor=f"agentv prompt doctor {quote(prompt.id)}",
        promote=f"agentv prompt promote {quote(prompt.id)}" if shown.gate.open else None,
        gates=gates,
        attempts=[
            ExamAttemptRow(
                when=when(row),
                result=result(row),
                outcome=outcome(row),
                partial=row.partial,
                failed_cases=list(row.failed_cases),
                run_id=row.run_id or "",
                has_run=row.run_id is not None and row.run_id in runs,
                model=row.model or "",
                judge=row.judge or "",
                version=places.get(row.prompt_sha256 or ""),
            )
            for row in rows
        ],
        total_attempts=len(examined.log.rows),
        versions=versions[:MOST_VERSIONS],
        total_versions=len(versions),
        texts=_texts(examined, versions[:MOST_VERSIONS]),
    )


def _library(project: Project) -> Library | None:
    """The library of the working directory. For a project elsewhere, as on a server, only one inside the project."""
    root, working = project.root.absolute(), Path.cwd()
    here = working.is_relative_to(root)
    library = Library(str(working if here else root), dict(os.environ))
    try:
        place = library.root
    except AgentvError:
        return library  # listing its prompts reports the problem
    within = place is not None and Path(place).is_relative_to(root)
    return library if here or within else None


def _named(project: Project) -> Mapping[str, LibraryPrompt]:
    """Name → prompt. Prompts with the same id are numbered."""
    library = _library(project)
    found: dict[str, LibraryPrompt] = {}
    for prompt in library.all() if library is not None else ():
        name, copy = prompt.id, 2
        while name in found:
            name, copy = f"{prompt.id}~{copy}", copy + 1
        found[name] = prompt
    return found


def _versions(examined: Examined) -> list[PromptVersion]:
    rows: dict[str, list[ExamRow]] = {}
    for row in reversed(examined.log.rows):
        if row.prompt_sha256 is not None and row.files:
            rows.setdefault(row.prompt_sha256, []).append(row)
    now = prompt_sha256(examined.now) if examined.now else None
    found = [_version(sha, same[0].files, same, now) for sha, same in rows.items() if sha != now]
    if now is not None:
        found.insert(0, _version(now, examined.now, rows.get(now, []), now))
    return found


def _version(sha: str, files: Mapping[str, str], rows: Sequence[ExamRow], now: str | None) -> PromptVersion:
    texts = [PromptText(display_name(path), digest) for path, digest in files.items()]
    ends = (when(rows[-1]), when(rows[0])) if rows else ("", "")
    return PromptVersion(sha, sha == now, len(rows), *ends, texts)


def _texts(examined: Examined, versions: Sequence[PromptVersion]) -> dict[str, Any]:
    exam = examined.suite.exam if examined.suite is not None else None
    now = {} if exam is None else {examined.now[path]: data for path, data in exam.texts.items()}
    home = texts_home(examined.prompt.directory)
    texts: dict[str, Any] = {}
    left = MOST_TEXT
    for sha in dict.fromkeys(text.sha256 for one in versions for text in one.texts):
        data = now.get(sha) if sha in now else stored_text(home, sha)
        if data is None or b"\0" in data:
            continue
        text = data.decode(errors="replace")
        left -= min(len(text), LONGEST_TEXT)
        if left < 0:
            break
        texts[sha] = text if len(text) <= LONGEST_TEXT else {"cut": text[:LONGEST_TEXT], "length": len(text)}
    return texts
