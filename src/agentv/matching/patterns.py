"""Regular expressions of the author's on text that a model wrote: Python's syntax, compiled once, bounded in time."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from agentv.model.values.values import lazy_pattern

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


JAVASCRIPT = "J"
"""A letter beside those of FLAGS: the pattern is JavaScript's."""


@lru_cache(maxsize=2048)
def compiled(pattern: str, flags: str = "") -> Pattern[str]:
    """The pattern, ready to search; the flags are letters out of FLAGS, and JAVASCRIPT.

    Raises:
        PatternError: it does not compile.
    """
    import regex

    try:
        if JAVASCRIPT in flags:
            from agentv.matching.ecma import translated  # few patterns are

            pattern, flags = translated(pattern, flags.replace(JAVASCRIPT, "")), "i" if "i" in flags else ""
        bits = 0
        for letter in flags:
            bits |= getattr(regex, FLAGS[letter])
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


_PROBES = ("", "x", "7", "\n", "Ab c.", "\u00e4 \u4e16")
"""Texts with nothing in common: a pattern that is found in all of them is found in any."""

_REPEATED_GROUP = lazy_pattern(r"\)(?:[*+]|\{\d*,)")
"""A group that may repeat: without one there is nothing that could grow exponentially."""

_LETTER = lazy_pattern(r"(?<!\\)[A-Za-z0-9 _.,:;=-]")
_STRETCH = 40
_PROBE_S = 0.05
_LETTERS = 6
"""Letters of a pattern that are tried; the worst case of a probe is `_PROBE_S` seconds for each."""


@lru_cache(maxsize=2048)
def matches_everything(pattern: str, flags: str = "") -> bool:
    """Whether a pattern that compiles is found in every text, as `.*` is."""
    return all(search(compiled(pattern, flags), probe) is not None for probe in _PROBES)


@lru_cache(maxsize=2048)
def backtracks(pattern: str, flags: str = "") -> bool:
    """Whether a search runs away on a stretch of a letter or two with a wrong end, as `(a|aa)+$` does on `aaaa…!`.

    A probe of the engine that will search, not a proof: many a nested repetition, such as `(a+)+$`, it takes in its
    stride. A pattern that passes may still be slow on another text; its search ends after `TIMEOUT_S` all the same.
    """
    if not _REPEATED_GROUP.search(pattern):
        return False
    letters = [*dict.fromkeys(_LETTER.findall(pattern))][:_LETTERS]
    pairs = [one + other for one, other in pairwise(letters)]
    for piece in dict.fromkeys([*letters, *pairs, "a", "0", " "]):
        try:
            search(compiled(pattern, flags), f"{piece * _STRETCH}\x00", _PROBE_S)
        except TimeoutError:
            return True
    return False
