"""More than two runs: each against each, and the cases in which they differ most."""

from __future__ import annotations

from collections.abc import Iterator

from agentv.model.run.comparison import Comparison, Matrix
from agentv.model.values.formatting import plural
from agentv.reports.commands.comparison import case_label, certainty, left_out_lines, runs_lines
from agentv.reports.run.paired import difference_text
from agentv.reports.text.escaping import one_line
from agentv.reports.text.tables import aligned

_MARKS = {"better": "+", "worse": "-", "equivalent": "=", "non-inferior": ">", "inconclusive": "?"}
_LEGEND = "+ better, - worse, = equivalent, > non-inferior, ? inconclusive"


def render_matrix(found: Matrix) -> str:
    """The runs with their mean scores, the differences between every two, and the cases that score least alike."""
    names = _names(found)
    blocks = (runs_lines(found.runs, names), _differences(found, names), _apart(found, names), _cases(found, names))
    return "\n\n".join("\n".join(lines) for block in blocks if (lines := list(block)))


def _names(found: Matrix) -> list[str]:
    return ["base", *(f"run {number}" for number in range(2, len(found.runs) + 1))]


def _differences(found: Matrix, names: list[str]) -> Iterator[str]:
    """Row less column: how much higher the mean score of the row's run is."""
    places = range(len(names))
    head = ["", *(f"vs {name}" for name in names[:-1])]
    rows = [[names[row], *(_cell(found, column, row) for column in places[:-1])] for row in places[1:]]
    tested = max((one.whole.tested for one in found.comparisons.values() if one.whole and not one.same), default=1)
    yield f"Difference of the mean score ({_LEGEND})"
    if tested > 1:
        yield f"p-values and intervals are corrected for {tested} tests (Holm)"
    yield from (f"  {line}" for line in aligned([head, *rows]))


def _cell(found: Matrix, column: int, row: int) -> str:
    one = found.comparisons.get((column, row))
    if column >= row:
        return ""
    if one is None or one.whole is None:
        return "nothing in common"
    return "same run" if one.same else _note_lines(one)


def _note_lines(one: Comparison) -> str:
    whole = one.whole
    if whole is None:
        return ""
    shown = whole.deciding
    measure = "" if shown.measure == "mean score" else f" {shown.measure}"
    sure = f"{certainty(shown)}, {plural(whole.pairs, 'case')}"
    return f"{_MARKS[whole.verdict]} {difference_text(shown.delta, shown.measure)}{measure} ({sure})"


def _apart(found: Matrix, names: list[str]) -> Iterator[str]:
    """What else differs from the base, and the cases that are in no number beside it."""
    for (base, candidate), one in found.comparisons.items():
        if base == 0:
            lines = (*map(one_line, one.notes), *left_out_lines(one))
            yield from (f"{names[candidate]}: {line}" for line in lines)


def _cases(found: Matrix, names: list[str]) -> Iterator[str]:
    if not found.scores:
        return
    rows = [[case_label(key), *map(_score, scores)] for key, scores in found.scores.items()]
    yield f"Scores that differ ({len(rows) + found.omitted}), largest difference first"
    yield from (f"  {line}" for line in aligned([["", *names], *rows]))
    if found.omitted:
        yield f"  and {found.omitted} more; use --limit to show them"


def _score(score: float | None) -> str:
    return "-" if score is None else f"{score:.2f}"
