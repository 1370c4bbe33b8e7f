"""`agentv compare`: a verdict that a person can act on, the cases that moved, and what was left out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from agentv.model.comparison import (
    CaseKey,
    CheckChange,
    Comparison,
    Evidence,
    Group,
    Interval,
    Judgement,
    Measured,
    MovedCase,
    Pair,
    Question,
    RunLabel,
    Verdict,
)
from agentv.reports.text import cells, one_line, percent
from agentv.reports.totals import plural
from agentv.stats.unseen import cases_for_share

LISTED = 10
"""Names in one line; `--json` holds all."""

_LONGEST = 200
"""Characters of an answer, or of a check's evidence, that are shown."""

_STYLES: dict[str, str] = {
    "better": "32",
    "worse": "31",
    "equivalent": "36",
    "cannot tell": "33",
    "no difference": "36",
}
_LEAST = 0.001


def render_comparison(found: Comparison, *, color: bool = False) -> str:
    """The runs, the verdict and what it stands on; then its parts, the cases that moved, and those in no number."""
    blocks = (
        runs_lines((found.base, found.candidate), ("base", "candidate")),
        [_painted(verdict_line(found), color=color), *_numbers(found)],
        _groups(found, color=color),
        _moved(found),
        left_out_lines(found),
    )
    return "\n\n".join("\n".join(lines) for block in blocks if (lines := list(block)))


def runs_lines(runs: Sequence[RunLabel], names: Sequence[str]) -> Iterator[str]:
    """A line for each run: what it is called here, its id, its targets, and how many cases it holds."""
    rows = [
        [name, one_line(run.run_id), listed(run.targets), plural(run.cases, "case")]
        for name, run in zip(names, runs, strict=True)
    ]
    return aligned(rows)


def verdict_line(found: Comparison) -> str:
    """One sentence: what is shown, how sure that is, and, where nothing is, what it would take."""
    if found.same:
        return f"no difference: both are the same run{_own_targets(found.base)}"
    if found.whole is None:
        return "nothing was compared: each case that both runs hold is errored, or was not run, in one of them"
    return f"{found.whole.verdict}: {_finding(found.whole, found)}"


def sure(one: Measured, alpha: float) -> str:
    """`95% interval -0.19 to -0.05, p 0.002`."""
    return f"{interval_text(one.interval, alpha)}, {p_value(one.p)}"


def interval_text(interval: Interval | None, alpha: float, word: str = " interval") -> str:
    """`95% interval -0.19 to -0.05`."""
    if interval is None:
        return "too few for an interval"
    low, high = interval
    return f"{level(alpha)}{word} {signed(low)} to {signed(high)}"


def signed(number: float) -> str:
    """`-0.190`; of what three digits would show as nothing, two that count."""
    return f"{number:+.3f}" if number == 0 or abs(number) >= _LEAST / 2 else f"{number:+.1e}"


def level(alpha: float) -> str:
    """`95%`."""
    return f"{100 * (1 - alpha):.10g}%"


def p_value(p: float) -> str:
    """`p 0.041`, `p < 0.001`."""
    return f"p {p:.3f}" if p >= _LEAST else f"p < {_LEAST}"


def warnings(found: Comparison) -> Iterator[str]:
    """What a person should know before trusting the verdict."""
    for name, run in (("base", found.base), ("candidate", found.candidate)):
        if run.missing:
            yield f"the {name} {one_line(run.run_id)} is not whole: {plural(run.missing, 'planned case')} did not run"
    for keys, why in ((found.left_out.errored, "errored in"), (found.left_out.unfinished, "were not finished by")):
        if keys:
            verb = why.replace("were", "was") if len(keys) == 1 else why
            yield f"{plural(len(keys), 'case')} {verb} one of the runs, and left out: {_keys(keys)}"


def lost_line(found: Comparison) -> str:
    """`2 cases passed in the base and do not in the candidate 2026…: shop: late (errored), shop: old (missing)`."""
    named = listed([f"{case_label(key)} ({what})" for key, what in found.lost.items()])
    verb = "does" if len(found.lost) == 1 else "do"
    candidate = one_line(found.candidate.run_id)
    return f"{plural(len(found.lost), 'case')} passed in the base and {verb} not in the candidate {candidate}: {named}"


def listed(names: Collection[str]) -> str:
    """Names in one line, the first of them where they are many."""
    shown = ", ".join(one_line(name) for name in list(names)[:LISTED])
    more = len(names) - LISTED
    return f"{shown} and {more} more" if more > 0 else shown


def case_label(key: CaseKey) -> str:
    """`refunds: return-late with plain`."""
    prompt = f" with {one_line(key.prompt)}" if key.prompt is not None else ""
    return f"{one_line(key.suite)}: {one_line(key.case_id)}{prompt}"


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows of cells as lines, columns two blanks apart."""
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        line = "  ".join(text + " " * (width - cells(text)) for text, width in zip(row, widths, strict=True))
        yield line.rstrip()


def _painted(line: str, *, color: bool) -> str:
    verdict, colon, rest = line.partition(":")
    style = _STYLES.get(verdict)
    return f"\x1b[1;{style}m{verdict}\x1b[0m{colon}{rest}" if color and style is not None else line


def _own_targets(run: RunLabel) -> str:
    if len(run.targets) < 2:
        return ""
    first, second = map(one_line, run.targets[:2])
    return f"; to compare two of its targets, name them: --target {first} --target {second}"


def _finding(one: Judgement, found: Comparison) -> str:
    alpha, margin = found.question.alpha, found.question.margin
    said = f"{_difference(one.deciding)} ({sure(one.deciding, alpha)})"
    beyond = f", by more than {margin:g}" if margin else ""
    endings: dict[Verdict, str] = {
        "better": f"{said}{beyond}{_other(one, alpha)}",
        "worse": f"{said}{beyond}{_other(one, alpha)}",
        "equivalent": f"{said}, so any difference is within {margin:g}",
        "cannot tell": f"{said}; {_unseen(one, found)}",
    }
    return endings[one.verdict]


def _other(one: Judgement, alpha: float) -> str:
    """The other measure, where it does not say the same: the pass rate decided alone, or both went apart."""
    if one.deciding is one.rate:
        score = Measured("mean score", one.delta, one.interval, one.p, one.p_of_claim, one.verdict)
        return f", while {_difference(score)} ({sure(score, alpha)})"
    apart = one.rate is not None and one.rate.delta * one.delta < 0
    return f", while {_difference(one.rate)} ({sure(one.rate, alpha)})" if one.rate and apart else ""


def _difference(one: Measured) -> str:
    if one.delta == 0:
        return f"the {one.measure} is the same"
    return f"the {one.measure} is {signed(abs(one.delta))[1:]} {'higher' if one.delta > 0 else 'lower'}"


def _unseen(one: Judgement, found: Comparison) -> str:
    """Why nothing is shown, and what would show it."""
    cases = plural(one.clusters, "case" if one.clusters == one.pairs else "cluster")
    if one.detectable >= 1:
        least = f": at least {one.needed} are needed" if one.needed else ""
        return f"{cases} cannot show a difference for cases like these, whatever comes out{least}"
    if found.question.margin:
        return (
            f"with {cases}, it may be within the margin of {found.question.margin:g} or beyond it"
            f"{_more(one)}{_enough(one, found.question)}"
        )
    if abs(one.delta) >= one.detectable:
        moved = one.moves.wins + one.moves.losses
        return f"{plural(moved, 'case')} moved, which is too few to rule out chance"
    return f"with {cases}, a difference below {_size(one.detectable)} is likely to go unseen{_more(one)}"


def _size(difference: float) -> str:
    if difference >= 0.1:
        return f"{difference:.2f}"
    return f"{difference:.3f}" if difference >= _LEAST else f"{difference:.1e}"  # two digits that count


def _more(one: Judgement) -> str:
    if one.needed is None or one.delta == 0:
        return ""
    return f"; if this difference is real, about {one.needed:,} {_unit(one)} would show it"


def _unit(one: Judgement) -> str:
    return "cases" if one.clusters == one.pairs else "clusters"


def _enough(one: Judgement, question: Question) -> str:
    """How many cases `equivalent` takes at least, whatever comes out: so many must be seen to rule out others."""
    least = cases_for_share(question.margin, 1 - question.alpha)
    within = abs(one.delta) <= question.margin
    return f"; equivalent takes at least {least:,} {_unit(one)}" if within and one.clusters < least else ""


def _numbers(found: Comparison) -> Iterator[str]:
    one = found.whole
    if one is None:
        return
    rates = f"{percent(one.before.passed / one.pairs)} → {percent(one.after.passed / one.pairs)}"
    rate = f" ({sure(one.rate, found.question.alpha)})" if one.rate is not None and one.deciding is not one.rate else ""
    scores = f"mean score {one.before.score:.3f} → {one.after.score:.3f}, " if one.measure == "mean score" else ""
    yield f"{scores}pass rate {rates}{rate}{_gain(one)}"
    if one.tested > 1:
        yield "both decide: their p-values are corrected for the two of them (Holm)"
    yield f"{plural(one.pairs, 'case')} compared: {_moves(one, found.question.alpha)}"
    flips = one.moves
    if flips.fixed or flips.broken:
        told = "" if flips.flips_p is None else f" (McNemar's exact {p_value(flips.flips_p)})"
        yield f"{flips.fixed} now pass, {flips.broken} now fail{told}"
    if one.clusters < one.pairs:
        yield f"they hang together in {plural(one.clusters, 'cluster')}, each of which counts as one"
    yield from map(one_line, found.notes)


def _gain(one: Judgement) -> str:
    if one.gain is None:
        return ""
    where = f" over the {plural(one.room, 'case')} with room for one" if one.room < one.pairs else ""
    return f", normalized gain {one.gain:+.3f}{where}"


def _moves(one: Judgement, alpha: float) -> str:
    moves = one.moves
    losses = "1 loss" if moves.losses == 1 else f"{moves.losses} losses"
    said = f"{plural(moves.wins, 'win')}, {losses}, {plural(moves.ties, 'tie')}"
    if moves.win_interval is None:
        return said
    low, high = moves.win_interval
    share = percent(moves.wins / (moves.wins + moves.losses))
    return f"{said}; {share} of those that differ are wins ({level(alpha)} interval {percent(low)} to {percent(high)})"


def _groups(found: Comparison, *, color: bool) -> Iterator[str]:
    if not found.groups:
        return
    number = len(found.groups)
    yield f"By {found.question.by}" + (
        f"; p and verdict are corrected for {number} comparisons (Holm), intervals are not" if number > 1 else ""
    )
    for line in aligned([_group_row(group, found.question) for group in found.groups]):
        yield f"  {_paint_word(line, color=color)}"


def _group_row(group: Group, question: Question) -> list[str]:
    one, alpha, margin = group.judgement, question.alpha, question.margin
    shown = one.deciding
    return [
        one_line(group.name),
        one.verdict,
        f"{signed(shown.delta)} {shown.measure}",
        interval_text(shown.interval, alpha),
        "" if one.verdict == "cannot tell" and margin else p_value(one.p_of_claim),
        plural(one.pairs, "case"),
    ]


def _paint_word(line: str, *, color: bool) -> str:
    for word, style in _STYLES.items():
        if color and f"  {word}  " in line:
            return line.replace(f"  {word}  ", f"  \x1b[{style}m{word}\x1b[0m  ", 1)
    return line


def _moved(found: Comparison) -> Iterator[str]:
    if not found.moved:
        return
    total = sum(pair.moved for pair in found.pairs)
    several = len(found.candidate.targets) > 1
    yield f"Moved ({total}), worst first"
    for one in found.moved:
        yield from _moved_case(one, several=several)
    if total > len(found.moved):
        yield f"  and {total - len(found.moved)} more; --limit shows more of them"


def _moved_case(one: MovedCase, *, several: bool) -> Iterator[str]:
    pair = one.pair
    target = f" on {one_line(pair.after_key.target)}" if several else ""
    yield f"  {_pair_label(pair)}{target}: {_status(pair)}{pair.before.score or 0:.2f} → {pair.after.score or 0:.2f}"
    for change in one.changes:
        yield f"    {_change(change, one.after)}"
    for name, evidence in (("before", one.before), ("after", one.after)):
        yield f"    {name}{_sample(evidence)}: {_answer(evidence.output)}"


def _pair_label(pair: Pair) -> str:
    before, after = pair.before_key.prompt, pair.after_key.prompt
    if before is None or after is None or before == after:
        return case_label(pair.after_key)
    return f"{case_label(pair.before_key)} → {one_line(after)}"


def _status(pair: Pair) -> str:
    before, after = pair.before.status, pair.after.status
    return f"{before}, " if before == after else f"{before} → {after}, "


def _sample(evidence: Evidence) -> str:
    return f" (sample {evidence.sample} of {evidence.repeat})" if evidence.repeat > 1 else ""


def _answer(output: str | None) -> str:
    return "no answer" if output is None else one_line(output, _LONGEST)


def _change(change: CheckChange, shown: Evidence) -> str:
    """An assertion, and what it says, unless that is the answer which is shown anyway."""
    evidence = None if change.evidence == shown.output else change.evidence
    said = f" | {one_line(evidence, _LONGEST)}" if evidence else ""
    before, after = _passed(change.passed_before), _passed(change.passed_after)
    if before == after:
        before, after = _score(change.before), _score(change.after)
    return f"{one_line(change.name, _LONGEST)}: {before} → {after}{said}"


def _passed(passed: bool | None) -> str:
    return "not judged" if passed is None else "passed" if passed else "failed"


def _score(score: float | None) -> str:
    return "not judged" if score is None else f"{score:.2f}"


def left_out_lines(found: Comparison) -> Iterator[str]:
    """The cases that are in no number, and those that were taken in although they were edited."""
    left = found.left_out
    for keys, where in ((left.only_base, "base"), (left.only_candidate, "candidate")):
        if keys:
            yield f"{plural(len(keys), 'case')} only in the {where}: {_keys(keys)}"
    if left.edited:
        changes = dict.fromkeys(what for one in left.edited.values() for what in one)
        edits = f"{plural(len(left.edited), 'case')} edited in between ({', '.join(changes)}), and left out"
        yield f"{edits}; --edited takes them in: {_keys(left.edited)}"
    if found.edited:
        yield f"{plural(found.edited, 'case')} compared though edited in between: they may not have been asked the same"


def _keys(keys: Iterable[CaseKey]) -> str:
    return listed([case_label(key) for key in keys])
