"""The report of `agentv compare`: the verdict, the cases that moved, and those that were left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite

from agentv.model.run.comparison import (
    CaseKey,
    CasePair,
    CheckChange,
    Comparison,
    ComparisonSettings,
    Judgement,
    Matrix,
    MeasureResult,
    RunLabel,
    SampleEvidence,
)
from agentv.model.run.matrix import UsageDifference
from agentv.model.values.formatting import plural
from agentv.reports.run.matrix import column_label
from agentv.reports.run.paired import difference_text, ends_text, p_value, percentage, points, sentence, usage_rows
from agentv.reports.run.trial_view import case_words
from agentv.reports.text import Cell, aligned, listed, one_line, paint, percent
from agentv.stats.intervals.proportion import cases_for_share, unseen_share
from agentv.stats.rule import fewest_moved

_LONGEST = 200
"""Characters shown of an answer or of a check's evidence."""

_STYLES: dict[str, str] = {
    "better": "passed",
    "worse": "failed",
    "equivalent": "tested",
    "non-inferior": "tested",
    "inconclusive": "edited",
    "no difference": "tested",
}
_CANDIDATE = "the candidate"


def render_comparison(found: Comparison, *, color: bool = False, verbose: bool = False) -> str:
    """The headline, runs, verdict and its basis, groups, moved and excluded cases, and the method if `verbose`."""
    blocks = (
        [one for one in [headline(found)] if one],
        runs_lines((found.base, found.candidate), ("base", "candidate")),
        [_painted(verdict_line(found), color=color), *basis_lines(found)],
        usage_lines(found.whole.usage, *_sides(found)) if found.whole is not None and not found.same else (),
        _groups(found, color=color),
        _moved(found),
        left_out_lines(found),
        _method(found) if verbose else (),
    )
    return "\n\n".join("\n".join(lines) for block in blocks if (lines := list(block)))


def runs_lines(runs: Sequence[RunLabel], names: Sequence[str]) -> Iterator[str]:
    """A line for each run: its label, its id, its targets, and its number of cases."""
    rows = [
        [name, one_line(run.run_id), listed(run.targets), *_part_cells(run, runs), plural(run.cases, "case")]
        for name, run in zip(names, runs, strict=True)
    ]
    return aligned(rows)


def _part_cells(run: RunLabel, runs: Sequence[RunLabel]) -> Iterator[str]:
    """Cells with the variants and the prompts of a run, if any of the runs has some."""
    if any(one.variants for one in runs):
        yield listed(run.variants)
    if any(one.prompts for one in runs):
        yield listed(run.prompts)


def headline(found: Comparison) -> str:
    """The result in one or two sentences, or an empty string if nothing was compared."""
    one = found.whole
    if found.same or one is None:
        return ""
    base, candidate = _sides(found)
    shown = sentence(one.between("target", base, candidate), found.question.margin)
    needed = f" About {one.needed:,} {_unit(one, found)}s would tell." if one.needed is not None else ""
    return f"{shown[0].upper() if candidate == _CANDIDATE else shown[0]}{shown[1:]}.{needed}"


def _sides(found: Comparison) -> tuple[str, str]:
    """Names of both sides: what differs within one run, such as its variants, else `the base` and `the candidate`."""
    for by in ("variants", "prompts", "targets"):
        base, candidate = (getattr(run, by) for run in (found.base, found.candidate))
        if found.base.path == found.candidate.path and base != candidate:
            return ", ".join(base), ", ".join(candidate)
    return "the base", _CANDIDATE


def usage_lines(usage: Sequence[UsageDifference], base: str, candidate: str) -> Iterator[str]:
    """A table of the usage per case in both runs, with the paired differences; empty if none is known."""
    rows = usage_rows(usage)
    if rows:
        yield from aligned([["per case", column_label((base,)), column_label((candidate,)), "difference", ""], *rows])


def verdict_line(found: Comparison) -> str:
    """The verdict in one sentence, with its interval and p-value."""
    if found.same:
        line = "no difference: both are the same run"
        if len(found.base.targets) > 1:
            first, second = map(one_line, found.base.targets[:2])
            line += f"; to compare two of its targets, add --target {first} --target {second}"
        return line
    if found.whole is None:
        return "nothing to compare: every case in both runs errored or did not run in one of them"
    return f"{found.whole.verdict}: {_finding(found.whole, found)}"


def certainty(one: MeasureResult) -> str:
    """`95% CI -0.190 to -0.050, p 0.002`."""
    return f"{interval_text(one)}, {p_value(one.p)}"


def interval_text(one: MeasureResult) -> str:
    """`95% CI -0.190 to -0.050`, or in points for rates: `95% CI -19.0 to -5.0`."""
    return f"{percentage(one.level)} CI {ends_text(one.interval, one.measure)}"


def warnings(found: Comparison) -> Iterator[str]:
    """Warnings about the verdict."""
    for name, run in (("base", found.base), ("candidate", found.candidate)):
        if run.missing:
            yield f"the {name} {one_line(run.run_id)} is incomplete: {plural(run.missing, 'planned case')} did not run"
    left = found.left_out
    if left.errored:
        yield f"{plural(len(left.errored), 'case')} errored in one of the runs: {_keys(left.errored)}"
    if left.unfinished:
        verb = "was" if len(left.unfinished) == 1 else "were"
        what = f"{plural(len(left.unfinished), 'case')} {verb} not finished or not checked in one of the runs"
        yield f"{what}: {_keys(left.unfinished)}"


def lost_line(found: Comparison) -> str:
    """`2 cases passed in the base and do not in the candidate 2026…: shop: late (errored), shop: old (missing)`."""
    return lost_words(found.lost, "case", "in the base", f"in the candidate {one_line(found.candidate.run_id)}")


def lost_words(lost: Mapping[CaseKey, str], what: str, before: str, after: str) -> str:
    """A sentence on what passed before and does not pass after."""
    named = listed([f"{case_label(key)} ({status})" for key, status in lost.items()])
    verb = "does" if len(lost) == 1 else "do"
    return f"{plural(len(lost), what)} passed {before} and {verb} not {after}: {named}"


def case_label(key: CaseKey) -> str:
    """`refunds: return-late with plain`."""
    return f"{one_line(key.suite)}: {case_words(key.case_id, key.prompt, None, key.variant)}"


def _painted(line: str, *, color: bool) -> str:
    verdict, colon, rest = line.partition(":")
    style = f"bold {_STYLES[verdict]}" if verdict in _STYLES else None
    return f"{paint(verdict, style, color=color)}{colon}{rest}"


def _finding(one: Judgement, found: Comparison) -> str:
    """What the deciding measure shows, or why there is no verdict."""
    margin, sure = found.question.margin, percentage(1 - found.question.alpha)
    difference = f"{_difference(one.deciding)} ({certainty(one.deciding)})"
    beyond = f", by more than {margin:g}" if margin else ""
    if one.verdict == "inconclusive":
        if one.withheld is not None:
            return _withheld(one)
        units = plural(one.clusters, _unit(one, found))
        fewest = fewest_moved(found.question.alpha)
        if one.clusters < fewest:
            return f"{units} cannot show a difference, whatever the results; at least {fewest} are needed"
        more = _power_note(one, units)
        return f"{_possible_differences(one, units)} ({certainty(one.score)}){_margin_note(one, found)}{more}"
    if one.verdict == "equivalent":
        return f"{sure} confident that any difference is at most {margin:g}; {difference}"
    if one.verdict == "non-inferior":
        return f"{sure} confident that the loss is at most {margin:g}; {difference}"
    return f"{difference}{beyond}{_other_measure(one)}"


def _other_measure(one: Judgement) -> str:
    """The other measure, if the pass rate decided alone or the two differ in direction."""
    if one.rate is None:
        return ""
    if one.deciding is one.rate:
        return f", while {_difference(one.score)} ({certainty(one.score)})"
    apart = one.rate.delta * one.score.delta < 0
    return f", while {_difference(one.rate)} ({certainty(one.rate)})" if apart else ""


def _difference(one: MeasureResult) -> str:
    if one.delta == 0:
        return f"no difference of the {one.measure} seen"
    moved = difference_text(abs(one.delta), one.measure).removeprefix("+")
    return f"the {one.measure} is {moved} {'higher' if one.delta > 0 else 'lower'}"


def _possible_differences(one: Judgement, units: str) -> str:
    shown, (low, high) = one.score, one.score.interval
    possible = f"anything from {ends_text(shown.interval, shown.measure)} is possible"
    if shown.delta == 0:
        return f"no difference seen; {possible}"
    same_way, other_way = one.moves.wins, one.moves.losses
    if shown.delta < 0:
        same_way, other_way = other_way, same_way
    if shown.plain is not None and shown.plain[0] * shown.plain[1] > 0 and low < 0 < high and not other_way:
        moved, could = ("improved", "worse") if shown.delta > 0 else ("got worse", "better")
        unseen = f"{unseen_share(one.clusters, shown.level):.0%}"
        of = plural(one.pairs, "case")
        return f"{same_way} of {of} {moved}, but with {units} up to {unseen} of others could get much {could}"
    return f"{_difference(shown)}, but {possible}"


def _margin_note(one: Judgement, found: Comparison) -> str:
    """What is missing for a verdict at a margin."""
    question = found.question
    if not question.margin:
        return ""
    unshown = [each.measure for each in one.measures if each.verdict == "inconclusive"]
    needs = f"; 'non-inferior' needs the {unshown[0]}, too" if len(unshown) == 1 < len(one.measures) else ""
    # 'equivalent' needs at least this many cases, whatever the results, to rule out that unseen ones differ
    least = cases_for_share(question.margin, 1 - question.alpha)
    if abs(one.score.delta) <= question.margin and one.clusters < least:
        needs += f"; 'equivalent' requires at least {least:,} {_unit(one, found)}s"
    return f", within the margin of {question.margin:g} or beyond it{needs}"


def _withheld(one: Judgement) -> str:
    if one.withheld == "settings":
        return "the two runs decided cases by different rules"
    if one.withheld == "measures":
        sides = (f"{_difference(each)} ({certainty(each)})" for each in one.measures)
        return f"the two measures contradict each other: {', while '.join(sides)}"
    bounds = one.score.bounds or (0.0, 0.0)
    worst, best = (difference_text(bound, one.score.measure) for bound in bounds)
    return (
        f"{plural(one.errored, 'case')} errored, which decides the verdict: if all had failed or passed, the "
        f"difference of the {one.score.measure} would be between {worst} and {best}"
    )


def _size(difference: float) -> str:
    if difference >= 0.1:
        return f"{difference:.2f}"
    return f"{difference:.3f}" if difference >= 0.001 else f"{difference:.1e}"  # two significant digits


def _power_note(one: Judgement, units: str) -> str:
    """The smallest difference that this many cases can show, unless the number needed is reported."""
    if one.needed is not None or one.detectable is None:
        return ""
    if not isfinite(one.detectable):
        return f"; {units} are likely to miss any difference"
    return f"; with {units}, a difference below {_size(one.detectable)} is likely to be missed"


def _unit(one: Judgement, found: Comparison) -> str:
    """Name of the independent units: `case`, or `cluster` if cases are clustered."""
    cases = min(found.base.cases, found.candidate.cases)
    return "case" if one.clusters in (one.pairs, cases) else "cluster"


def basis_lines(found: Comparison) -> Iterator[str]:
    """The basis of the verdict: rates, cases, moves, errors, and other differences between the runs."""
    one = found.whole
    if one is None:
        return
    scores = f"mean score {one.before.score:.3f} → {one.after.score:.3f}" if one.score.measure == "mean score" else ""
    if parts := [part for part in (scores, _rates(one)) if part]:
        yield ", ".join(parts)
    cases = min(found.base.cases, found.candidate.cases)
    counted = (
        plural(one.pairs, "case") if one.pairs <= cases else f"{one.pairs} pairs of results of {plural(cases, 'case')}"
    )
    moves = one.moves
    losses = "1 loss" if moves.losses == 1 else f"{moves.losses} losses"
    yield f"based on {counted}: {plural(moves.wins, 'win')}, {losses}, {plural(moves.ties, 'tie')}"
    if moves.same_rule and (moves.fixed or moves.broken):
        yield f"{moves.fixed} now pass, {moves.broken} now fail"
    if one.clusters < one.pairs and _unit(one, found) == "case":
        counted = f"{plural(one.clusters, 'case')} count, not {one.pairs} results"
        yield f"the results of a case are not independent: {counted}"
    elif one.clusters < one.pairs:
        yield f"the cases form {plural(one.clusters, 'cluster')}; cases of one cluster are not independent"
    if one.errored:
        yield _errors(one, found.question)
    yield from map(one_line, found.notes)


def _rates(one: Judgement) -> str:
    """`pass rate 92.1% → 78.9%, -13.2 points (95% CI …)`, or empty if the rules of the runs differ."""
    if not one.rates_compare:
        return ""
    rates = f"{percent(one.before.rate)} → {percent(one.after.rate)}"
    sure = ""
    if one.rate is not None and one.deciding is not one.rate:
        sure = f", {points(one.rate.delta)} ({certainty(one.rate)})"
    name = "pass rate" if one.score.measure == "mean score" else one.score.measure
    return f"{name} {rates}{sure}"


def _errors(one: Judgement, question: ComparisonSettings) -> str:
    cases = plural(one.errored, "case")
    if question.errored == "fail" or one.score.bounds is None:
        return f"{cases} errored"
    measure = one.score.measure
    worst, best = (difference_text(bound, measure) for bound in one.score.bounds)
    return f"{cases} errored: the difference of the {measure} is {worst} at worst, {best} at best"


def _method(found: Comparison) -> Iterator[str]:
    """How the numbers were computed, and what they would be without the allowance for unseen cases."""
    one = found.whole
    if one is None or found.same:
        return
    yield "Method"
    for each in one.measures:
        yield f"  {each.measure}: {difference_text(each.delta, each.measure)} ({certainty(each)})"
        if each.plain is not None:
            plain = ends_text(each.plain, each.measure)
            yield f"    plain paired t interval, without allowance for unseen cases: {plain}"
    yield "  paired by case; clusters weigh as many cases as they hold; one unseen cluster is added against each claim"
    if one.usage:
        yield "  a case takes: mean of its graded samples, over the cases for which it is known; paired t interval"
    if one.tested > 1:
        yield f"  p-values are corrected for {one.tested} tests (Holm); intervals are those of each measure alone"
    if one.detectable is not None and isfinite(one.detectable):
        power = f"a difference below {_size(one.detectable)} is likely to be missed"
        yield f"  with {plural(one.clusters, _unit(one, found))}, {power} (80% power, simulated)"


def _groups(found: Comparison, *, color: bool) -> Iterator[str]:
    if not found.groups:
        return
    tested = max(group.judgement.tested for group in found.groups)
    yield f"By {found.question.by}" + (f"; p-values corrected for {tested} tests (Holm)" if tested > 1 else "")
    rows: list[list[Cell | str]] = []
    for group in found.groups:
        one, shown = group.judgement, group.judgement.deciding
        difference = f"{difference_text(shown.delta, shown.measure)} {shown.measure}"
        p = "" if one.verdict == "inconclusive" and found.question.margin else p_value(one.p_of_claim)
        verdict = (one.verdict, _STYLES[one.verdict])
        rows.append([one_line(group.name), verdict, difference, interval_text(shown), p, plural(one.pairs, "case")])
    yield from (f"  {line}" for line in aligned(rows, color=color))


def _moved(found: Comparison) -> Iterator[str]:
    if not found.moved:
        return
    total = sum(pair.moved for pair in found.pairs)
    several = len(found.candidate.targets) > 1
    yield f"Moved ({total}), worst first"
    for one in found.moved:
        pair = one.pair
        target = f" on {one_line(pair.after_key.target)}" if several else ""
        before, after = pair.before, pair.after
        status = before.status if before.status == after.status else f"{before.status} → {after.status}"
        yield f"  {_pair_label(pair)}{target}: {status}, {before.score or 0:.2f} → {after.score or 0:.2f}"
        for change in one.changes:
            yield f"    {_change(change, one.after)}"
        for name, evidence in (("before", one.before), ("after", one.after)):
            sample = f" (sample {evidence.sample} of {evidence.repeat})" if evidence.repeat > 1 else ""
            answer = "no answer" if evidence.output is None else one_line(evidence.output, _LONGEST)
            yield f"    {name}{sample}: {answer}"
    if total > len(found.moved):
        yield f"  and {total - len(found.moved)} more; use --limit to show them"


def _pair_label(pair: CasePair) -> str:
    before, after = pair.before_key.prompt, pair.after_key.prompt
    if before is None or after is None or before == after:
        return case_label(pair.after_key)
    return f"{case_label(pair.before_key)} → {one_line(after)}"


def _change(change: CheckChange, shown: SampleEvidence) -> str:
    """An assertion that changed, with its evidence unless that is the answer, which is shown anyway."""
    evidence = None if change.evidence == shown.output else change.evidence
    shown_evidence = f" | {one_line(evidence, _LONGEST)}" if evidence else ""
    before, after = _passed(change.passed_before), _passed(change.passed_after)
    if before == after:
        before, after = _score(change.before), _score(change.after)
    return f"{one_line(change.name, _LONGEST)}: {before} → {after}{shown_evidence}"


def _passed(passed: bool | None) -> str:
    return "not judged" if passed is None else "passed" if passed else "failed"


def _score(score: float | None) -> str:
    return "not judged" if score is None else f"{score:.2f}"


def left_out_lines(found: Comparison) -> Iterator[str]:
    """The cases that were excluded, and those that were included although they were edited."""
    left = found.left_out
    for keys, where in ((left.only_base, "base"), (left.only_candidate, "candidate")):
        if keys:
            yield f"{plural(len(keys), 'case')} only in the {where}: {_keys(keys)}"
    if left.edited:
        changes = dict.fromkeys(what for one in left.edited.values() for what in one)
        edits = f"{plural(len(left.edited), 'case')} edited between the runs ({', '.join(changes)}), excluded"
        yield f"{edits}; --edited includes them: {_keys(left.edited)}"
    if found.edited:
        yield f"{plural(found.edited, 'case')} edited between the runs, but compared: their inputs may differ"


def _keys(keys: Iterable[CaseKey]) -> str:
    return listed([case_label(key) for key in keys])


_MARKS = {"better": "+", "worse": "-", "equivalent": "=", "non-inferior": ">", "inconclusive": "?"}
_LEGEND = "+ better, - worse, = equivalent, > non-inferior, ? inconclusive"


def render_matrix(found: Matrix) -> str:
    """The runs, the difference between every two of them, and the cases whose scores differ most."""
    names = ["base", *(f"run {number}" for number in range(2, len(found.runs) + 1))]
    blocks = (
        runs_lines(found.runs, names),
        _differences(found, names),
        _base_notes(found, names),
        _cases(found, names),
    )
    return "\n\n".join("\n".join(lines) for block in blocks if (lines := list(block)))


def _differences(found: Matrix, names: list[str]) -> Iterator[str]:
    """A table of differences, row minus column."""
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
    if one.same:
        return "same run"
    whole, shown = one.whole, one.whole.deciding
    measure = "" if shown.measure == "mean score" else f" {shown.measure}"
    sure = f"{certainty(shown)}, {plural(whole.pairs, 'case')}"
    return f"{_MARKS[whole.verdict]} {difference_text(shown.delta, shown.measure)}{measure} ({sure})"


def _base_notes(found: Matrix, names: list[str]) -> Iterator[str]:
    """Notes and excluded cases of each comparison with the base."""
    for (base, candidate), one in found.comparisons.items():
        if base == 0:
            lines = (*map(one_line, one.notes), *left_out_lines(one))
            yield from (f"{names[candidate]}: {line}" for line in lines)


def _cases(found: Matrix, names: list[str]) -> Iterator[str]:
    if not found.scores:
        return
    rows = [
        [case_label(key), *("-" if score is None else f"{score:.2f}" for score in scores)]
        for key, scores in found.scores.items()
    ]
    yield f"Scores that differ ({len(rows) + found.omitted}), largest difference first"
    yield from (f"  {line}" for line in aligned([["", *names], *rows]))
    if found.omitted:
        yield f"  and {found.omitted} more; use --limit to show them"
