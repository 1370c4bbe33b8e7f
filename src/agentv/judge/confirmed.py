"""JSON objects of a reply that carry the word which stands in our instruction alone, and so are the judge's."""

from __future__ import annotations

import json

from agentv.judge.delimiter import CONFIRM
from agentv.judge.shapes import UnreadableError
from agentv.model.values.values import Json, JsonObject

_MOST_WORDS = 20
"""Places of a reply with the word that are looked at, the last ones; one is enough."""

_MOST_STARTS = 200
"""Braces before the word that may begin its object: one of a verdict, and those of the lines within it."""

_LONGEST = 100_000
"""Characters of an object: a verdict takes a few hundred."""


def objects_with(word: str, reply: str) -> list[tuple[JsonObject, str]]:
    """Every innermost object whose key `confirm` holds the word, with its own text, in their order.

    They are looked for from the word backwards, so that nothing that is quoted before them can swallow them.
    """
    text = reply.lower()  # a model may write a word in other letters
    if len(text) != len(reply):
        text = reply
    found: dict[int, tuple[JsonObject, str]] = {}
    at = text.rfind(word)
    for _ in range(_MOST_WORDS):
        if at < 0:
            break
        made = _object_around(at, word, reply)
        if made is not None:
            start, row, source = made
            found[start] = (row, source)
        at = text.rfind(word, 0, at)
    return [found[start] for start in sorted(found)]


def _object_around(at: int, word: str, reply: str) -> tuple[int, JsonObject, str] | None:
    start = at
    for _ in range(_MOST_STARTS):
        start = reply.rfind("{", max(0, at - _LONGEST), start)
        if start < 0:
            return None
        try:
            row, end = DECODER.raw_decode(reply[start : at + _LONGEST])
        except (ValueError, RecursionError, UnreadableError):
            continue
        if start + end > at and _carries(row, word):
            return start, row, reply[start : start + end]
    return None


def _carries(row: JsonObject, word: str) -> bool:
    confirmation = row.get(CONFIRM)
    return isinstance(confirmation, str) and confirmation.strip().lower() == word


def unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """Parse a JSON object whose keys are unique.

    Raises:
        UnreadableError: a key occurs twice.
    """
    row = dict(pairs)
    if len(row) < len(pairs):
        raise UnreadableError("a key appears twice in one of its objects")
    return row


DECODER = json.JSONDecoder(object_pairs_hook=unique)
