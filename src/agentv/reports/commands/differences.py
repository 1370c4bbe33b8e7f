"""`agentv prompt diff`: what changed since an exam, as a unified diff for people and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from difflib import unified_diff

from agentv.model.suite.exam import DESCRIPTION
from agentv.model.suite.library import PromptDiff, TextDifference, called
from agentv.model.values.values import Json
from agentv.reports.run.exam_attempts import exam_row_json, result, when
from agentv.reports.text.escaping import one_line, safe

_STYLES = (("---", "1"), ("+++", "1"), ("@@", "36"), ("+", "32"), ("-", "31"))
_NO_LINE_END = "\\ No newline at end of file"


def render_differences(found: PromptDiff, *, color: bool = False) -> str:
    """A unified diff of every text that changed; empty where nothing did."""
    lines = (line for one in found.differences for line in _lines(one, found))
    return "\n".join(_painted(line) if color else line for line in lines)


def compared_with(found: PromptDiff) -> str:
    """Label of the recorded exam: `the exam of 2026-11-22 08:35 (3/5)`."""
    return f"the exam of {when(found.exam_row)} ({result(found.exam_row)})"


def _painted(line: str) -> str:
    style = next((style for start, style in _STYLES if line.startswith(start)), None)
    return f"\x1b[{style}m{line}\x1b[0m" if style is not None else line


def _lines(one: TextDifference, found: PromptDiff) -> Iterator[str]:
    """The diff of one text; a line that says why, where one of its sides is not here."""
    name = one_line(called(one.path))
    before = f"{name} ({when(found.exam_row)})" if one.kind != "added" else "/dev/null"
    after = name if one.kind != "removed" else "/dev/null"
    if one.lost:
        yield f"--- {before}"
        yield f"+++ {after}"
        yield f"@@ {one.kind}; the examined text is not stored here @@"
        return
    end = b"\n" if one.path == DESCRIPTION else b""  # a value of YAML, whose last line has no end to be missed
    texts = (_text((one.before or b"") + end), _text((one.after or b"") + end))
    if texts[0] is None or texts[1] is None:
        yield f"--- {before}"
        yield f"+++ {after}"
        yield f"@@ {one.kind}; not text @@"
        return
    for line in unified_diff(_split(texts[0]), _split(texts[1]), before, after, lineterm=""):
        text, _, rest = line.partition("\n")
        yield safe(text)
        if rest:
            yield rest


def _text(data: bytes) -> str | None:
    """The bytes as text, or None for binary content."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else text


def _split(text: str) -> list[str]:
    """Lines; the last one is marked where it has no end, so that this shows as a change."""
    lines = text.split("\n")
    if lines[-1] == "":
        return lines[:-1]
    return [*lines[:-1], f"{lines[-1]}\n{_NO_LINE_END}"]


def differences_json(found: PromptDiff) -> str:
    """One JSON object: the exam attempt; for each changed text its kind, both sides, and whether one is lost."""
    return json.dumps(
        {
            "prompt": found.prompt,
            "sitting": exam_row_json(found.exam_row),
            "differences": [_json(one) for one in found.differences],
        },
        indent=2,
    )


def _json(one: TextDifference) -> Json:
    return {
        "path": called(one.path),
        "kind": one.kind,
        "before": _text(one.before) if one.before is not None else None,
        "after": _text(one.after) if one.after is not None else None,
        "kept": not one.lost,
    }
