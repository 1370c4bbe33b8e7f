"""Detect verdicts that only quote what the judge was shown."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TypeAlias

from agentv.judge.normalization import as_ascii, normal_forms
from agentv.model.values.values import Json, JsonObject

PLACES_SHOWN = "what it was shown (the answer, its tool calls, the input, or other text of the case)"
"""Where a quotation may come from, as worded in messages."""

_DROPPED = re.compile(r"[^\w{}\[\]:,.+-]+|_+")
"""What a copy may gain or lose: spaces, quotes, backslashes, emphasis, and invisible characters."""

_DROPPED_ASCII = {code: None for code in range(128) if _DROPPED.match(chr(code))}
"""`_DROPPED` for ASCII, as a table for `str.translate`, which is ten times as fast."""

_LINE_END = re.compile(r"\n\s*")  # spaces before the end of a line are dropped anyway

_SUSPECT = re.compile(r"[&\\]|%[0-9a-fA-F]{2}|/\*|<[!/\w]|\]\(|[^\x00-\x7f]")
"""Characters that may hide a key from a plain search."""


class ShownTexts:
    """The untrusted texts of a question: a verdict found in them may be a quotation.

    Args:
        texts: texts of the system under test and of its case, in the order in which they are shown.
        key: the key that a verdict has.
    """

    def __init__(self, texts: Iterable[str], key: str) -> None:
        self._texts = tuple(dict.fromkeys(texts))
        self._key = _skeleton(key)

    def contains(self, row: JsonObject) -> bool:
        """Return whether the texts say all that a JSON object says, in JSON or in lines of `key: value`.

        Spaces, quotes and invisible characters are ignored, and so are the order of keys, missing or empty keys, and
        the notation of numbers, since a judge may rewrite what it copies.
        """
        wanted = _skeleton(json.dumps(row, ensure_ascii=False)) if self._skeletons else ""
        fields = dict.fromkeys(_fields(row))  # each distinct field once
        said = (wanted in shown.text or (fields and all(map(shown.mentions, fields))) for shown in self._skeletons)
        return any(said)

    def has_points(self, points: int, reason: str | None = None) -> bool:
        """Return whether the texts say `SCORE=` and these points, in any typography.

        Args:
            points: points of the verdict.
            reason: reason that must follow the points; None: any text may follow.
        """
        sign = "-" if points < 0 else r"\+?"
        behind = "" if reason is None else rf"(?:confirm=\w*?)?reason={re.escape(_letters(reason))}"
        return any(re.search(rf"score={sign}0*{abs(points)}{behind}", letters) for letters in self._letters)

    @cached_property
    def _letters(self) -> tuple[str, ...]:
        whole = "\n".join(self._texts)
        if "=" not in whole and not _SUSPECT.search(whole):
            return ()
        return tuple(dict.fromkeys(map(_letters, self._normal_forms(whole))))

    @cached_property
    def _skeletons(self) -> tuple[_Skeleton, ...]:
        whole = "\n".join(self._texts)
        if self._key not in _skeleton(whole) and not _SUSPECT.search(whole):
            return ()  # true of most answers, which need no closer look
        made = {_skeleton(one): one for one in self._normal_forms(whole)}
        return tuple(_Skeleton(skeleton, one) for skeleton, one in made.items() if self._key in skeleton)

    def _normal_forms(self, whole: str) -> tuple[str, ...]:
        """Return the normal forms of all texts together, since a verdict or an escape may span several texts."""
        if len(self._texts) < 2 or not _SUSPECT.search(whole):
            return normal_forms(whole)
        return tuple(dict.fromkeys((*normal_forms(whole), *normal_forms("".join(self._texts)))))


class _Skeleton:
    """A text without what a copy may gain or lose, and the values that its possibly broken JSON gives to keys."""

    def __init__(self, skeleton: str, text: str) -> None:
        self.text = f",{skeleton},"  # so that words at both ends have neighbours too
        self._source = text
        self._mentioned: dict[str, frozenset[str | float]] = {}

    def mentions(self, field: _Field) -> bool:
        """Return whether a value follows its key, with or without JSON punctuation."""
        key, value = field
        if value in self._values(key):
            return True
        if not isinstance(value, str):
            return False
        named = rf"{re.escape(key)}:?{re.escape(value)}" if key else rf"(?<!\w){re.escape(value)}"
        return any(re.search(rf"{named}(?!\w)", text) is not None for text in (self.text, self._lines))

    def _values(self, key: str) -> frozenset[str | float]:
        if key not in self._mentioned:
            named = rf"{re.escape(key)}[:,\[\]{{}}]*" if key else r"(?<!\w)"
            texts = (self.text, self._lines)
            words = (one[1] for text in texts for one in re.finditer(rf"{named}([\w.+-]+)", text))
            # searched apart from words, because a key may follow itself, as in `the score, score: 1`
            numbers = (_number(one[1]) for text in texts for one in re.finditer(rf"{named}({_DIGITS})", text))
            self._mentioned[key] = frozenset((*words, *numbers))
        return self._mentioned[key]

    @cached_property
    def _lines(self) -> str:
        """The text with a comma at each line end, which is all that separates values in YAML."""
        return f",{_skeleton(_LINE_END.sub(',', self._source))},"


_Field: TypeAlias = tuple[str, str | float]
"""Skeleton of a key (empty in a list), and its value: a number, or the skeleton of another value."""

_DIGITS = r"[+-]?\.?\d[\d.]*(?:e[+-]?\d+)?"


def _number(text: str) -> float:
    try:
        return float(text.rstrip("."))
    except ValueError:  # such as a version: 1.2.3
        return math.nan


def _fields(value: Json, key: str = "") -> Iterator[_Field]:
    """Yield the fields of a verdict; empty values are left out."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _fields(inner, _skeleton(name))
    elif isinstance(value, list):
        for inner in value:
            yield from _fields(inner)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield key, float(str(value))
    elif words := "" if value is None else _skeleton(str(value)):
        yield key, words


def _skeleton(text: str) -> str:
    if text.isascii():
        return text.translate(_DROPPED_ASCII).lower()
    return _DROPPED.sub("", as_ascii(text)).casefold()


def _letters(text: str) -> str:
    """Return only letters, digits, signs and `=`, so that typography makes no difference."""
    if text.isascii():
        return text.translate(_NO_LETTER_ASCII).lower()
    return _NO_LETTER.sub("", as_ascii(text)).casefold()


_NO_LETTER = re.compile(r"[^\w=+-]+|_+")
_NO_LETTER_ASCII = {code: None for code in range(128) if _NO_LETTER.match(chr(code))}


def texts_of(value: object) -> Sequence[str]:
    """Return a value as JSON, and every string in it, since JSON may escape parts of the strings."""
    if not value:
        return ()
    return (json.dumps(value, ensure_ascii=False, default=str), *_strings(value))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _strings(inner)
