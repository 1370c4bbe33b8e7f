"""Diagnostics and explanations of their codes, for people and for programs (SPEC section 14)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from textwrap import indent
from typing import TypeAlias

from msgspec import Struct

from agentv.errors import Diagnostic
from agentv.model.values.formatting import ELLIPSIS, plural
from agentv.model.values.values import Span, lazy_pattern
from agentv.reports.text import TAB, cells, one_line, paint, safe, shown_from

Source: TypeAlias = Callable[[str], str | None]
"""Function from an absolute path to the text of the file, or None if it cannot be read."""

WIDEST = 100
"""Columns shown of a source line; a longer line is cut around its caret."""

UNSHOWN = frozenset({"secret-in-file"})
"""Codes whose source line is not shown, because it must not appear in logs."""

_GUTTER = 5
_NOTE_INDENT = "   "
_LINES = lazy_pattern(r"\r\n|\r|\n")
_STYLES = {"error": "bold wrong", "warning": "bold edited", "hint": "bold tested"}


def render_diagnostics(
    found: Sequence[Diagnostic], source: Source, *, here: str | None = None, color: bool = False, counted: bool = True
) -> str:
    """All diagnostics by file and line, each with its source line, followed by their number.

    Args:
        found: diagnostics in any order.
        source: returns the text of a file; called once per file.
        here: directory that paths are relative to; the working directory if None.
        color: use ANSI colors.
        counted: end with the number of diagnostics.
    """
    renderer = _DiagnosticRenderer(source, here or os.getcwd(), color=color)  # noqa: PTH109  # spans have paths as strings
    blocks = ["\n".join(renderer.block(one)) for one in sorted(found, key=lambda one: one.order)]
    return "\n\n".join([*blocks, *([count_of(found)] if counted else [])]) if blocks else ""


def diagnostics_data(found: Sequence[Diagnostic], *, here: str | None = None) -> list[dict[str, str | int | None]]:
    """All diagnostics by file and line, as JSON objects."""
    directory = here or os.getcwd()  # noqa: PTH109
    return [_json_row(one, directory) for one in sorted(found, key=lambda one: one.order)]


def _json_row(found: Diagnostic, here: str) -> dict[str, str | int | None]:
    span = found.span
    return {
        "code": found.code,
        "severity": found.severity,
        "file": shown_from(span.file, here) if span else None,
        "line": span.line if span else None,
        "column": span.column if span else None,
        "end_line": span.end_line if span else None,
        "end_column": span.end_column if span else None,
        "message": found.message,
        "hint": found.hint,
    }


def full_text(found: Diagnostic) -> str:
    """Message, hint and notes of a diagnostic, joined by newlines."""
    return "\n".join([found.message, *([found.hint] if found.hint else []), *found.notes])


def count_of(found: Iterable[Diagnostic]) -> str:
    """Number of diagnostics by severity, such as `3 errors, 1 warning`; empty without diagnostics."""
    severities = [one.severity for one in found]
    numbers = [(severities.count(name), name) for name in ("error", "warning", "hint")]
    return ", ".join(plural(number, name) for number, name in numbers if number)


class _DiagnosticRenderer:
    """A renderer of single diagnostics, which caches the lines of the last file."""

    def __init__(self, source: Source, here: str, *, color: bool) -> None:
        self._source = source
        self._here = here
        self._color = color
        self._file: str | None = None
        self._lines: list[str] = []

    def block(self, found: Diagnostic) -> Iterator[str]:
        yield self._headline(found)
        line = self._line(found.span) if found.span and not (found.private or found.code in UNSHOWN) else None
        behind_caret = line is not None and "\n" not in (found.hint or "")
        if line is not None and found.span:
            yield from self._excerpt(line, found.span, found, found.hint if behind_caret else None)
        if found.hint and not behind_caret:
            yield from _indented(found.hint)
        for note in found.notes:
            yield from _indented(note)

    def _headline(self, found: Diagnostic) -> str:
        label = paint(f"{found.severity}[{found.code}]", _STYLES[found.severity], color=self._color)
        if found.span is None:
            return f"{label}: {one_line(found.message)}"
        place = f"{one_line(shown_from(found.span.file, self._here))}:{found.span.line}:{found.span.column}:"
        return f"{paint(place, 'bold', color=self._color)} {label}: {one_line(found.message)}"

    def _line(self, span: Span) -> str | None:
        if span.file != self._file:
            text = self._source(span.file)
            self._file, self._lines = span.file, [] if text is None else _LINES.split(text)
        return self._lines[span.line - 1] if 0 < span.line <= len(self._lines) else None

    def _excerpt(self, line: str, span: Span, found: Diagnostic, hint: str | None) -> Iterator[str]:
        end = span.end_column if span.end_line == span.line else len(line) + 1
        before, marked, after = _cut(*_split(line, span.column, end))
        carets = paint("^" * max(cells(marked), 1), _STYLES[found.severity], color=self._color)
        behind = f" {one_line(hint)}" if hint else ""
        number = f"{span.line:>{_GUTTER}}"
        yield f"{paint(f'{number} |', 'dim', color=self._color)} {before}{marked}{after}".rstrip()
        empty = paint(f"{' ' * len(number)} |", "dim", color=self._color)
        yield f"{empty} {' ' * cells(before)}{carets}{behind}"


def _split(line: str, column: int, end: int) -> tuple[str, str, str]:
    """The parts of a line before, in and after a span, safe to show."""
    start = max(column, 1) - 1
    stop = max(end - 1, start)
    seen = WIDEST + 1  # characters kept of each part: a line may be megabytes long and have many diagnostics
    pieces = (line[max(0, start - seen) : start], line[start : min(stop, start + seen)], line[stop : stop + seen])
    before, marked, after = (safe(piece).replace("\t", TAB) for piece in pieces)
    return before + " " * max(0, start - len(line)), marked, after


def _cut(before: str, marked: str, after: str) -> tuple[str, str, str]:
    """The three parts of a line, shortened to `WIDEST` columns around the caret."""
    if len(before) + len(marked) + len(after) <= WIDEST:
        return before, marked, after
    if len(marked) > WIDEST // 2:
        marked, after = marked[: WIDEST // 2 - 1] + ELLIPSIS, ""
    left = WIDEST - len(marked)
    begin_width = max(left - len(after), left // 2)
    if len(before) > begin_width:
        before = ELLIPSIS + before[len(before) - begin_width + 1 :]
    room = left - len(before)
    if len(after) > room:
        after = after[: max(room - 1, 0)] + ELLIPSIS
    return before, marked, after


def _indented(text: str) -> Iterator[str]:
    for line in safe(text).split("\n"):
        yield f"{_NOTE_INDENT}{line}".rstrip()


_INDENT = "    "


class ExampleFile(Struct, frozen=True):
    """One file of an example. `path` is relative to the project's root."""

    path: str
    text: str


class Explanation(Struct, frozen=True):
    """The explanation of a diagnostic code.

    Attributes:
        meaning: the sentence of `agentv.codes`.
        why: causes and consequences, in paragraphs.
        wrong: files that trigger the code; empty if files cannot show it.
        message: output of agentv for these files.
        fix: how to fix it, in paragraphs.
        right: all of these files once fixed; empty if words explain it better.
    """

    code: str
    meaning: str
    why: str
    wrong: tuple[ExampleFile, ...]
    message: str
    fix: str
    right: tuple[ExampleFile, ...]

    @property
    def fixed_files(self) -> tuple[ExampleFile, ...]:
        """The fixed files that differ from the wrong ones."""
        return tuple(file for file in self.right if file not in self.wrong)


def render_explanation(one: Explanation) -> str:
    """The explanation as text for a terminal."""
    parts = [one.code, one.meaning, one.why]
    if one.wrong:
        parts += ["Wrong:", *_files(one.wrong)]
    if one.message:
        parts += ["Output:", indent(one.message, _INDENT)]
    parts += ["The fix:", one.fix, *_files(one.fixed_files)]
    return "\n\n".join(part for part in parts if part)


def render_markdown(one: Explanation) -> str:
    """The explanation as Markdown, without a heading."""
    parts = [one.meaning, one.why, *_blocks(one.wrong)]
    if one.message:
        parts.append(f"```text\n{one.message}\n```")
    parts += [f"**Fix.** {one.fix}", *_blocks(one.fixed_files)]
    return "\n\n".join(part for part in parts if part)


def render_codes(groups: Mapping[str, Mapping[str, str]]) -> str:
    """Text that lists every code with its meaning, by group."""
    width = max(len(code) for codes in groups.values() for code in codes)
    lines = []
    for title, codes in groups.items():
        rows = [f"  {code:<{width}}  {meaning}" for code, meaning in codes.items()]
        lines.append("\n".join([title, *rows]))
    return "\n\n".join(lines)


def codes_data(groups: Mapping[str, Mapping[str, str]]) -> list[dict[str, str]]:
    """Every code as a JSON object with `code`, `group` and `meaning`."""
    return [
        {"code": code, "group": title, "meaning": meaning}
        for title, codes in groups.items()
        for code, meaning in codes.items()
    ]


def _files(files: Sequence[ExampleFile]) -> Iterator[str]:
    for one in files:
        yield indent(f"# {one.path}\n{one.text}".rstrip("\n"), _INDENT)


def _blocks(files: Sequence[ExampleFile]) -> Iterator[str]:
    for one in files:
        yield f"`{one.path}`\n\n```text\n{one.text}```"
