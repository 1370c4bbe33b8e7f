"""Whether words of a judge are a quotation of what it was shown."""

from __future__ import annotations

import html
import json
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TypeAlias

from agentv.model.values import Json, JsonObject

PLACES_SHOWN = "what it was shown (the answer, its tool calls, the input, or retrieved text)"
"""Where a quotation may come from, for messages."""

_BRACES = "{｛﹛"
_DROPPED = re.compile(r"[^\w{}\[\]:,.+-]+")
"""Spaces, quotes, backslashes, and marks that nobody sees: what a copy may gain or lose."""

_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")

_ESCAPED_SPACE = re.compile(r"\\+[nrtbf]")

_DROPPED_ASCII = {code: None for code in range(128) if _DROPPED.match(chr(code))}
"""The same for `str.translate`, which is ten times as fast."""


class Shown:
    """The texts of a question that are not its author's: a verdict found in them is nobody's.

    Args:
        texts: what came from the system under test, and its input.
        key: the key that a verdict has.
    """

    def __init__(self, texts: Iterable[str], key: str) -> None:
        self._texts = tuple(texts)
        self._key = key

    def has(self, words: str, row: JsonObject) -> bool:
        """Whether words with a JSON object in them, or all that the object says, stand in one of the texts.

        Spaces, quotes and unseen marks make no difference, nor do the order of keys, keys that are left out or empty,
        and how a number is written: a judge that copies may write what it copies anew.
        """
        if not self._skeletons:
            return False
        wanted = (_skeleton(words), _skeleton(json.dumps(row, ensure_ascii=False)))
        said = dict.fromkeys(_said(row))  # what stands twice is looked for once
        if any(one in shown.text for one in wanted for shown in self._skeletons):
            return True
        return bool(said) and any(all(map(shown.says, said)) for shown in self._skeletons)

    def has_points(self, points: int) -> bool:
        """Whether one of the texts says `SCORE=` and these points, however it is written.

        A line that begins so cannot be told from a quotation, whatever stands behind it.
        """
        sign = "-" if points < 0 else r"\+?"
        said = re.compile(rf"score={sign}0*{abs(points)}")
        return any(said.search(letters) for letters in self._letters)

    @cached_property
    def _letters(self) -> tuple[str, ...]:
        readings = (one for text in self._texts for one in _readings(text))
        return tuple(_letters(text) for text in readings if "=" in text or not text.isascii())

    @cached_property
    def _skeletons(self) -> tuple[_Skeleton, ...]:
        readings = (one for text in self._texts for one in _readings(text))
        return tuple(_Skeleton(_skeleton(text)) for text in readings if self._may_hold_verdict(text))

    def _may_hold_verdict(self, text: str) -> bool:
        # most answers have no brace or no such key, and need no second look
        if not any(brace in text for brace in _BRACES):
            return False
        return not text.isascii() or _is_escaped(text) or self._key in text.lower()


class _Skeleton:
    """A text without what a copy may gain or lose, and what its JSON says, however broken that JSON is."""

    def __init__(self, skeleton: str) -> None:
        self.text = f",{skeleton},"  # so that what stands at an end has neighbours too

    def says(self, said: _Said) -> bool:
        """Whether a value stands under its key, or alone in a list."""
        key, value = said
        if not isinstance(value, str):
            return said in self._numbers
        before, name = ("{,", f"{key}:") if key else ("[,", "")
        return any(f"{start}{name}{value}{end}" in self.text for start in before for end in ",}]")

    @cached_property
    def _numbers(self) -> frozenset[_Said]:
        return frozenset((found["key"] or "", _number(found["number"])) for found in _NUMBER.finditer(self.text))


_Said: TypeAlias = tuple[str, str | float]
"""The skeleton of a key, empty in a list, and a number, or the skeleton of another value."""

_NUMBER = re.compile(r"(?<=[{\[,])(?:(?P<key>[^{}\[\]:,]+):)?(?P<number>[+-]?[\d.]+(?:e[+-]?\d+)?)(?=[,}\]])")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:  # as a version's: 1.2.3
        return math.nan


def _said(value: Json, key: str = "") -> Iterator[_Said]:
    """What a verdict says, piece by piece; what is empty says nothing."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _said(inner, _skeleton(name))
    elif isinstance(value, list):
        for inner in value:
            yield from _said(inner)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield key, float(str(value))
    elif words := "" if value is None else _skeleton(str(value)):
        yield key, words


def _skeleton(text: str) -> str:
    if text.isascii():
        return text.translate(_DROPPED_ASCII).lower()
    return _DROPPED.sub("", unicodedata.normalize("NFKC", text)).casefold()


def _readings(text: str) -> tuple[str, ...]:
    """A text as it stands, and as somebody would write it down who reads its escapes: those of JSON and of HTML."""
    if not _is_escaped(text):
        return (text,)
    spaced = _ESCAPED_SPACE.sub(" ", text)
    return text, html.unescape(_ESCAPED.sub(lambda found: chr(int(found[1], 16)), spaced))


def _is_escaped(text: str) -> bool:
    return "&" in text or "\\" in text


def _letters(text: str) -> str:
    """Letters, digits, signs and `=`: what is left of a line of a verdict that was set in other type."""
    if text.isascii():
        return text.translate(_NO_LETTER_ASCII).lower()
    return _NO_LETTER.sub("", "".join(map(_digit, unicodedata.normalize("NFKC", text)))).casefold()


_NO_LETTER = re.compile(r"[^\w=+-]+|_+")
_NO_LETTER_ASCII = {code: None for code in range(128) if _NO_LETTER.match(chr(code))}


def _digit(one: str) -> str:
    return str(unicodedata.decimal(one, one)) if not one.isascii() else one
