"""Quick fixes: what the hint of a mistake says to write instead."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from agentv.errors import Diagnostic
from agentv.extensions.editor.written_text import Quote
from agentv.extensions.editor.written_text import written as in_yaml
from agentv.model.values.span import Span

_MEANT = re.compile(r"did you mean '(?P<word>[^']+)'\?")
_QUOTES: Final[tuple[Quote, ...]] = ("'", '"')


@dataclass(frozen=True, slots=True)
class QuickFix:
    """A replacement of one stretch of a file."""

    title: str
    span: Span
    text: str


def quick_fix(found: Diagnostic, line: str) -> QuickFix | None:
    """The fix of a mistake; None if its hint names no word to write.

    Args:
        found: the mistake.
        line: the line that it begins in.
    """
    span = found.span
    if span is None or span.line != span.end_line:
        return None
    written = line[span.column - 1 : span.end_column - 1]
    quote: Quote = next((one for one in _QUOTES if written.startswith(one)), "")
    if found.rename is not None:
        older, word = found.rename
        if "." in older or "." in word or written.strip("'\"") != older:
            return None  # a key that moves to another place: `agentv validate --fix` does that
    else:
        match = _MEANT.search(found.hint or "")
        if match is None or not written or not _names(found, written.strip("'\"")):
            return None
        word = match["word"]
        if word.endswith(f": {written}"):
            return None  # another key for the value
    return QuickFix(f"Replace '{written.strip(quote)}' with '{word}'", span, in_yaml(word, quote))


def _names(found: Diagnostic, written: str) -> bool:
    """Whether the mistake is the word that its span holds, and no more."""
    return f"'{written}'" in found.message
