"""Read CSV files, with Python's strict `csv` reader, and promptfoo's assertions in their cells."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import BinaryIO

from msgspec import Struct
from msgspec.structs import replace

from agentv.authoring.assertions.typed_entries import AssertionTypes
from agentv.authoring.cases.data_files.rows import LARGEST_VALUE, TableRow, Value, WrongValue
from agentv.authoring.source.json_text import parse_json
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import resolve
from agentv.matching.spelling import nearest
from agentv.model.values.formatting import plural
from agentv.model.values.values import Span

_PREFIXES = {"javascript": "javascript", "fn": "javascript", "eval": "javascript", "grade": "llm-rubric"}
"""Prefixes before a colon that promptfoo also accepts as types, even if the project has a type of that name."""

LIST_TYPES = frozenset({"contains-any", "contains-all", "icontains-any", "icontains-all"})
"""Types whose value is a comma-separated list."""

DOCUMENTS = frozenset({"is-json", "contains-json", "json-schema", "json-match"})
"""Types whose value may be JSON."""

_PROMPTFOO_ONLY = (
    *("classifier", "moderation", "perplexity", "perplexity-score", "ruby", "guardrails", "is-valid-function-call"),
    *("is-valid-openai-function-call", "is-valid-openai-tools-call", "model-graded-closedqa"),
    *("model-graded-factuality", "conversation-relevance", "search-rubric"),
)
"""Types of promptfoo that agentv lacks. They are reported as unknown, instead of being compared as text."""

_FILE = re.compile(r"file://.*\.(?:(?P<python>py)|[cm]?[jt]s)(?::\w[\w.]*)?")
_BEGIN = re.compile(r"(?P<word>[A-Za-z][\w-]*)(?:\(\d+(?:\.\d+)?\))?:")
_NEAR = 0.75
"""Minimum share of matching letters at which a word is probably a misspelt type."""


class Expectations(Struct, dict=True):
    """Reads the assertions in cells of one suite. `types` are its assertion types."""

    types: AssertionTypes

    def entry(self, text: str, at: Span, threshold: Node | None, report: Report) -> MapNode:
        """The assertion entry of a cell. All of its nodes have the cell's position.

        Args:
            text: text of the cell.
            at: position of the cell.
            threshold: from its own column, which overrides one in the text.
            report: receives errors, and warnings about probable mistakes.
        """
        text = text.strip()
        name, written, value = self._parts(text, at, report)
        if name == "equals" and value is None:
            self._warn_if_like_type(text, at, report)
            value = Scalar(text, text, at)
        threshold = threshold or written
        if threshold is None:
            return MapNode({name: value or Scalar(None, "", at)}, {name: at}, at)
        items: dict[str, Node] = {"type": Scalar(name, name, at)}
        if value is not None:
            items[self.types.short(name) or "value"] = value
        # for a type without a threshold, it is the minimum score
        items["threshold" if self.types.takes(name, "threshold") else "min_score"] = threshold
        return MapNode(items, {key: node.at for key, node in items.items()}, at)

    def _parts(self, text: str, at: Span, report: Report) -> tuple[str, Node | None, Node | None]:
        file = _FILE.fullmatch(text)
        if file is not None:
            path = text.removeprefix("file://")
            return ("python" if file["python"] else "javascript"), None, Scalar(path, path, at)
        found = self._pattern.fullmatch(text)
        if found is None:
            return "equals", None, None
        name = found["not"] + _PREFIXES.get(found["type"], found["type"])
        threshold, value, bare = found["threshold"], found["value"], name.replace("_", "-").rpartition("not-")[2]
        return (
            name,
            None if threshold is None else _number(threshold, at),
            None if value is None else _value(bare, value.strip(), at, report),
        )

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        names = sorted({*self.types.names, *_PROMPTFOO_ONLY}, key=len, reverse=True)
        written = "|".join(re.escape(name).replace(r"\-", "[-_]") for name in names)
        prefixes = "|".join(f"{prefix}(?=:)" for prefix in _PREFIXES)
        return re.compile(
            rf"(?P<not>(?:not[-_])*)(?P<type>{prefixes}|{written})"
            r"(?:\((?P<threshold>\d+(?:\.\d+)?)\))?(?::(?P<value>.*))?",
            re.DOTALL,
        )

    def _warn_if_like_type(self, text: str, at: Span, report: Report) -> None:
        """Warn about a text that begins almost like a type: comparing it as a whole is seldom meant."""
        begin = _BEGIN.match(text)
        if begin is None:
            return
        word = begin["word"]
        near = nearest(word.lower(), [*self.types.names, *_PREFIXES], _NEAR)
        if near is None:
            return
        message = f"no assertion type '{word}', so the answer must equal this whole text"
        hint = f"did you mean '{near}:'? If not, put 'equals:' in front"
        report.warning("nearly-an-assertion", at, message, hint=hint)


def _value(name: str, text: str, at: Span, report: Report) -> Node:
    if name in LIST_TYPES and not text.startswith("file://"):
        parts = (
            next(csv.reader([" ".join(text.splitlines())], skipinitialspace=True)) if '"' in text else text.split(",")
        )
        items = (item.strip() for item in parts)
        return ListNode([Scalar(item, item, at) for item in items], at)
    if name in DOCUMENTS and text.startswith(("{", "[")):
        own = Report()
        found = parse_json(text, at, own)
        for one in own.diagnostics:
            report.add(replace(one, span=at))  # columns in the text differ from those in the file, with doubled quotes
        return found or MapNode({}, {}, at)
    return _number(text, at)


def _number(text: str, at: Span) -> Scalar:
    """A scalar whose value is a number if the text is one. Options that are not numbers use the text."""
    value = resolve(text)
    return Scalar(value if isinstance(value, int | float) and not isinstance(value, bool) else text, text, at)


_DELIMITERS = {";": "semicolons", "\t": "tabs"}
"""Delimiters that other programs use, and their names."""


class CsvTable:
    """A CSV file, comma-separated, in UTF-8.

    Args:
        path: path of the file.
    """

    code = "bad-csv"

    def __init__(self, path: str) -> None:
        self.path = path
        self.header_line = 1
        self._columns: Sequence[str] = ()

    def header(self, report: Report) -> Sequence[str] | None:
        """The cells of the first non-blank row; None if all rows are blank, or if it is invalid (reported)."""
        for line, cells in self._read(report):
            wrong = cells if isinstance(cells, WrongValue) else _wrong_separator(cells)
            if wrong is not None:
                report.error(self.code, Span(self.path, line, 1, line, 1), wrong.message, hint=wrong.hint)
                return None
            assert not isinstance(cells, WrongValue)  # noqa: S101  # for mypy
            self.header_line, self._columns = line, cells
            return cells
        return None

    def rows(self, report: Report) -> Iterator[tuple[int, Sequence[Value] | WrongValue]]:
        """Yield the non-blank rows below the header, each with its first line."""
        rows = self._read(report)
        next(rows, None)
        wanted = len(self._columns)
        for line, cells in rows:
            if isinstance(cells, WrongValue) or len(cells) == wanted:
                yield line, cells
                continue
            hint = "quote a cell that contains a comma"
            if len(cells) < wanted:
                hint = f"'{self._columns[len(cells)].strip()}' is the first missing one"
            yield line, WrongValue(f"{plural(len(cells), 'cell')}, but the header has {plural(wanted, 'column')}", hint)

    def place(self, row: TableRow, column: int | None) -> str:
        """The row's number. The caller names the column."""
        del column
        return f"row {row.number}"

    def _read(self, report: Report) -> Iterator[tuple[int, list[str] | WrongValue]]:
        csv.field_size_limit(LARGEST_VALUE)
        with open(self.path, "rb") as file:  # noqa: PTH123  # a Path would add nothing
            reader = csv.reader(_lines(file), strict=True)
            while True:
                line = reader.line_num + 1
                try:
                    cells = next(reader)
                except StopIteration:
                    return
                except csv.Error as error:
                    yield line, _wrong_row(error)
                    if "field limit" in str(error):
                        return
                except ValueError as error:
                    _report_line(error, Span(self.path, reader.line_num + 1, 1, reader.line_num + 1, 2), report)
                    return
                else:
                    if any(cell and not cell.isspace() for cell in cells):
                        yield line, cells


def _lines(file: BinaryIO) -> Iterator[str]:
    """Yield the lines as text, each ending in a line feed.

    Raises:
        ValueError: a line is not text in UTF-8 (UnicodeDecodeError), contains NUL, or is too long.
    """
    start = True
    for data in iter(partial(file.readline, LARGEST_VALUE + 1), b""):
        if len(data) > LARGEST_VALUE:
            raise ValueError(f"this line is longer than {LARGEST_VALUE // 1_000_000} MB")
        text = data.decode("utf-8-sig" if start else "utf-8")
        start = False
        if "\0" in text:
            raise ValueError("this line contains a NUL byte, so the file is not text")
        yield f"{text[:-2]}\n" if text.endswith("\r\n") else text


def _report_line(error: ValueError, at: Span, report: Report) -> None:
    if not isinstance(error, UnicodeDecodeError):
        report.error("bad-csv", at, str(error))
        return
    utf_16 = error.object.startswith((b"\xff\xfe", b"\xfe\xff"))
    message = "this file is UTF-16" if utf_16 else f"not UTF-8 (byte {error.start + 1} of the line)"
    report.error("not-utf-8", at, message, hint="save it as 'CSV UTF-8'")


def _wrong_row(error: csv.Error) -> WrongValue:
    """The problem of a row, recognized by the message since `csv` has one class for all errors."""
    text = str(error)
    if "expected after" in text:
        return WrongValue("text after a closing quote", 'write "" for a quote inside it')
    if "unexpected end" in text:
        return WrongValue("a quote in this row is never closed")
    if "field limit" in text:
        return WrongValue(f"a cell is longer than {LARGEST_VALUE // 1_000_000} MB", "is a quote never closed?")
    return WrongValue("lines end in carriage returns (CR)", "save it with line feeds (LF)")


def _wrong_separator(header: Sequence[str]) -> WrongValue | None:
    """The problem of a header whose cells are not separated by commas; None if they are."""
    used = next((one for one in _DELIMITERS if one in header[0]), None) if len(header) == 1 else None
    if used is None:
        return None
    message = f"the columns are separated by {_DELIMITERS[used]}, but a CSV file needs commas"
    return WrongValue(message, "save it with commas, or as .xlsx")
