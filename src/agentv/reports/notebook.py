"""A run in a notebook: a pandas DataFrame with one row per trial, and an HTML table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from agentv.errors import UsageError
from agentv.model.run.trial import TrialResult
from agentv.model.values.retrieved import context_json
from agentv.model.values.values import Json
from agentv.reports.csv_rows import COLUMNS, needs_of, passes_of, scores_of
from agentv.reports.run.trial_view import check, cut_words, trial_view
from agentv.reports.text import one_line

if TYPE_CHECKING:
    import pandas as pd


_FLOATS = frozenset(
    {"score", "threshold", "duration_ms", "cost_usd", "judge_cost_usd", "user_cost_usd", "time_to_first_token_ms"}
)
_COUNTS = frozenset({"sample", "attempts", "input_tokens", "output_tokens"})
_OWN: Mapping[str, Callable[[TrialResult], object]] = {
    "reused": lambda result: result.reused,
    "tags": lambda result: list(result.trial.case.tags),
    "context": lambda result: context_json(result.context),
}
"""Columns of a CSV export that have typed values here instead of text."""

_LARGEST = 2**63
"""First integer that does not fit into signed 64 bits."""

_SPREAD = ("scores", "passes", "needs", "metadata")
"""Columns of a CSV export that are split into a column per key here."""


def frame_of(results: Sequence[TrialResult], *, root: str) -> pd.DataFrame:
    """A DataFrame of the trials, in order. Unknown values are missing; without trials, it has only columns.

    Args:
        results: the trials.
        root: directory that paths are relative to.

    Raises:
        UsageError: pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError:
        raise UsageError("to_pandas() needs pandas, which is not installed", "pip install pandas") from None
    columns = {
        name: _typed(name, [_cell(name, one, root) for one in results]) for name in COLUMNS if name not in _SPREAD
    }
    columns |= _spread("scores", [scores_of(one) for one in results], dtype="float64")
    columns |= _spread("passes", [passes_of(one) for one in results], dtype="boolean")
    columns |= _spread("needs", [needs_of(one) for one in results], dtype="float64")
    columns |= _spread("vars", [one.trial.case.vars for one in results])
    columns |= _spread("metadata", [one.metadata for one in results])
    return pd.DataFrame(columns, index=pd.RangeIndex(len(results)))


def _cell(name: str, result: TrialResult, root: str) -> object:
    own = _OWN.get(name)
    return own(result) if own is not None else COLUMNS[name](result, root)


def _typed(name: str, cells: list[object]) -> pd.Series[Any]:
    import pandas as pd

    if name == "timestamp":
        return pd.Series(pd.to_datetime(pd.Series(cells, dtype="string"), utc=True, format="ISO8601"))
    if name in ("tags", "context"):
        return pd.Series(cells, dtype="object")
    if name == "reused":
        return pd.Series(cells, dtype="bool")
    return pd.Series(cells, dtype="float64" if name in _FLOATS else "Int64" if name in _COUNTS else "string")


def _spread(prefix: str, rows: Sequence[Mapping[str, Json]], dtype: str | None = None) -> dict[str, pd.Series[Any]]:
    """A column for each key of any row, in order of first appearance."""
    import pandas as pd

    found: dict[str, pd.Series[Any]] = {}
    for key in dict.fromkeys(key for row in rows for key in row):
        cells = [row.get(key) for row in rows]
        found[f"{prefix}.{key}"] = pd.Series(cells, dtype=dtype or _type_of(cells))
    return found


def _type_of(cells: Sequence[Json]) -> str:
    """The nullable column type of the values, or `object` if their types differ."""
    kinds = {type(one) for one in cells if one is not None}
    if kinds == {int} and all(one is None or abs(one) < _LARGEST for one in cells):  # type: ignore[arg-type]  # numbers
        return "Int64"
    known: dict[frozenset[type], str] = {
        frozenset({bool}): "boolean",
        frozenset({float}): "Float64",
        frozenset({int, float}): "Float64",
        frozenset({str}): "string",
    }
    return known.get(frozenset(kinds), "object")


SHOWN = 20
"""Trials that the table lists."""

LONGEST = 200
"""Characters shown of a cell."""

_ORDER = {"failed": 0, "errored": 1, "skipped": 2, "shown": 3, "passed": 4}
_COLORS = {"failed": "#d1453b", "errored": "#b35ac2", "passed": "#2c8f4d"}
_LINE = "border-bottom:1px solid rgba(128,128,128,.35)"
_CELL = (
    f"text-align:left;vertical-align:top;padding:4px 12px 4px 0;{_LINE};"
    "white-space:normal;max-width:32em;overflow-wrap:break-word"
)

_NO_FORMULAS = "tex2jax_ignore mathjax_ignore"
"""CSS classes that keep Jupyter from rendering text between two dollar signs as a formula."""

Text = Callable[[TrialResult], str]


def render_table(results: Sequence[TrialResult], totals: Sequence[str]) -> str:
    """HTML with the totals and a table of trials, failures first. Text of models and files is escaped.

    Args:
        results: trials of the run.
        totals: lines above the table.
    """
    listed = sorted(results, key=lambda one: _ORDER[one.status])[:SHOWN]  # stable sort: keeps the order of the run
    several: Mapping[str, Text] = {
        "suite": lambda one: one.trial.suite.name,
        "target": lambda one: one.trial.target.name,
        "variant": lambda one: one.trial.variant_name or "",
        "prompt": lambda one: one.trial.case.prompt_id or "",
        "sample": lambda one: str(one.trial.sample),
    }
    found = {name: text for name, text in several.items() if len({text(one) for one in results}) > 1}
    columns = {
        "status": lambda one: one.status,
        "case": lambda one: one.trial.case.id,
        **found,
        "score": lambda one: "" if one.score is None else f"{one.score:.2f}",
        "output": lambda one: one.output or "",
        "why": _why,
    }
    head = "".join(f'<th style="{_CELL}">{escape(name)}</th>' for name in columns)
    rows = "".join(_row(one, columns) for one in listed)
    lines = "<br>".join(escape(one_line(line)) for line in totals)
    more = len(results) - len(listed)
    note = f"<p>… and {more:,} more; <code>to_pandas()</code> has all of them</p>" if more else ""
    table = f'<table style="border-collapse:collapse"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    return f'<div class="{_NO_FORMULAS}" style="color:inherit"><p>{lines}</p>{table if listed else ""}{note}</div>'


def _why(result: TrialResult) -> str:
    """Reasons why a trial did not pass, or a note that its answer was cut."""
    if result.error is not None:
        return f"{result.error.code}: {result.error.message}"
    cut = cut_words(result)
    found = trial_view("failed", result).findings if result.status == "failed" else ()
    return "; ".join([*map(check, found), *([cut] if cut else [])])


def _row(result: TrialResult, columns: Mapping[str, Text]) -> str:
    cells = []
    for name, text in columns.items():
        color = (
            f";font-weight:600;color:{_COLORS[result.status]}" if name == "status" and result.status in _COLORS else ""
        )
        cells.append(f'<td style="{_CELL}{color}">{escape(one_line(text(result), LONGEST))}</td>')
    return f"<tr>{''.join(cells)}</tr>"
