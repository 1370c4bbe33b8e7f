"""Text for a paired comparison, shared by all reports: a sentence, its numbers, and the usage per case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import floor, log10

from agentv.model.run.matrix import ComparedMeasure, MatrixComparison, Measure, Resource, UsageDifference
from agentv.model.values.formatting import duration, money, plural
from agentv.reports.run.rates import signed
from agentv.reports.text import one_line
from agentv.stats.rule import fewest_moved

_NAME = 60
"""Characters shown of a name."""

_LIKELY_CHANCE = 0.2
"""P-value from which an inconclusive difference is called probably chance."""

_LEAST = 0.001
_FEW_POINTS = 0.1
_SECOND_MS = 1000
_CENTS = 0.001
"""US dollars below which two significant digits are shown."""
_SHORTEST_MS = 100
"""Shortest time that is shown; shorter ones depend more on the machine than on the target."""

_RESOURCES: dict[Resource, str] = {"cost_usd": "cost", "tokens": "tokens", "turns": "turns", "duration_ms": "time"}
UNKNOWN = "unknown"


def sentence(one: MatrixComparison, margin: float = 0.0) -> str:
    """`b passes 3 more of 20 cases than a (+15.0 points, 95% CI +2.0 to +28.0), and costs $0.04 more per case (+31%)`.

    An inconclusive difference is attributed to chance or to too few cases; it is never called equality. `margin` is the
    margin of the comparison.
    """
    base, candidate = one_line(one.base, _NAME), one_line(one.candidate, _NAME)
    if one.verdict is None:
        why = "; ".join(_left_out(one)) or "they have no case in common"
        return f"{candidate} vs {base}: nothing to compare: {why}"
    if one.verdict == "equivalent":
        shown = f"{candidate} and {base} are equally good: any difference is at most {margin:g}"
    elif one.verdict == "non-inferior":
        shown = f"{candidate} can replace {base}: it loses at most {margin:g}"
    else:
        shown = f"{candidate} {_moved(one)} {base} ({_with_interval(deciding(one))}){_doubt(one)}"
    return shown + _spent(one.usage)


def deciding(one: MatrixComparison) -> ComparedMeasure:
    """The measure that the sentence is about: the first one that supports the verdict, else the first one."""
    return next((each for each in one.measures if each.measure in one.shown_by), one.measures[0])


def details(one: MatrixComparison) -> str:
    """`p 0.010; mean score +0.120, 95% CI +0.050 to +0.190, p < 0.001; 100 cases in 10 clusters; 2 errored`."""
    if one.verdict is None:
        return ""
    first = deciding(one)
    same = (first.delta, first.interval)
    others = [
        ", ".join((_with_interval(each), *_p(each)))
        for each in one.measures
        if each is not first and (each.delta, each.interval) != same
    ]
    cases = plural(one.cases, "case", ",")
    counted = cases if one.clusters == one.cases else f"{cases} in {plural(one.clusters, 'cluster', ',')}"
    return "; ".join((*_p(first), *others, counted, *_left_out(one)))


def difference(one: MatrixComparison) -> str:
    """`+15.0 points`, `mean score +0.120`; empty if nothing was compared."""
    return "" if one.verdict is None else _with_interval(deciding(one)).partition(", ")[0]


def usage_rows(usage: Sequence[UsageDifference]) -> list[list[str]]:
    """A row for each resource: its name, before, after, the difference with its share, and the interval or a note."""
    shown = (
        one
        for one in usage
        if max(one.before or 0.0, one.after or 0.0) >= _SHORTEST_MS or one.resource != "duration_ms"
    )
    return [_usage_row(one) for one in shown]


def points(delta: float) -> str:
    """`+8.0 points`, or one significant digit for less than a tenth of a point."""
    shown = 100 * delta
    return f"{shown:+.1g} points" if 0 < abs(shown) < _FEW_POINTS else f"{signed(shown, 1)} points"


def difference_text(number: float, measure: Measure) -> str:
    """`-0.190` for scores, `-19.0 points` for rates."""
    if measure != "mean score":
        return points(number)
    # two significant digits if three decimal places would show 0
    return signed(number, 3) if number == 0 or abs(number) >= _LEAST / 2 else f"{number:+.1e}"


def ends_text(interval: tuple[float, float], measure: Measure) -> str:
    """`-0.190 to -0.050` for scores; in points for rates, `-19.0 to -5.0`."""
    low, high = (difference_text(end, measure).removesuffix(" points") for end in interval)
    return f"{low} to {high}"


def percentage(level: float) -> str:
    """`95%`, `97.5%`."""
    return f"{100 * level:.4g}%"


def p_value(p: float) -> str:
    """`p 0.041`, `p < 0.001`."""
    return f"p {p:.3f}" if p >= _LEAST else f"p < {_LEAST}"


def _moved(one: MatrixComparison) -> str:
    """`passes 3 more of 20 cases than`, or `passes more often than` for cases with several samples."""
    shown = deciding(one)
    if shown.measure == "mean score":
        return f"scores {'higher' if shown.delta > 0 else 'lower'} than" if shown.delta else "scores as high as"
    if not shown.delta:
        return "passes as often as"
    moved = one.passed[1] - one.passed[0]
    if abs(moved - shown.delta * one.pairs) > _LEAST:  # the difference is of samples, not of case verdicts
        return f"passes {'more' if shown.delta > 0 else 'less'} often than"
    of = plural(one.pairs, "case" if one.pairs == one.cases else "result", ",")
    return f"passes {abs(moved):,} {'more' if moved > 0 else 'fewer'} of {of} than"


def _with_interval(each: ComparedMeasure) -> str:
    """`+15.0 points, 95% CI +2.0 to +28.0`."""
    shown = f"{each.measure} {difference_text(each.delta, each.measure)}".removeprefix("pass rate ")
    if each.interval is None:
        return shown
    return f"{shown}, {percentage(each.confidence)} CI {ends_text(each.interval, each.measure)}"


def _p(each: ComparedMeasure) -> Iterator[str]:
    if each.p_value is not None:
        yield p_value(each.p_value)


def _doubt(one: MatrixComparison) -> str:
    if one.verdict != "inconclusive":
        return ""
    if one.withheld is not None:
        return {
            "errors": f", but {plural(one.errored, 'errored case')} could turn that round",
            "measures": ", but the mean score and the pass rate contradict each other",
            "settings": ", but they decided cases by different rules",
        }[one.withheld]
    shown = deciding(one)
    fewest = fewest_moved(1 - shown.confidence)
    if one.clusters < fewest:
        few = f"{plural(one.clusters, 'case')} {'is' if one.clusters == 1 else 'are'}"
        return f", but {few} too few to tell (at least {fewest})"
    if not shown.delta:
        return ""
    return ", which is probably chance" if (shown.p_value or 0.0) >= _LIKELY_CHANCE else ", which may be chance"


def _left_out(one: MatrixComparison) -> Iterator[str]:
    for number, name in ((one.only_base, one.base), (one.only_candidate, one.candidate)):
        if number:
            yield f"{number:,} only with {one_line(name, _NAME)}, not compared"
    if one.errored and one.withheld != "errors":
        yield f"{one.errored:,} errored"
    if one.unfinished:
        yield f"{one.unfinished:,} not finished or not checked"


def _spent(usage: Sequence[UsageDifference]) -> str:
    """`, and costs $0.0400 more per case (+31%)`, or the tokens if no cost is known."""
    known = {one.resource: one for one in usage if one.delta is not None}
    found = known.get("cost_usd") or known.get("tokens")
    if found is None or found.delta is None:
        return ""
    costs = found.resource == "cost_usd"
    amount = _amount(found.resource, abs(found.delta))
    more = "more" if found.delta > 0 else "less" if costs else "fewer"
    of = found.cases + found.unknown
    notes = [_share(found)] if found.before else []
    if found.interval is not None and found.interval[0] <= 0 <= found.interval[1]:
        notes.append("may be chance")
    if found.unknown:
        notes.append(f"known for {found.cases:,} of {plural(of, 'case', ',')}")
    if not found.delta:
        words = "costs the same" if costs else "uses as many tokens"
    else:
        words = f"costs {amount} {more}" if costs else f"uses {amount} {more} tokens"
    shown = f" ({', '.join(notes)})" if notes and found.delta else ""
    return f", and {words} per case{shown}{'' if costs else '; the cost is unknown'}"


def _usage_row(one: UsageDifference) -> list[str]:
    name = _RESOURCES[one.resource]
    if one.before is None or one.after is None or one.delta is None:
        return [name, UNKNOWN, UNKNOWN, "", ""]
    share = f" ({_share(one)})" if one.before and one.delta else ""
    notes = []
    if one.interval is not None:
        low, high = (_signed(one.resource, end) for end in one.interval)
        notes.append(f"{percentage(one.confidence)} CI {low} to {high}")
    if one.unknown:
        notes.append(f"known for {one.cases:,} of {plural(one.cases + one.unknown, 'case', ',')}")
    sides = [_amount(one.resource, one.before), _amount(one.resource, one.after)]
    return [name, *sides, _signed(one.resource, one.delta) + share, ", ".join(notes)]


def _share(one: UsageDifference) -> str:
    """`+31%`."""
    return f"{100 * (one.delta or 0.0) / (one.before or 1.0):+,.0f}%"


def _signed(resource: Resource, number: float) -> str:
    sign = "" if not number else "+" if number > 0 else "-"
    return f"{sign}{_amount(resource, abs(number))}"


def _amount(resource: Resource, number: float) -> str:
    if resource == "cost_usd":
        return money(number) if not 0 < number < _CENTS else f"${number:.{1 - floor(log10(number))}f}"
    if resource == "duration_ms":
        return f"{number:.0f} ms" if number < _SECOND_MS else duration(number)
    return f"{number:,.0f}" if resource == "tokens" else f"{number:,.1f}"
