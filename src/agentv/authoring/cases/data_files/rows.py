"""Rows of data files: which files hold them, what reads them, and what becomes of keys that agentv does not know."""

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
"""Prefixes of a dataset of Hugging Face; the second is promptfoo's, which is answered with the first."""

_SHEET = lazy_pattern(r"(?P<path>.+\.(?:xlsx|xlsm))#(?P<sheet>.*)")


def split_sheet(written: str) -> tuple[str, str | None]:
    """The path and the sheet of `FILE.xlsx#SHEET`; None: the reference names no sheet."""
    found = _SHEET.fullmatch(written)
    return (written, None) if found is None else (found["path"], found["sheet"].strip())


def missing_library(path: str) -> Issue | None:
    """The Issue `missing-extra` where the library that reads a file is not installed."""
    suffix = Path(path).suffix
    if suffix in EXCEL:
        return missing_extra("openpyxl", "data", "reading an Excel file")
    return missing_extra("pyarrow", "data", f"reading {'a Parquet' if suffix in PARQUET else 'an Arrow'} file")


LARGEST_VALUE = 10_000_000
"""Bytes of one text, as many as a row of CSV may have."""


class WrongValue(Struct, frozen=True):
    """A value that cannot be one of a case.

    Attributes:
        message: what it is.
        hint: what to do about it.
    """

    message: str
    hint: str | None = None


Value = Json | WrongValue


class TableRow(Struct):
    """One row: its values in the order of the columns.

    Attributes:
        line: the row of the sheet, or the line or row of the file; all count from 1.
        number: of the case, from 1.
        values: or what is wrong with the row as a whole.
        source: the file that it is in, where a table has several.
    """

    line: int
    number: int
    values: Sequence[Value] | WrongValue
    source: int = 0
    _text: str | None = None

    def __repr__(self) -> str:
        """Everything that the row says, by which a changed file is noticed."""
        if self._text is None:
            self._text = f"{self.number}{self.values!r}"
        return self._text


class Table(Protocol):
    """A file with a header and rows.

    Attributes:
        path: of the file.
        code: of what is wrong with the file itself.
        header_line: the line that the header is in.
    """

    path: str
    code: str
    header_line: int

    def header(self, report: Report) -> Sequence[str] | None:
        """The names of the columns, or None after reporting that they are missing."""

    def rows(self, report: Report) -> Iterator[tuple[int, Sequence[Value] | WrongValue]]:
        """Each row with its number, and its values in the order of the header. What ends the file early is reported."""

    def place(self, row: TableRow, column: int | None) -> str:
        """A row, or a cell of it, as people name it.

        Args:
            row: of the file.
            column: from 1; None: the whole row.
        """


def report_unreadable(path: str, error: Exception | str, report: Report, hint: str | None = None) -> None:
    """Report a file whose content is not what its name says."""
    text = shorten(" ".join(str(error).split()), 200)
    report.error("bad-table", Span(path, 1, 1, 1, 1), text, hint=hint)


KEPT_NAMES = 1_000
"""Different keys of one file that are remembered."""

LISTED_NAMES = 10
"""Keys that the warning lists."""

_LONGEST_NAME = 40
"""Letters of a key that the warning shows."""

_SHORTEST_START = 3
"""Letters of a key that may be the start of a known one."""

_MISSPELT = 0.8
"""Share of letters in place below which a key is no misspelt one."""

_GRADING = frozenset(
    {
        *("assert", "asserts", "assertion", "assertions", "check", "checks", "criteria", "criterion", "eval", "evals"),
        *("evaluation", "evaluator", "evaluators", "expect", "expectation", "expectations", "grade", "grader"),
        *("graders", "grading", "judge", "judges", "metric", "metrics", "rubric", "rubrics", "scorer", "scorers"),
        *("scoring", "threshold", "thresholds", "turns"),
    }
)
"""Words of which one shows that a key is to grade the answer."""

_SETTING = frozenset({"depends", "model", "provider", "repeat", "skip", "target", "targets", "timeout", "trials"})
"""Words that begin a key which is to change how the case runs."""

_EXPECTED = (
    *("actual_output", "correct_answer", "correct_output", "desired_answer", "desired_output", "expected_answer"),
    *("expected_response", "expected_result", "expected_text", "gold", "gold_answer", "golden", "reference"),
    *("reference_output", "target_answer", "truth"),
)
"""What other programs call the reference answer, beside the names in `MEANT`."""

_FACTS = frozenset({"author", "category", "license", "requires", "version"})
"""Keys of suites that only describe, so that a row may have them for itself."""


class RowKeys:
    """The unknown keys of the rows of one file.

    Args:
        names_type: whether a text is the name of an assertion type.
    """

    def __init__(self, names_type: Callable[[str], bool]) -> None:
        self._names_type = names_type
        self._known = frozenset({*CASE.canonical, *CASE.older, *CASE.nested, *CASE.not_yet})
        self._judged: dict[str, bool] = {}
        self._names: dict[str, None] = {}
        self._first: Place | None = None

    def kept(self, row: Node, report: Report, exact: Callable[[], Node | None]) -> Node:
        """The row with its unknown keys in its metadata; keys that may mean a known one stay where they are.

        Args:
            row: what the line says.
            report: gets a key that is set in the metadata too.
            exact: the row with the place of every key.
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
            return MapNode(rest, keys, row.at)  # it is refused where it is read
        metadata = MapNode(moved, places, row.at if own is None else own.at)
        return MapNode({**rest, name: metadata}, {name: row.at, **keys}, row.at)

    def warn(self, report: Report) -> None:
        """All rows were read: one warning that lists the keys."""
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
    """Whether a key may be a misspelt known one, or is another program's name for something that has an effect."""
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
    """The keys of cases, and what other programs call them.

    `solution` decides no verdict, so that a misspelt one does no harm; rows have `user_id` and the like for themselves.
    """
    own = (*(CASE.canonical - {"solution", "user"}), *CASE.older, *CASE.nested, *CASE.not_yet)
    return frozenset("".join(_words(name)) for name in (*own, *MEANT, *_EXPECTED))


@cache
def _others() -> frozenset[str]:
    """Keys that have an effect elsewhere: in a suite, its `run` and `options`, and in assertions."""
    names = {*SUITE.known, *RUN.known, *OPTIONS.known, *shape_of(AuthoredSettings).rules, "type", "value", "include"}
    return frozenset("".join(_words(name)) for name in names - _FACTS)
