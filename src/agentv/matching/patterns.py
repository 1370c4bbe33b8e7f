"""An author's regular expressions on a model's text: Python syntax, compiled once, bounded in time."""

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
"""Letter of `flags` → name in `regex`. JavaScript's `g` does not affect a search, so it maps to the default."""


class PatternError(ValueError):
    """A pattern does not compile."""


JAVASCRIPT = "J"
"""A further flag: the pattern has JavaScript's syntax."""


@lru_cache(maxsize=2048)
def compiled(pattern: str, flags: str = "") -> Pattern[str]:
    """Return the compiled pattern; the flags are letters of FLAGS and JAVASCRIPT.

    Raises:
        PatternError: the pattern does not compile.
    """
    import regex

    try:
        if JAVASCRIPT in flags:
            from agentv.matching.ecma import translate  # imported here, since few patterns are

            pattern, flags = translate(pattern, flags.replace(JAVASCRIPT, "")), "i" if "i" in flags else ""
        bits = 0
        for letter in flags:
            bits |= getattr(regex, FLAGS[letter])
        return regex.compile(pattern, bits)
    except (regex.error, RecursionError, OverflowError, ValueError) as error:
        raise PatternError(str(error)) from None


def search(pattern: Pattern[str], text: str, timeout_s: float = TIMEOUT_S) -> Match[str] | None:
    """Return the first match anywhere in the text.

    Raises:
        TimeoutError: the search took longer than `timeout_s` seconds.
    """
    # keep the interpreter lock: releasing and taking it again costs more than most searches
    return pattern.search(text, timeout=timeout_s, concurrent=False)


_PROBES = ("", "x", "7", "\n", "Ab c.", "\u00e4 \u4e16")
"""Texts with nothing in common: a pattern that matches all of them is assumed to match every text."""

_REPEATED_GROUP = lazy_pattern(r"\)(?:[*+]|\{\d*,)")
"""A group that may repeat: only these can take exponential time."""

_LETTER = lazy_pattern(r"(?<!\\)[A-Za-z0-9 _.,:;=-]")
_STRETCH = 40
_PROBE_S = 0.05
_LETTERS = 6
"""Maximum number of a pattern's letters that are probed, each for `_PROBE_S` seconds at worst."""


@lru_cache(maxsize=2048)
def matches_everything(pattern: str, flags: str = "") -> bool:
    """Return whether a pattern that compiles matches every text, as `.*` does."""
    return all(search(compiled(pattern, flags), probe) is not None for probe in _PROBES)


@lru_cache(maxsize=2048)
def backtracks(pattern: str, flags: str = "") -> bool:
    """Return whether a search backtracks too long on repeated letters with a wrong end, as `(a|aa)+$` on `aaaa…!`.

    This probes the engine and is not a proof. The engine handles many nested repetitions, such as `(a+)+$`, quickly.
    A pattern that passes may still be slow on another text, but its search ends after `TIMEOUT_S`.
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
