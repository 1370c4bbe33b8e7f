"""Places of values in the text of an object as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from agentv.model.values.json_path import JsonPath, Missing, read
from agentv.model.values.values import Json

Span = tuple[int, int]

LONGEST = 100_000
"""Characters of a text that is searched."""

_SPACE = " \t\n\r"
_decode = json.JSONDecoder().raw_decode


def value_spans(text: str, path: JsonPath, whole: Json) -> tuple[Span, ...]:
    """The place of the value at a path; empty if it is missing, or if several places could be meant.

    Args:
        text: of the answer. If it is more than an object as JSON, there is no place.
        path: to the value, such as `a.b[0]`.
        whole: the object in the text.
    """
    wanted = read(path, whole)
    if isinstance(wanted, Missing) or len(text) > LONGEST or not _is_object(text):
        return ()
    try:
        begin = _after_space(text, 0)
        for step in path.steps:
            found = [at for key, at in _members(text, begin) if str(key) == str(step)]
            if len(found) != 1:  # the last of equal keys counts, and a list may be counted from its end
                return ()
            begin = found[0]
        value, end = _decode(text, begin)
    except (ValueError, IndexError, RecursionError):
        return ()
    return ((begin, end),) if value == wanted else ()


def _is_object(text: str) -> bool:
    stripped = text.strip(_SPACE)
    return stripped.startswith("{") and stripped.endswith("}")


def _members(text: str, at: int) -> Iterator[tuple[str | int, int]]:
    """The keys of an object, or the numbers of a list, that begins at a place, and where each value begins."""
    is_object, number = text[at] == "{", 0
    if text[at] not in "{[":
        return
    at = _after_space(text, at + 1)
    while text[at] not in "]}":
        key: Any = number
        if is_object:
            key, at = _decode(text, at)
            at = _after_space(text, _after_space(text, at) + 1)  # the colon
        yield key, at
        at = _after_space(text, _decode(text, at)[1])
        at = _after_space(text, at + 1) if text[at] == "," else at
        number += 1


def _after_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at
