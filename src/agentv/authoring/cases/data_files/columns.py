"""The header of a table: what each column sets in a case, by promptfoo's names (SPEC section 2)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

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

SHOWN = 50
"""Mistakes of one header that are reported."""


class Column(Struct, frozen=True):
    """One column: its name, and what it sets.

    Attributes:
        kind: `vars`, `expected`, `config`, `metadata`, `list` (metadata from a list), or a special column's name.
        key: the variable, the metadata key, or the column of the assertion that a `config` is for.
    """

    name: str
    kind: str
    key: str


def read_columns(names: Sequence[str], at: Span, code: str, report: Report) -> Sequence[Column] | None:
    """The columns that a header names; None if some are wrong, which is reported.

    Args:
        names: the cells of the header.
        at: position of the header.
        code: of a header that no table can have.
        report: receives what is wrong.
    """
    report = report.section()
    if len(names) > MOST:
        message = f"this table has {len(names):,} columns; the maximum is {MOST:,}"
        report.error(code, at, message, hint="write one row per case")
        return None
    columns: list[Column] = []
    places: dict[tuple[str, str], int] = {}
    for place, name in enumerate(map(str.strip, names), 1):
        if report.count > SHOWN:
            break  # one mistake in the program that wrote it
        if not name:
            hint = "name it, or remove the comma" if code == "bad-csv" else "name it, or remove the column"
            report.error(code, at, f"column {place} has no name", hint=hint)
        columns.append(column := _column(name, at, report))
        sets = ("metadata" if column.kind == "list" else column.kind, column.key)
        if name and (first := places.setdefault(sets, place)) != place:
            message = f"the column '{name}' appears twice; the first is column {first}"
            if name != columns[first - 1].name:
                message = f"the columns '{columns[first - 1].name}' and '{name}' set the same key"
            report.error("duplicate-key", at, message)
    _join_configs(columns, at, report)
    return None if report.failed else columns


def _column(name: str, at: Span, report: Report) -> Column:
    if not name.startswith("__"):
        if name.startswith("_") and _SPECIAL.fullmatch(f"_{name}"):
            message = f"the column '{name}' starts with one underscore, so it is a variable"
            report.warning("nearly-a-column", at, message, hint=f"did you mean '_{name}'?")
        return Column(name, "vars", name)
    match = _SPECIAL.fullmatch(name)
    if match is None:
        _report_unknown(name, at, report)
        return Column(name, "vars", name)
    if match["name"]:
        return Column(name, match["name"], name)
    if match["expected"]:
        return Column(name, "expected", match["expected"])
    if match["of"]:
        return Column(name, "config", match["of"])
    return Column(name, "list" if match["list"] else "metadata", match["metadata"])


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


def _join_configs(columns: list[Column], at: Span, report: Report) -> None:
    """Every `config` names the column of an assertion; `__expected` also means the only one there is, or the first."""
    expected = [column.key for column in columns if column.kind == "expected"]
    for place, column in enumerate(columns):
        if column.kind != "config" or column.key in expected or report.count > SHOWN:
            continue
        if column.key == "expected" and expected:
            columns[place] = replace(column, key=expected[0])
        else:
            message = f"'{column.name}' refers to a column '__{column.key}', which does not exist"
            hint = did_you_mean(column.key, expected)
            report.error("unknown-key", at, message, hint=hint and hint.replace("'", "'__", 1))
