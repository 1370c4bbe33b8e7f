"""Targets, prompts and variants of a run side by side, in words and as a table of text."""

from __future__ import annotations

from collections.abc import Iterator

from agentv.model.run.matrix import ComparedMeasure, MatrixComparison, RunMatrix
from agentv.model.values.formatting import plural
from agentv.model.values.values import Json, JsonObject
from agentv.reports.text.escaping import one_line

_NAME = 60
"""Characters of a name in a sentence."""

_LEAST_P = 0.001
_FEW_POINTS = 0.1


def comparison_words(one: MatrixComparison) -> str:
    """`b better than a: +8.0 points (95% CI +2.1 to +13.9, p 0.010; 100 cases)`.

    Without a verdict for either of them it says that there is not enough evidence, never that they are equal.
    """
    base, candidate = one_line(one.base, _NAME), one_line(one.candidate, _NAME)
    if one.verdict is None:
        return f"{candidate} vs {base}: nothing to compare: {_nothing(one)}"
    found = "; ".join((_numbers(one), *_left_out(one)))
    if one.verdict in ("better", "worse"):
        return f"{candidate} {one.verdict} than {base}: {found}"
    return f"{candidate} vs {base}: not enough evidence{_reason(one)}: {found}"


def points(delta: float) -> str:
    """`+8.0 points`; of a difference of less than a tenth of a point one digit that counts."""
    shown = 100 * delta
    return f"{shown:+.1g} points" if 0 < abs(shown) < _FEW_POINTS else f"{shown:+.1f} points"


def _numbers(one: MatrixComparison) -> str:
    return f"{' and '.join(_measure(each, one) for each in _told(one))}; {_based_on(one)}"


def _told(one: MatrixComparison) -> tuple[ComparedMeasure, ...]:
    """The pass rate; with the mean score, where that moved differently."""
    first, *rest = one.measures
    return (first, *(each for each in rest if (each.delta, each.interval) != (first.delta, first.interval)))


def _measure(each: ComparedMeasure, one: MatrixComparison) -> str:
    mean = each.measure == "mean score"
    scale = 1 if mean else 100
    shown = f"mean score {each.delta:+.3f}" if mean else points(each.delta)
    if each.interval is None or each.p_value is None:
        return shown
    digits = 3 if mean else 1
    low, high = (f"{scale * end:+.{digits}f}" for end in each.interval)
    p = f"p {each.p_value:.3f}" if each.p_value >= _LEAST_P else f"p < {_LEAST_P}"
    also = "" if not one.shown_by or each.measure in one.shown_by or len(one.measures) == 1 else ", not significant"
    return f"{shown} ({100 * each.confidence:.4g}% CI {low} to {high}, {p}{also})"


def _based_on(one: MatrixComparison) -> str:
    cases = plural(one.cases, "case")
    if one.clusters == one.cases:
        return cases
    return f"{cases} in {plural(one.clusters, 'cluster')}"


def _reason(one: MatrixComparison) -> str:
    if one.withheld == "errors":
        return f" (the verdict depends on {plural(one.errored, 'errored pair')})"
    if one.withheld == "pass rate":
        return " (the mean score rose, the pass rate fell)"
    if one.withheld == "settings":
        return " (cases were decided by different rules)"
    if all(each.interval is None for each in one.measures):
        return " (fewer than six independent cases)"
    return ""


def _left_out(one: MatrixComparison) -> Iterator[str]:
    for number, name in ((one.only_base, one.base), (one.only_candidate, one.candidate)):
        if number:
            yield f"{number:,} only with {one_line(name, _NAME)}, not compared"
    if one.errored and one.withheld != "errors":
        yield f"{one.errored:,} errored"
    if one.unfinished:
        yield f"{one.unfinished:,} not finished or not checked"


def _nothing(one: MatrixComparison) -> str:
    why = "; ".join(_left_out(one))
    return why or "they have no case in common"


def matrix_data(matrix: RunMatrix, summary: JsonObject) -> dict[str, Json]:
    """The matrix as pages take it: that of `summary.json`, each comparison with its `sentence`.

    Args:
        matrix: of the run.
        summary: the object of `summary.json`, with the same matrix.
    """
    data = summary["matrix"]
    if not isinstance(data, dict):  # a summary without one has no matrix to show
        return {}
    if matrix.comparisons is None:
        return {**data, "comparisons": None}
    found = [
        {**each, "sentence": comparison_words(one)}
        for one, each in zip(matrix.comparisons, _objects(data["comparisons"]), strict=True)
    ]
    return {**data, "comparisons": found}


def _objects(value: Json) -> list[dict[str, Json]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list | tuple) else []
