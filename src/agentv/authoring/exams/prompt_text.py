"""The text of a prompt, and the messages that its sections make (SPEC section 11)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NoReturn

from msgspec import Struct

from agentv.authoring.exams.prompt_files import PROMPT_FILES
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.files import shown
from agentv.authoring.source.nodes import Place, Scalar
from agentv.model.values.lazy_pattern import lazy_pattern
from agentv.model.values.message import Role
from agentv.model.values.span import Span

_TAG = lazy_pattern(r"<(?P<role>system|user|assistant)>")
_LINE_WITH_TAG = lazy_pattern(r"^<(?P<role>system|user|assistant)>(?P<rest>.*)$", re.MULTILINE)
_END = lazy_pattern(r"</(?P<role>system|user|assistant)>(?=[^\S\n]*$)", re.MULTILINE)
_ROOT = lazy_pattern(r"<prompt(?:\s[^<>]*)?>")
_END_OF_ROOT = "</prompt>"
_PASSED_OVER = lazy_pattern(r"\s+|<\?xml\b.*?\?>|<!--.*?-->", re.DOTALL)
_BLANK_LINES = lazy_pattern(r"(?:[^\S\n]*\n)*")
_BLANK_END = lazy_pattern(r"(?:\n[^\S\n]*)+\Z")


class Section(Struct, frozen=True):
    """Content of one message, with its position in the prompt's file; placeholders are not filled in."""

    role: Role
    text: Scalar


class PromptText(Struct, frozen=True):
    """A prompt as authored, with line feeds as line ends.

    Attributes:
        path: of its file, absolute.
        text: the whole file.
        sections: the messages that it makes; a file without sections is one message of the user.
    """

    path: str
    text: str
    sections: tuple[Section, ...]


def prompt_file_of(directory: str | Path) -> Path | None:
    """The prompt file of a directory; the first, if there are several."""
    return next((path for name in PROMPT_FILES if (path := Path(directory) / name).is_file()), None)


def read_prompt(directory: str | Path, reading: Reading, at: Place | None = None) -> PromptText | None:
    """The prompt of a directory; None where it cannot be used, which is reported.

    Args:
        directory: of the prompt, absolute.
        reading: of its exam.
        at: where it is reported that there is no prompt.
    """
    beside = [file for name in PROMPT_FILES if (file := Path(directory) / name).is_file()]
    if not beside:
        tried = [f"tried {shown(str(Path(directory) / name))}" for name in PROMPT_FILES]
        reading.report.error("missing-file", at, "there is no prompt next to this exam", notes=tried)
        return None
    path = str(beside[0])
    top = Span(path, 1, 1, 1, 2)
    if len(beside) > 1:
        message = f"a prompt has one text, found {' and '.join(one.name for one in beside)}"
        reading.report.error("bad-prompt-file", top, message, hint="keep one of them")
        return None
    text = reading.text_of(path, Scalar(path, shown(path), top))
    if text is None:
        return None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        reading.report.error("empty-file", top, "this prompt is empty")
        return None
    try:
        return PromptText(path, text, _Sections(path, text).read())
    except _UnreadableError as error:
        reading.report.error("bad-prompt-file", error.at, str(error), hint=error.hint)
        return None


class _UnreadableError(Exception):
    """The sections of a prompt cannot be distinguished."""

    def __init__(self, at: Span, message: str, hint: str | None) -> None:
        super().__init__(message)
        self.at = at
        self.hint = hint


class _Sections:
    """Takes a prompt's text apart. Tags are looked for here alone, never in what a placeholder stands for."""

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
        line, column = self._position(start)
        end_line, end_column = self._position(start + len(text))
        return Section(role, Scalar(text, text, Span(self._path, line, column, end_line, end_column)))

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
