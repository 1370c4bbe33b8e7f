"""`prompts:` of a suite: texts, lists of messages, files that contain them, objects that name them (SPEC section 3).

A prompt is a template. It is rendered with each case's variables by `authoring.cases.matrix`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from agentv.authoring.cases.messages import read_messages
from agentv.authoring.fields.code_kinds import read_function, read_javascript
from agentv.authoring.fields.decode import INVALID, shape_of
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
from agentv.authoring.source.yaml import read_yaml
from agentv.model.values.values import lazy_pattern
from agentv.registry.fields import FunctionRef, JavaScriptSource
from agentv.templating import has_placeholder

if TYPE_CHECKING:
    from agentv.authoring.cases.sections import Section

TEXTS = (".txt", ".md", ".j2", ".xml")
"""Suffixes of files whose text is a prompt."""

MESSAGES = (".json", ".yaml", ".yml")
"""Suffixes of files that hold the messages of a prompt."""

SEPARATOR = "---"
"""A line of a `.txt` file that ends one prompt and begins the next, as in promptfoo."""

CODE = (".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts")
"""Suffixes of files whose functions write prompts."""

_REFUSED = (".csv", ".jsonl")
"""Suffixes of promptfoo's other sources of prompts: a path that ends so is refused, not asked as a question."""

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
        node: what it says, still with its placeholders.
        label: for people, where it has an id too.
        templated: something in it is rendered with each case.
        shows_input: it reads `{{ input }}`, the case's own.
        function: what writes it for each case; `node` is where it is named.
        sections: of its file, if tags in it begin messages; `node` is where it is named.
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
        """What it says, with its placeholders: of several messages each below its role, of a function its name."""
        said = plain(self.node)
        if self.sections:
            said = [{"role": section.role, "content": section.text.text} for section in self.sections]
        messages = said if isinstance(said, list) else [said]
        return "\n\n".join(one if isinstance(one, str) else _message_text(**one) for one in messages)


def _message_text(role: object = "", content: object = "", **others: object) -> str:
    parts = (content, *others.values())
    return "\n".join([f"{role}:", *(one if isinstance(one, str) else json.dumps(one) for one in parts if one)])


def read_prompts(node: Node | None, reading: Reading) -> tuple[SuitePrompt, ...]:
    """The prompts of a suite, in their order. What is wrong with one is reported, and it is left out."""
    if node is None:
        return ()
    if is_empty(node):
        reading.report.error("missing-value", node, "'prompts' is empty")
        return ()
    reader = _PromptReader(reading)
    for item in node.items if isinstance(node, ListNode) else [node]:
        reader.add(item)
    return tuple(reader.found)


def read_prompt(node: Node | None, reading: Reading) -> SuitePrompt | None:
    """The prompt of the cases without an input; None without one, or if it is invalid, which is reported."""
    if node is None:
        return None
    own = reading.part()
    found = read_prompts(node, own) if not isinstance(node, ListNode) else ()
    if not own.report.failed and (len(found) != 1 or found[0].function is not None):
        message = "'prompt' must be one prompt: a text, or an object with 'file'"
        reading.report.error("bad-prompt", node, message, hint="write several, or a function, under 'prompts'")
        return None
    return found[0] if found else None


class _Piece(Struct, frozen=True):
    """What a prompt says, and what it is called where nobody gives it a name; None: by its number."""

    node: Node
    name: str | None = None
    function: PromptFunction | None = None
    sections: tuple[Section, ...] = ()


class _PromptReader(Struct):
    reading: Reading
    found: list[SuitePrompt] = field(default_factory=list)
    _taken: dict[str, Place] = field(default_factory=dict)
    _entries: int = 0

    def add(self, item: Node) -> None:
        """One entry of the list."""
        self._entries += 1
        if not isinstance(item, MapNode):
            for piece in self._pieces(item):
                self._keep(piece, piece.name or f"prompt-{self._entries}", None, item)
            return
        if "role" in item.items:
            hint = "a list of messages is a single prompt: wrap it in another list, '- - role: …'"
            self._refuse(item, "a prompt must be a list of messages", hint)
            return
        authored = shape_of(AuthoredPrompt).decode(item.items, item, self.reading, "a prompt")
        if authored is not INVALID:
            self._named(authored, item)

    def _named(self, authored: AuthoredPrompt, item: MapNode) -> None:
        """An object. promptfoo's `{id: file://a.txt, label: a}` has its text where the id points to."""
        path, identity = authored.prompt, authored.id
        if authored.file is not None:
            self._of_file(authored, item)
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
            message = f"'prompt' must be text or messages, found {kind_of(path)}"
            self.reading.report.error("bad-value", path, message)
            return
        self._keep_all(list(self._pieces(path)), authored, identity, item)

    def _of_file(self, authored: AuthoredPrompt, item: MapNode) -> None:
        """An object that names the file of its text."""
        node = item.items.get("file") or item.items["path"]
        if authored.prompt is not None:
            message = "a prompt has both a text and 'file'; keep one of them"
            self.reading.report.error("bad-prompt", node, message)
        elif not isinstance(node, Scalar) or not isinstance(node.value, str) or not node.value.strip():
            self.reading.report.error("bad-value", node, f"'file' must be the path of a prompt, found {kind_of(node)}")
        elif authored.sections:
            self._keep_all(list(self._of_sections(node)), authored, authored.id, item)
        else:
            self._keep_all(list(self._of_files(node)), authored, authored.id, item)

    def _keep_all(
        self, pieces: Sequence[_Piece], authored: AuthoredPrompt, identity: str | None, item: MapNode
    ) -> None:
        name = identity or authored.label
        for number, piece in enumerate(pieces, 1):
            own = name and (f"{name}#{number}" if len(pieces) > 1 else name)
            label = authored.label if identity else None
            self._keep(piece, own or piece.name or f"prompt-{self._entries}", label, item)

    def _keep(self, piece: _Piece, identity: str, label: str | None, item: Node) -> None:
        first = self._taken.setdefault(identity, item.at)
        if first is not item.at:
            place = span_of(first)
            where = f"the first is at {shown(place.file)}:{place.line}"
            self.reading.report.error("duplicate-id", item, f"two prompts have the id '{identity}'; {where}")
            return
        if piece.function is not None:
            self.found.append(SuitePrompt(identity, piece.node, label, shows_input=True, function=piece.function))
            return
        if piece.sections:
            shows = any(_shows_input(section.text) for section in piece.sections)
            self.found.append(SuitePrompt(identity, piece.node, label, shows_input=shows, sections=piece.sections))
            return
        templated = holds_placeholder(piece.node)
        if not templated and read_messages(piece.node, "user", self.reading.rendering(False)) is None:
            return
        self.found.append(SuitePrompt(identity, piece.node, label, templated, _shows_input(piece.node)))

    def _of_sections(self, node: Scalar) -> Iterator[_Piece]:
        """The prompt of a file whose tags begin messages."""
        from agentv.authoring.cases.sections import sections_of

        path = self.reading.find(node, "file")
        text = self.reading.text_of(path, node) if path is not None else None
        if path is not None and text is not None and (sections := sections_of(path, text, self.reading.report)):
            yield _Piece(node, node.text, sections=sections)

    def _pieces(self, node: Node) -> Iterator[_Piece]:
        """The prompts that a text, a list or a path stands for; only a path can stand for several."""
        if is_empty(node) and not (isinstance(node, Scalar) and node.value is None):
            self.reading.report.error("missing-value", node, "this prompt is empty")
        elif isinstance(node, ListNode):
            yield _Piece(node)
        elif not isinstance(node, Scalar) or not isinstance(node.value, str):
            self._refuse(node, f"a prompt is text, a list of messages, or an object, found {kind_of(node)}")
        elif _is_path(node.value.strip()):
            yield from self._of_files(node)
        else:
            yield _Piece(node)

    def _of_function(self, node: Scalar, found: re.Match[str]) -> Iterator[_Piece]:
        """The function of a file; it is called when the suite runs, with each case's variables."""
        path, name = found["path"], found["name"]
        written = Scalar(found[0].removeprefix("file://"), found[0], node.at)
        if found["suffix"] == "py" and not name:
            self._refuse(node, "a Python file must write prompts through a function", f"write '{path}:function'")
            return
        read = read_function if found["suffix"] == "py" else read_javascript
        function = read(written, self.reading, "prompts")
        if function is not INVALID:
            yield _Piece(node, found[0].removeprefix("file://").removeprefix("./"), function)

    def _of_files(self, node: Scalar) -> Iterator[_Piece]:
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
            pieces = list(self._of_text(path, text) if suffix in TEXTS else self._of_messages(path, text, suffix))
            if not text.strip() or (suffix == ".txt" and not pieces):
                self.reading.report.error("missing-value", node, f"'{shown(path)}' contains no prompt: it is empty")
                continue
            written = node.value.strip().removeprefix("file://")
            name = written if GIT_URL.match(written) else os.path.relpath(path, self.reading.places.suite)
            for number, piece in enumerate(pieces, 1):
                yield _Piece(piece, f"{name}#{number}" if len(pieces) > 1 else name)

    def _matching(self, node: Scalar) -> list[str]:
        from glob import has_magic

        from agentv.authoring.cases.case_files import selected

        reading = self.reading
        written = node.value.strip().removeprefix("file://")
        mentioned_in = span_of(node.at).file
        plain = GIT_URL.match(written) or not has_magic(written)
        if plain or reading.places.find(written, mentioned_in)[0] is not None:
            found = reading.find(Scalar(written, written, node.at), "file")
            return [found] if found else []
        base, found_paths = selected(node, written, reading)
        paths = [path for path in found_paths or () if is_file(path)]
        if not paths and found_paths is not None:
            reading.report.error("missing-file", node, f"no file matches '{written}' in {shown(base)}")
        return paths

    def _of_text(self, path: str, text: str) -> Iterator[Node]:
        """The text of a file; that of a `.txt` file may hold several prompts."""
        from agentv.authoring.cases.sections import Lines, Point

        lines = text.splitlines()
        ends = [number for number, line in enumerate(lines) if path.endswith(".txt") and line.strip() == SEPARATOR]
        for begin, end in zip([0, *(end + 1 for end in ends)], [*ends, len(lines)], strict=True):
            part = "\n".join(lines[begin:end]).strip()
            if part:
                place = Lines(Point(path, begin, 0), Point(path, end - 1, len(lines[end - 1])))
                yield Scalar(part, part, place)

    def _of_messages(self, path: str, text: str, suffix: str) -> Iterator[Node]:
        from agentv.authoring.source.json_text import read_json

        report = self.reading.report
        is_json = suffix == ".json"
        root = (read_json(path, text, report) if is_json else read_yaml(path, text.encode(), report)).value
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
    """Whether a text is the place of a prompt, and not the prompt itself."""
    return (
        text.startswith("file://")
        or _PATH.fullmatch(text) is not None
        or (GIT_URL.match(text) is not None and not re.search(r"\s", text))
    )


def _shows_input(node: Node) -> bool:
    if isinstance(node, Scalar):
        return isinstance(node.value, str) and has_placeholder(node.value) and bool(_NAMES_INPUT.search(node.value))
    return any(_shows_input(child) for child in children(node))
