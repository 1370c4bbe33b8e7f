"""Foreign text made fit to be shown: nothing in an answer can repaint a terminal, forge a line or reverse a word.

And paths, as a person would type them.
"""

from __future__ import annotations

import os
import re
import unicodedata
from functools import lru_cache

from agentv.model.run.grade import PLACES
from agentv.model.values.formatting import shorten
from agentv.model.values.values import lazy_pattern

_STEERING = lazy_pattern(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and newline, DEL, C1: escape sequences begin with one of them
    "\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # invisible; changes of direction
    "\ud800-\udfff"  # halves of surrogate pairs, which no stream can write
    "\U000e0000-\U000e007f"  # invisible copies of ASCII
    "]"
)
_LINE_ENDS = lazy_pattern(r"[\t\n]")

TAB = "    "

_ROUNDING = 1e-9
"""What the arithmetic of an interval may be off by: less than any share of the cases of a run."""


def safe(text: str) -> str:
    r"""The text with every character that steers a terminal spelled out, as in `\x1b[2J`. Tabs and newlines stay."""
    return text if text.isascii() and text.isprintable() else _STEERING.sub(_spelled, text)


def one_line(text: str, longest: int | None = None) -> str:
    """The text, safe and on one line, newlines and tabs spelled out, cut to so many characters."""
    line = _LINE_ENDS.sub(_spelled, safe(text if longest is None else text[: longest + 1]))
    return line if longest is None else shorten(line, longest)


def _spelled(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape", "surrogatepass").decode("ascii")


def cells(text: str) -> int:
    """Number of terminal columns of safe text."""
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


def _width(letter: str) -> int:
    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in ("W", "F") else 1


def isolated(text: str) -> str:
    """The text, isolated if it has letters that run from right to left, so that it reorders nothing beside it."""
    if text.isascii() or not any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in text):
        return text
    return f"\u2068{text}\u2069"


def apart(score: float, mark: float) -> tuple[str, str]:
    """Both numbers with two decimal places, or with as many as needed to distinguish them."""
    places = next((places for places in range(2, PLACES) if f"{score:.{places}f}" != f"{mark:.{places}f}"), 2)
    return f"{score:.{places}f}", f"{mark:.{places}f}"


def percent(share: float) -> str:
    """A share of 0..1 in percent, with enough decimal places to distinguish it from 0 and 100%, at least one."""
    if _ROUNDING < share < 1 - _ROUNDING:
        ends = ((f"{0:.{places}%}", f"{1:.{places}%}") for places in range(1, PLACES))
        for places, (nothing, everything) in enumerate(ends, 1):
            if (shown := f"{share:.{places}%}") not in (nothing, everything):
                return shown
    return f"{share:.1%}"


_ABSOLUTE = lazy_pattern(r"(?<![^\s'\"`(\[=:,])/(?:[^\s/'\"`:]+/)*[^\s/'\"`:,;)\]]+")
"""Absolute paths in a message, also at the end of a clause; neither addresses (`https://…`) nor relative ones."""


def without_directories(message: str) -> str:
    """A message with absolute paths cut to what a reader elsewhere may know: from `.agentv` on, or the file's name."""
    return _ABSOLUTE.sub(lambda found: _inner(found[0]), message)


def _inner(path: str) -> str:
    parts = path.split("/")
    return "/".join(parts[parts.index(".agentv") :]) if ".agentv" in parts else parts[-1]


def shown_from(path: str, here: str) -> str:
    """An absolute path as seen from the directory `here`: relative where that is shorter."""
    return _shown(path, here) if path.startswith("/") else path


@lru_cache(maxsize=1024)
def _shown(path: str, here: str) -> str:
    relative = os.path.relpath(path, here)
    return relative if len(relative) < len(path) else path
