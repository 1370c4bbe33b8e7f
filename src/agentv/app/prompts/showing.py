"""`agentv prompt list`, `show`, `render` and `diff`: what is known of prompts. Nothing is called.

A list loads no exam, so that a thousand prompts take less than a second.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from agentv.app.prompts.examining import Examined, Examiner
from agentv.app.prompts.library import LibraryPrompt
from agentv.app.prompts.promoting import gate_of
from agentv.app.running.exam_attempt import texts_home
from agentv.authoring.prompt_library import exam_of
from agentv.authoring.source.files import repository_root
from agentv.errors import LoadError, StoreError, UsageError
from agentv.model.suite.exam import DESCRIPTION, ExamRow, normalised
from agentv.model.suite.library import ListedPrompt, PromptDiff, Rendered, ShownPrompt, TextChange, TextDifference
from agentv.model.suite.suite import Suite
from agentv.prompts.evidence import DigestChange, changes, current_digests
from agentv.prompts.gates import is_whole
from agentv.prompts.reading import last_exam_row, read_log
from agentv.prompts.texts import kept


def shown_prompt(examined: Examined) -> ShownPrompt:
    """The report of a prompt whose exam and log are read."""
    meta, suite = examined.prompt.meta, examined.suite
    exam = suite.exam if suite is not None else None
    return ShownPrompt(
        listed=listed(examined.prompt),
        description=meta.description,
        owner=meta.owner,
        tags=meta.tags,
        others=meta.others,
        texts={path: len(data) for path, data in exam.texts.items()} if exam is not None else {},
        cases=_cases(suite),
        queries=_queries(suite),
        exam_rows=examined.log.rows,
        findings=len(examined.diagnostics) + len(examined.unfounded),
        gate=gate_of(examined),
    )


def _cases(suite: Suite | None) -> tuple[str, ...]:
    return tuple(case.id for case in suite.cases if not case.asks_judge) if suite is not None else ()


def _queries(suite: Suite | None) -> dict[str, bool]:
    """Query → whether it should trigger the prompt."""
    if suite is None or suite.exam is None:
        return {}
    return {case.removeprefix("trigger: "): should for case, should in suite.exam.queries.items()}


def listed_prompts(prompts: Iterable[LibraryPrompt]) -> Iterator[ListedPrompt]:
    """The list entries of the prompts, in their order."""
    return map(listed, prompts)


def listed(prompt: LibraryPrompt) -> ListedPrompt:
    """The list entry of a prompt."""
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
    """Whether its status rests on another text than there is now. The last row mostly says it, else all are looked at.

    Raises:
        StoreError: the log cannot be read.
    """
    if prompt.meta.status == "draft" or (_is_evidence(prompt, last) and not now):
        return False
    rows = [row for row in read_log(prompt.directory).rows if _is_evidence(prompt, row)]
    return bool(rows) and all(now if row == last else _changes(prompt, row) for row in reversed(rows))


def _is_evidence(prompt: LibraryPrompt, row: ExamRow) -> bool:
    return is_whole(row) and (row.all_passed or prompt.meta.status != "ready")


def _changes(prompt: LibraryPrompt, row: ExamRow) -> tuple[TextChange, ...]:
    if not row.files:
        return ()
    targets = prompt.targets.digests(prompt.directory, row.files)
    now = current_digests(prompt.directory, row.files, prompt.meta.description, targets)
    return tuple(TextChange(one.path, one.kind) for one in changes(row.files, now))


def render(prompt: LibraryPrompt, case_id: str | None, examiner: Examiner) -> Rendered:
    """The messages of a case; the only one's, where nothing is said.

    Raises:
        LoadError: the exam is wrong.
        UsageError: there is no exam or no such case, or there are several and none is named.
    """
    suite = exam_suite(prompt, examiner)
    cases = {case.id: case for case in suite.cases}
    own = [case.id for case in suite.cases if not case.asks_judge]
    if case_id is None and len(own) == 1:
        case_id = own[0]
    if case_id is None:
        raise UsageError(f"'{prompt.id}' has {len(own)} cases; choose one with --case", _listed(own))
    case = cases.get(case_id)
    if case is None:
        from agentv.authoring.source.nearest import did_you_mean

        raise UsageError(f"'{prompt.id}' has no case '{case_id}'", did_you_mean(case_id, cases) or _listed(own))
    return Rendered(prompt.id, case.id, case.input)


def exam_suite(prompt: LibraryPrompt, examiner: Examiner) -> Suite:
    """The exam of a prompt.

    Raises:
        LoadError: it is wrong.
        UsageError: the prompt has no exam.
    """
    exam = exam_of(prompt.directory)
    if exam is None:
        raise UsageError(f"'{prompt.id}' has no exam", f"create one with agentv prompt init {prompt.id}")
    suite, found = examiner.load(exam)
    if suite is None:
        raise LoadError(found)
    return suite


def _listed(cases: list[str]) -> str:
    return f"there are {', '.join(cases[:20])}" + (f" and {len(cases) - 20} more" if len(cases) > 20 else "")


def compare(examined: Examined) -> PromptDiff:
    """Texts that differ from those of the latest exam attempt that records its texts."""
    prompt = examined.prompt
    exam_row = next((row for row in reversed(examined.log.rows) if row.files), None)
    if exam_row is None:
        return PromptDiff(prompt.id, None)
    now = examined.now or current_digests(prompt.directory, exam_row.files, prompt.meta.description, {})
    texts = examined.suite.exam.texts if examined.suite is not None and examined.suite.exam is not None else {}
    found = (_difference(one, exam_row, prompt, texts) for one in changes(exam_row.files, now))
    return PromptDiff(prompt.id, exam_row, tuple(found))


def _difference(
    change: DigestChange, exam_row: ExamRow, prompt: LibraryPrompt, texts: Mapping[str, bytes]
) -> TextDifference:
    before = after = None
    if change.kind != "added":
        before = kept(texts_home(prompt.directory), exam_row.files[change.path])
    if change.kind != "removed":
        after = texts.get(change.path) if change.path in texts else _now(change.path, prompt)
    lost = before is None and change.kind != "added"
    return TextDifference(change.path, change.kind, before, after, lost)


def _now(path: str, prompt: LibraryPrompt) -> bytes | None:
    """A text of an exam that cannot be loaded as it stands."""
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
