"""Reads the files of a promptfoo configuration with positions, and gets values out of its nodes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from glob import glob
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.authoring.cases.data_files.jsonl import JsonLines
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.boundary import ALLOW, OUTSIDE, REASON, Boundary
from agentv.authoring.source.files import climbs, is_file, literal_part, shown
from agentv.authoring.source.json_text import parse_json
from agentv.authoring.source.nearest import did_you_mean
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Place, Scalar, span_of
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml
from agentv.extensions.promptfoo.tables import ORDER
from agentv.model.values.values import Span

NO_EQUIVALENT = "no-equivalent"

FILE = "file://"
_LARGEST = 2**53
_CODE = (".py", ".js", ".ts", ".mjs", ".cjs", ".mts", ".cts", ".rb")


class Source(Struct, frozen=True):
    """Reads the files of a configuration, and holds facts about it that its parts need.

    Attributes:
        directory: directory of the configuration, to which its paths are relative.
        reading: reads files, and collects diagnostics.
        calls: whether functions that return tests are called; otherwise, only their files are checked to exist.
        pictures: variables that are picture files, which prompts show only in image blocks.
        declared_calls: `tools` and `functions`, if the providers that declare them agree.
        only_shown: no test has an assertion, so the content of an answer changes no verdict.
        calls_no_model: every provider is a program or an echo, which ignores settings of models.
        calls_programs: some provider is a program or an echo.
        within: the files being read, each of which names the next one.
        prompt_texts: the texts of the prompts, which functions that compute variables get.
        uncalled: references to functions that return tests and were not called.
    """

    directory: Path
    reading: Reading
    calls: bool = False
    pictures: frozenset[str] = frozenset()
    declared_calls: Mapping[str, Node] = field(default_factory=dict)
    only_shown: bool = False
    calls_no_model: bool = False
    calls_programs: bool = False
    within: tuple[str, ...] = ()
    prompt_texts: tuple[str, ...] = ()
    uncalled: list[Node] = field(default_factory=list)

    @property
    def report(self) -> Report:
        """The report to which diagnostics are added."""
        return self.reading.report

    @property
    def boundary(self) -> Boundary:
        """The boundary outside which no file is read."""
        return self.reading.places.boundary or Boundary("", is_open=True)

    def error(self, at: Node | Place, message: str, hint: str | None = None) -> None:
        """Report, as an error, something that has no equivalent and could change a verdict."""
        self.report.error(NO_EQUIVALENT, at, message, hint=hint)

    def remark(self, at: Node | Place, message: str, hint: str | None = None) -> None:
        """Report, as a remark, something that was omitted and cannot change a verdict."""
        self.report.remark(NO_EQUIVALENT, at, message, hint)

    def unknown_key(self, key: str, at: Place, what: str, known: Iterable[str]) -> None:
        """Report a key that promptfoo ignores, as a warning if it looks like a misspelling of a known one."""
        message = f"'{key}'{what} is omitted: promptfoo does not read it"
        if meant := did_you_mean(key, known):
            self.report.warning(NO_EQUIVALENT, at, message, hint=meant)
        else:
            self.remark(at, message)

    def is_code(self, text: str) -> bool:
        """Whether a text is a `file://` reference to a program."""
        return text.startswith(FILE) and text.removeprefix(FILE).split(":")[0].endswith(_CODE)

    def content(self, node: Scalar) -> Scalar | None:
        """The text of the file that a `file://` names, or None if it cannot be read, which is reported."""
        path = self._path(node.text)
        if not self._admits(path, node):
            return None
        try:
            text = self.reading.reader.read(str(path)).decode("utf-8-sig")
        except (OSError, UnicodeDecodeError):
            self.error(node, f"'{node.text}' cannot be read as text", "fix the path")
            return None
        return text_node(text, node.at if self.boundary.holds(str(path)) else Span.start_of(str(path)))

    def matched(self, node: Scalar) -> list[str] | None:
        """The paths that match a pattern, sorted, or None if it points outside the repository, which is reported."""
        pattern = node.text.strip().removeprefix(FILE)
        if self.points_outside(pattern):
            self.report.error(OUTSIDE, node, f"'{pattern}' points outside the repository", hint=ALLOW)
            return None
        return sorted(glob(pattern, root_dir=self.directory, recursive=True))  # noqa: PTH207  # Path.glob raises

    def points_outside(self, pattern: str) -> bool:
        """Whether a pattern points outside the files that may be read."""
        start = self._path(f"/{literal_part(pattern)}" if pattern.startswith("/") else literal_part(pattern))
        outside = climbs(pattern.lstrip("/")) and not self.boundary.admits(os.sep)
        return outside or not self.boundary.admits(str(start))

    def admits(self, written: str, at: Node) -> bool:
        """Whether a file exists and may be read. Reports why not."""
        path = self._path(written)
        if self._admits(path, at) and not is_file(str(path)):
            self.error(at, f"{shown(str(path))} does not exist", "fix the path")
        return self.boundary.admits(str(path)) and is_file(str(path))

    def _path(self, written: str) -> Path:
        return Path(os.path.normpath(self.directory / written.removeprefix(FILE)))

    def _admits(self, path: Path, at: Node) -> bool:
        """Whether a file may be read. Reports it if not."""
        if self.boundary.admits(str(path)):
            return True
        self.report.error(OUTSIDE, at, f"cannot read {shown(str(path))}: {REASON}", hint=ALLOW)
        return False

    def document(self, written: str, at: Node) -> Node | None:
        """The content of a YAML, JSON or JSON Lines file, or None if it cannot be read. Errors are reported."""
        path = self._path(written)
        if not self._admits(path, at):
            return None
        if str(path) in self.within:
            self.error(at, f"{shown(str(path))} names itself, directly or through other files", "remove the reference")
            return None
        if not is_file(str(path)):
            self.error(at, f"{shown(str(path))} does not exist", "fix the path")
            return None
        if path.suffix == ".jsonl":
            lines: Any = JsonLines(str(path))
            nodes = [lines.exact(number, record, self.report) for number, record in lines.records(self.report)]
            return ListNode([node for node in nodes if node is not None], at.at)
        return read_yaml(str(path), self.reading.reader.read(str(path)), self.report).value  # JSON is YAML

    def inside(self, written: str) -> Source:
        """The source for the content of a file, which must not name that file again."""
        return replace(self, within=(*self.within, str(self._path(written))))


def mapping(node: Node, items: Mapping[str, Node]) -> MapNode:
    """A mapping with these items at the position of another node, whose keys keep their positions."""
    keys = node.keys if isinstance(node, MapNode) else {}
    return MapNode(dict(items), {key: keys.get(key, node.at) for key in items}, node.at)


def without(node: Node, *names: str) -> MapNode:
    """A mapping without some of its keys; empty if the node is not a mapping."""
    return mapping(node, {key: item for key, item in mapping_items(node).items() if key not in names})


def providers_key(root: MapNode) -> str:
    """The key of the providers: `providers` or `targets`."""
    return "providers" if "providers" in root.items else "targets"


def items_of(node: Node | None) -> list[Node]:
    """The items of a list, or a list of the single value; empty for None."""
    return node.items if isinstance(node, ListNode) else [] if node is None else [node]


def value_at(node: Node | None, *keys: str) -> Node | None:
    """The value at the end of a path of keys, or None if some step is not a mapping with the key."""
    for key in keys:
        node = node.get(key) if isinstance(node, MapNode) else None
    return node


def mapping_items(node: Node | None) -> Mapping[str, Node]:
    """The items of a mapping; empty for any other node."""
    return node.items if isinstance(node, MapNode) else {}


def list_items(node: Node | None) -> list[Node]:
    """The items of a list; empty for any other node."""
    return node.items if isinstance(node, ListNode) else []


def text_in(node: Node | None) -> str:
    """The text of a scalar; empty for any other node."""
    return node.text if isinstance(node, Scalar) else ""


def identity_of(provider: Node | None) -> str:
    """The id of a provider, which is written as a mapping or as the id alone."""
    return text_in(provider.get("id") if isinstance(provider, MapNode) else provider)


def ordered(items: Mapping[str, Node]) -> dict[str, Node]:
    """The items in the order in which an eval file lists its keys."""
    known = {key: items[key] for key in ORDER if key in items}
    return {**known, **items}


def text_node(text: str, at: Place) -> Scalar:
    """A scalar node with this text."""
    return Scalar(text, text, at)


def number_node(value: float, at: Place) -> Scalar:
    """A scalar node with this number, as an integer if it is one."""
    number = int(value) if value == int(value) else value
    return Scalar(number, str(number), at)


def chat(text: str, at: Place) -> Node | None:
    """The messages of a prompt that is a list of them in JSON or YAML, or None if it is plain text."""
    if not text.lstrip().startswith(("[", "- role:")):
        return None
    own = Report()
    span = span_of(at)
    is_json = text.lstrip().startswith("[")
    found = parse_json(text, span, own) if is_json else read_yaml(span.file, text.encode(), own).value
    if own.failed or not isinstance(found, ListNode):
        return None
    return found if all(isinstance(one, MapNode) and "role" in one.items for one in found.items) else None


def whole_number(node: Node) -> Node:
    """The node, with a float such as 1.0 replaced by the integer, which is how JavaScript prints it."""
    if not isinstance(node, Scalar) or not isinstance(node.value, float) or abs(node.value) > _LARGEST:
        return node
    return number_node(node.value, node.at) if node.value.is_integer() else node
