"""Likely intentions behind YAML mistakes, determined from the lines around the position."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

_SMART_QUOTES = re.compile(r"[:\-\[,]\s+[“„‘«]")
_NO_SPACE_BEHIND_COLON = re.compile(r"\s*(?:- +)?[\w.-]+:(?=[^\s:/])")
_NO_SPACE_BEHIND_DASH = re.compile(r"\s*-[^\s-]")
_BLOCK_TEXT = re.compile(r"[|>][+-]?\d?\s*$")
_FIRST_KEY = re.compile(r"\s*(?:- +)*")


class Stop(Struct, frozen=True):
    """Position where the parser stopped.

    Attributes:
        line: number of the line, from 1.
        before, rest: the text of the line before and from the position.
        above: the next line above that is neither empty nor a comment, and its number; empty and 0 if there is none.
    """

    line: int
    before: str
    rest: str
    above: str
    above_line: int


def stop_at(lines: list[str], line: int, column: int) -> Stop:
    """The surroundings of a place; both numbers count from 1."""
    text = lines[line - 1] if line <= len(lines) else ""
    for number in range(min(line - 1, len(lines)), 0, -1):
        above = lines[number - 1]
        if above.strip() and not above.lstrip().startswith("#"):
            return Stop(line, text[: column - 1], text[column - 1 :], above, number)
    return Stop(line, text[: column - 1], text[column - 1 :], "", 0)


def likely(problem: str, stop: Stop) -> Iterator[str]:
    """The likely fixes for what the parser says, best first."""
    if _SMART_QUOTES.search(stop.before + stop.rest):
        yield "use the quotes \" and ', not “ and ”"
    for begins, hints in _HINTS.items():
        if problem.startswith(begins):
            yield from hints(stop)


def _no_mapping(stop: Stop) -> Iterator[str]:
    """A ':' where none may be: often a line above did not become the key that it looks like."""
    if ":" in stop.before or not stop.above:
        return
    if _NO_SPACE_BEHIND_COLON.match(stop.above):
        yield f"a space is missing after the ':' of line {stop.above_line}"
    elif _NO_SPACE_BEHIND_DASH.match(stop.above):
        yield f"a space is missing after the '-' of line {stop.above_line}"
    elif ":" not in stop.above:
        yield f"line {stop.above_line} has no ':'"


def _no_key(stop: Stop) -> Iterator[str]:
    last = stop.before.rstrip()[-1:]
    if last == "'" and stop.rest[:1].isalpha():
        yield "in single quotes, write an apostrophe as ''"
    elif last in ("'", '"') and last:
        yield "this quote ends a text; look above for one that was not closed"
    elif last in ("]", "}") and last:
        yield f"quote a text that starts with {'[' if last == ']' else '{'}"
    elif not stop.before.strip():
        yield from _indent(stop)


def _indent(stop: Stop) -> Iterator[str]:
    """As far in as the first key of the line above, behind its dash."""
    found = _FIRST_KEY.match(stop.above)
    if found is not None and stop.above and found.end() != len(stop.before):
        yield f"indent it by {found.end()} spaces, like line {stop.above_line}"


def _no_comma(stop: Stop) -> Iterator[str]:
    if stop.rest.strip():
        yield "a comma is missing before this"


def _no_content(stop: Stop) -> Iterator[str]:
    if not stop.rest.strip():
        yield "a [ or { above is never closed"


def _no_colon(stop: Stop) -> Iterator[str]:
    if _BLOCK_TEXT.search(stop.above):
        yield f"indent the text more than the key in line {stop.above_line}"


def _no_alias(_stop: Stop) -> Iterator[str]:
    yield "quote a text that starts with * or &"


def _no_document(_stop: Stop) -> Iterator[str]:
    yield "'...' ends the document; delete that line"


_HINTS: Mapping[str, Callable[[Stop], Iterator[str]]] = {
    "mapping values are not allowed": _no_mapping,
    "did not find expected key": _no_key,
    "did not find expected '-' indicator": _indent,
    "did not find expected ',' or": _no_comma,
    "did not find expected node content": _no_content,
    "could not find expected ':'": _no_colon,
    "did not find expected alphabetic or numeric character": _no_alias,
    "did not find expected <document start>": _no_document,
}
"""What the parser says begins so → where to look."""
