"""JSON Lines: one case a line, checked in one pass and read again when the run needs it, so that memory stays flat."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from agentv.model.span import Span
from agentv.model.suite import Case
from agentv.spec.nodes import Node, node_of
from agentv.spec.report import Report
from agentv.spec.yaml import read_yaml

SHOWN = 100
"""Bad lines that are reported one by one; the rest are counted."""

ReadCase = Callable[[Node, Report, str], Case | None]
"""(node, where mistakes go, id of a case that has none) → the case."""


class JsonlCases:
    """The cases of a JSONL file. Each pass reads the file anew."""

    def __init__(self, path: str, read_case: ReadCase) -> None:
        self.path = path
        self._read_case = read_case
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Case]:
        """The cases, in the order of the file.

        Raises:
            RuntimeError: the file was changed since it was checked, and a line is wrong now.
        """
        for number, line in self._lines():
            report = Report()
            value = _parsed(line, number, self.path, report)
            case = self._read_case(value, report, f"line-{number}") if value is not None else None
            if case is None:
                raise RuntimeError(f"{self.path}:{number} was changed while the run went on")
            yield case

    def check(self, report: Report) -> Iterable[Case]:
        """One pass over all lines: reports what is wrong, yields what is right."""
        bad = 0
        for number, line in self._lines():
            self._count += 1
            found = Report()
            case = self._checked(number, line, found)
            if case is not None:
                yield case
            if not found.count:
                continue
            bad += found.failed
            if bad <= SHOWN or not found.failed:
                for one in found.diagnostics:
                    report.add(one)
        if bad > SHOWN:
            place = Span(self.path, 1, 1, 1, 2)
            report.error("more-bad-lines", place, f"{bad} lines are wrong; the first {SHOWN} are shown")

    def _checked(self, number: int, line: bytes, found: Report) -> Case | None:
        value = _parsed(line, number, self.path, found)
        if value is None:
            return None
        case = self._read_case(value, found, f"line-{number}")
        if found.count:
            exact = Report()
            node = read_yaml(self.path, b"\n" * (number - 1) + line, exact)  # JSON is YAML, with columns
            if node is not None and not exact.count:
                case = self._read_case(node, exact, f"line-{number}")
                found.replace(exact)
        return case

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        with open(self.path, "rb") as file:  # noqa: PTH123  # a Path would add nothing
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, line


def _parsed(line: bytes, number: int, path: str, report: Report) -> Node | None:
    at = Span(path, number, 1, number, 2)
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        report.error("not-utf-8", at, f"not UTF-8 (byte {error.start + 1} of the line)")
        return None
    try:
        value = json.loads(text, object_pairs_hook=_Once(at, report), parse_constant=_refuse)
    except json.JSONDecodeError as error:
        place = Span(path, number, error.colno, number, error.colno + 1)
        report.error("bad-json", place, f"not JSON: {error.msg}")
        return None
    except RecursionError:
        report.error("too-deep", at, "nested too deep")
        return None
    except ValueError as error:
        report.error("bad-json", at, f"not JSON: {error}")
        return None
    return node_of(value, at)


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
