"""A text as sentences, by its punctuation: the lines that a judge goes through one by one."""

from __future__ import annotations

import re

_END = re.compile(
    r"(?<=[.!?…])[\"'”’»)\]]*\s+(?=[^\sa-z])"  # a small letter behind the stop: rather an abbreviation
    r"|(?<=[。！？])[”’」』）]*\s*"  # these need no space behind them
    r"|\n+"
)
_WORD = re.compile(r"\w")
_MARK = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+")


def sentences_of(text: str) -> tuple[str, ...]:
    """The sentences, and the lines of lists and tables, that hold a word; each without the marks of a list."""
    pieces = (_MARK.sub("", piece).strip() for piece in _ended(text))
    return tuple(piece for piece in pieces if _WORD.search(piece))


def _ended(text: str) -> list[str]:
    """The text cut behind each end, whose closing quotes stay with what they close."""
    pieces, start = [], 0
    for end in _END.finditer(text):
        pieces.append(text[start : end.end()])
        start = end.end()
    return [*pieces, text[start:]]
