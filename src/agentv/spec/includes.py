"""Assertion templates: `include:` entries and the files they name (SPEC section 7.3)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from agentv.model.span import Span
from agentv.spec.files import shown, upwards
from agentv.spec.nearest import did_you_mean
from agentv.spec.nodes import ListNode, MapNode, Node, Scalar, kind_of, span_of
from agentv.spec.reading import GIT_URL, Reading
from agentv.spec.spellings import TEMPLATE, translate
from agentv.spec.yaml import read_yaml
from agentv.templating import has_placeholder

DEPTH = 3
"""Levels of includes; the eval file's own is the first."""

NAME = re.compile(r"[^./\\][^/\\]*")


@dataclass(frozen=True, slots=True)
class Chain:
    """The includes that led to a list: where the eval file's own stands, and each template's path, outermost first."""

    origin: Scalar | None = None
    paths: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def through(self, node: Scalar, path: str) -> Chain:
        """One level deeper."""
        return Chain(self.origin or node, (*self.paths, path), (*self.names, node.text))


@dataclass(frozen=True, slots=True)
class Template:
    """A template file: its entries, and whether any of them holds a placeholder."""

    path: str
    entries: ListNode
    placeholders: bool


@dataclass(frozen=True, slots=True)
class Templates:
    """The template files of one suite, each read once."""

    _read: dict[str, Template | None] = field(default_factory=dict)

    def included(self, node: Node, reading: Reading, chain: Chain) -> tuple[Template, Chain] | None:
        """The template that an `include:` means, or None when something is wrong, which is then reported."""
        if not isinstance(node, Scalar) or not isinstance(node.value, str) or not node.value.strip():
            reading.report.error("bad-include", node, f"'include' takes a name or a path, found {kind_of(node)}")
            return None
        path = _path_of(node, reading)
        if path is None:
            return None
        origin = chain.origin or node
        deeper = chain.through(node, path)
        trail = " → ".join(f"{name} ({shown(at)})" for name, at in zip(deeper.names, deeper.paths, strict=True))
        if path in chain.paths:
            reading.report.error("include-cycle", origin, f"these templates include each other: {trail}")
            return None
        if len(deeper.paths) > DEPTH:
            message = f"templates are nested {len(deeper.paths)} deep, and {DEPTH} is the limit: {trail}"
            reading.report.error("include-depth", origin, message)
            return None
        template = self._load(path, node, reading)
        return None if template is None else (template, deeper)

    def _load(self, path: str, node: Scalar, reading: Reading) -> Template | None:
        if path not in self._read:
            self._read[path] = load_template(path, node, reading)
        return self._read[path]


def load_template(path: str, node: Scalar | None, reading: Reading) -> Template | None:
    """A template file, read and checked for its shape."""
    text = reading.text_of(path, node or Scalar(path, shown(path), _top(path)))
    root = read_yaml(path, text.encode(), reading.report) if text is not None else None
    if text is None:
        return None
    if not isinstance(root, MapNode):
        if root is not None or not text.strip():
            reading.report.error(
                "bad-template-file", root or _top(path), "a template is a mapping with a list 'assert'"
            )
        return None
    translated = translate(root, TEMPLATE, reading.report)
    for key in translated.items:
        if key not in TEMPLATE.canonical and not key.startswith("x-"):
            reading.unknown_key(key, translated.map, TEMPLATE.known, "a template")
    entries = translated.items.get("assert")
    if not isinstance(entries, ListNode) or not entries.items:
        found = kind_of(entries) if entries is not None and not isinstance(entries, ListNode) else "none"
        message = f"a template needs a list of assertions under 'assert', found {found}"
        reading.report.error("bad-template-file", entries or root, message)
        return None
    return Template(path, entries, has_placeholder(text))


def _top(path: str) -> Span:
    return Span(path, 1, 1, 1, 2)


def _path_of(node: Scalar, reading: Reading) -> str | None:
    written = node.text.strip()
    if GIT_URL.match(written):
        reading.report.error("not-yet", node, "templates out of a git host are not supported yet")
        return None
    if not NAME.fullmatch(written):
        found, tried = reading.places.find(written, span_of(node.at).file)
        if found is not None and Path(found).is_file():
            return found
        _missing(node, tried, reading)
        return None
    looked: list[str] = []
    for directory in upwards(reading.places.suite, reading.places.root):
        for suffix in ("yaml", "yml"):
            candidate = Path(directory) / ".agentv" / "templates" / f"{written}.{suffix}"
            looked.append(str(candidate))
            if candidate.is_file():
                return str(candidate)
    _missing(node, tuple(looked), reading)
    return None


def _missing(node: Scalar, tried: tuple[str, ...], reading: Reading) -> None:
    there = {file.stem for path in tried if (folder := Path(path).parent).is_dir() for file in folder.glob("*.y*ml")}
    reading.report.error(
        "missing-template",
        node,
        f"no template '{node.text}'",
        hint=did_you_mean(node.text.strip(), there),
        notes=[f"tried {shown(path)}" for path in tried],
    )
