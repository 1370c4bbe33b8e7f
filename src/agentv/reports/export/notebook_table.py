"""The results of a run as a table for a cell of a notebook: without scripts, readable on light and dark pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape

from agentv.model.run.trial import TrialResult
from agentv.reports.run.formatting import check
from agentv.reports.run.trial_view import cut_words, trial_view
from agentv.reports.text.escaping import one_line

SHOWN = 20
"""Trials that the table lists."""

LONGEST = 200
"""Characters of a cell."""

_ORDER = {"failed": 0, "errored": 1, "skipped": 2, "shown": 3, "passed": 4}
_COLORS = {"failed": "#d1453b", "errored": "#b35ac2", "passed": "#2c8f4d"}
_LINE = "border-bottom:1px solid rgba(128,128,128,.35)"
_CELL = (
    f"text-align:left;vertical-align:top;padding:4px 12px 4px 0;{_LINE};"
    "white-space:normal;max-width:32em;overflow-wrap:break-word"
)

_NO_FORMULAS = "tex2jax_ignore mathjax_ignore"
"""Classes that keep Jupyter from taking what is between two dollars for a formula."""

Text = Callable[[TrialResult], str]


def render_table(results: Sequence[TrialResult], totals: Sequence[str]) -> str:
    """The totals, and the trials, those that did not pass first. Nothing of a model or a file is read as markup.

    Args:
        results: of the run.
        totals: lines above the table.
    """
    listed = sorted(results, key=lambda one: _ORDER[one.status])[:SHOWN]  # stable: in the order of the run
    columns = _columns(results)
    head = "".join(f'<th style="{_CELL}">{escape(name)}</th>' for name in columns)
    rows = "".join(_row(one, columns) for one in listed)
    lines = "<br>".join(escape(one_line(line)) for line in totals)
    more = len(results) - len(listed)
    note = f"<p>… and {more:,} more; <code>to_pandas()</code> has all of them</p>" if more else ""
    table = f'<table style="border-collapse:collapse"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    return f'<div class="{_NO_FORMULAS}" style="color:inherit"><p>{lines}</p>{table if listed else ""}{note}</div>'


def _columns(results: Sequence[TrialResult]) -> Mapping[str, Text]:
    """The columns that tell trials of this run apart."""
    several: Mapping[str, Text] = {
        "suite": lambda one: one.trial.suite.name,
        "target": lambda one: one.trial.target.name,
        "variant": lambda one: one.trial.variant_name or "",
        "prompt": lambda one: one.trial.case.prompt_id or "",
        "sample": lambda one: str(one.trial.sample),
    }
    found = {name: text for name, text in several.items() if len({text(one) for one in results}) > 1}
    return {
        "status": lambda one: one.status,
        "case": lambda one: one.trial.case.id,
        **found,
        "score": lambda one: "" if one.score is None else f"{one.score:.2f}",
        "output": lambda one: one.output or "",
        "why": _why,
    }


def _why(result: TrialResult) -> str:
    """Why it did not pass."""
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
