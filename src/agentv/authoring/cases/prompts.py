"""Read `prompts:` of a suite: texts, lists of messages, files and objects (SPEC section 3).

A prompt is a template that `authoring.cases.matrix` renders with each case's variables. In a file, the tags `<system>`,
`<user>` and `<assistant>` may begin messages (SPEC section 11).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from glob import has_magic
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.authoring.cases.messages import read_messages
from agentv.authoring.fields.code_kinds import read_function, read_javascript
from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.kinds import selected
from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.schema import AuthoredPrompt
from agentv.authoring.source.boundary import GIT_URL
from agentv.authoring.source.files import is_file, shown
from agentv.authoring.source.nodes import (
    ListNode,
    MapNode,
    Node,
    Place,
    Scalar,
    children,
    holds_placeholder,
    is_empty,
    kind_of,
    plain,
    span_of,
)
from agentv.authoring.source.report import Report
from agentv.model.values.message import Message, Role
from agentv.model.values.values import Span, lazy_pattern
from agentv.registry.fields import FunctionRef, JavaScriptSource
from agentv.templating import has_placeholder

_TAG = lazy_pattern(r"<(?P<role>system|user|assistant)>")
_LINE_WITH_TAG = lazy_pattern(r"^<(?P<role>system|user|assistant)>(?P<rest>.*)$", re.MULTILINE)
_END = lazy_pattern(r"</(?P<role>system|user|assistant)>(?=[^\S\n]*$)", re.MULTILINE)
_SECTION = lazy_pattern(
    r"<(?P<role>system|user|assistant)>(?P<text>.*?)</(?P=role)>(?=[^\S\n]*$)", re.DOTALL | re.MULTILINE
)
_ROOT = lazy_pattern(r"<prompt(?:\s[^<>]*)?>")
_END_OF_ROOT = "</prompt>"
_SKIPPED = lazy_pattern(r"\s+|<\?xml\b.*?\?>|<!--.*?-->", re.DOTALL)
_BLANK_LINES = lazy_pattern(r"(?:[^\S\n]*\n)*")
_BLANK_END = lazy_pattern(r"(?:\n[^\S\n]*)+\Z")


class Point(NamedTuple):
    """A point in a file, as libyaml counts: lines and columns from 0."""

    name: str
    line: int
    column: int


class Lines(Struct):
    """Position of some lines of a file, in which a placeholder can be located."""

    start_mark: Point
    end_mark: Point


class Section(Struct, frozen=True):
    """Content of one message, with its position in the prompt's file; placeholders are not filled in."""

    role: Role
    text: Scalar


def sections_of(path: str, text: str, report: Report) -> tuple[Section, ...]:
    """The sections of a prompt file, or its whole text as one user message; () if invalid, which is reported.

    A section begins at the start of a line. Inside a root element, tags may be indented.

    Args:
        path: absolute path of the file.
        text: its content.
        report: receives errors.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        report.error("empty-file", Span.start_of(path), "this prompt is empty")
        return ()
    if not _has_sections(text):
        return (_section(path, "user", text, 0, len(text)),)
    found: list[Section] = []
    place, root = _skip(text, 0), ""
    while place < len(text):
        may_begin = root == "open" or (not root and (place == 0 or text[place - 1] == "\n"))
        opened = _ROOT.match(text, place) if not root and not found else None
        section = _SECTION.match(text, place) if may_begin else None
        if opened is not None:
            root, end = "open", opened.end()
        elif root == "open" and text.startswith(_END_OF_ROOT, place):
            root, end = "closed", place + len(_END_OF_ROOT)
        elif section is not None and section["text"].strip():
            role: Role = section["role"]  # type: ignore[assignment]  # the pattern matches no other
            found.append(_section(path, role, text, *section.span("text")))
            end = section.end()
        else:
            tag = _TAG.match(text, place) if may_begin else None
            _report_place(path, text, place, "" if tag is None else tag["role"], report)
            return ()
        place = _skip(text, end)
    line, column = _position(text, len(text.rstrip()))
    if root == "open":
        at, hint = Span(path, line, column, line, column + 1), "write </prompt> after the last section"
        report.error("bad-prompt-file", at, "'<prompt>' is not closed", hint=hint)
    elif not any(section.role == "user" for section in found):
        at = Span(path, 1, 1, 1, 1 + max(1, len(text.partition("\n")[0].rstrip())))
        report.error("bad-prompt-file", at, "the sections contain no question: there is no <user> section")
    else:
        return tuple(found)
    return ()


def _has_sections(text: str) -> bool:
    """Whether a tag opens a section: it is alone on its line, or a tag that ends a line closes it."""
    root = _ROOT.match(text, _skip(text, 0))
    if root is not None and _SECTION.match(text, _skip(text, root.end())):
        return True
    last = {found["role"]: found.start() for found in _END.finditer(text)}
    tags = _LINE_WITH_TAG.finditer(text)
    return any(not tag["rest"].strip() or tag.end("role") < last.get(tag["role"], -1) for tag in tags)


def _report_place(path: str, text: str, place: int, role: str, report: Report) -> None:
    """Report text outside the sections, or a section of this role that is empty or not closed."""
    line, column = _position(text, place)
    if not role:
        message = "this text is outside the sections <system>, <user> and <assistant>, so it would not be sent"
        hint = "move it into a section; if the tags are meant as text, indent them"
        width = len(text[place:].partition("\n")[0].rstrip())
        report.error("bad-prompt-file", Span(path, line, column, line, column + width), message, hint=hint)
        return
    is_empty_one = _SECTION.match(text, place) is not None
    message = f"the section '<{role}>' is {'empty' if is_empty_one else 'not closed'}"
    ending = None if is_empty_one else f"write </{role}> at the end of a line"
    report.error("bad-prompt-file", Span(path, line, column, line, column + 1), message, hint=ending)


def _section(path: str, role: Role, text: str, start: int, end: int) -> Section:
    """The section between two offsets, without blank lines at its start and end."""
    blank = _BLANK_LINES.match(text, start, end)
    start = blank.end() if blank else start
    inner = _BLANK_END.sub("", text[start:end])
    points = (_position(text, place) for place in (start, start + len(inner)))
    place: Place = Lines(*(Point(path, line - 1, column - 1) for line, column in points))
    return Section(role, Scalar(inner, inner, place))


def _skip(text: str, place: int) -> int:
    """Return the offset after white space, comments and the XML declaration."""
    while found := _SKIPPED.match(text, place):
        place = found.end()
    return place


def _position(text: str, place: int) -> tuple[int, int]:
    return text.count("\n", 0, place) + 1, place - text.rfind("\n", 0, place)


def filled(sections: tuple[Section, ...], reading: Reading) -> tuple[Message, ...] | None:
    """The messages of a prompt for one case; None if a placeholder cannot be filled in, which is reported.

    Variables are inserted as text. A section that becomes blank is left out; a blank user section is an error.
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


TEXTS = (".txt", ".md", ".j2", ".xml")
"""Suffixes of files whose text is a prompt."""

MESSAGES = (".json", ".yaml", ".yml")
"""Suffixes of files that hold the messages of a prompt."""

SEPARATOR = "---"
"""Line that separates prompts in a `.txt` file, as in promptfoo."""

CODE = (".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts")
"""Suffixes of files whose functions write prompts."""

_REFUSED = (".csv", ".jsonl")
"""Suffixes of prompt sources that only promptfoo supports. Such a path is refused, not sent as a prompt."""

_SUFFIX = "|".join(re.escape(one) for one in TEXTS + MESSAGES + CODE + _REFUSED)
_PATH = lazy_pattern(rf"\.{{1,2}}/[^\n]*|[^\s{{}}<>|\"']+(?:{_SUFFIX})(?::\w+)?")
_FUNCTION = lazy_pattern(r"(?:file://)?(?P<path>.+\.(?P<suffix>py|[mc]?[jt]s))(?::(?P<name>\w+))?", re.DOTALL)
_NAMES_INPUT = lazy_pattern(r"\{[{%][^}%]*\binput\b")


PromptFunction = FunctionRef | JavaScriptSource
"""The function that writes a prompt."""


class SuitePrompt(Struct, frozen=True):
    """One prompt of a suite.

    Attributes:
        id: unique in the suite; rows show it.
        node: its text or messages, with placeholders.
        label: name for people, if it also has an id.
        templated: `node` contains placeholders.
        shows_input: it uses `{{ input }}`, the case's own input.
        function: function that writes it for each case; `node` is the reference to it.
        sections: sections of its file, if tags in it begin messages; `node` is the file's path.
    """

    id: str
    node: Node
    label: str | None = None
    templated: bool = False
    shows_input: bool = False
    function: PromptFunction | None = None
    sections: tuple[Section, ...] = ()

    @property
    def text(self) -> str:
        """The text with its placeholders. Each message is shown below its role, and a function as its name."""
        content = plain(self.node)
        if self.sections:
            content = [{"role": section.role, "content": section.text.text} for section in self.sections]
        messages = content if isinstance(content, list) else [content]
        return "\n\n".join(one if isinstance(one, str) else _message_text(**one) for one in messages)


def _message_text(role: object = "", content: object = "", **others: object) -> str:
    parts = (content, *others.values())
    return "\n".join([f"{role}:", *(one if isinstance(one, str) else json.dumps(one) for one in parts if one)])


def read_prompts(node: Node, reading: Reading) -> tuple[SuitePrompt, ...]:
    """The prompts of a suite, in order. An invalid prompt is reported and left out."""
    if is_empty(node):
        reading.report.error("missing-value", node, "'prompts' is empty")
        return ()
    reader = _PromptReader(reading)
    for item in node.items if isinstance(node, ListNode) else [node]:
        reader.add(item)
    return tuple(reader.found)


def read_prompt(node: Node, reading: Reading) -> SuitePrompt | None:
    """The prompt for cases without an input; None if it is invalid, which is reported."""
    own = reading.part()
    found = read_prompts(node, own) if not isinstance(node, ListNode) else ()
    if not own.report.failed and (len(found) != 1 or found[0].function is not None):
        message = "'prompt' must be one prompt: a text, or an object with 'file'"
        reading.report.error("bad-prompt", node, message, hint="write several, or a function, under 'prompts'")
        return None
    return found[0] if found else None


class _PromptReader(Struct):
    reading: Reading
    found: list[SuitePrompt] = field(default_factory=list)
    _taken: dict[str, Place] = field(default_factory=dict)
    _entries: int = 0

    def add(self, item: Node) -> None:
        """Add the prompts of one entry of the list."""
        self._entries += 1
        if not isinstance(item, MapNode):
            self._keep_all(list(self._pieces(item)), AuthoredPrompt(), None, item)
            return
        if "role" in item.items:
            hint = "a list of messages is a single prompt: wrap it in another list, '- - role: …'"
            self._refuse(item, "a prompt must be a list of messages", hint)
            return
        authored = shape_of(AuthoredPrompt).decode(item.items, item, self.reading, "a prompt")
        if authored is not INVALID:
            self._named(authored, item)

    def _named(self, authored: AuthoredPrompt, item: MapNode) -> None:
        """Add the prompts of an object. In promptfoo's `{id: file://a.txt, label: a}`, the id is the path."""
        path, identity = authored.prompt, authored.id
        if authored.file is not None:
            node = item.items.get("file") or item.items["path"]
            if authored.prompt is not None:
                message = "a prompt has both a text and 'file'; keep one of them"
                self.reading.report.error("bad-prompt", node, message)
            elif not isinstance(node, Scalar) or not isinstance(node.value, str) or not node.value.strip():
                self.reading.report.unfit(node, "'file' must be the path of a prompt")
            elif authored.sections:
                self._keep_all(list(self._of_sections(node)), authored, authored.id, item)
            else:
                self._keep_all(list(self._of_files(node)), authored, authored.id, item)
            return
        if authored.sections:
            self.reading.report.error("bad-prompt", item.keys["sections"], "'sections' needs 'file'")
            return
        if path is None and identity and _is_path(identity):
            path, identity = item.items["id"], None
        if path is None:
            self.reading.report.error("missing-key", item, "a prompt needs 'prompt'")
            return
        if isinstance(path, MapNode):
            self.reading.report.unfit(path, "'prompt' must be text or messages")
            return
        self._keep_all(list(self._pieces(path)), authored, identity, item)

    def _keep_all(
        self, pieces: Sequence[SuitePrompt], authored: AuthoredPrompt, identity: str | None, item: Node
    ) -> None:
        name = identity or authored.label
        for number, piece in enumerate(pieces, 1):
            own = name and (f"{name}#{number}" if len(pieces) > 1 else name)
            label = authored.label if identity else None
            prompt = replace(piece, id=own or piece.id or f"prompt-{self._entries}", label=label)
            first = self._taken.setdefault(prompt.id, item.at)
            if first is not item.at:
                place = span_of(first)
                where = f"the first is at {shown(place.file)}:{place.line}"
                self.reading.report.error("duplicate-id", item, f"two prompts have the id '{prompt.id}'; {where}")
            elif prompt.function is not None:
                self.found.append(replace(prompt, shows_input=True))
            elif prompt.sections:
                shows = any(_shows_input(section.text) for section in prompt.sections)
                self.found.append(replace(prompt, shows_input=shows))
            elif (templated := holds_placeholder(prompt.node)) or read_messages(
                prompt.node, "user", self.reading.rendering(False)
            ) is not None:
                self.found.append(replace(prompt, templated=templated, shows_input=_shows_input(prompt.node)))

    def _of_sections(self, node: Scalar) -> Iterator[SuitePrompt]:
        """Yield the prompt of a file in which tags begin messages."""
        path = self.reading.find(node, "file")
        text = self.reading.text_of(path, node) if path is not None else None
        if path is not None and text is not None and (sections := sections_of(path, text, self.reading.report)):
            yield SuitePrompt(node.text, node, sections=sections)

    def _pieces(self, node: Node) -> Iterator[SuitePrompt]:
        """Yield the prompts of a text, a list or a path. Only a path can yield several, and sets their ids."""
        if is_empty(node) and not (isinstance(node, Scalar) and node.value is None):
            self.reading.report.error("missing-value", node, "this prompt is empty")
        elif isinstance(node, ListNode):
            yield SuitePrompt("", node)
        elif not isinstance(node, Scalar) or not isinstance(node.value, str):
            self._refuse(node, f"a prompt is text, a list of messages, or an object, found {kind_of(node)}")
        elif _is_path(node.value.strip()):
            yield from self._of_files(node)
        else:
            yield SuitePrompt("", node)

    def _of_function(self, node: Scalar, found: re.Match[str]) -> Iterator[SuitePrompt]:
        """Yield the prompt of a function, which is called with each case's variables when the suite runs."""
        path, name = found["path"], found["name"]
        written = Scalar(found[0].removeprefix("file://"), found[0], node.at)
        if found["suffix"] == "py" and not name:
            self._refuse(node, "a Python file must write prompts through a function", f"write '{path}:function'")
            return
        read = read_function if found["suffix"] == "py" else read_javascript
        function = read(written, self.reading, "prompts")
        if function is not INVALID:
            yield SuitePrompt(found[0].removeprefix("file://").removeprefix("./"), node, function=function)

    def _of_files(self, node: Scalar) -> Iterator[SuitePrompt]:
        code = _FUNCTION.fullmatch(node.value.strip())
        if code is not None:
            yield from self._of_function(node, code)
            return
        for path in self._matching(node):
            suffix = Path(path).suffix.lower()
            if suffix not in TEXTS + MESSAGES:
                allowed = ", ".join(TEXTS + MESSAGES)
                self._refuse(node, f"'{shown(path)}' is not a prompt file", f"prompts can be read from {allowed}")
                continue
            text = self.reading.text_of(path, node)
            if text is None:
                continue
            pieces = list(self._of_text(path, text) if suffix in TEXTS else self._of_messages(path, text))
            if not text.strip() or (suffix == ".txt" and not pieces):
                self.reading.report.error("missing-value", node, f"'{shown(path)}' contains no prompt: it is empty")
                continue
            written = node.value.strip().removeprefix("file://")
            name = written if GIT_URL.match(written) else os.path.relpath(path, self.reading.places.suite)
            for number, piece in enumerate(pieces, 1):
                yield SuitePrompt(f"{name}#{number}" if len(pieces) > 1 else name, piece)

    def _matching(self, node: Scalar) -> list[str]:
        reading = self.reading
        written = node.value.strip().removeprefix("file://")
        mentioned_in = span_of(node.at).file
        plain = GIT_URL.match(written) or not has_magic(written)
        if plain or reading.places.find(written, mentioned_in)[0] is not None:
            found = reading.find(Scalar(written, written, node.at), "file")
            return [found] if found else []
        return selected(node, written, reading, is_file)

    def _of_text(self, path: str, text: str) -> Iterator[Node]:
        """Yield the text of a file. A `.txt` file may contain several prompts."""
        lines = [line.removesuffix("\n") for line in StringIO(text, newline=None)]  # U+2028 ends no line
        ends = [number for number, line in enumerate(lines) if path.endswith(".txt") and line.strip() == SEPARATOR]
        for begin, end in zip([0, *(end + 1 for end in ends)], [*ends, len(lines)], strict=True):
            part = "\n".join(lines[begin:end]).strip()
            if part:
                place = Lines(Point(path, begin, 0), Point(path, end - 1, len(lines[end - 1])))
                yield Scalar(part, part, place)

    def _of_messages(self, path: str, text: str) -> Iterator[Node]:
        from agentv.authoring.source.json_text import read_document

        report = self.reading.report
        root = read_document(path, text, report).value
        if root is None:
            return
        if isinstance(root, Scalar) and not isinstance(root.value, str):
            self._refuse(root, f"a prompt file contains text or messages, found {kind_of(root)}")
        elif is_empty(root):
            self.reading.report.error("missing-value", root, "this prompt is empty")
        elif isinstance(root, MapNode) and "role" not in root.items:
            hint = "write a list of messages, each with 'role' and 'content'"
            self._refuse(root, "a prompt file contains text or messages, found a mapping without 'role'", hint)
        else:
            yield root

    def _refuse(self, at: Node, message: str, hint: str | None = None) -> None:
        self.reading.report.error("bad-prompt", at, message, hint=hint)


def _is_path(text: str) -> bool:
    """Whether a text is the path or URL of a prompt, not the prompt itself."""
    return (
        text.startswith("file://")
        or _PATH.fullmatch(text) is not None
        or (GIT_URL.match(text) is not None and not re.search(r"\s", text))
    )


def _shows_input(node: Node) -> bool:
    if isinstance(node, Scalar):
        return isinstance(node.value, str) and has_placeholder(node.value) and bool(_NAMES_INPUT.search(node.value))
    return any(_shows_input(child) for child in children(node))
