"""`# agentv: ignore[code]` comments in YAML files, which silence warnings and hints, but not errors, on one line.

A comment applies to its own line, or to the next line if it stands alone. A comment that silences nothing is itself a
warning, so that no comment outlives its reason. JSON Lines files have no comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.authoring.source.nearest import did_you_mean
from agentv.errors import Diagnostic
from agentv.model.values.values import Span, lazy_pattern

_COMMENT = lazy_pattern(r"(?:^|(?<=[ \t]))#[ \t]*agentv: ignore(?P<codes>\[[^\]]*\])?")
MOST = 100
"""Maximum number of lines, counted from a comment, in which the line that it applies to is searched for."""

_LINE_END = lazy_pattern(r"\r\n|\r|\n")
_ONLY_COMMENT = lazy_pattern(r"[ \t]*#")


class Ignore(Struct):
    """One ignore comment.

    Attributes:
        at: the comment's place.
        codes: each code that it lists, with the code's place.
        line: number of the line that it applies to.
        used: its codes that silenced a diagnostic.
    """

    at: Span
    codes: Mapping[str, Span]
    line: int
    used: set[str] = field(default_factory=set)


def without_ignored(
    found: Iterable[Diagnostic], marked: Mapping[str, bytes], *, reported: Iterable[str]
) -> tuple[Diagnostic, ...]:
    """The diagnostics that no comment silences, plus warnings about useless comments, sorted by place.

    Args:
        found: diagnostics of one suite.
        marked: path → bytes of the files that contain `MARK`.
        reported: files whose unused comments are reported. Files that suites share are left out: a comment that is
            unused here may be used by another suite.
    """
    comments = {path: list(_ignores(path, data)) for path, data in marked.items()}
    at_lines = {path: _by_line(listed) for path, listed in comments.items()}
    errors: dict[tuple[str, int], set[str]] = {}
    remaining = []
    for one in found:
        if one.span is not None and one.severity == "error":
            errors.setdefault((one.span.file, one.span.line), set()).add(one.code)
        elif one.span is not None and _silenced(one, at_lines.get(one.span.file, {}).get(one.span.line, ())):
            continue
        remaining.append(one)
    for path in reported:
        for comment in comments.get(path, ()):
            remaining += _useless(comment, errors.get((path, comment.line), set()))
    return tuple(sorted(remaining, key=lambda one: one.order))


def _by_line(comments: Iterable[Ignore]) -> dict[int, list[Ignore]]:
    """The comments by the line that each applies to, and by its own: diagnostics of a whole file are at line 1."""
    found: dict[int, list[Ignore]] = {}
    for comment in comments:
        for line in {comment.at.line, comment.line}:
            found.setdefault(line, []).append(comment)
    return found


def _silenced(found: Diagnostic, comments: Iterable[Ignore]) -> bool:
    silent = False
    for comment in comments:
        if found.code in comment.codes:
            comment.used.add(found.code)
            silent = True
    return silent


def _useless(comment: Ignore, errors: set[str]) -> Iterator[Diagnostic]:
    """Warnings about a comment that silences nothing."""
    from agentv.codes import FILES

    if not comment.codes:
        message = "this comment lists no codes to ignore"
        yield Diagnostic("unused-ignore", message, comment.at, "warning", "write ignore[CODE]")
    for code, place in comment.codes.items():
        if code not in FILES:
            message = f"no diagnostic has the code '{code}'"
            yield Diagnostic("unknown-code", message, place, "warning", did_you_mean(code, FILES))
        elif code in errors:
            yield Diagnostic("unused-ignore", f"'{code}' is an error here; errors cannot be ignored", place, "warning")
        elif code not in comment.used:
            message = f"line {comment.line} has no warning '{code}'"
            yield Diagnostic("unused-ignore", message, place, "warning", "remove it")


def _ignores(path: str, data: bytes) -> Iterator[Ignore]:
    lines = _LINE_END.split(data.decode("utf-8-sig", errors="replace"))
    for number, line in enumerate(lines, 1):
        found = _COMMENT.search(line)
        if found is None:
            continue
        at = Span(path, number, found.start() + 1, number, found.end() + 1)
        about = number
        if not line[: found.start()].strip():  # it applies to the next line that is not a comment
            about += 1
            while about <= min(len(lines), number + MOST) and _ONLY_COMMENT.match(lines[about - 1]):
                about += 1
        yield Ignore(at, _codes(found, at), about)


def _codes(found: re.Match[str], at: Span) -> dict[str, Span]:
    if found["codes"] is None:
        return {}
    start = found.start("codes") + 1
    written = re.finditer(r"[^\s,\[\]]+", found["codes"])
    return {one[0]: replace(at, column=start + one.start(), end_column=start + one.end()) for one in written}
