"""`agentv prompt list`: every prompt of a library. No exam is loaded, so a thousand take less than a second."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agentv.app.prompts.library import LibraryPrompt
from agentv.errors import StoreError
from agentv.model.suite.exam import ExamRow
from agentv.model.suite.library import ListedPrompt, TextChange
from agentv.prompts.evidence import changes, current_digests
from agentv.prompts.gates import is_whole
from agentv.prompts.reading import last_exam_row, read_log


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
