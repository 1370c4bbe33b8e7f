"""Reads records from files of samples: JSON Lines, CSV, Parquet, Arrow and JSON lists.

All but JSON lists are read record by record, so that memory does not grow with the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.authoring.cases.data_files.csv_table import CsvTable
from agentv.authoring.cases.data_files.jsonl import JsonLines
from agentv.authoring.cases.data_files.rows import WrongValue, missing_library
from agentv.authoring.source.files import ARROW, PARQUET
from agentv.authoring.source.json_text import parse_json, read_json
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Place, Scalar, kind_of, mapping, node_of, span_of
from agentv.authoring.source.report import Report
from agentv.errors import Diagnostic, UsageError
from agentv.model.values.values import Json, Span

MOST_FINDINGS = 100
"""Maximum number of different findings that are kept for a file; further ones are only counted."""

LISTED_LINES = 10
"""Maximum number of further lines that are listed for a finding."""


class _Finding(Struct):
    first: Diagnostic
    lines: list[int] = field(default_factory=list)
    count: int = 1


class Findings(Report):
    """Diagnostics of a file of samples. Equal ones are combined, with a list of their lines."""

    _found: dict[tuple[str, str], _Finding] = field(default_factory=dict)
    _unlisted: int = 0

    def omitted(self, at: Node | Place, message: str, hint: str | None = None) -> None:
        """Warn of something that is omitted without changing a verdict."""
        self.warning("no-equivalent", at, message, hint)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The kept findings, in the order in which they were added."""
        found = [_with_lines(one) for one in self._found.values()]
        if self._unlisted and found:
            at = found[0].span
            found.append(Diagnostic("more-bad-lines", f"{self._unlisted:,} further findings are not listed", at))
        return tuple(found)

    def add(self, found: Diagnostic) -> None:
        """Add a finding, or only its line if it is known."""
        self.failed = self.failed or found.severity == "error"
        known = self._found.get((found.code, found.message))
        if known is None and len(self._found) >= MOST_FINDINGS:
            self._unlisted += 1
        elif known is None:
            self._found[found.code, found.message] = _Finding(found)
        else:
            known.count += 1
            line = found.span.line if found.span is not None else 0
            if len(known.lines) < LISTED_LINES and line not in (known.first.span and known.first.span.line, 0):
                known.lines.append(line)


def _with_lines(finding: _Finding) -> Diagnostic:
    lines = list(dict.fromkeys(finding.lines))
    if not lines:
        return finding.first
    more = finding.count - 1 - len(finding.lines)
    rest = f" and {more:,} more" if more > 0 else ""
    note = f"also at line{'s' if len(lines) > 1 or more > 0 else ''} {', '.join(map(str, lines))}{rest}"
    return replace(finding.first, notes=(*finding.first.notes, note))


SUFFIXES = (".jsonl", ".json", ".csv", *PARQUET, *ARROW)
_LONGEST_LOCATED = 2_000_000
"""Maximum length of a JSON text, in characters, in which every node gets its own position."""
LISTS = ("goldens", "samples", "data")
"""Keys under which a JSON object may hold the list of samples."""


def records(path: str, findings: Findings) -> Iterator[MapNode]:
    """The records of a file, in order. Items that are not objects are reported and omitted.

    Raises:
        OSError: the file cannot be read.
    """
    for node in _READERS[Path(path).suffix](path, findings):
        if isinstance(node, MapNode):
            yield node
        else:
            findings.error("bad-case", node, f"a sample must be an object, found {kind_of(node)}")


def first_record(path: str, findings: Findings) -> MapNode | None:
    """The first record of a file, or None if none exists. Errors are reported.

    Raises:
        OSError: the file cannot be read.
    """
    return next(islice(records(path, findings), 1), None)


def _lines(path: str, findings: Findings) -> Iterator[Node]:
    source = JsonLines(path)
    for number, line in source.records(Report()):
        node = source.node(number, line, findings)
        if node is not None:
            yield node


def _list(path: str, findings: Findings) -> Iterator[Node]:
    root = listed(json_root(path, findings))
    if isinstance(root, ListNode):
        yield from root.items
    elif root is not None:
        findings.error("bad-value", root, f"the file must be a list of samples, found {kind_of(root)}")


def listed(root: Node | None) -> Node | None:
    """The list of samples in a JSON object, or the node itself if it has no such list, or more than one."""
    lists = [node for key in LISTS if isinstance(node := root.get(key), ListNode)] if isinstance(root, MapNode) else []
    return lists[0] if len(lists) == 1 else root


def json_root(path: str, findings: Findings) -> Node | None:
    """The root node of a JSON file, or None after reporting that it is invalid.

    Raises:
        OSError: the file cannot be read.
    """
    top = Span.start_of(path)
    try:
        content = Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        findings.error("not-utf-8", top, f"not UTF-8 (byte {error.start + 1})", "save the file as UTF-8")
        return None
    small = len(content) <= _LONGEST_LOCATED
    return read_json(path, content, findings).value if small else parse_json(content, top, findings)


def _rows(path: str, findings: Findings) -> Iterator[Node]:
    table = CsvTable(path)
    names = [name.strip() for name in table.header(findings) or ()]
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice is not None:
        findings.error("duplicate-key", Span.start_of(path), f"two columns are named '{twice}'")
        names = []
    for line, cells in table.rows(findings) if names else ():
        at = Span(path, line, 1, line, 2)
        if isinstance(cells, WrongValue):
            findings.error(table.code, at, cells.message, cells.hint)
        else:
            yield mapping({name: text(str(cell), at) for name, cell in zip(names, cells, strict=True) if name}, at)


def _table(path: str, findings: Findings) -> Iterator[Node]:
    from agentv.authoring.cases.data_files.binary_tables import ArrowTable

    missing = missing_library(path)
    if missing is not None:
        raise UsageError(missing.message, missing.hint)
    table, top = ArrowTable(path), Span(path, 1, 1, 1, 1)
    names = table.header(findings) or ()
    for number, values in table.rows(findings) if names else ():
        known: dict[str, Json] = {}
        for name, value in zip(names, values, strict=True):
            if isinstance(value, WrongValue):
                findings.error(table.code, top, f"row {number}, column '{name}': {value.message}", value.hint)
            else:
                known[name] = value
        if len(known) == len(names):
            yield node_of(known, Span(path, number, 1, number, 1))


_READERS: dict[str, Callable[[str, Findings], Iterator[Node]]] = {
    ".jsonl": _lines,
    ".json": _list,
    ".csv": _rows,
    **dict.fromkeys((*PARQUET, *ARROW), _table),
}


def text(value: str, at: Node | Place) -> Scalar:
    """A text with the position of another node."""
    place = at.at if isinstance(at, Scalar | ListNode | MapNode) else at
    return Scalar(value, value, span_of(place))
