"""Thoughts that a model writes in front of its answer."""

from __future__ import annotations

import re
from typing import NamedTuple

from agentv.model.values.lazy_pattern import lazy_pattern

_BLOCK = lazy_pattern(r"\s*<(think|thinking|reasoning)>.*?(?:</\1>\s*|\Z)", re.IGNORECASE | re.DOTALL)
_CLOSING_LINE = lazy_pattern(r"^[ \t]*</think>[ \t]*(?:\n\s*|\Z)", re.MULTILINE)


class SplitText(NamedTuple):
    """A text in two parts: joined, they are the whole text."""

    thoughts: str
    answer: str


def split_thoughts(text: str) -> SplitText:
    """The thoughts that begin a text, with their tags and surrounding white space, and the answer after them.

    Thoughts are blocks of `<think>`, `<thinking>` or `<reasoning>`. An unclosed block continues to the end of the text.
    Some chat templates put the opening tag into the prompt; then a line with `</think>` alone ends the thoughts.
    """
    closing = _CLOSING_LINE.search(text) if "</think>" in text else None
    end = 0 if closing is None or "<think>" in text[: closing.start()] else closing.end()
    while block := _BLOCK.match(text, end):
        end = block.end()
    return SplitText(text[:end], text[end:])
