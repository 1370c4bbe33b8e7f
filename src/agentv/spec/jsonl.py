"""JSON Lines: one case a line, checked in one pass and read again when the run needs it, so that memory stays flat."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from agentv.errors import Diagnostic, LoadError
from agentv.model.span import Span
from agentv.model.suite import Case
from agentv.spec.nodes import ListNode, MapNode, Node, Scalar, WrittenFloat, node_of, span_of, written
from agentv.spec.report import Report
from agentv.spec.yaml import DEPTH_LIMIT, read_yaml

SHOWN = 100
"""Lines whose mistakes are reported one by one; the rest are counted."""

HELD = 20_000
"""Cases of one file that are held in memory; a longer file is read again instead."""

ReadCase = Callable[[Node, Report, bool], Case | None]
"""(node, where mistakes go, whether it holds placeholders) → the case."""


class JsonlCases:
    """The cases of a JSONL file. A long one is read anew at each pass."""

    def __init__(self, path: str, read_case: ReadCase) -> None:
        self.path = path
        self._read_case = read_case
        self._count = 0
        self._held: list[Case] | None = []

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Case]:
        """The cases, in the order of the file.

        Raises:
            LoadError: the file was changed since it was checked, and a line is wrong now.
        """
        if self._held is not None:
            yield from self._held
            return
        for number, line in self._lines():
            report = Report()
            case = self._read(number, line, report)
            if case is None or report.failed:
                message = "this line was changed while the run went on, and is wrong now"
                raise LoadError([Diagnostic("file-changed", message, Span(self.path, number, 1, number, 2))])
            yield case

    def check(self, report: Report) -> Iterable[Case]:
        """One pass over all lines: reports what is wrong, yields what is right."""
        noted = bad = 0
        for number, line in self._lines():
            self._count += 1
            found = Report()
            case = self._read(number, line, found)
            if case is not None:
                self._hold(case)
                yield case
            if not found.count:
                continue
            noted += 1
            bad += found.failed
            if noted <= SHOWN:
                found = self._located(number, line, found)
            if noted <= SHOWN or (found.failed and bad <= SHOWN):
                for one in found.diagnostics:
                    report.add(one)
        if bad > SHOWN:
            message = f"{bad:,} lines are wrong; the mistakes of the first {SHOWN} are shown"
            report.error("more-bad-lines", Span(self.path, 1, 1, 1, 2), message)
        elif noted > SHOWN:
            message = f"{noted:,} lines are remarked on; the remarks on the first {SHOWN} are shown"
            report.warning("more-bad-lines", Span(self.path, 1, 1, 1, 2), message)

    def _hold(self, case: Case) -> None:
        if self._held is None or len(self._held) >= HELD:
            self._held = None
        else:
            self._held.append(case)

    def line_of(self, identity: str, keys: Iterable[str]) -> int | None:
        """The first line whose object has this id under one of the keys."""
        for number, line in self._lines():
            value = _loose(line)
            if isinstance(value, dict) and any(key in value and written(value[key]) == identity for key in keys):
                return number
        return None

    def _read(self, number: int, line: bytes, found: Report) -> Case | None:
        value = _parsed(line, number, self.path, found)
        return None if value is None else self._read_case(value, found, _holds_placeholder(line))

    def _located(self, number: int, line: bytes, found: Report) -> Report:
        """The same mistakes with their columns, since JSON is YAML: read again as that, where it can be."""
        exact, moved = Report(), Report()
        node = read_yaml(self.path, line, exact) if _parsed(line, number, self.path, Report()) is not None else None
        if node is None:
            return found
        for one in exact.diagnostics:
            moved.add(replace(one, span=one.span and _down(one.span, number - 1)))
        self._read_case(_moved(node, number - 1), moved, _holds_placeholder(line))
        return moved if _errors(moved) == _errors(found) else found

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        with open(self.path, "rb") as file:  # noqa: PTH123  # a Path would add nothing
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, line


def _errors(report: Report) -> int:
    return sum(one.severity == "error" for one in report.diagnostics)


def _moved(node: Node, lines: int) -> Node:
    """The node so many lines further down."""
    at = _down(span_of(node.at), lines)
    if isinstance(node, Scalar):
        return Scalar(node.value, node.text, at)
    if isinstance(node, ListNode):
        return ListNode([_moved(item, lines) for item in node.items], at)
    items = {key: _moved(item, lines) for key, item in node.items.items()}
    return MapNode(items, {key: _down(span_of(place), lines) for key, place in node.keys.items()}, at)


def _down(span: Span, lines: int) -> Span:
    return span._replace(line=span.line + lines, end_line=span.end_line + lines)


def _parsed(line: bytes, number: int, path: str, report: Report) -> Node | None:
    at = Span(path, number, 1, number, 2)
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        report.error("not-utf-8", at, f"not UTF-8 (byte {error.start + 1} of the line)")
        return None
    if nested_too_deep(text):
        report.error("too-deep", at, f"nested more than {DEPTH_LIMIT} levels deep")
        return None
    try:
        value = json.loads(text, object_pairs_hook=_Once(at, report), parse_constant=_refuse, parse_float=WrittenFloat)
    except json.JSONDecodeError as error:
        place = Span(path, number, error.colno, number, error.colno + 1)
        report.error("bad-json", place, f"not JSON: {error.msg[:1].lower()}{error.msg[1:].removesuffix(' at')}")
        return None
    except ValueError as error:
        digits = "digits" in str(error)  # Python's own limit, in words for programmers
        report.error("bad-json", at, "a number has too many digits" if digits else f"not JSON: {error}")
        return None
    return node_of(value, at)


def nested_too_deep(text: str) -> bool:
    """Whether JSON text holds more levels than what walks the nodes can bear; parsed, it would be too late."""
    if text.count("[") + text.count("{") <= DEPTH_LIMIT:
        return False
    depth = deepest = 0
    quoted = escaped = False
    for letter in text:
        if quoted:
            quoted = escaped or letter != '"'
            escaped = letter == "\\" and not escaped
        elif letter == '"':
            quoted = True
        elif letter in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif letter in "]}":
            depth -= 1
    return deepest > DEPTH_LIMIT


def _holds_placeholder(line: bytes) -> bool:
    return b"{{" in line or b"{%" in line


def _loose(line: bytes) -> Any:
    try:
        return json.loads(line, parse_float=str)
    except (ValueError, RecursionError):
        return None


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


class _Once:
    """Makes dicts of pairs, and reports a key that stands twice."""

    def __init__(self, at: Span, report: Report) -> None:
        self._at = at
        self._report = report

    def __call__(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    self._report.error("duplicate-key", self._at, f"'{key}' stands twice in one object")
                seen.add(key)
        return made
