"""`agentv prompt diff`: what changed since an exam that is on record."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from agentv.app.prompts.examining import Examined
from agentv.app.prompts.library import LibraryPrompt
from agentv.app.running.exam_attempt import texts_home
from agentv.authoring.source.files import repository_root
from agentv.model.suite.exam import DESCRIPTION, ExamRow, normalised
from agentv.model.suite.library import PromptDiff, TextDifference
from agentv.prompts.evidence import DigestChange, changes, current_digests
from agentv.prompts.texts import kept


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
