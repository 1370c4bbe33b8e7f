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
    end = 0
    while block := _BLOCK.match(text, end):
        end = block.end()
    if not end and "</think>" in text:
        closing = _CLOSING_LINE.search(text)
        if closing is not None and "<think>" not in text[: closing.start()]:
            end = closing.end()
    return SplitText(text[:end], text[end:])
