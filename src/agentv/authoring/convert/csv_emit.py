"""Cases as the rows of a CSV file, by promptfoo's columns (SPEC section 2), and what no column can say.

The other way round is `csv_cases`.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from itertools import chain, count

from msgspec import Struct, field

from agentv.authoring.cases.data_files.csv_table import DOCUMENTS, LIST_TYPES
from agentv.authoring.convert.emit import jsonl_text, messages_of
from agentv.authoring.fields.spellings import CASE, SUITE
from agentv.authoring.source.nodes import NOWHERE, ListNode, MapNode, Node, Scalar, holds_placeholder, is_empty, plain

_COLUMNS = ("__id", "__description", "__threshold", "__metric")
_MARKS = ("threshold", "min_score")
_BESIDE = frozenset({"weight", "required", "negate", "timeout_s", "transform"})
_MARK = re.compile(r"\d+(?:\.\d+)?")
_HELD = frozenset({"id", "description", "threshold", "vars", "metadata", "assert", "input"})


class UnsupportedValue(Struct, frozen=True):
    """A value that a row cannot represent.

    Attributes:
        case: its id.
        key: key of the case.
        reason: why not.
    """

    case: str
    key: str
    reason: str


class Table(Struct, frozen=True):
    """Cases as rows.

    Attributes:
        text: the CSV file.
        head: the keys of its sidecar.
        unsaid: what no column can say; the table is of no use then.
    """

    text: str
    head: Mapping[str, Node]
    unsaid: tuple[UnsupportedValue, ...] = ()


def csv_table(head: Mapping[str, Node], cases: Sequence[MapNode]) -> Table:
    """The rows and the sidecar of a suite."""
    rows = [_Row(case) for case in cases]
    for row in rows:
        row.fill()
    _refuse_missing_variables(rows)
    inputs = _input_sidecar(rows, head)
    names = dict.fromkeys(name for row in rows for name in row.cells)
    columns = [name for name in _COLUMNS if name in names]
    columns += [name for name in names if not name.startswith("__")]
    columns += sorted((name for name in names if name.startswith("__") and name not in _COLUMNS), key=_place)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([row.cells.get(name, "") for name in columns] for row in rows)
    return Table(out.getvalue(), inputs, tuple(one for row in rows for one in row.unsaid))


def _place(name: str) -> tuple[bool, int]:
    """Expected first, by their numbers; a threshold behind what it is for."""
    number = re.search(r"expected(\d+)", name)
    return name.startswith("__metadata"), int(number[1]) if number else 0


class _Row(Struct):
    case: MapNode
    cells: dict[str, str] = field(default_factory=dict)
    unsaid: list[UnsupportedValue] = field(default_factory=list)
    input: Node | None = None
    id: str = ""

    def fill(self) -> None:
        """The cells of all that has a column."""
        for key, node in self.case.items.items():
            canonical = CASE.older.get(key, key)
            if canonical == "id":
                self.id = node.text if isinstance(node, Scalar) else ""
        for key, node in self.case.items.items():
            canonical = CASE.older.get(key, key)
            if canonical not in _HELD:
                self.refuse(key, "no column represents it")
            elif canonical == "input":
                self.input = None if is_empty(node) else node
            elif canonical == "assert":
                self._assertions(key, node)
            elif canonical in ("vars", "metadata"):
                self._mapping(key, canonical, node)
            elif isinstance(node, Scalar):
                self._cell(key, f"__{canonical}", node.text)

    def refuse(self, key: str, reason: str) -> None:
        """One thing that cannot be said."""
        self.unsaid.append(UnsupportedValue(self.id, key, reason))

    def _cell(self, key: str, column: str, text: str) -> None:
        if text != text.strip() or not text:
            self.refuse(
                key, "white space at the start or end of a cell is lost" if text else "an empty cell is ignored"
            )
        self.cells[column] = text

    def _mapping(self, key: str, canonical: str, node: Node) -> None:
        if not isinstance(node, MapNode):
            if not is_empty(node):
                self.refuse(key, "it is not a mapping")
            return
        for name, item in node.items.items():
            way = f"{key}.{name}"
            if name != name.strip() or (canonical == "vars" and name.startswith("__")) or name.endswith("[]"):
                self.refuse(way, "no column can have this name")
            elif canonical == "metadata" and isinstance(item, ListNode):
                self._list(way, f"__metadata:{name}[]", item)
            elif not isinstance(item, Scalar) or not isinstance(item.value, str):
                self.refuse(way, "a cell can only contain text")
            elif canonical == "vars":
                self.cells[name] = item.value
            elif not item.value.strip():
                self.refuse(way, "an empty cell is ignored")
            else:
                self.cells[f"__metadata:{name}"] = item.value

    def _list(self, way: str, column: str, node: ListNode) -> None:
        texts = [item.value for item in node.items if isinstance(item, Scalar) and isinstance(item.value, str)]
        if len(texts) < len(node.items) or not texts or any(text != text.strip() or not text for text in texts):
            self.refuse(way, "a list in a cell can only contain texts without leading or trailing white space")
        self.cells[column] = ",".join(text.replace(",", "\\,") for text in texts)

    def _assertions(self, key: str, node: Node) -> None:
        if not isinstance(node, ListNode):
            self.refuse(key, "it is not a list")
            return
        metrics: set[str | None] = set()
        for number, entry in enumerate(node.items, 1):
            found = _expected(entry)
            if isinstance(found, _Unfit):
                self.refuse(f"{key}[{number - 1}]", found.reason)
                continue
            text, metric = found
            metrics.add(metric)
            self.cells[f"__expected{number}"] = text
        if len(metrics) > 1:
            self.refuse(key, "a row has one name for all its assertions")
        elif metrics != {None} and metrics:
            self.cells["__metric"] = str(metrics.pop())


class _Unfit(Struct, frozen=True):
    reason: str


def _expected(entry: Node) -> tuple[str, str | None] | _Unfit:
    """The text of an `__expected` cell, and the name that the entry has."""
    if not isinstance(entry, MapNode):
        return _Unfit("a sentence has no short form: write it as llm-rubric")
    items = dict(entry.items)
    metric = items.pop("name", items.pop("metric", None))
    kind = items.pop("type", None)
    if kind is None:
        marks = {key: items.pop(key) for key in _MARKS if key in items}
        beside = [key for key in items if key in _BESIDE]
        if beside or len(items) != 1:
            return _Unfit(f"'{', '.join(beside or items)}' of an assertion has no short form")
        ((name, value),) = items.items()
        items = {"value": value, **marks}
    else:
        name = kind.text if isinstance(kind, Scalar) else ""
    others = [key for key in items if key not in ("value", *_MARKS)]
    if others or name == "include" or len(items.keys() & set(_MARKS)) > 1:
        return _Unfit(f"'{(others or [name])[0]}' of an assertion has no short form")
    mark = next((items[key] for key in _MARKS if key in items), None)
    given = plain(metric) if metric is not None else None
    text = _short(name, items.get("value"), mark)
    return text if isinstance(text, _Unfit) else (text, None if given is None else str(given))


def _short(name: str, value: Node | None, mark: Node | None) -> str | _Unfit:
    if mark is not None:
        if not isinstance(mark, Scalar) or not _MARK.fullmatch(mark.text):
            return _Unfit("its threshold is not a plain number")
        name = f"{name}({mark.text})"
    if value is None or (isinstance(value, Scalar) and value.value is None):
        return name
    text = _value(name.partition("(")[0], value)
    return text if isinstance(text, _Unfit) else f"{name}:{text}"


def _value(name: str, value: Node) -> str | _Unfit:
    bare = name.replace("_", "-").rpartition("not-")[2]
    if isinstance(value, ListNode) and bare in LIST_TYPES:
        texts = [item.text for item in value.items if isinstance(item, Scalar)]
        if len(texts) < len(value.items) or any("," in text or text != text.strip() or not text for text in texts):
            return _Unfit("an item with a comma, or with leading or trailing white space, has no short form")
        return ",".join(texts)
    if isinstance(value, Scalar):
        if value.text != value.text.strip() or not value.text:
            return _Unfit("leading and trailing white space of a value is lost")
        return value.text
    if bare in DOCUMENTS:
        return jsonl_text([value]).strip()
    return _Unfit(f"a list or mapping as the value of '{name}' has no short form")


def _refuse_missing_variables(rows: Sequence[_Row]) -> None:
    names = {name for row in rows for name in row.cells if not name.startswith("__")}
    for row in rows:
        for name in sorted(names - row.cells.keys()):
            row.refuse(f"vars.{name}", "other cases set it, and an empty cell would be read as empty text")


def _input_sidecar(rows: Sequence[_Row], head: Mapping[str, Node]) -> Mapping[str, Node]:
    """The sidecar with what all rows are asked. Where inputs differ, they are a column, which is a variable then."""
    key = next((key for key in SUITE.spelled("input") if key in head), None)
    before = messages_of(head[key]) if key is not None and not is_empty(head[key]) else []
    rest = {name: node for name, node in head.items() if name != key}
    given = [row.input for row in rows if row.input is not None]
    if not given:
        return head
    if len(given) == len(rows) and all(_alike(given[0], node) for node in given):
        return {**rest, "input": _behind(before, given[0])}
    for row in rows:
        if row.input is None:
            row.refuse("input", "other cases have their own")
        elif not isinstance(row.input, Scalar) or not isinstance(row.input.value, str):
            row.refuse("input", "messages have no column")
        elif holds_placeholder(row.input):
            row.refuse("input", "a cell cannot contain a template, and other cases have a different input")
    taken = {name for row in rows for name in row.cells}
    name = next(name for name in chain(["input"], map("input_{}".format, count(2))) if name not in taken)
    for row in rows:
        row.cells[name] = row.input.text if isinstance(row.input, Scalar) else ""
    template = f"{{{{ {name} }}}}"
    return {**rest, "input": _behind(before, Scalar(template, template, NOWHERE))}


def _alike(one: Node, other: Node) -> bool:
    return jsonl_text([one]) == jsonl_text([other])


def _behind(before: list[Node], node: Node) -> Node:
    return ListNode([*before, *messages_of(node)], node.at) if before else node
