"""Whether words of a judge are a quotation of what it was shown."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable
from functools import cached_property

from agentv.model.values import JsonObject

_BRACES = "{｛﹛"
_DROPPED = re.compile(r"[^\w{}\[\]:,.+-]+")
"""Spaces, quotes, backslashes, and marks that nobody sees: what a copy may gain or lose."""

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
        """Whether words with a JSON object in them, or the object alone, stand in one of the texts.

        Spaces, quotes and unseen marks make no difference.
        """
        if not self._skeletons:
            return False
        wanted = (_skeleton(words), _skeleton(json.dumps(row, ensure_ascii=False)))
        return any(one in skeleton for one in wanted for skeleton in self._skeletons)

    @cached_property
    def _skeletons(self) -> tuple[str, ...]:
        return tuple(_skeleton(text) for text in self._texts if self._may_hold_verdict(text))

    def _may_hold_verdict(self, text: str) -> bool:
        # most answers have no brace or no such key, and need no second look
        if not any(brace in text for brace in _BRACES):
            return False
        return not text.isascii() or self._key in text.lower()


def _skeleton(text: str) -> str:
    if text.isascii():
        return text.translate(_DROPPED_ASCII).lower()
    return _DROPPED.sub("", unicodedata.normalize("NFKC", text)).casefold()
