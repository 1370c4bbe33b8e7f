"""Files as an editor has them open, and the names in them: cases, targets, templates, and what refers to them."""

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
"""Size of a file whose names are read; ten thousand cases are half of it."""


def bytes_of(
    path: str, edits: Mapping[str, bytes], boundary: Boundary | None = None, *, most: int = MOST_BYTES
) -> bytes:
    """The bytes of a file as it is in the editor, else on disk.

    Args:
        path: absolute.
        edits: absolute path → text of each open file.
        boundary: what may be read from disk; None: everything.
        most: bytes that it may have.

    Raises:
        OSError: it cannot be read, is no regular file, or is too large (`EFBIG`).
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
    """Go to the file system's root if the working directory is gone: a branch that lacks it may be checked out."""
    try:
        os.getcwd()  # noqa: PTH109  # for every request
    except FileNotFoundError:
        os.chdir(os.sep)


def _read(path: str, most: int) -> bytes:
    if S_ISREG(Path(path).stat().st_mode):  # to open a device can have an effect
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(descriptor, "rb") as file:
            if S_ISREG(os.fstat(descriptor).st_mode):
                return file.read(most + 1)
    raise OSError(EINVAL, "it is a device or a pipe, expected a file", path)


FileKind = Literal["eval", "targets", "config", "template", "exam", "meta"]
"""Those that have a JSON Schema are called as it."""

_YAML = (".yaml", ".yml")
_TARGETS = frozenset({"targets", "providers"})
_CONFIGS = frozenset({"config", "config.local"})
_TESTS = re.compile(r"^(?:tests|evalcases|eval_cases)[ ]*:", re.MULTILINE)
_OF_SUITES = re.compile(
    r"^[ -]*(?:input|input_messages|assert|assertions|criteria|prompts|providers|target)[ ]*:", re.MULTILINE
)


def kind_of(path: str, text: str) -> FileKind | None:
    """The kind of a file by its path, or by its content where its name could be any; None: it is not agentv's."""
    file = Path(path)
    if file.suffix == ".jsonl":
        return "eval" if file.with_suffix(".yaml").is_file() else None
    if file.suffix not in _YAML:
        return None
    if file.parent.name == ".agentv":
        return "targets" if file.stem in _TARGETS else "config" if file.stem in _CONFIGS else None
    return _by_name(file) or ("eval" if _TESTS.search(text) and _OF_SUITES.search(text) else None)


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
"""Keys whose text is the name of a target."""

_DATA = frozenset(
    ["vars", "metadata", "input", "input_messages", "expected_output", "expected_messages", "env", "body", "headers"]
)
"""Keys under which stands what a suite's author likes: no names of ours."""


class Name(Struct, frozen=True):
    """A name in a file.

    Attributes:
        defines: it is given here; otherwise something refers to it.
    """

    kind: NameKind
    text: str
    span: Span
    defines: bool


class CaseEntry(Struct, frozen=True):
    """A case, for an editor's outline.

    Attributes:
        name: where its id stands.
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
