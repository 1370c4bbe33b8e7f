"""Text of models and users made safe to show, terminal tables, and JSON embedded in HTML pages."""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache

from agentv.model.run.grade import PLACES
from agentv.model.values.formatting import ELLIPSIS, shorten
from agentv.model.values.values import lazy_pattern, plain_json

_STEERING = lazy_pattern(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and newline, DEL, C1: the start of every escape sequence
    "\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # invisible, or direction marks
    "\ud800-\udfff"  # lone surrogates, which cannot be encoded
    "\U000e0000-\U000e007f"  # invisible copies of ASCII
    "]"
)
_LINE_ENDS = lazy_pattern(r"[\t\n]")

TAB = "    "

LISTED = 10
"""Names listed on one line; `--json` has all of them."""

_ROUNDING = 1e-9
"""Rounding error of an interval; smaller than the share of one case in any run."""


def safe(text: str) -> str:
    r"""The text with control characters for terminals escaped, as in `\x1b[2J`, except tabs and newlines."""
    return text if text.isascii() and text.isprintable() else _STEERING.sub(_spelled, text)


def one_line(text: str, longest: int | None = None) -> str:
    """The text on one line, safe to show, with newlines and tabs escaped, cut to `longest` characters."""
    line = _LINE_ENDS.sub(_spelled, safe(text if longest is None else text[: longest + 1]))
    return line if longest is None else shorten(line, longest)


def listed(names: Collection[str], most: int = LISTED, longest: int | None = None) -> str:
    """The first `most` names on one line, each cut to `longest` characters, and how many more there are."""
    shown = ", ".join(one_line(name, longest) for name in list(names)[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def _spelled(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape", "surrogatepass").decode("ascii")


def cells(text: str) -> int:
    """Number of terminal columns of safe text."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # loaded only if needed, since it has large tables

    return cell_len(text)


def isolated(text: str) -> str:
    """The text, in directional isolates if it has right-to-left letters, so that it does not reorder other text."""
    if text.isascii() or not any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in text):
        return text
    return f"\u2068{text}\u2069"


def distinct_decimals(score: float, mark: float) -> tuple[str, str]:
    """Both numbers with two decimal places, or with as many as needed to distinguish them."""
    places = next((places for places in range(2, PLACES) if f"{score:.{places}f}" != f"{mark:.{places}f}"), 2)
    return f"{score:.{places}f}", f"{mark:.{places}f}"


def percent(share: float) -> str:
    """A share (0..1) in percent, with at least one decimal place, and enough to distinguish it from 0% and 100%."""
    if _ROUNDING < share < 1 - _ROUNDING:
        ends = ((f"{0:.{places}%}", f"{1:.{places}%}") for places in range(1, PLACES))
        for places, (nothing, everything) in enumerate(ends, 1):
            if (shown := f"{share:.{places}%}") not in (nothing, everything):
                return shown
    return f"{share:.1%}"


_ABSOLUTE = lazy_pattern(r"(?<![^\s'\"`(\[=:,])/(?:[^\s/'\"`:]+/)*[^\s/'\"`:,;)\]]+")
"""Absolute paths in a message, without punctuation after them; URLs (`https://…`) and relative paths do not match."""


def without_directories(message: str) -> str:
    """The message with absolute paths cut to the part from `.agentv` on, or to the file name."""

    def inner(found: re.Match[str]) -> str:
        parts = found[0].split("/")
        return "/".join(parts[parts.index(".agentv") :]) if ".agentv" in parts else parts[-1]

    return _ABSOLUTE.sub(inner, message)


def shown_from(path: str, here: str) -> str:
    """An absolute path, made relative to the directory `here` if that is shorter."""
    return _shown(path, here) if path.startswith("/") else path


@lru_cache(maxsize=1024)
def _shown(path: str, here: str) -> str:
    relative = os.path.relpath(path, here)
    return relative if len(relative) < len(path) else path


GAP = "  "
"""Space between two columns."""

_FEWEST = 12
"""Smallest width of the last table column, even on narrow terminals."""

_STYLES = {
    "ready": "32",
    "passed": "32",
    "tested": "36",
    "edited": "33",
    "wrong": "31",
    "failed": "31",
    "errored": "35",
    "dim": "2",
    "bold": "1",
}

Cell = tuple[str, str | None]
"""A text on one line that is safe to show, and the name of its style."""


def paint(text: str, style: str | None, *, color: bool) -> str:
    """The text in the given styles, such as `bold passed`."""
    if not color or style is None or not text:
        return text
    return f"\x1b[{';'.join(map(_STYLES.__getitem__, style.split()))}m{text}\x1b[0m"


def aligned(rows: Sequence[Sequence[Cell | str]], width: int | None = None, *, color: bool = False) -> Iterator[str]:
    """Rows as lines with aligned columns.

    Args:
        rows: at least one row, all of the same length.
        width: width of the terminal, to which the last column is cut, or None to cut nothing.
        color: use ANSI colors.
    """
    widths = widths_of(rows)
    left = None if width is None else max(width - sum(widths) - len(GAP) * len(widths), _FEWEST)
    for row in rows:
        *first, (last, style) = map(_styled, row)
        padded = [
            paint(text, look, color=color) + " " * (wide - cells(text))
            for (text, look), wide in zip(first, widths, strict=True)
        ]
        last = last if left is None else fitted(last, left)
        yield GAP.join([*padded, paint(last, style, color=color)]).rstrip()


def widths_of(rows: Sequence[Sequence[Cell | str]]) -> list[int]:
    """Width of every column except the last."""
    return [max(cells(_styled(row[at])[0]) for row in rows) for at in range(len(rows[0]) - 1)]


def fitted(text: str, columns: int) -> str:
    """The text, cut with an ellipsis if it does not fit in this many terminal columns."""
    if cells(text) <= columns:
        return text
    while text and cells(text) >= columns:
        text = text[:-1]
    return text + ELLIPSIS


def _styled(cell: Cell | str) -> Cell:
    return (cell, None) if isinstance(cell, str) else cell


_HALVES = re.compile("[\ud800-\udfff]")


def to_json(value: object) -> str:
    r"""One line of JSON for a `script` element that holds data.

    `<` is escaped as `\u003c`, so that no text can close the element or open another. Lone surrogates are escaped,
    since they cannot be encoded. Numbers that JSON does not have, such as NaN, become null.
    """
    try:
        text = _encoded(value)
    except ValueError:
        plain = json.dumps(value, default=plain_json)
        text = _encoded(json.loads(plain, parse_constant=lambda _: None))
    text = text.replace("<", "\\u003c")
    return text if text.isascii() else _HALVES.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def data_element(kind: str, run: int, lines: Iterable[str]) -> str:
    """A `script` element with lines of JSON, for the run with this number."""
    text = "\n".join(lines)
    return f'<script type="application/json" class="{kind}" data-run="{run}">{text}</script>\n'


def _encoded(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=plain_json)
