"""Code of an assertion that may give a score instead of yes or no.

promptfoo passes every number above 0, agentv one from 0.5. What compares gives yes or no, and needs no mark of its own.
"""

from __future__ import annotations

import re

from agentv.authoring.source.nodes import Node, Scalar
from agentv.extensions.promptfoo.translation.source import FILE, Source

_NUMBERS = re.compile(
    r"(?<![\w.])\.?\d|\bscore\b|\b(?:Math|min|max|round|sum|len|length|float|Number|parse\w+)\b|[\w)\]] ?[/*] ?[\w(]"
)
_COMPARES = re.compile(
    r"===?|!==?|<=?|>=?|\.includes\(|\.startsWith\(|\.endsWith\(|\.test\(|\.some\(|\.every\(|\bin\b|\bnot\b|^!"
)
_SCORES = re.compile(r"\bscore\b|(?<!\w)0?\.\d")


def may_score(value: Node | None, source: Source) -> bool:
    """Whether the code may return a number between 0 and 0.5."""
    if not isinstance(value, Scalar) or not isinstance(value.value, str):
        return False
    text = value.value.strip()
    if text.startswith(FILE):
        path = source.directory / text.removeprefix(FILE).split(":")[0]
        if not source.boundary.admits(str(path)):
            return False
        try:
            text = source.reading.reader.read(str(path)).decode()
        except (OSError, UnicodeDecodeError):
            return False
        return _SCORES.search(text) is not None
    if "\n" in text or "return" in text:
        return _SCORES.search(text) is not None
    return _NUMBERS.search(text) is not None and _COMPARES.search(text) is None
