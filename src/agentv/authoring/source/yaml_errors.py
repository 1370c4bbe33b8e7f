"""Diagnostics for files that are not valid YAML: the position, the message, and the likely fix."""

from __future__ import annotations

import re
from typing import Any

from yaml import YAMLError

from agentv.authoring.source.nodes import LINE_END, span_at
from agentv.errors import Diagnostic
from agentv.model.values.values import Span, lazy_pattern

_REPORTED_AT_START = {
    "found unexpected end of stream": "the quote that starts here is never closed",
    "could not find expected ':'": "expected a key, but no ':' follows",
}
"""The parser's problem → our message, for errors reported where the construct begins, not where parsing stopped."""


def yaml_error(path: str, data: bytes, error: YAMLError) -> Diagnostic:
    """The diagnostic for the parser's error, at its position."""
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    context_mark = getattr(error, "context_mark", None)
    mark = getattr(error, "problem_mark", None)
    if context_mark is not None and (message := _REPORTED_AT_START.get(problem)):
        span = _span(path, data, context_mark)
        return Diagnostic("bad-yaml", f"not YAML: {message}", span, hint=hint_at(data, span, problem))
    if context_mark is not None and (message := _never_closed(problem, mark, data)):
        return Diagnostic("bad-yaml", f"not YAML: {message}", _span(path, data, context_mark))
    if mark is not None:
        span = _span(path, data, mark)
    else:
        offset = getattr(error, "position", 0)
        span = span_at(path, data, offset if isinstance(offset, int) else 0)
    if "nesting depth" in problem:  # newer versions of libyaml have a limit of their own
        return Diagnostic("too-deep", "nested too deeply", span)
    message = f"not YAML: {problem}{_context(error, span)}"
    return Diagnostic("bad-yaml", message, span, hint=hint_at(data, span, problem))


def _never_closed(problem: str, mark: Any, data: bytes) -> str | None:
    """A message about a bracket that is still open at the end of the file, or None."""
    if not problem.startswith("did not find expected ',' or") or mark is None:
        return None
    if b"".join(LINE_END.split(data)[mark.line :])[mark.column :].strip():
        return None
    return f"the {'{' if '}' in problem else '['} that starts here is never closed"


def _span(path: str, data: bytes, mark: Any) -> Span:
    """The place of a mark; the end of the file if the mark is past the last line, as libyaml counts one too many."""
    if mark.line >= len(LINE_END.findall(data)) + 1:
        return span_at(path, data, len(data))
    return Span(path, mark.line + 1, mark.column + 1, mark.line + 1, mark.column + 2)


def hint_at(data: bytes, span: Span, problem: str = "") -> str | None:
    """The likely fix for the parser's problem at the place where parsing stopped, or None."""
    lines = [one.decode(errors="replace") for one in LINE_END.split(data)]
    line = lines[span.line - 1] if span.line <= len(lines) else ""
    before, rest = line[: span.column - 1], line[span.column - 1 :]
    counted = [one for one in range(1, min(span.line, len(lines) + 1)) if not _PASSED_OVER.fullmatch(lines[one - 1])]
    number = counted[-1] if counted else 0
    above = lines[number - 1] if number else ""
    key = _FIRST_KEY.match(above)
    indent = key.end() if key is not None else 0
    for begins, stands, hint in _HINTS:
        found = re.search(stands, f"{above}\n{before}{_HERE}{rest}") or re.search(stands, f"{above}\n{line}")
        if problem.startswith(begins) and found and not ("{indent}" in hint and indent == len(before)):
            return hint.format(*found.groups(), number=number, indent=indent)
    return None


def _context(error: YAMLError, span: Span) -> str:
    context = getattr(error, "context", None)
    if not context:
        return ""
    mark = getattr(error, "context_mark", None)
    where = f" that starts at line {mark.line + 1}" if mark is not None and mark.line + 1 != span.line else ""
    return f" {context}{where}"


_PASSED_OVER = lazy_pattern(r"\s*(?:#.*)?")
_FIRST_KEY = lazy_pattern(r"\s*(?:- +)*")
_HERE = "\0"
"""Marks the place where the parser stopped."""

_NO_MAPPING, _NO_KEY = "mapping values are not allowed", "did not find expected key"
_INDENT = "indent it by {indent} spaces, like line {number}"

_HINTS = (
    ("", r"[:\-\[,]\s+[“„‘«].*$", "use the quotes \" and ', not “ and ”"),
    # an unexpected ':': often the line above looks like a key but was not parsed as one
    (_NO_MAPPING, r"^\s*(?:- +)?[\w.-]+:[^\s:/].*\n[^:]*\0", "a space is missing after the ':' of line {number}"),
    (_NO_MAPPING, r"^\s*-[^\s-].*\n[^:]*\0", "a space is missing after the '-' of line {number}"),
    (_NO_MAPPING, r"^[^:\n]+\n[^:]*\0", "line {number} has no ':'"),
    (_NO_KEY, r"'[ \t]*\0[^\W\d_]", "in single quotes, write an apostrophe as ''"),
    (_NO_KEY, r"['\"][ \t]*\0", "this quote ends a text; look above for one that was not closed"),
    (_NO_KEY, r"\][ \t]*\0", "quote a text that starts with ["),
    (_NO_KEY, r"\}[ \t]*\0", "quote a text that starts with {{"),
    (_NO_KEY, r"^.+\n[ \t]*\0", _INDENT),
    ("did not find expected '-' indicator", r"^.+\n", _INDENT),
    ("did not find expected ',' or", r"\0\s*\S", "a comma is missing before this"),
    ("did not find expected node content", r"\0\s*$", "a [ or {{ above is never closed"),
    ("could not find expected ':'", r"^.*[|>][+-]?\d?\s*\n", "indent the text more than the key in line {number}"),
    ("did not find expected alphabetic or numeric character", r"", "quote a text that starts with * or &"),
    ("did not find expected <document start>", r"", "'...' ends the document; delete that line"),
    ("", r"\n[ \0]*\t|\0\t", "indent with spaces: YAML does not allow tabs here"),
    ("", r"(?:\n|[:\-\[,])\s*\{[{%][^\n]*$", "quote a text that starts with {{{{ or {{%"),
    ("", r"[^\n]\0([@`%])", "quote a text that starts with {0}"),
    ("", r"\n[^\n:]*:[^\n\0]*\0:", "quote a text that contains ': '"),
    ("", r"\\u[dD][89abAB][0-9a-fA-F]{2}[^\n]*$", "write the character itself, or \\U and its code in eight digits"),
)
"""Start of the parser's problem, pattern of the line above and the line at fault, likely fix. The first match wins."""
