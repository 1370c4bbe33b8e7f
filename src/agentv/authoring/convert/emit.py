"""Writes authored nodes as YAML, JSON Lines, Python or CSV: the same values, in YAML with the original's comments.

A path in an eval file is relative to the file that contains it (SPEC section 5). Cases that were gathered from several
files are written into one, so their paths and inputs change.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct, field

from agentv.authoring.cases.data_files.csv_table import DOCUMENTS, LIST_TYPES
from agentv.authoring.fields.spellings import CASE, SUITE
from agentv.authoring.source.nodes import (
    NOWHERE,
    Filled,
    ListNode,
    MapNode,
    Node,
    Place,
    Scalar,
    holds_placeholder,
    is_empty,
    plain,
    span_of,
)
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import TAGS, read_yaml, resolve
from agentv.model.values.values import Span

_OPENING = re.compile(r"\{[{%]")


def literal(node: Node) -> Node:
    """The node with every text escaped, so that rendering gives the original text."""
    if isinstance(node, ListNode):
        return ListNode([literal(item) for item in node.items], node.at)
    if isinstance(node, MapNode):
        return MapNode({key: literal(item) for key, item in node.items.items()}, node.keys, node.at)
    if not isinstance(node.value, str) or "{" not in node.value:
        return node
    escaped = _OPENING.sub(lambda braces: f"{{{{ '{braces[0]}' }}}}", node.value)
    return Scalar(escaped, escaped, node.at)


WIDTH = 110
"""Maximum length of a line, in columns, if it can be broken."""

_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_TAG_OF = {bool: "bool", int: "int", float: "float", type(None): "null"}


def yaml_text(items: Mapping[str, Node]) -> str:
    """A mapping as YAML in block style, with literal blocks for multi-line texts, and quotes against YAML 1.1."""
    import yaml

    class Dumper(yaml.CSafeDumper):
        """YAML dumper: quotes texts that either the 1.2 core schema or YAML 1.1 would not read as text."""

        def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
            if kind is yaml.ScalarNode and implicit[0]:
                meant = _TAG_OF.get(type(resolve(value)))
                if meant is not None:
                    return f"{TAGS}{meant}"
            return super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]  # PyYAML has no types here

    root = _yaml_node(MapNode(dict(items), {}, next(iter(items.values())).at))
    text: str = yaml.serialize(root, Dumper=Dumper, allow_unicode=True, width=WIDTH)
    return text


def _yaml_node(node: Node) -> Any:
    import yaml

    if type(node) is Filled:
        node = literal(node)
    if isinstance(node, Scalar):
        name = _TAG_OF.get(type(node.value))
        if name is not None and type(resolve(node.text)) is type(node.value):
            return yaml.ScalarNode(f"{TAGS}{name}", node.text)
        text = node.value if isinstance(node.value, str) else node.text
        return yaml.ScalarNode(f"{TAGS}str", text, style="|" if "\n" in text else None)
    if isinstance(node, ListNode):
        return yaml.SequenceNode(f"{TAGS}seq", [_yaml_node(item) for item in node.items], flow_style=not node.items)
    pairs = [(yaml.ScalarNode(f"{TAGS}str", key), _yaml_node(item)) for key, item in node.items.items()]
    return yaml.MappingNode(f"{TAGS}map", pairs, flow_style=not pairs)


def jsonl_text(cases: Iterable[Node]) -> str:
    """The cases as JSON Lines, one per line."""
    encode = msgspec.json.Encoder().encode
    return "".join(f"{encode(_json_value(case)).decode()}\n" for case in cases)


def _json_value(node: Node) -> Any:
    if isinstance(node, ListNode):
        return [_json_value(item) for item in node.items]
    if isinstance(node, MapNode):
        return {key: _json_value(item) for key, item in node.items.items()}
    if type(node.value) in (int, float):
        return msgspec.Raw(node.text.encode()) if _JSON_NUMBER.fullmatch(node.text) else node.text
    return node.value


def python_text(items: Mapping[str, Node]) -> str:
    """A Python file that defines `suite` as a mapping."""
    suite = {key: plain(node) for key, node in items.items()}
    return f'"""Cases for agentv."""\n\nsuite = {_literal(suite, 0, WIDTH)}\n'


def _literal(value: Any, depth: int, room: int) -> str:
    """A Python literal, on one line if it fits, or else with one item per line.

    Args:
        value: plain data.
        depth: levels of indentation.
        room: remaining columns on the line.
    """
    line = repr(value)
    if depth and len(line) < room and "\\n" not in line:
        return line
    inner, pad = "    " * (depth + 1), "    " * depth
    left = WIDTH - len(inner)
    if isinstance(value, dict) and value:
        pairs = ((f"{key!r}: ", item) for key, item in value.items())
        parts = [f"{start}{_literal(item, depth + 1, left - len(start))}," for start, item in pairs]
    elif isinstance(value, list) and value:
        parts = [f"{_literal(item, depth + 1, left)}," for item in value]
    elif isinstance(value, str) and len(lines := value.splitlines(keepends=True)) > 1:
        parts = [repr(one) for one in lines]
    else:
        return line
    start, end = "{}" if isinstance(value, dict) else "[]" if isinstance(value, list) else "()"
    return "\n".join((start, *(inner + part for part in parts), pad + end))


_DIRECTIVE = re.compile(r"#\s*yaml-language-server:")
_BESIDE = re.compile(r"\s(#.*)$")


class _Comment(NamedTuple):
    """A comment and the line to which it applies: its own, or the next one with code."""

    text: str
    line: int


def with_comments(text: str, made: Mapping[str, Node], root: Node, original: str) -> str:
    """The text of a generated YAML file with the comments of the original.

    Args:
        text: text of the new file.
        made: top-level items of the new file; the nodes have their positions in the original.
        root: root node of the original.
        original: text of the original.
    """
    path = span_of(root.at).file
    comments = list(_comments(original.splitlines(), root))
    found = read_yaml("", text.encode(), Report()).value
    if not comments or not isinstance(found, MapNode):
        return text
    entries = sorted(_entries(MapNode(dict(made), {}, root.at), found, path))
    above: dict[int, list[str]] = {}
    for comment in comments:
        place = next((written for source, written in entries if source >= comment.line), 0)
        above.setdefault(place, []).append(comment.text)
    lines = text.splitlines()
    done: list[str] = []
    for number, line in enumerate(lines, 1):
        indent = line[: len(line) - len(line.lstrip(" "))]
        done += [f"{indent}{one}" for one in above.get(number, ())]
        done.append(line)
    return "\n".join([*done, *above.get(0, ())]) + "\n"


def _comments(lines: list[str], root: Node) -> Iterator[_Comment]:
    inside, ends = _texts(root)
    waiting: list[str] = []
    for number, line in enumerate(lines, 1):
        bare = line.strip()
        if number in inside or not bare:
            continue
        if bare.startswith("#"):
            if not _DIRECTIVE.match(bare):
                waiting.append(bare)
            continue
        yield from (_Comment(one, number) for one in waiting)
        waiting = []
        beside = _BESIDE.search(line, max(ends.get(number, 0) - 1, 0))
        if beside is not None and line[: beside.start()].count('"') % 2 == 0:  # no quote is open
            yield _Comment(beside[1], number)
    yield from (_Comment(one, len(lines) + 1) for one in waiting)


def _texts(root: Node) -> tuple[set[int], dict[int, int]]:
    """The lines inside multi-line scalars, and for each other line, the column where its last scalar ends."""
    inside: set[int] = set()
    ends: dict[int, int] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, ListNode):
            stack += node.items
        elif isinstance(node, MapNode):
            stack += node.items.values()
        else:
            span = span_of(node.at)
            last = span.end_line if span.end_column > 1 else span.end_line - 1
            inside |= set(range(span.line + 1, last + 1))
            if span.line == span.end_line:
                ends[span.line] = max(ends.get(span.line, 0), span.end_column)
    return inside, ends


def _entries(made: Node, found: Node, path: str) -> Iterator[tuple[int, int]]:
    """For each entry, its line in the original and its line in the new file."""
    if isinstance(made, MapNode) and isinstance(found, MapNode):
        for key, item in made.items.items():
            if key in found.items:
                yield from _lines(made.keys.get(key) or item.at, found.keys[key], path)
                yield from _entries(item, found.items[key], path)
    elif isinstance(made, ListNode) and isinstance(found, ListNode):
        for item, other in zip(made.items, found.items, strict=False):
            yield from _lines(item.at, other.at, path)
            yield from _entries(item, other, path)


def _lines(source: Place, written: Place, path: str) -> Iterator[tuple[int, int]]:
    place = span_of(source)
    if place.file == path and place.line:
        yield place.line, span_of(written).line


_SCHEME = "file://"


class FoundPaths(Struct):
    """The paths in a suite, with the files to which they resolve.

    Attributes:
        elsewhere: whether paths may not be relative to the file that contains them, as in the tests of a skill.
    """

    elsewhere: bool = False
    _found: dict[tuple[str, Span], str] = field(default_factory=dict)

    def add(self, written: str, at: Span, found: str) -> None:
        """Record a path, unless it starts at the repository's root and so never needs rewriting."""
        bare = written.removeprefix(_SCHEME)
        if not bare.startswith("/"):
            self._found[bare, at] = found

    def moved(self, node: Node, to: Path) -> Node:
        """The node with its paths rewritten for a file in another directory."""
        if isinstance(node, ListNode):
            return ListNode([self.moved(item, to) for item in node.items], node.at)
        if isinstance(node, MapNode):
            return MapNode({key: self.moved(item, to) for key, item in node.items.items()}, node.keys, node.at)
        at = span_of(node.at)
        stays = Path(at.file).parent == to and not self.elsewhere
        if not isinstance(node.value, str) or not at.file or stays:
            return node
        for path, rest in _paths_in(node.value):
            found = self._found.get((path, at))
            if found is not None:
                text = node.value.replace(f"{path}{rest}", f"{_relative(found, to)}{rest}")
                return Scalar(text, text, node.at)
        return node


def _paths_in(text: str) -> Iterator[tuple[str, str]]:
    """The parts of a text that may be a path, each with the rest: `file.py` and `:function` in `file.py:function`."""
    bare = text.strip().removeprefix(_SCHEME)
    yield bare, ""
    path, colon, name = bare.rpartition(":")
    if colon:
        yield path, f":{name}"


def _relative(found: str, to: Path) -> str:
    path = Path(os.path.relpath(found, to)).as_posix()
    return path if path.startswith("../") else f"./{path}"


_TURNS = frozenset({"turns", "mode"})
"""Keys of a case whose turns contain its input."""


def with_inputs(head: Mapping[str, Node], cases: list[MapNode]) -> tuple[Mapping[str, Node], list[MapNode]]:
    """The header and the cases, with the suite's `input` moved from the header into each case, before its own input.

    Unchanged if every case has an input of its own, or the suite has `prompts`.
    """
    key = next((key for key in SUITE.spelled("input") if key in head), None)
    if key is None or is_empty(head[key]) or "prompts" in head or all(_has_own(case) for case in cases):
        return head, cases
    inputs = head[key]
    rest = {name: node for name, node in head.items() if name != key}
    return rest, [_with_input(case, inputs) for case in cases]


def _with_input(case: MapNode, inputs: Node) -> MapNode:
    own = _own_input(case)
    if own is None:
        identity = {key: node for key, node in case.items.items() if key in CASE.spelled("id")}
        items = {**identity, "input": inputs, **case.items}
        return MapNode(items, {**case.keys, "input": inputs.at}, case.at)
    inside = case.items.get("execution")
    places = [case, inside] if isinstance(inside, MapNode) else [case]
    values = (place.items.get("skip_defaults") for place in places)
    if any(isinstance(one, Scalar) and one.value is True for one in values):
        return case
    joined = ListNode([*messages_of(inputs), *messages_of(case.items[own])], case.items[own].at)
    return MapNode({**case.items, own: joined}, case.keys, case.at)


def _has_own(case: MapNode) -> bool:
    return _own_input(case) is not None or not _TURNS.isdisjoint(case.items)


def _own_input(case: MapNode) -> str | None:
    return next((key for key in CASE.spelled("input") if not is_empty(case.items.get(key))), None)


def messages_of(node: Node) -> list[Node]:
    """An input as a list of messages."""
    if isinstance(node, ListNode):
        return node.items
    if isinstance(node, MapNode) and "role" in node.items:
        return [node]
    items: dict[str, Node] = {"role": Scalar("user", "user", node.at), "content": node}
    return [MapNode(items, dict.fromkeys(items, node.at), node.at)]


_COLUMNS = ("__id", "__description", "__threshold", "__metric")
_THRESHOLD_KEYS = ("threshold", "min_score")
_THRESHOLD = re.compile(r"\d+(?:\.\d+)?")


class Table(Struct, frozen=True):
    """Cases as rows of a CSV file.

    Attributes:
        text: content of the CSV file.
        head: items of its sidecar.
        unsupported: (id of a case, key that cannot be written in a row); if there are any, the table is incomplete.
    """

    text: str
    head: Mapping[str, Node]
    unsupported: tuple[tuple[str, str], ...] = ()


def csv_table(head: Mapping[str, Node], cases: Sequence[MapNode]) -> Table:
    """The CSV file and the sidecar of a suite."""
    rows = [_Row(case) for case in cases]
    for row in rows:
        row.fill()
    variables = {name for row in rows for name in row.cells if not name.startswith("__")}
    for row in rows:  # an empty cell is an empty text
        row.unsupported += [f"vars.{name}" for name in sorted(variables - row.cells.keys())]
    inputs = _input_sidecar(rows, head)
    names = dict.fromkeys(name for row in rows for name in row.cells)
    columns = [name for name in _COLUMNS if name in names]
    columns += [name for name in names if not name.startswith("__")]
    columns += sorted((name for name in names if name.startswith("__") and name not in _COLUMNS), key=_column_order)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([row.cells.get(name, "") for name in columns] for row in rows)
    return Table(
        out.getvalue(), inputs, tuple((row.cells.get("__id", ""), key) for row in rows for key in row.unsupported)
    )


def _column_order(name: str) -> tuple[bool, int]:
    """Sort key of a column: `__expected` columns and their thresholds by number, then metadata."""
    number = re.search(r"expected(\d+)", name)
    return name.startswith("__metadata"), int(number[1]) if number else 0


class _Row(Struct):
    """A case as a row. `unsupported`: keys that cannot be written in a row."""

    case: MapNode
    cells: dict[str, str] = field(default_factory=dict)
    unsupported: list[str] = field(default_factory=list)
    input: Node | None = None

    def fill(self) -> None:
        """Fill in the cells, and collect the keys that have no column."""
        for key, node in self.case.items.items():
            canonical = CASE.older.get(key, key)
            if canonical == "input":
                self.input = None if is_empty(node) else node
            elif canonical == "assert":
                self._assertions(key, node)
            elif canonical in ("vars", "metadata"):
                self._mapping(key, canonical, node)
            elif canonical in ("id", "description", "threshold") and isinstance(node, Scalar) and _is_bare(node.text):
                self.cells[f"__{canonical}"] = node.text
            else:
                self.unsupported.append(key)

    def _mapping(self, key: str, canonical: str, node: Node) -> None:
        is_vars = canonical == "vars"
        if not isinstance(node, MapNode):
            self.unsupported += [] if is_empty(node) else [key]
            return
        for name, item in node.items.items():
            text = item.value if isinstance(item, Scalar) and isinstance(item.value, str) else None
            listed = _bare_texts(item) if isinstance(item, ListNode) and not is_vars else []
            if name != name.strip() or (is_vars and name.startswith("__")) or name.endswith("[]"):
                self.unsupported.append(f"{key}.{name}")
            elif text is not None and (is_vars or text.strip()):
                self.cells[name if is_vars else f"__metadata:{name}"] = text
            elif listed:
                self.cells[f"__metadata:{name}[]"] = ",".join(one.replace(",", "\\,") for one in listed)
            else:
                self.unsupported.append(f"{key}.{name}")

    def _assertions(self, key: str, node: Node) -> None:
        metrics: set[str | None] = set()
        for number, entry in enumerate(node.items if isinstance(node, ListNode) else [node]):
            found = _expected(entry) if isinstance(entry, MapNode) else None
            if found is None:
                self.unsupported.append(f"{key}[{number}]")
            else:
                self.cells[f"__expected{number + 1}"], metric = found
                metrics.add(metric)
        if len(metrics) > 1:  # a row has one name for all its assertions
            self.unsupported.append(f"{key}.name")
        elif metrics != {None} and metrics:
            self.cells["__metric"] = str(metrics.pop())


def _is_bare(text: str) -> bool:
    """Whether a text can be a cell: the reader strips white space and ignores an empty cell."""
    return bool(text) and text == text.strip()


def _bare_texts(node: ListNode) -> list[str]:
    """The items of a list if all are texts that can be a cell; otherwise an empty list."""
    texts = [item.text for item in node.items if isinstance(item, Scalar) and isinstance(item.value, str)]
    return texts if len(texts) == len(node.items) and all(map(_is_bare, texts)) else []


def _expected(entry: MapNode) -> tuple[str, str | None] | None:
    """The text of an `__expected` cell and the entry's name, or None if a cell cannot express the entry."""
    items = dict(entry.items)
    metric = items.pop("name", items.pop("metric", None))
    marks = [items.pop(key) for key in _THRESHOLD_KEYS if key in items]
    value: Node | None
    if "type" in items:
        kind, value = items.pop("type"), items.pop("value", None)
        name = kind.text if isinstance(kind, Scalar) else ""
    else:
        name, value = items.popitem() if items else ("", None)
    mark = next((one.text if isinstance(one, Scalar) else "" for one in marks), "1")
    text = "" if value is None or (isinstance(value, Scalar) and value.value is None) else _value(name, value)
    if items or name in ("", "include") or len(marks) > 1 or not _THRESHOLD.fullmatch(mark) or text is None:
        return None
    given = None if metric is None else plain(metric)
    written = f"{name}({mark})" if marks else name
    return f"{written}:{text}" if text else written, None if given is None else str(given)


def _value(name: str, value: Node) -> str | None:
    """The text after the colon for the value of an assertion, or None if it cannot be written there."""
    bare = name.replace("_", "-").rpartition("not-")[2]
    if isinstance(value, Scalar):
        return value.text if _is_bare(value.text) else None
    if isinstance(value, ListNode) and bare in LIST_TYPES:
        texts = [item.text for item in value.items if isinstance(item, Scalar)]
        fits = len(texts) == len(value.items) and all(_is_bare(text) and "," not in text for text in texts)
        return ",".join(texts) if fits else None
    return jsonl_text([value]).strip() if bare in DOCUMENTS else None


def _input_sidecar(rows: Sequence[_Row], head: Mapping[str, Node]) -> Mapping[str, Node]:
    """The items of the sidecar, with the input of all rows. Inputs that differ become a column, read as a variable."""
    key = next((key for key in SUITE.spelled("input") if key in head), None)
    before = messages_of(head[key]) if key is not None and not is_empty(head[key]) else []
    rest = {name: node for name, node in head.items() if name != key}
    given = [row.input for row in rows if row.input is not None]
    if not given:
        return head
    if len(given) == len(rows) and all(jsonl_text([given[0]]) == jsonl_text([node]) for node in given):
        return {**rest, "input": _with_messages_before(before, given[0])}
    taken = {name for row in rows for name in row.cells}
    name = next(name for name in chain(["input"], map("input_{}".format, count(2))) if name not in taken)
    for row in rows:
        if isinstance(row.input, Scalar) and isinstance(row.input.value, str) and not holds_placeholder(row.input):
            row.cells[name] = row.input.text
        else:
            row.unsupported.append("input")
    template = f"{{{{ {name} }}}}"
    return {**rest, "input": _with_messages_before(before, Scalar(template, template, NOWHERE))}


def _with_messages_before(before: list[Node], node: Node) -> Node:
    return ListNode([*before, *messages_of(node)], node.at) if before else node
