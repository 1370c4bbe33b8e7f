"""Rows of data files: references to files, the interface of tables, and the handling of unknown keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from agentv.authoring.fields.decode import shape_of
from agentv.authoring.fields.schema import AuthoredSettings
from agentv.authoring.fields.spellings import CASE, OPTIONS, RUN, SUITE
from agentv.authoring.source.files import EXCEL, PARQUET
from agentv.authoring.source.nearest import LONGEST, MEANT
from agentv.authoring.source.nodes import MapNode, Node, Place
from agentv.authoring.source.report import Report
from agentv.matching.spelling import nearest
from agentv.model.values.formatting import shorten
from agentv.model.values.values import Json, Span, lazy_pattern
from agentv.registry.fields import Issue, missing_extra

HUB = ("hf://", "huggingface://")
"""Prefixes of Hugging Face datasets. The second is promptfoo's; the error about it names the first."""

_SHEET = lazy_pattern(r"(?P<path>.+\.(?:xlsx|xlsm))#(?P<sheet>.*)")


def split_sheet(written: str) -> tuple[str, str | None]:
    """The path and the sheet of `FILE.xlsx#SHEET`. The sheet is None if the reference names none."""
    found = _SHEET.fullmatch(written)
    return (written, None) if found is None else (found["path"], found["sheet"].strip())


def missing_library(path: str) -> Issue | None:
    """The issue `missing-extra` if the library that reads a file is not installed, else None."""
    suffix = Path(path).suffix
    if suffix in EXCEL:
        return missing_extra("openpyxl", "data", "reading an Excel file")
    return missing_extra("pyarrow", "data", f"reading {'a Parquet' if suffix in PARQUET else 'an Arrow'} file")


LARGEST_VALUE = 10_000_000
"""Maximum length of a cell, and of a line in bytes, in a CSV file."""


class WrongValue(Struct, frozen=True):
    """A value that a case cannot have.

    Attributes:
        message: the problem.
        hint: how to fix it.
    """

    message: str
    hint: str | None = None


Value = Json | WrongValue


class TableRow(Struct):
    """One row: its values in the order of the columns.

    Attributes:
        line: row of the sheet, or line or row of the file, from 1.
        number: number of the case, from 1.
        values: its values, or the problem of the row as a whole.
        source: index of its file, if the table has several.
    """

    line: int
    number: int
    values: Sequence[Value] | WrongValue
    source: int = 0
    _text: str | None = None

    def __repr__(self) -> str:
        """The number and all values of the row, by which changes of the file are detected."""
        if self._text is None:
            self._text = f"{self.number}{self.values!r}"
        return self._text


class Table(Protocol):
    """A file with a header and rows.

    Attributes:
        path: path of the file.
        code: diagnostic code for errors of the file itself.
        header_line: line of the header.
    """

    path: str
    code: str
    header_line: int

    def header(self, report: Report) -> Sequence[str] | None:
        """The names of the columns; None if they cannot be read."""

    def rows(self, report: Report) -> Iterator[tuple[int, Sequence[Value] | WrongValue]]:
        """Yield the number and the values of each row. An error that ends the file early is reported."""

    def place(self, row: TableRow, column: int | None) -> str:
        """The name of a row or of one of its cells, for messages.

        Args:
            row: a row of the file.
            column: number of the column, from 1; None for the whole row.
        """


def report_unreadable(path: str, error: Exception | str, report: Report, hint: str | None = None) -> None:
    """Report a file that cannot be read as a table."""
    text = shorten(" ".join(str(error).split()), 200)
    report.error("bad-table", Span(path, 1, 1, 1, 1), text, hint=hint)


KEPT_NAMES = 1_000
"""Maximum number of distinct keys of one file that are remembered."""

LISTED_NAMES = 10
"""Maximum number of keys that the warning lists."""

_LONGEST_NAME = 40
"""Maximum number of characters of a key that the warning shows."""

_SHORTEST_START = 3
"""Minimum length of a key that may be the start of a known one."""

_MISSPELT = 0.8
"""Minimum share of matching letters at which a key may be a misspelt known one."""

_GRADING = frozenset(
    {
        *("assert", "asserts", "assertion", "assertions", "check", "checks", "criteria", "criterion", "eval", "evals"),
        *("evaluation", "evaluator", "evaluators", "expect", "expectation", "expectations", "grade", "grader"),
        *("graders", "grading", "judge", "judges", "metric", "metrics", "rubric", "rubrics", "scorer", "scorers"),
        *("scoring", "threshold", "thresholds", "turns"),
    }
)
"""Words that show that a key is meant to grade the answer."""

_SETTING = frozenset({"depends", "model", "provider", "repeat", "skip", "target", "targets", "timeout", "trials"})
"""First words of keys that are meant to change how the case runs."""

_EXPECTED = (
    *("actual_output", "correct_answer", "correct_output", "desired_answer", "desired_output", "expected_answer"),
    *("expected_response", "expected_result", "expected_text", "gold", "gold_answer", "golden", "reference"),
    *("reference_output", "target_answer", "truth"),
)
"""Other programs' names for the reference answer, besides those in `MEANT`."""

_FACTS = frozenset({"author", "category", "license", "requires", "version"})
"""Keys of suites that are only descriptive, so rows may use them for their own data."""


class RowKeys:
    """Moves the unknown keys of the rows of one file into their metadata.

    Args:
        names_type: says whether a text is the name of an assertion type.
    """

    def __init__(self, names_type: Callable[[str], bool]) -> None:
        self._names_type = names_type
        self._known = frozenset({*CASE.canonical, *CASE.older, *CASE.nested, *CASE.not_yet})
        self._judged: dict[str, bool] = {}
        self._names: dict[str, None] = {}
        self._first: Place | None = None

    def kept(self, row: Node, report: Report, exact: Callable[[], Node | None]) -> Node:
        """The row with its unknown keys moved into its metadata, except those that may mean a known key.

        Args:
            row: the content of the line.
            report: receives errors about keys that the metadata sets too.
            exact: returns the row with the position of each key.
        """
        if not isinstance(row, MapNode) or row.items.keys() <= self._known:
            return row
        extra = [key for key in row.items if key not in self._known and self._is_extra(key)]
        if not extra:
            return row
        if self._first is None:
            placed = exact()
            self._first = (placed if isinstance(placed, MapNode) else row).keys[extra[0]]
        for key in extra:
            if len(self._names) <= KEPT_NAMES:
                self._names[key] = None
        name = next((one for one in CASE.spelled("metadata") if one in row.items), "metadata")
        own = row.items.get(name)
        moved = {key: row.items[key] for key in extra}
        places = {key: row.keys[key] for key in moved}
        rest = {key: node for key, node in row.items.items() if key not in moved}
        keys = {key: place for key, place in row.keys.items() if key not in moved}
        if isinstance(own, MapNode):
            for key in moved.keys() & own.items.keys():
                message = f"'{key}' is set both here and in '{name}'; keep one of them"
                report.error("two-spellings", places[key], message)
            moved, places = {**moved, **own.items}, {**places, **own.keys}
        elif own is not None:
            return MapNode(rest, keys, row.at)  # the reader of 'metadata' refuses it
        metadata = MapNode(moved, places, row.at if own is None else own.at)
        return MapNode({**rest, name: metadata}, {name: row.at, **keys}, row.at)

    def warn(self, report: Report) -> None:
        """Report one warning that lists the moved keys, after all rows were read."""
        if not self._names:
            return
        listed = ", ".join(f"'{shorten(key, _LONGEST_NAME)}'" for key in list(self._names)[:LISTED_NAMES])
        left = len(self._names) - LISTED_NAMES
        if left > 0:
            over = "more than " if len(self._names) > KEPT_NAMES else ""
            listed = f"{listed} and {over}{left - bool(over):,} more"
        message = f"unknown keys of the rows are kept in 'metadata' and check nothing: {listed}"
        report.warning(
            "extra-keys", self._first, message, hint="move what you need into 'metadata', 'vars' or 'assert'"
        )

    def _is_extra(self, key: str) -> bool:
        found = self._judged.get(key)
        if found is None:
            found = not (key.startswith(("x-", "__")) or self._names_type(key) or may_mean_known(key))
            if len(self._judged) < KEPT_NAMES:
                self._judged[key] = found
        return found


def may_mean_known(key: str) -> bool:
    """Whether a key may be a misspelt known key, or another program's name for a key that has an effect."""
    words = _words(key)
    folded = "".join(words)
    if not words or not _GRADING.isdisjoint(words) or words[0] in _SETTING or folded in _others():
        return True
    if not _SHORTEST_START <= len(key) <= LONGEST:
        return False
    return any(one.startswith(folded) for one in _known()) or nearest(folded, _known(), _MISSPELT) is not None


def _words(key: str) -> list[str]:
    """The words of a key, however they are joined: `expectedOutput` as `expected_output`."""
    return re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", key).casefold())


@cache
def _known() -> frozenset[str]:
    """The keys of cases, and other programs' names for them, as folded words.

    `solution` is left out since it affects no verdict, and `user` since rows have keys such as `user_id`.
    """
    own = (*(CASE.canonical - {"solution", "user"}), *CASE.older, *CASE.nested, *CASE.not_yet)
    return frozenset("".join(_words(name)) for name in (*own, *MEANT, *_EXPECTED))


@cache
def _others() -> frozenset[str]:
    """Keys that have an effect elsewhere, as folded words: in a suite, in `run`, in `options` and in assertions."""
    names = {*SUITE.known, *RUN.known, *OPTIONS.known, *shape_of(AuthoredSettings).rules, "type", "value", "include"}
    return frozenset("".join(_words(name)) for name in names - _FACTS)
