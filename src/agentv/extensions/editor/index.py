"""Files as the editor has them open, and the names in them: cases, targets, templates and references to them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from errno import EFBIG, EINVAL
from pathlib import Path
from stat import S_ISREG
from typing import Literal

from msgspec import Struct

from agentv.authoring.prompt_library import prompt_file_of
from agentv.authoring.source.boundary import Boundary
from agentv.authoring.source.files import META, is_exam, template_home
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, children, span_of
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml
from agentv.model.values.values import Span

MOST_BYTES = 5_000_000
"""Maximum size of a file that is read; ten thousand cases take half of it."""


def bytes_of(
    path: str, edits: Mapping[str, bytes], boundary: Boundary | None = None, *, most: int = MOST_BYTES
) -> bytes:
    """The content of a file: the editor's text if it is open, otherwise that on disk.

    Args:
        path: absolute path.
        edits: absolute path → text of each open file.
        boundary: limits which files may be read from disk; None allows all.
        most: maximum size in bytes.

    Raises:
        OSError: the file cannot be read, is not a regular file, or is too large (`EFBIG`).
    """
    data = edits.get(path)
    if data is None:
        if boundary is not None:
            boundary.check(path)
        data = _read(path, most)
    if len(data) > most:
        raise OSError(EFBIG, "the file is too large", path)
    return data


def leave_deleted_directory() -> None:
    """Change to the root directory if the working directory was deleted, for instance by checking out a branch."""
    try:
        os.getcwd()  # noqa: PTH109  # called for every request
    except FileNotFoundError:
        os.chdir(os.sep)


def _read(path: str, most: int) -> bytes:
    if S_ISREG(Path(path).stat().st_mode):  # opening a device can have side effects
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(descriptor, "rb") as file:
            if S_ISREG(os.fstat(descriptor).st_mode):
                return file.read(most + 1)
    raise OSError(EINVAL, "it is a device or a pipe, expected a file", path)


FileKind = Literal["eval", "targets", "config", "template", "exam", "meta"]
"""Kinds of files that the server knows. Those with a JSON Schema have the schema's name."""

_YAML = (".yaml", ".yml")
_TARGETS = frozenset({"targets", "providers"})
_CONFIGS = frozenset({"config", "config.local"})
_TESTS_KEY = re.compile(r"^(?:tests|evalcases|eval_cases)[ ]*:", re.MULTILINE)
_SUITE_KEYS = re.compile(
    r"^[ -]*(?:input|input_messages|assert|assertions|criteria|prompts|providers|target)[ ]*:", re.MULTILINE
)


def kind_of(path: str, text: str) -> FileKind | None:
    """The kind of a file by its path, or else by its content; None if it is not a file of agentv."""
    file = Path(path)
    if file.suffix == ".jsonl":
        return "eval" if file.with_suffix(".yaml").is_file() else None
    if file.suffix not in _YAML:
        return None
    if file.parent.name == ".agentv":
        return "targets" if file.stem in _TARGETS else "config" if file.stem in _CONFIGS else None
    return _by_name(file) or ("eval" if _TESTS_KEY.search(text) and _SUITE_KEYS.search(text) else None)


def _by_name(file: Path) -> FileKind | None:
    if template_home(str(file)) is not None:
        return "template"
    if file.stem.endswith(".eval") or file.stem == "EVAL":
        return "eval"
    if is_exam(str(file)):
        return "exam"
    return "meta" if file.name == META and prompt_file_of(file.parent) is not None else None


NameKind = Literal["case", "target", "template"]

TESTS = ("tests", "evalcases", "eval_cases", "cases")
NAMES = ("id", "name")
TARGET_NAMES = ("name", "id", "label")
TARGET_KEYS = frozenset(["target", "targets", "judge", "grader", "judge_target", "grader_target", "use_target"])
"""Keys whose value is the name of a target."""

_DATA_KEYS = frozenset(
    ["vars", "metadata", "input", "input_messages", "expected_output", "expected_messages", "env", "body", "headers"]
)
"""Keys with arbitrary data of the author, in which no names are looked for."""


class Name(Struct, frozen=True):
    """A name in a file.

    Attributes:
        defines: whether this is the definition rather than a reference.
    """

    kind: NameKind
    text: str
    span: Span
    defines: bool


class CaseEntry(Struct, frozen=True):
    """A case, for an editor's outline.

    Attributes:
        name: position of its id.
        last_line: its last line, counted from 1.
    """

    id: str
    name: Span
    first_line: int
    last_line: int


class FileIndex(Struct, frozen=True):
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
    """The list of cases of a suite, or the root of a file that is such a list."""
    if isinstance(root, ListNode):
        return root
    if not isinstance(root, MapNode):
        return None
    return next((root.items[key] for key in TESTS if key in root.items), None)


def _id_of(case: MapNode) -> Scalar | None:
    named = next((case.items[key] for key in NAMES if key in case.items), None)
    return named if isinstance(named, Scalar) and named.text else None


def _last_line(node: Node) -> int:
    """The last line of a node's last value, as the position of a collection is only its start."""
    while not isinstance(node, Scalar):
        inner = list(children(node))
        if not inner:
            break
        node = inner[-1]
    span = span_of(node.at)
    return span.end_line - (span.end_line > span.line and span.end_column == 1)


def _targets_of(root: Node) -> Iterator[Scalar]:
    """The names that a targets file defines, one per target: the first of `TARGET_NAMES` that it has."""
    lists = [root.get(key) for key in ("targets", "providers")] if isinstance(root, MapNode) else [root]
    entries = (entry for listed in lists if isinstance(listed, ListNode) for entry in listed.items)
    for entry in entries:
        if isinstance(entry, MapNode):
            named = next((entry.get(key) for key in TARGET_NAMES if entry.get(key)), None)
            if isinstance(named, Scalar) and named.text:
                yield named


def _references(root: Node, *, top: bool) -> Iterator[tuple[NameKind, Scalar]]:
    """All references to names, except in data."""
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
                if key not in _DATA_KEYS:
                    waiting.append((value, False))


def _kind_named_by(key: str, *, is_suite: bool) -> NameKind | None:
    if key in TARGET_KEYS or (is_suite and key in {"provider", "providers"}):
        return "target"
    return {"depends_on": "case", "include": "template"}.get(key)  # type: ignore[return-value]  # its values are members of the literal


def _named(value: Node) -> Iterator[Scalar]:
    for node in value.items if isinstance(value, ListNode) else [value]:
        if isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip():
            yield node


def index_file(path: str, edits: Mapping[str, bytes], kind: FileKind) -> FileIndex | None:
    """The names of a file, in the editor if it is open, otherwise on disk; None if it cannot be read."""
    try:
        data = bytes_of(path, edits)
    except OSError:
        return None
    return index_of(path, data, kind)
