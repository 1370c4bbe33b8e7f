"""Names in authored files and where they stand: cases, targets, templates, and what refers to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, children, span_of
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml
from agentv.extensions.editor.disk import FileKind, bytes_of
from agentv.model.values.values import Span

NameKind = Literal["case", "target", "template"]

TESTS = ("tests", "evalcases", "eval_cases", "cases")
NAMES = ("id", "name")
TARGET_NAMES = ("name", "id", "label")
TARGET_KEYS = frozenset(["target", "targets", "judge", "grader", "judge_target", "grader_target", "use_target"])
"""Keys whose text is the name of a target."""

_DATA = frozenset(
    ["vars", "metadata", "input", "input_messages", "expected_output", "expected_messages", "env", "body", "headers"]
)
"""Keys under which stands what a suite's author likes: no names of ours."""


@dataclass(frozen=True, slots=True)
class Name:
    """A name in a file.

    Attributes:
        defines: it is given here; otherwise something refers to it.
    """

    kind: NameKind
    text: str
    span: Span
    defines: bool


@dataclass(frozen=True, slots=True)
class CaseEntry:
    """A case, for an editor's outline.

    Attributes:
        name: where its id stands.
        last_line: its last line, counted from 1.
    """

    id: str
    name: Span
    first_line: int
    last_line: int


@dataclass(frozen=True, slots=True)
class FileIndex:
    """The names of one file."""

    path: str
    names: tuple[Name, ...] = ()
    cases: tuple[CaseEntry, ...] = ()


def index_of(path: str, data: bytes, kind: FileKind) -> FileIndex | None:
    """The names of a YAML file; None if it cannot be read."""
    root = read_yaml(path, data, Report()).value
    if root is None:
        return None
    tests = _tests_of(root) if kind in {"eval", "exam"} else None
    cases = [item for item in tests.items if isinstance(item, MapNode)] if isinstance(tests, ListNode) else []
    named = [(case, node) for case in cases if (node := _id_of(case)) is not None]
    found: list[tuple[NameKind, Scalar, bool]] = [("case", node, True) for _, node in named]
    found += [("target", node, True) for node in (_targets_of(root) if kind == "targets" else ())]
    found += [(kind, node, False) for kind, node in _references(root, top=kind == "eval")]
    names = [Name(kind, node.text.strip(), span_of(node.at), defines) for kind, node, defines in found]
    entries = tuple(
        CaseEntry(node.text, name.span, span_of(case.at).line, _last_line(case))
        for (case, node), name in zip(named, names, strict=False)
    )
    return FileIndex(path, tuple(dict.fromkeys(names)), entries)


def _tests_of(root: Node) -> Node | None:
    """The cases of a suite, or of a file that is a list of them."""
    if isinstance(root, ListNode):
        return root
    if not isinstance(root, MapNode):
        return None
    return next((root.items[key] for key in TESTS if key in root.items), None)


def _id_of(case: MapNode) -> Scalar | None:
    named = next((case.items[key] for key in NAMES if key in case.items), None)
    return named if isinstance(named, Scalar) and named.text else None


def _last_line(node: Node) -> int:
    """Of the last value in it; the position of a collection is where it begins."""
    while not isinstance(node, Scalar):
        inner = list(children(node))
        if not inner:
            break
        node = inner[-1]
    span = span_of(node.at)
    return span.end_line - (span.end_line > span.line and span.end_column == 1)


def _targets_of(root: Node) -> Iterator[Scalar]:
    """The names that a targets file gives, one per target: the first spelling that stands there."""
    lists = [root.get(key) for key in ("targets", "providers")] if isinstance(root, MapNode) else [root]
    entries = (entry for listed in lists if isinstance(listed, ListNode) for entry in listed.items)
    for entry in entries:
        if isinstance(entry, MapNode):
            named = next((entry.get(key) for key in TARGET_NAMES if entry.get(key)), None)
            if isinstance(named, Scalar) and named.text:
                yield named


def _references(root: Node, *, top: bool) -> Iterator[tuple[NameKind, Scalar]]:
    """What refers to a name, wherever it stands outside data."""
    waiting = [(root, top)]
    while waiting:
        node, is_suite = waiting.pop()
        if isinstance(node, ListNode):
            waiting += [(item, False) for item in node.items]
        elif isinstance(node, MapNode):
            for key, value in node.items.items():
                kind = _kind_named_by(key, is_suite=is_suite)
                if kind is not None:
                    yield from ((kind, one) for one in _named(value))
                if key not in _DATA:
                    waiting.append((value, False))


def _kind_named_by(key: str, *, is_suite: bool) -> NameKind | None:
    if key in TARGET_KEYS or (is_suite and key in {"provider", "providers"}):
        return "target"
    return {"depends_on": "case", "include": "template"}.get(key)  # type: ignore[return-value]  # the values of a literal


def _named(value: Node) -> Iterator[Scalar]:
    for node in value.items if isinstance(value, ListNode) else [value]:
        if isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip():
            yield node


def index_file(path: str, edits: Mapping[str, bytes], kind: FileKind) -> FileIndex | None:
    """The names of a file as it is in the editor, else on disk; None if it cannot be read."""
    try:
        data = bytes_of(path, edits)
    except OSError:
        return None
    return index_of(path, data, kind)
