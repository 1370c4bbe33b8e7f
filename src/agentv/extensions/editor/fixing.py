"""Quick fixes: what the hint of a mistake says to write instead."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final, Literal

from agentv.authoring.source.nodes import ListNode, Scalar
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml
from agentv.errors import Diagnostic
from agentv.model.values.values import Span

Quote = Literal["", "'", '"']

UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
"""Characters that YAML takes for line ends or refuses, unless they are escaped. Source: YAML 1.2, section 5.1."""

_WORDS = frozenset(["true", "false", "null", "yes", "no", "on", "off", "<<"])
"""What has a meaning as a key, or for other YAML readers."""

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
        bare = written.strip("'\"")
        if match is None or not bare or f"'{bare}'" not in found.message:
            return None  # the mistake is not the word that its span holds
        word = match["word"]
        if word.endswith(f": {written}"):
            return None  # another key for the value
    return QuickFix(f"Replace '{written.strip(quote)}' with '{word}'", span, in_yaml(word, quote))


def in_yaml(text: str, quote: Quote = "") -> str:
    """A text on one line, quoted where it would be read as something else.

    Args:
        text: what it must be read as.
        quote: that it has, where a text is replaced that is quoted.
    """
    if quote == "'" and not UNPRINTABLE.search(text):
        return "'" + text.replace("'", "''") + "'"
    if not quote and _is_plain(text):
        return text
    return UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False))


def _is_plain(text: str) -> bool:
    """Whether a text is read as itself without quotes, wherever it stands."""
    if text.lower() in _WORDS:
        return False
    if text.isidentifier():
        return True
    if UNPRINTABLE.search(text):
        return False
    root = read_yaml("", f"[{text}]".encode(errors="replace"), Report()).value
    items = root.items if isinstance(root, ListNode) else []
    return len(items) == 1 and isinstance(items[0], Scalar) and items[0].value == text
