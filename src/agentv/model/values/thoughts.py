"""Thoughts that a model writes with its answer, and in front of it."""

from __future__ import annotations

import json
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


_TAG = r"<(?P<slash>/?)(?:think|thinking|reasoning)(?:\s[^<>]*)?(?<!/)>"
_TAGS = lazy_pattern(_TAG, re.IGNORECASE)
_LINE = r"(?:^|(?<=>))[ \t]*[*_`]{0,3}SCORE[ \t]*=(?P<rest>.*)$"
_PARTS = lazy_pattern(rf"{_TAG}|(?P<brace>\{{)|(?P<line>{_LINE})", re.IGNORECASE | re.MULTILINE)
"""Tags, and what may hold them as text: a JSON object, and a line of a verdict on a scale."""

_QUOTES = frozenset({"``", '""', "''", "“”", "‘’"})
"""Pairs of quotes around a tag that is only mentioned."""

MOST_BROKEN = 200
"""Braces that begin no JSON object and are looked into; a reply with more of them quotes code."""


def spoken(reply: str) -> str:
    """The reply without blocks of `<think>`, `<thinking>` or `<reasoning>`.

    A tag inside a JSON object, alone in a line `SCORE=… REASON=…`, or in quotation marks of its own is text. An
    unclosed block continues to the end. A closing tag alone ends a thought that the chat template began.
    """
    if _TAGS.search(reply) is None:
        return reply
    kept: list[str] = []
    start = at = broken = 0
    while (found := _PARTS.search(reply, at)) is not None:
        at = found.end()
        if found["brace"]:
            end = _end_of_object(reply, found.start()) if broken < MOST_BROKEN else None
            broken += end is None
            at = at if end is None else end
        elif found["line"]:
            tags = {one["slash"] for one in _TAGS.finditer(found["rest"])}
            at = found.start("rest") if len(tags) > 1 else at
        elif not _is_quoted(found):
            if found["slash"]:
                kept.clear()
            else:
                kept.append(reply[start : found.start()])
                ends = (one.end() for one in _TAGS.finditer(reply, at) if one["slash"] and not _is_quoted(one))
                at = next(ends, len(reply))
            start = at
    return "".join((*kept, reply[start:]))


def _end_of_object(text: str, start: int) -> int | None:
    try:
        return json.JSONDecoder().raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return None


def _is_quoted(tag: re.Match[str]) -> bool:
    text, start, end = tag.string, tag.start(), tag.end()
    return f"{text[start - 1 : start]}{text[end : end + 1]}" in _QUOTES and text[end : end + 3] != "```"
