"""JSON Lines: one case a line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO

from agentv.authoring.cases.data_files.rows import RowKeys
from agentv.authoring.cases.streamed import at_line, down
from agentv.authoring.source.json_text import parse_json, read_json
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, span_of, written
from agentv.authoring.source.report import Report
from agentv.errors import Diagnostic
from agentv.model.values.span import Span


class JsonLines:
    """The format of a JSONL file.

    Args:
        path: of the file.
        id_keys: all keys that can contain a case's id.
        opened: opens the file; None: from disk.
        extra: keeps unknown keys, if the lines are data; None: they are errors.
    """

    unit = "line"

    def __init__(
        self,
        path: str,
        id_keys: Iterable[str] = ("id",),
        opened: Callable[[str], BinaryIO] | None = None,
        extra: RowKeys | None = None,
    ) -> None:
        self.path = path
        self._extra = extra
        self._id_keys = tuple(id_keys)
        self._opened = opened or _from_disk

    def records(self, report: Report) -> Iterator[tuple[int, bytes]]:
        """The lines that are not blank."""
        with self._opened(self.path) as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, line
        if self._extra is not None:
            self._extra.warn(report)

    def node(self, number: int, record: bytes, report: Report) -> Node | None:
        """Content of the line."""
        node = parsed_line(record, number, self.path, report)
        if node is None or self._extra is None:
            return node
        return self._extra.kept(node, report, lambda: self._placed(number, record, Report()))

    def exact(self, number: int, record: bytes, report: Report) -> Node | None:
        """The same with columns."""
        node = self._placed(number, record, report)
        return node if node is None or self._extra is None else self._extra.kept(node, report, lambda: node)

    def _placed(self, number: int, record: bytes, report: Report) -> Node | None:
        text = _decoded(record, number)
        if isinstance(text, UnicodeDecodeError):
            return None
        found = Report()
        node = read_json(self.path, text, found).value
        for one in found.diagnostics:
            report.add(at_line(one, number - 1))
        return None if node is None else _moved(node, number - 1)

    def renders(self, record: bytes) -> bool:
        """Whether lines may contain placeholders."""
        return b"{{" in record or b"{%" in record

    def identity(self, record: bytes) -> str | None:
        """The id that the line gives."""
        value = _loose(record)
        keys = (key for key in self._id_keys if key in value) if isinstance(value, dict) else ()
        return next((written(value[key]) for key in keys), None)

    def reworded(self, record: bytes, found: Diagnostic) -> Diagnostic:
        """Unchanged: a line number is enough."""
        del record
        return found


def _moved(node: Node, lines: int) -> Node:
    """The node so many lines further down."""
    at = down(span_of(node.at), lines)
    if isinstance(node, Scalar):
        return Scalar(node.value, node.text, at)
    if isinstance(node, ListNode):
        return ListNode([_moved(item, lines) for item in node.items], at)
    items = {key: _moved(item, lines) for key, item in node.items.items()}
    return MapNode(items, {key: down(span_of(place), lines) for key, place in node.keys.items()}, at)


def _decoded(line: bytes, number: int) -> str | UnicodeDecodeError:
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        return error


def parsed_line(line: bytes, number: int, path: str, report: Report) -> Node | None:
    """The content of a line, all of it at its beginning; None where it cannot be read, which is reported."""
    at = Span(path, number, 1, number, 2)
    text = _decoded(line, number)
    if isinstance(text, UnicodeDecodeError):
        report.error("not-utf-8", at, f"not UTF-8 (byte {text.start + 1} of the line)")
        return None
    return parse_json(text, at, report)


def _loose(line: bytes) -> Any:
    try:
        return json.loads(line, parse_float=str)
    except (ValueError, RecursionError):
        return None


def _from_disk(path: str) -> BinaryIO:
    return open(path, "rb")  # noqa: PTH123  # a Path would add nothing; whoever asked closes it
