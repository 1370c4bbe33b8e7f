"""The header of a CSV file: what each column says of a case, by promptfoo's names (SPEC section 2)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from agentv.authoring.cases.data_files.csv_rows import Cell, CsvRow
from agentv.authoring.source.nearest import did_you_mean
from agentv.authoring.source.report import Report
from agentv.model.values.span import Span

_SPECIAL = re.compile(
    r"__(?:(?P<name>id|description|metric|threshold)|(?P<expected>expected\d*)"
    r"|metadata:(?P<metadata>.+?)(?P<list>\[\])?|config:__(?P<of>expected\d*):threshold)"
)
_NAMES = ("__expected", "__expected1", "__metric", "__threshold", "__description", "__metadata:", "__config:", "__id")
_PROMPTFOO = frozenset({"__prefix", "__suffix", "__providerOutput"})
"""Columns of promptfoo's that have no meaning here. Passed over, they would change what is tested."""

MOST = 16_384
"""Columns, as many as a spreadsheet has."""

SHOWN_COLUMNS = 50
"""Columns whose mistakes are reported."""

_DELIMITERS = {";": "semicolons", "\t": "tabs"}
"""What other programs put between cells."""


class Column(Struct, frozen=True):
    """One column: its name, its position, and what it sets.

    Attributes:
        kind: `vars`, `expected`, `config`, `metadata`, `list` (metadata from a list), or a special column's name.
        key: the variable, the metadata key, or the column of the assertion that a `config` is for.
    """

    name: str
    at: Span
    kind: str
    key: str


def read_header(row: CsvRow, path: str, report: Report) -> Sequence[Column] | None:
    """The columns that the first row names; None where they are wrong, all of which is then reported."""
    if row.problem is not None:
        report.add(row.problem)
        return None
    if row.raw.count(",") > MOST * 2:
        message = f"this CSV file has more than {MOST:,} columns, the maximum"
        report.error("bad-csv", Span(path, row.line, 1, row.line, 2), message, hint="write one row per case")
        return None
    cells = row.cells(path)
    wrong = _wrong_separator(row, len(cells))
    if wrong is not None:
        place, message, hint = wrong
        report.error("bad-csv", Span(path, row.line, place + 1, row.line, place + 2), message, hint=hint)
        return None
    return read_columns(cells, report)


def read_columns(cells: Sequence[Cell], report: Report, code: str = "bad-csv") -> Sequence[Column] | None:
    """The columns that the cells of a header name; None where they are wrong, all of which is then reported.

    Args:
        cells: of the header.
        report: receives what is wrong.
        code: of a header that no table can have.
    """
    report = report.section()
    if len(cells) > MOST:
        what = "CSV file" if code == "bad-csv" else "table"
        message = f"this {what} has {len(cells):,} columns; the maximum is {MOST:,}"
        report.error(code, cells[MOST].at, message, hint="write one row per case")
        return None
    columns: list[Column] = []
    places: dict[str, int] = {}
    wrong_columns = 0
    for place, cell in enumerate(cells, 1):
        if wrong_columns > SHOWN_COLUMNS:
            break  # one mistake in the program that wrote it
        own = report.section()
        column = _column(cell, place, own, code)
        _refuse_second(column, places.setdefault(column.name, place), place, own)
        columns.append(column)
        wrong_columns += own.failed
    _join_configs(columns, report)
    return None if report.failed else columns


def _wrong_separator(row: CsvRow, cells: int) -> tuple[int, str, str] | None:
    """Where a header shows that lines or cells are not separated as they should be; a message and a hint."""
    if "\r" in row.raw:
        return row.raw.index("\r"), "lines end in carriage returns (CR)", "save it with line feeds (LF)"
    if cells > 1 or row.raw.startswith('"'):
        return None
    used = next((one for one in _DELIMITERS if one in row.raw), None)
    if used is None:
        return None
    message = f"the columns are separated by {_DELIMITERS[used]}, but a CSV file needs commas"
    return row.raw.index(used), message, "save it with commas; if this is the name of a single column, quote it"


def _column(cell: Cell, place: int, report: Report, code: str) -> Column:
    name, at = cell.text.strip(), cell.at
    if not name:
        hint = "name it, or remove the comma" if code == "bad-csv" else "name it, or remove the column"
        report.error(code, at, f"column {place} has no name", hint=hint)
    if not name.startswith("__"):
        special = name.startswith("_") and _SPECIAL.fullmatch(f"_{name}") is not None
        if special:
            message = f"the column '{name}' starts with one underscore, so it is a variable"
            report.warning("nearly-a-column", at, message, hint=f"did you mean '_{name}'?")
        return Column(name, at, "vars", name)
    match = _SPECIAL.fullmatch(name)
    if match is None:
        _report_unknown(name, at, report)
        return Column(name, at, "vars", name)
    if match["name"]:
        return Column(name, at, match["name"], name)
    if match["expected"]:
        return Column(name, at, "expected", match["expected"])
    if match["of"]:
        return Column(name, at, "config", match["of"])
    return Column(name, at, "list" if match["list"] else "metadata", match["metadata"])


def _report_unknown(name: str, at: Span, report: Report) -> None:
    if name in _PROMPTFOO:
        message = f"promptfoo's column '{name}' is not supported"
        hints = {"__providerOutput": "for existing answers, use the provider 'replay'"}
        report.error("unknown-key", at, message, hint=hints.get(name, "put its text into the suite's 'input'"))
    elif name.startswith("__metadata"):
        report.error("unknown-key", at, f"the column '{name}' needs a key", hint="write '__metadata:NAME'")
    elif name.startswith("__config"):
        hint = "write '__config:__expected1:threshold'; no other option can be set this way"
        report.error("unknown-key", at, f"the column '{name}' has no effect", hint=hint)
    else:
        near = did_you_mean(name, _NAMES)
        notes = () if near else (f"special columns are {', '.join(_NAMES)}",)
        report.error("unknown-key", at, f"unknown special column '{name}'", hint=near, notes=notes)


def _refuse_second(column: Column, first: int, place: int, report: Report) -> None:
    if first != place and column.name:
        report.error(
            "duplicate-key", column.at, f"the column '{column.name}' appears twice; the first is column {first}"
        )


def _join_configs(columns: list[Column], report: Report) -> None:
    """Every `config` names the column of an assertion; `__expected` also means the only one there is, or the first."""
    expected = [column.key for column in columns if column.kind == "expected"]
    known, wrong = frozenset(expected), 0
    for place, column in enumerate(columns):
        if column.kind != "config" or column.key in known or wrong > SHOWN_COLUMNS:
            continue
        if column.key == "expected" and expected:
            columns[place] = replace(column, key=expected[0])
        else:
            message = f"'{column.name}' refers to a column '__{column.key}', which does not exist"
            wrong += 1
            hint = did_you_mean(column.key, expected)
            report.error("unknown-key", column.at, message, hint=hint and hint.replace("'", "'__", 1))
