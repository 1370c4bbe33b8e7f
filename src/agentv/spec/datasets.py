"""Where the cases of a suite are: in the eval file, in YAML and JSONL files, or in a mix of them (SPEC section 3)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from glob import glob, has_magic
from itertools import chain
from pathlib import Path

from agentv.model.span import Span
from agentv.model.suite import Case, Cases
from agentv.spec.cases import CaseReader
from agentv.spec.files import DiskReader, shown
from agentv.spec.ids import IdTable
from agentv.spec.jsonl import SHOWN, JsonlCases
from agentv.spec.nodes import ListNode, MapNode, Node, Scalar, holds_placeholder, is_empty, kind_of, span_of
from agentv.spec.reading import GIT_URL, Reading
from agentv.spec.report import Report
from agentv.spec.spellings import CASE
from agentv.spec.yaml import read_yaml

_NOT_YET = {
    r"\.csv$": "CSV files are",
    r"\.py(?::\w+)?$": "cases out of Python are",
    r"\.json$": "cases in one JSON file are",
    GIT_URL.pattern: "files out of a git host are",
}
_HELD = (".yaml", ".yml", ".jsonl", ".csv")
"""Suffixes of files that hold cases: what a pattern selects; other files may lie beside them."""


class ManyCases:
    """Cases out of several sources, in their order."""

    def __init__(self, parts: list[list[Case] | JsonlCases]) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return sum(len(part) for part in self._parts)

    def __iter__(self) -> Iterator[Case]:
        return chain.from_iterable(self._parts)


class CaseSources:
    """Collects the cases of one suite, wherever `tests:` says they are.

    Args:
        path: of the eval file.
        reader: turns nodes into cases.
        reading: of the suite.
        disk: remembers what was read.

    Attributes:
        tally: how many cases have which `repeat` of their own, and whether they have a target of their own.
    """

    def __init__(self, path: str, reader: CaseReader, reading: Reading, disk: DiskReader) -> None:
        self._path = path
        self._reader = reader
        self._reading = reading
        self._disk = disk
        self._parts: list[list[Case] | JsonlCases] = []
        self._ids = IdTable()
        self._doubled = 0
        self.tally: Counter[tuple[int | None, bool]] = Counter()

    @property
    def cases(self) -> Cases:
        """What was found."""
        return self._parts[0] if len(self._parts) == 1 else ManyCases(self._parts)

    def take(self, node: Node) -> None:
        """What `tests:` says."""
        if isinstance(node, ListNode):
            for item in node.items:
                self.add(item)
        elif isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip():
            self._elsewhere(node)
        else:
            message = f"'tests' must be a list of cases, or where they are, found {kind_of(node)}"
            hint = "each case begins with '- '" if isinstance(node, MapNode) else None
            self._reading.report.error("bad-value", node, message, hint=hint)

    def add(self, node: Node) -> None:
        """One item of the list: a case, or where more are."""
        if isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip():
            self._elsewhere(node)
        else:
            self._keep(self._reader.read(node, self._reading))

    def jsonl(self, path: str) -> None:
        """All cases of a JSONL file, which is read in one pass now and again when they run."""
        reading = self._reading

        def read_case(node: Node, report: Report, renders: bool) -> Case | None:
            return self._reader.read(node, replace(reading, report=report, renders=renders or reading.renders))

        try:
            self._disk.remember(path)
        except OSError as error:
            reading.report.error("missing-file", _top(path), f"cannot read {shown(path)}: {error.strerror}")
            return
        cases = JsonlCases(path, read_case)
        self._parts.append(cases)
        for case in cases.check(reading.report):
            self._register(case)
        if not len(cases):
            reading.report.error("no-tests", _top(path), "this file holds no case")

    def end(self) -> None:
        """All was read: say how many double ids were left out of the report."""
        if self._doubled > SHOWN:
            message = f"{self._doubled:,} cases have the id of another one; the first {SHOWN} are shown"
            self._reading.report.error("duplicate-id", _top(self._path), message)

    def _keep(self, case: Case | None) -> None:
        if case is None:
            return
        self._register(case)
        if not self._parts or not isinstance(self._parts[-1], list):
            self._parts.append([])
        self._parts[-1].append(case)  # type: ignore[union-attr]  # a list, as the line above sees to

    def _register(self, case: Case) -> None:
        self.tally[case.repeat, case.target is not None] += 1
        if not self._ids.seen(case.id):
            return
        self._doubled += 1
        if self._doubled > SHOWN:
            return
        first = self._first(case)
        if first is None:
            self._doubled -= 1  # another id with the same hash
            return
        where = f"; the first is at {shown(first.file)}:{first.line}" if first != case.span else ""
        self._reading.report.error("duplicate-id", case.span, f"two cases have the id '{case.id}'{where}")

    def _first(self, case: Case) -> Span | None:
        """Where the id of a case that is not kept yet stands already."""
        for part in self._parts:
            if isinstance(part, JsonlCases):
                line = part.line_of(case.id, CASE.spelled("id"))
                span = Span(part.path, line, 1, line, 2) if line is not None else None
                if span is not None and span != case.span:
                    return span
            else:
                found = next((one.span for one in part if one.id == case.id), None)
                if found is not None:
                    return found
        return None

    def _elsewhere(self, node: Scalar) -> None:
        """Cases in other files: a path or a glob of YAML and JSONL."""
        for path in self._matching(node, node.text.strip().removeprefix("file://")):
            unbuilt = next((what for pattern, what in _NOT_YET.items() if re.search(pattern, path)), None)
            if unbuilt is not None or Path(path).is_dir():
                what = unbuilt or "a directory of cases is"
                self._reading.report.error("not-yet", node, f"{what} known and not supported yet")
            elif path.endswith(".jsonl"):
                self.jsonl(path)
            else:
                self._yaml_cases(path, node)

    def _matching(self, node: Scalar, written: str) -> list[str]:
        places = self._reading.places
        if any(re.search(pattern, written) for pattern in _NOT_YET):
            return [written]  # refused for what it is, whether it exists or not
        literal, _ = places.find(written, span_of(node.at).file)
        if literal is not None or not has_magic(written):
            found = literal or self._reading.find(node, "file")
            if found == self._path:
                message = f"'{node.text}' is this very file; 'tests' names another one, or is a list"
                self._reading.report.error("bad-value", node, message)
                return []
            return [found] if found else []
        base = places.root if written.startswith("/") else str(Path(span_of(node.at).file).parent)
        matched = sorted(glob(written.lstrip("/"), root_dir=base, recursive=True))  # noqa: PTH207  # Path.glob raises
        paths = [str(Path(base) / path) for path in matched if path.endswith(_HELD)]
        paths = [path for path in paths if path != self._path]
        if not paths:
            self._reading.report.error("missing-file", node, f"no file matches '{written}' in {shown(base)}")
        return paths

    def _yaml_cases(self, path: str, node: Scalar) -> None:
        reading = self._reading
        text = reading.text_of(path, node)
        if text is None:
            return
        errors = reading.report.errors
        root = read_yaml(path, text.encode(), reading.report)
        if root is None and reading.report.errors > errors:
            return
        if root is None or is_empty(root) or isinstance(root, Scalar):
            reading.report.error("no-tests", node, f"'{node.text}' holds no case")
            return
        reading = reading.rendering(reading.renders or holds_placeholder(root))
        for item in root.items if isinstance(root, ListNode) else [root]:
            self._keep(self._reader.read(item, reading))


def _top(path: str) -> Span:
    return Span(path, 1, 1, 1, 2)
