"""Output of `agentv compare RUN`: targets, prompts and variants of one run, each compared with the first."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from agentv.model.run.comparison import RunComparison
from agentv.model.run.matrix import MatrixComparison
from agentv.model.values.formatting import plural
from agentv.reports.comparison import lost_words, usage_lines
from agentv.reports.run.matrix import column_label
from agentv.reports.run.paired import details, sentence
from agentv.reports.run.rates import signed
from agentv.reports.text import one_line, paint, percent

_STYLES = {"better": "passed", "worse": "failed"}


def render_run_comparison(found: RunComparison, *, color: bool = False) -> str:
    """The run, and for each comparison its verdict and both rates."""
    run = found.run
    lines = [f"run {one_line(run.run_id)}: {plural(run.cases, 'case', ',')}", ""]
    if found.tests > 1:
        lines.append(f"p-values and intervals are corrected for {found.tests} tests (Holm)")
    by = None
    for one in found.comparisons:
        if one.by != by:
            lines.append(f"{one.by}s, each compared with the first one that ran the same cases")
            by = one.by
        lines += [f"  {line}" for line in _lines(one, found.question.margin, color=color)]
    first = found.comparisons[0]
    parts = f"--by {first.by}"
    if first.by == "target":
        parts = f"--target {one_line(quote(first.base))} --target {one_line(quote(first.candidate))}"
    lines += ["", f"to see the cases that moved, compare two: agentv compare {one_line(run.run_id)} {parts}"]
    return "\n".join(lines)


def run_warnings(found: RunComparison) -> Iterator[str]:
    """Warnings about the comparisons."""
    if found.run.missing:
        missing = plural(found.run.missing, "planned case")
        yield f"the run {one_line(found.run.run_id)} is incomplete: {missing} did not run"


def lost_lines(found: RunComparison) -> Iterator[str]:
    """Sentences on results that passed with the base and do not pass with the candidate."""
    for one, lost in zip(found.comparisons, found.lost, strict=True):
        if lost:
            base, candidate = column_label((one.base,)), column_label((one.candidate,))
            yield lost_words(lost, "result", f"with {base}", f"with {candidate}")


def _lines(one: MatrixComparison, margin: float, *, color: bool) -> Iterator[str]:
    yield paint(sentence(one, margin), _STYLES.get(one.verdict or ""), color=color)
    for each in one.measures[:1]:
        yield f"  {one.verdict}: {details(one)}"
        shown = (
            f"{number:.3f}" if each.measure == "mean score" else percent(number) for number in (each.before, each.after)
        )
        errors = ""
        if each.bounds is not None:
            worst, best = (100 * bound for bound in each.bounds)
            errors = f"; with errors as failed or passed {signed(worst, 1)} to {signed(best, 1)} points"
        yield f"  {each.measure} {' → '.join(shown)}{errors}"
    yield from (f"  {line}" for line in usage_lines(one.usage, one.base, one.candidate))
