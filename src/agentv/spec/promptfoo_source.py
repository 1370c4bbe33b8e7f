"""What promptfoo's configuration says, in files and templates: read with its places, and told where it cannot be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentv.spec.files import is_file, shown
from agentv.spec.json_text import parse_json
from agentv.spec.jsonl import JsonLines
from agentv.spec.nodes import ListNode, MapNode, Node, Place, Scalar, span_of
from agentv.spec.promptfoo_tables import FILTERS, ORDER
from agentv.spec.report import Report
from agentv.spec.spellings import CASE
from agentv.spec.yaml import read_yaml
from agentv.templating import RenderError, has_placeholder, undeclared

NO_EQUIVALENT = "no-equivalent"

FILE = "file://"
_CODE = (".py", ".js", ".ts", ".mjs", ".cjs", ".mts", ".cts", ".rb")
_PARTS = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_FILTER = re.compile(r"\|\s*(\w+)")
_SCRIPT = re.compile(r"===|!==|&&|\|\||\?[^}]*:|\.length\b|\.\w+\(|\br/")
_TAG = re.compile(r"\{%-?\s*(asyncEach|asyncAll|ifAsync|switch|case|elseif)\b")


@dataclass(frozen=True, slots=True)
class Source:
    """The configuration as it is read.

    Attributes:
        directory: of the configuration; where its paths begin.
        report: gets what has no equivalent.
    """

    directory: Path
    report: Report

    def tell(self, at: Node | Place, message: str, hint: str | None = None) -> None:
        """Something that has no equivalent, at its place."""
        self.report.warning(NO_EQUIVALENT, at, message, hint=hint)

    def is_code(self, text: str) -> bool:
        """Whether a text names a program."""
        return text.startswith(FILE) and text.removeprefix(FILE).split(":")[0].endswith(_CODE)

    def content(self, node: Scalar) -> str | None:
        """The text of the file that a `file://` names; None where it has none, which is told."""
        path = self.directory / node.text.removeprefix(FILE)
        try:
            return path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError):
            self.tell(node, f"'{node.text}' cannot be read as text", "mend the path, and convert again")
            return None

    def document(self, path: Path, at: Node) -> Node | None:
        """A YAML, JSON or JSON Lines file as nodes; what is wrong with it is told."""
        if not is_file(str(path)):
            self.tell(at, f"{shown(str(path))} does not exist", "mend the path, and convert again")
            return None
        if path.suffix == ".jsonl":
            lines: Any = JsonLines(str(path), CASE.spelled("id"))
            nodes = [lines.exact(number, record, self.report) for number, record in lines.records(self.report)]
            return ListNode([node for node in nodes if node is not None], at.at)
        return read_yaml(str(path), path.read_bytes(), self.report)  # JSON is YAML

    def template(self, node: Node) -> Node:
        """The same, with Nunjucks where it is Jinja too; where it is not, it is told."""
        if isinstance(node, ListNode):
            return ListNode([self.template(item) for item in node.items], node.at)
        if isinstance(node, MapNode):
            return mapping(node, {key: self.template(item) for key, item in node.items.items()})
        if isinstance(node.value, str) and has_placeholder(node.value):
            self._check(node.value, node)
        return node

    def _check(self, text: str, node: Scalar) -> None:
        told = self.report.count
        if "{#" in text:
            self.tell(node, "'{#' begins a comment in Nunjucks, and is text here", "take the comment away")
        for part in _PARTS.findall(text):
            tag = _TAG.match(part)
            foreign = next((name for name in _FILTER.findall(part) if name in FILTERS), None)
            if tag is not None:
                self.tell(node, f"'{{% {tag[1]} %}}' is Nunjucks, and templates here are Jinja")
            elif foreign is not None:
                self.tell(node, f"the filter '{foreign}' is Nunjucks'", f"write '{FILTERS[foreign]}', Jinja's")
            elif _SCRIPT.search(part):
                self.tell(node, f"'{part}' holds JavaScript, and templates here are Jinja", "write it as Jinja does")
        if self.report.count > told:
            return
        try:
            undeclared(text)
        except RenderError as error:
            self.tell(node, f"this template is not Jinja: {error.message}")


def mapping(node: Node, items: Mapping[str, Node]) -> MapNode:
    """A mapping that is made of another node, and stands where that does."""
    keys = node.keys if isinstance(node, MapNode) else {}
    return MapNode(dict(items), {key: keys.get(key, node.at) for key in items}, node.at)


def ordered(items: Mapping[str, Node]) -> dict[str, Node]:
    """The keys in the order in which people read them."""
    known = {key: items[key] for key in ORDER if key in items}
    return {**known, **items}


def text_node(text: str, at: Place) -> Scalar:
    """A text that stands for another one."""
    return Scalar(text, text, at)


def number_node(value: int, at: Place) -> Scalar:
    """A whole number that nobody wrote."""
    return Scalar(value, str(value), at)


def chat(text: str, at: Place) -> Node | None:
    """The messages that a prompt written as JSON or YAML holds; None where it is a text."""
    if not text.lstrip().startswith(("[", "- role:")):
        return None
    own = Report()
    span = span_of(at)
    found = parse_json(text, span, own) if text.lstrip().startswith("[") else read_yaml(span.file, text.encode(), own)
    if own.failed or not isinstance(found, ListNode):
        return None
    return found if all(isinstance(one, MapNode) and "role" in one.items for one in found.items) else None
