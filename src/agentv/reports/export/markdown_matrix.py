"""The matrix of a run as Markdown, with what its comparisons show; the skills that queries loaded."""

from __future__ import annotations

from collections.abc import Iterator

from agentv.model.run.activation import Activation
from agentv.model.run.matrix import RunMatrix
from agentv.model.values.formatting import plural
from agentv.reports.export.markdown import cell, code
from agentv.reports.run import activation
from agentv.reports.run.matrix import COLUMNS, COMPARED, ROWS, compared_heading
from agentv.reports.run.matrix_grid import GridRow, grid_of
from agentv.reports.run.paired import details, sentence

_NAME, _SENTENCE = 80, 500
"""Characters of a name in the table, and of what a comparison shows."""


def matrix_markdown(matrix: RunMatrix) -> Iterator[str]:
    """Lines of Markdown. Names are code; numbers are text."""
    grid = grid_of(matrix)
    columns = [" as ".join(_named(name) for name in names) for names in grid.columns[:COLUMNS]]
    yield f"\n| | {' | '.join(columns)} |\n| --- |{' --- |' * len(columns)}\n"
    prompts = [row for row in grid.rows if row.is_prompt]
    for row in (*prompts[:ROWS], *(row for row in grid.rows if not row.is_prompt)):
        yield f"| {_row_name(row)} | {' | '.join(map(_plain, row.cells[:COLUMNS]))} |\n"
    for number, most, what in ((len(prompts), ROWS, "prompt"), (len(grid.columns), COLUMNS, "column")):
        if number > most:
            yield f"\nand {plural(number - most, f'more {what}')}, in `summary.json`\n"
    yield from _compared(matrix)


def activation_markdown(found: Activation) -> Iterator[str]:
    """A sentence, the measures of each skill, and the confusion matrix."""
    yield f"\n{code(activation.sentence(found), _SENTENCE)}\n"
    yield "\n| skill | precision | recall | F1 |\n| --- | --- | --- | --- |\n"
    for skill in found.skills:
        words = (one.partition(" ")[2] for one in activation.measure_words(skill))
        yield f"| {cell(skill.skill, _NAME)} | {' | '.join(words)} |\n"
    header, *rows = activation.matrix(found)
    yield f"\n| should load | {' | '.join(cell(one, _NAME) for one in header[1:])} |\n| --- |{' --: |' * len(rows)}\n"
    yield from (f"| {cell(row[0], _NAME)} | {' | '.join(row[1:])} |\n" for row in rows)


def _compared(matrix: RunMatrix) -> Iterator[str]:
    heading, found = compared_heading(matrix), matrix.comparisons or ()
    yield f"\n{heading[0].upper()}{heading[1:]}\n\n"
    for one in found[:COMPARED]:
        shown = ("-", sentence(one)), ("  -", details(one))
        yield from (f"{sign} {code(text, _SENTENCE)}\n" for sign, text in shown if text)
    if len(found) > COMPARED:
        yield f"- and {len(found) - COMPARED} more, in `summary.json`\n"


def _row_name(row: GridRow) -> str:
    return _named(row.name) if row.is_prompt else row.name or ""


def _named(name: str | None) -> str:
    return "no prompt" if name is None else cell(name, _NAME)


def _plain(text: str) -> str:
    return text.replace("$", r"\$").replace("<", r"\<")
