"""Diagnostics for files that are not valid YAML: the position, the message, and the likely intention."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any

from msgspec import Struct
from yaml import YAMLError

from agentv.authoring.source.nodes import LINE_END, span_at
from agentv.errors import Diagnostic
from agentv.model.values.values import Span, lazy_pattern

_SURROGATES = lazy_pattern(rb"\\u[dD][89abAB][0-9a-fA-F]{2}")
_RESERVED = b"@`%"


_AT_ITS_BEGIN = {
    "found unexpected end of stream": "the quote that starts here is never closed",
    "could not find expected ':'": "expected a key, but no ':' follows",
}
"""What is best said where the thing begins, and not where the parser gave up: its problem → our words."""


def yaml_error(path: str, data: bytes, error: YAMLError) -> Diagnostic:
    """The diagnostic for the parser's error, at its position."""
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    began = getattr(error, "context_mark", None)
    mark = getattr(error, "problem_mark", None)
    if began is not None and (message := _AT_ITS_BEGIN.get(problem)):
        span = _span(path, data, began)
        return Diagnostic("bad-yaml", f"not YAML: {message}", span, hint=hint_at(data, span, problem))
    if began is not None and (message := _never_closed(problem, mark, data)):
        return Diagnostic("bad-yaml", f"not YAML: {message}", _span(path, data, began))
    if mark is not None:
        span = _span(path, data, mark)
    else:
        offset = getattr(error, "position", 0)
        span = span_at(path, data, offset if isinstance(offset, int) else 0)
    if "nesting depth" in problem:  # of newer libyaml, before the depth can be counted here
        return Diagnostic("too-deep", "nested too deeply", span)
    message = f"not YAML: {problem}{_context(error, span)}"
    return Diagnostic("bad-yaml", message, span, hint=hint_at(data, span, problem))


def _never_closed(problem: str, mark: Any, data: bytes) -> str | None:
    """A bracket that is open at the end of the file."""
    if not problem.startswith("did not find expected ',' or") or mark is None:
        return None
    if b"".join(LINE_END.split(data)[mark.line :])[mark.column :].strip():
        return None
    return f"the {'{' if '}' in problem else '['} that starts here is never closed"


def _span(path: str, data: bytes, mark: Any) -> Span:
    """The place of a mark; the end of the file where libyaml counts a line too many."""
    if mark.line >= len(LINE_END.findall(data)) + 1:
        return span_at(path, data, len(data))
    return Span(path, mark.line + 1, mark.column + 1, mark.line + 1, mark.column + 2)


def hint_at(data: bytes, span: Span, problem: str = "") -> str | None:
    """The likely fix for the place where parsing stopped, for the reason that the parser gives."""
    lines = LINE_END.split(data)
    line = lines[span.line - 1] if span.line <= len(lines) else b""
    certain = _hints(line, line.decode(errors="replace")[span.column - 1 :].encode(errors="replace"))
    stop = stop_at([one.decode(errors="replace") for one in lines], span.line, span.column)
    return next(chain(likely(problem, stop), certain), None)


def _hints(line: bytes, rest: bytes) -> Iterator[str]:
    """In the order of their likelihood; `rest` is the line from the place on."""
    if b"\t" in line[: len(line) - len(line.lstrip())] or rest.startswith(b"\t"):
        yield "indent with spaces: YAML does not allow tabs here"
    if re.search(rb"(?:^|[:\-\[,])\s*\{[{%]", line):
        yield "quote a text that starts with {{ or {%"
    if rest[:1] and rest[:1] in _RESERVED and rest != line:
        yield f"quote a text that starts with {rest[:1].decode()}"
    if rest.startswith((b": ", b":")) and b":" in line[: len(line) - len(rest)]:
        yield "quote a text that contains ': '"
    if _SURROGATES.search(line):
        yield "write the character itself, or \\U and its code in eight digits"


def _context(error: YAMLError, span: Span) -> str:
    context = getattr(error, "context", None)
    if not context:
        return ""
    mark = getattr(error, "context_mark", None)
    began = f" that starts at line {mark.line + 1}" if mark is not None and mark.line + 1 != span.line else ""
    return f" {context}{began}"


_SMART_QUOTES = lazy_pattern(r"[:\-\[,]\s+[“„‘«]")
_NO_SPACE_BEHIND_COLON = lazy_pattern(r"\s*(?:- +)?[\w.-]+:(?=[^\s:/])")
_NO_SPACE_BEHIND_DASH = lazy_pattern(r"\s*-[^\s-]")
_BLOCK_TEXT = lazy_pattern(r"[|>][+-]?\d?\s*$")
_FIRST_KEY = lazy_pattern(r"\s*(?:- +)*")


class Stop(Struct, frozen=True):
    """Position where the parser stopped.

    Attributes:
        line: number of the line, from 1.
        before, rest: the text of the line before and from the position.
        above: the next line above that is neither empty nor a comment, and its number; empty and 0 at the top.
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
    for begins, hint in _HINTS.items():
        if problem.startswith(begins) and (found := hint(stop)):
            yield found


def _no_mapping(stop: Stop) -> str | None:
    """A ':' where none may be: often a line above did not become the key that it looks like."""
    if ":" in stop.before or not stop.above:
        return None
    if _NO_SPACE_BEHIND_COLON.match(stop.above):
        return f"a space is missing after the ':' of line {stop.above_line}"
    if _NO_SPACE_BEHIND_DASH.match(stop.above):
        return f"a space is missing after the '-' of line {stop.above_line}"
    return None if ":" in stop.above else f"line {stop.above_line} has no ':'"


def _no_key(stop: Stop) -> str | None:
    last = stop.before.rstrip()[-1:]
    if last == "'" and stop.rest[:1].isalpha():
        return "in single quotes, write an apostrophe as ''"
    if last in ("'", '"') and last:
        return "this quote ends a text; look above for one that was not closed"
    if last in ("]", "}") and last:
        return f"quote a text that starts with {'[' if last == ']' else '{'}"
    return None if stop.before.strip() else _indent(stop)


def _indent(stop: Stop) -> str | None:
    """As far in as the first key of the line above, behind its dash."""
    found = _FIRST_KEY.match(stop.above)
    if found is None or not stop.above or found.end() == len(stop.before):
        return None
    return f"indent it by {found.end()} spaces, like line {stop.above_line}"


def _no_colon(stop: Stop) -> str | None:
    found = _BLOCK_TEXT.search(stop.above)
    return f"indent the text more than the key in line {stop.above_line}" if found else None


_HINTS: Mapping[str, Callable[[Stop], str | None]] = {
    "mapping values are not allowed": _no_mapping,
    "did not find expected key": _no_key,
    "did not find expected '-' indicator": _indent,
    "did not find expected ',' or": lambda stop: "a comma is missing before this" if stop.rest.strip() else None,
    "did not find expected node content": lambda stop: None if stop.rest.strip() else "a [ or { above is never closed",
    "could not find expected ':'": _no_colon,
    "did not find expected alphabetic or numeric character": lambda _: "quote a text that starts with * or &",
    "did not find expected <document start>": lambda _: "'...' ends the document; delete that line",
}
"""What the parser says begins so → where to look."""
