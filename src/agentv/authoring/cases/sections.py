"""Sections of a prompt file: `<system>`, `<user>` and `<assistant>` begin messages (SPEC sections 3 and 11).

Tags are looked for in the file alone, never in what a placeholder stands for.
"""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn

from msgspec import Struct

from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.nodes import Place, Scalar
from agentv.authoring.source.report import Report
from agentv.model.values.message import Message, Role
from agentv.model.values.values import Span, lazy_pattern

_TAG = lazy_pattern(r"<(?P<role>system|user|assistant)>")
_LINE_WITH_TAG = lazy_pattern(r"^<(?P<role>system|user|assistant)>(?P<rest>.*)$", re.MULTILINE)
_END = lazy_pattern(r"</(?P<role>system|user|assistant)>(?=[^\S\n]*$)", re.MULTILINE)
_ROOT = lazy_pattern(r"<prompt(?:\s[^<>]*)?>")
_END_OF_ROOT = "</prompt>"
_PASSED_OVER = lazy_pattern(r"\s+|<\?xml\b.*?\?>|<!--.*?-->", re.DOTALL)
_BLANK_LINES = lazy_pattern(r"(?:[^\S\n]*\n)*")
_BLANK_END = lazy_pattern(r"(?:\n[^\S\n]*)+\Z")


class Point(NamedTuple):
    """A point in a file, as libyaml counts: lines and columns from 0."""

    name: str
    line: int
    column: int


class Lines(Struct):
    """The place of some lines of a file, in which a placeholder can be looked for."""

    start_mark: Point
    end_mark: Point


class Section(Struct, frozen=True):
    """Content of one message, with its position in the prompt's file; placeholders are not filled in."""

    role: Role
    text: Scalar


def sections_of(path: str, text: str, report: Report) -> tuple[Section, ...]:
    """The sections of a prompt file, or its whole text as one message of the user; empty if invalid, as is reported.

    Args:
        path: of the file, absolute.
        text: its content.
        report: gets what is wrong.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        report.error("empty-file", Span(path, 1, 1, 1, 2), "this prompt is empty")
        return ()
    try:
        return _Sections(path, text).read()
    except _UnreadableError as error:
        report.error("bad-prompt-file", error.at, str(error), hint=error.hint)
        return ()


def filled(sections: tuple[Section, ...], reading: Reading) -> tuple[Message, ...] | None:
    """The messages of a prompt for one case; None if a placeholder cannot be filled in, which is reported.

    Variables are inserted as text. A section that comes out blank is left out; a question that does is an error.
    """
    messages: list[Message] = []
    for section in sections:
        text = reading.filled(section.text)
        if text is not None and section.role == "user" and not text.strip():
            message = "this prompt is empty after its placeholders are filled in"
            reading.report.error("missing-input", section.text, message)
        if text is not None and text.strip():
            messages.append(Message(section.role, text))
    return tuple(messages) if reading.report.valid else None


class _UnreadableError(Exception):
    """The sections of a prompt cannot be distinguished."""

    def __init__(self, at: Span, message: str, hint: str | None) -> None:
        super().__init__(message)
        self.at = at
        self.hint = hint


class _Sections:
    """Takes a prompt's text apart."""

    def __init__(self, path: str, text: str) -> None:
        self._path = path
        self._text = text
        self._indented = False
        self._last = {found["role"]: found.start() for found in _END.finditer(text)}

    def read(self) -> tuple[Section, ...]:
        """The sections in their order, or the whole text as one message of the user.

        Raises:
            _UnreadableError: there is text outside the sections, a tag is not closed, or there is no question.
        """
        if not self._has_sections():
            return (self._section("user", 0, len(self._text)),)
        found: list[Section] = []
        place, rooted, ended = self._pass_over(0), False, False
        while place < len(self._text):
            root = _ROOT.match(self._text, place) if not rooted and not found else None
            tag = self._tag_at(place) if not ended else None
            if root:
                rooted, end = True, root.end()
            elif rooted and not ended and self._text.startswith(_END_OF_ROOT, place):
                ended, end = True, place + len(_END_OF_ROOT)
            elif tag:
                section, end = self._closed(tag)
                found.append(section)
            else:
                self._refuse_outside(place)
            place = self._pass_over(end)
        if rooted and not ended:
            self._refuse(len(self._text.rstrip()), "'<prompt>' is not closed", "write </prompt> after the last section")
        if not any(section.role == "user" for section in found):
            self._refuse(0, "the sections contain no question: there is no <user> section", None, whole_line=True)
        return tuple(found)

    def _has_sections(self) -> bool:
        """Whether a tag at the beginning of a line opens a section.

        Inside a root element the first tag may be indented, and the others are then, too.
        """
        start = self._pass_over(0)
        root = _ROOT.match(self._text, start)
        first = self._pass_over(root.end()) if root else start
        tag = _TAG.match(self._text, first)
        if root and tag and self._end_of(tag) is not None:
            self._indented = True
            return True
        return any(
            not line["rest"].strip() or self._end_of(line) is not None for line in _LINE_WITH_TAG.finditer(self._text)
        )

    def _tag_at(self, place: int) -> re.Match[str] | None:
        begin = self._text.rfind("\n", 0, place) + 1
        if self._text[begin:place].strip() or (begin < place and not self._indented):
            return None
        return _TAG.match(self._text, place)

    def _end_of(self, tag: re.Match[str]) -> re.Match[str] | None:
        """The closing tag: the first one that ends a line."""
        if self._last.get(tag["role"], -1) < tag.end("role"):
            return None
        return re.compile(rf"</{tag['role']}>(?=[^\S\n]*$)", re.MULTILINE).search(self._text, tag.end("role"))

    def _closed(self, tag: re.Match[str]) -> tuple[Section, int]:
        role: Role = tag["role"]  # type: ignore[assignment]  # the pattern names no other
        end = self._end_of(tag)
        if end is None:
            hint = f"write </{role}> at the end of a line"
            self._refuse(tag.start(), f"the section '<{role}>' is not closed", hint)
        section = self._section(role, tag.end("role") + 1, end.start())
        if not section.text.text.strip():
            self._refuse(tag.start(), f"the section '<{role}>' is empty", None)
        return section, end.end()

    def _section(self, role: Role, start: int, end: int) -> Section:
        """The text between two places, without the blank lines at its ends."""
        blank = _BLANK_LINES.match(self._text, start, end)
        start = blank.end() if blank else start
        text = _BLANK_END.sub("", self._text[start:end])
        points = (self._position(place) for place in (start, start + len(text)))
        place: Place = Lines(*(Point(self._path, line - 1, column - 1) for line, column in points))
        return Section(role, Scalar(text, text, place))

    def _pass_over(self, place: int) -> int:
        """Behind white space, comments and the XML declaration."""
        while found := _PASSED_OVER.match(self._text, place):
            place = found.end()
        return place

    def _position(self, place: int) -> tuple[int, int]:
        return self._text.count("\n", 0, place) + 1, place - self._text.rfind("\n", 0, place)

    def _refuse_outside(self, place: int) -> NoReturn:
        message = "this text is outside the sections <system>, <user> and <assistant>, so it would not be sent"
        hint = "move it into a section; if the tags are meant as text, indent them"
        self._refuse(place, message, hint, whole_line=True)

    def _refuse(self, place: int, message: str, hint: str | None, *, whole_line: bool = False) -> NoReturn:
        line, column = self._position(place)
        line_end = self._text.find("\n", place) if whole_line else -1
        length = (
            len(self._text[place : line_end if line_end >= 0 else None].split("\n")[0].rstrip()) if whole_line else 1
        )
        raise _UnreadableError(Span(self._path, line, column, line, column + max(length, 1)), message, hint)
