"""Regular expressions of the author's on text that a model wrote: Python's syntax, compiled once, bounded in time."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regex import Match, Pattern

TIMEOUT_S = 2.0
"""Seconds that the search of one assertion may take (SPEC section 7.2)."""

FLAGS = {
    "i": "IGNORECASE",
    "m": "MULTILINE",
    "s": "DOTALL",
    "x": "VERBOSE",
    "a": "ASCII",
    "u": "UNICODE",
    "g": "UNICODE",
}
"""Letters of `flags` → names in `regex`. JavaScript's `g` changes nothing in a search, and text is Unicode anyway."""


class PatternError(ValueError):
    """A pattern does not compile."""


@lru_cache(maxsize=2048)
def compiled(pattern: str, flags: str = "") -> Pattern[str]:
    """The pattern, ready to search; the flags are letters out of FLAGS.

    Raises:
        PatternError: it does not compile.
    """
    import regex

    bits = 0
    for letter in flags:
        bits |= getattr(regex, FLAGS[letter])
    try:
        return regex.compile(pattern, bits)
    except (regex.error, RecursionError, OverflowError, ValueError) as error:
        raise PatternError(str(error)) from None


def search(pattern: Pattern[str], text: str, timeout_s: float = TIMEOUT_S) -> Match[str] | None:
    """The first match anywhere in the text.

    Raises:
        TimeoutError: the search took longer than `timeout_s` seconds.
    """
    # the search keeps the lock of the interpreter: giving it away and taking it back costs more than most searches
    return pattern.search(text, timeout=timeout_s, concurrent=False)
