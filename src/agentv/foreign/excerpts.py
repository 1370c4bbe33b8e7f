"""Pieces of foreign text, fit to stand in a message: short, and without anything that steers a terminal."""

from __future__ import annotations

import re

LONGEST = 500
"""Characters that an excerpt has at most."""

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~] | \x1b\][^\x07\x1b]*(?:\x07|\x1b\\) | \x1b[@-Z\\^_]", re.VERBOSE)


def head(printed: bytes, longest: int = LONGEST) -> str:
    """The beginning of what was printed."""
    text = _printable(printed[: longest * 8])
    return text if len(text) <= longest and len(printed) <= longest * 8 else f"{text[:longest].rstrip()} …"


def tail(printed: bytes, longest: int = LONGEST) -> str:
    """The end of what was printed."""
    text = _printable(printed[-longest * 8 :])
    return text if len(text) <= longest and len(printed) <= longest * 8 else f"… {text[-longest:].lstrip()}"


def _printable(printed: bytes) -> str:
    """Decoded, colours and control characters gone; lines are kept."""
    text = _ESCAPES.sub("", printed.decode(errors="replace")).replace("\r\n", "\n")
    return "".join(letter if letter.isprintable() or letter == "\n" else " " for letter in text).strip()
