"""The totals of a run in words, with early ends and a comparison (SPEC section 1: failed and errored stay apart)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from agentv.model.run.clusters import CASE, CONVERSATION
from agentv.model.run.matrix import DIMENSIONS, Counts, Interval
from agentv.model.run.summary import CaseRule, Cut, PartialRun, SequentialComparison, Summary
from agentv.model.run.trial import EarlyCase, EarlyStops, Why
from agentv.model.values.formatting import duration, money, plural
from agentv.model.values.usage import TokenUsage
from agentv.reports.run.corrected import corrected_lines, gate_line, unchecked_line
from agentv.reports.run.failure_lines import run_word
from agentv.reports.text.escaping import one_line, percent


def signed(number: float, places: int) -> str:
    """`+8.0`, `-0.04`; `0.0` of what so many places show as nothing."""
    shown = f"{number:+.{places}f}"
    return shown if float(shown) else shown[1:]


EARLY_HEADING = "Samples that ended early: cases that failed or are undecided"

EARLY_SHOWN = 100
"""Cases that are listed; the summary holds more."""

_EARLY_ENDS: dict[Why, str] = {
    "above": "the rate is above the threshold, but a required assertion failed",
    "below": "the rate is below the threshold",
    "gate": "a required assertion failed",
    "undecided": "undecided",
}


def listed_cases(stops: EarlyStops) -> tuple[EarlyCase, ...]:
    """The cases that are listed; those that passed and were decided are counted in the totals alone."""
    return stops.by_case[:EARLY_SHOWN]


def number_listed(stops: EarlyStops) -> int:
    """Number of cases that failed or are undecided."""
    return len(stops.by_case) + stops.omitted


def early_words(case: EarlyCase) -> str:
    """`3 of 12 passed, undecided (fails by this share); anytime-valid bounds of the rate: 3.1% to 79.2%, …`."""
    stopped = case.stopped
    bounds = f"{percent(stopped.low)} to {percent(stopped.high)}, error rate at most {percent(case.alpha)} each"
    why = _EARLY_ENDS.get(stopped.why, stopped.why)
    if stopped.why == "undecided":
        why += f" ({'passes' if case.status == 'passed' else 'fails'} by this share)"
    return f"{stopped.passed} of {stopped.samples} passed, {why}; anytime-valid bounds of the rate: {bounds}"


def more_early(stops: EarlyStops) -> str | None:
    """Number of cases that are not listed; None if all are."""
    more = number_listed(stops) - len(listed_cases(stops))
    cases = "case that failed or is" if more == 1 else "cases that failed or are"
    return f"and {more:,} more {cases} undecided, in summary.json" if more > 0 else None


def against_line(found: SequentialComparison) -> str:
    """`worse than 20261122T184730Z-a1f8: pass rate -0.120 (95.0% confidence interval -0.215 to -0.012), …`."""
    low, high = found.interval
    interval = f"{percent(1 - found.alpha)} confidence interval {signed(low, 3)} to {signed(high, 3)}, anytime-valid"
    drawn = f"{found.drawn:,} of {plural(found.cases, 'case')} drawn at random"
    if found.clusters != found.drawn:
        drawn += f", in {plural(found.clusters, 'cluster')}"
    notes = "".join(_notes_against(found))
    return f"{_claim_against(found)}: pass rate {_difference_against(found)} ({interval}) on {drawn}{notes}"


def _claim_against(found: SequentialComparison) -> str:
    base = one_line(found.base)
    if found.verdict == "non-inferior":
        return f"not worse than {base} by more than {found.margin:g}"
    by = f" by more than {found.margin:g}" if found.margin and found.verdict != "inconclusive" else ""
    return f"inconclusive against {base}" if found.verdict == "inconclusive" else f"{found.verdict} than {base}{by}"


def _difference_against(found: SequentialComparison) -> str:
    low, high = found.difference
    return signed(low, 3) if round(high - low, 9) == 0 else f"{signed(low, 3)} to {signed(high, 3)}"


def _notes_against(found: SequentialComparison) -> list[str]:
    lines = []
    if found.errored:
        lines.append(f"; {found.errored:,} of them errored and may have passed or failed")
    if found.unpaired:
        lines.append(f"; {found.unpaired:,} more are new or edited, and not counted")
    if found.verdict == "inconclusive" and found.drawn == found.cases:
        lines.append("; more cases would be needed")
    return lines


def totals(summary: Summary, noted: int, results: str, width: int = 100) -> list[str]:
    """The totals of a run as lines of text.

    Args:
        summary: of the run.
        noted: trials that passed with a failed check.
        results: where the rows are, as a person would type it.
        width: columns of the terminal.
    """
    return [line for line in _lines(summary, noted, results, width) if line]


def _lines(summary: Summary, noted: int, results: str, width: int) -> Iterator[str]:
    cases, trials = summary.cases, summary.trials
    yield f"{plural(cases.total, 'case')}: {outcomes(cases)}"
    if summary.partial is not None:
        yield partial_words(summary.partial)
    if trials.total != cases.total:
        yield f"{plural(trials.total, 'trial')}: {outcomes(trials)}"
    if noted:
        what = "trial" if trials.total != cases.total else "case"
        yield f"{plural(noted, f'passed {what}')} with a failed check"
    yield ", ".join(one for one in (rate_words(summary), mean_words(summary)) if one)
    yield of_all_words(summary)
    yield rule_words(summary)
    if summary.corrected is not None:
        yield from corrected_lines(summary.corrected)
    if summary.samples is not None:
        from agentv.reports.run.samples import samples_lines  # most runs have one sample of each case

        yield from samples_lines(summary.samples)
    if summary.against is not None:
        yield against_line(summary.against)
    yield _early(summary.early_stops, errored=bool(summary.cases.errored), cases=summary.cases.total)
    if summary.matrix is not None:
        from agentv.reports.run.matrix import matrix_lines  # most runs have one target and one prompt

        yield from matrix_lines(summary, width)
    yield from _activation(summary)
    cost = _cost(summary)
    took = duration(summary.duration_ms) if summary.duration_ms else ""  # nobody timed a run that was killed
    yield f"{cost}, {took}" if cost and took else cost or (took and f"took {took}")
    yield _tokens(summary)
    yield f"results: {one_line(results)}"
    yield from map(gate_line, summary.gates)
    if not summary.gates:  # they say it themselves
        yield unchecked_line(summary.corrected, run_word(summary, results))


def _activation(summary: Summary) -> Iterator[str]:
    if summary.activation:
        from agentv.reports.run.activation import activation_lines  # few runs have queries

        for one in summary.activation:
            yield from activation_lines(one)


def partial_words(partial: PartialRun) -> str:
    """`--last-failed selected 12 of 100 cases (20 of 200 trials); the rest did not run`."""
    if not partial.trials:
        return "this shard is empty: there are more shards than selected cases"
    line = f"{' '.join(f'--{one_line(name)}' for name in partial.why)} selected {partial.badge}"
    if partial.cases < partial.of and (partial.trials, partial.of_trials) != (partial.cases, partial.of):
        line += f" ({partial.trials:,} of {plural(partial.of_trials, 'trial', ',')})"
    return f"{line}; the rest did not run"


def outcomes(counts: Counts) -> str:
    """`3 passed, 1 failed, 0 errored`, and how many were not run, or only shown, where some were."""
    parts = [f"{counts.passed} passed", f"{counts.failed} failed", f"{counts.errored} errored"]
    parts += [f"{number} {word}" for number, word in ((counts.skipped, "not run"), (counts.shown, "shown")) if number]
    return ", ".join(parts)


def _early(stops: EarlyStops | None, *, errored: bool = False, cases: int = 0) -> str:
    """`decided 26 of 500 cases with 4,300 of 5,000 samples; of all 500 cases at most 5.0% are expected …`.

    The chance of a wrong decision is one per case that was sampled. Of the decided ones alone it says nothing where
    most are undecided; for those the number that holds together is reported. Empty if no case ends early or has ended.
    """
    if stops is None or not (ended := stops.decided + stops.undecided):
        return ""
    line = f"decided {stops.decided:,} of {plural(ended, 'case')}"
    if cases and ended > cases:
        line += ", each target, prompt and variant apart,"
    line += f" with {stops.samples:,} of {plural(stops.samples + stops.spared, 'sample')}"
    if errored:
        line += " (including those of errored cases)"
    if stops.decided > stops.by_gate:
        line += f"; {_wrongly(stops)}"
    if not stops.undecided:
        return line
    they = "1 is undecided: it uses" if stops.undecided == 1 else f"{stops.undecided:,} are undecided: they use"
    return f"{line}; {they} the share that passed, which is not proof"


def _wrongly(stops: EarlyStops) -> str:
    """How many decisions are expected to be wrong: of all cases, and of those that hold together."""
    wrong = percent(stops.alpha)
    cases = stops.cases or stops.decided + stops.undecided  # a summary of an earlier agentv does not say it
    if cases == 1:
        return f"wrong with a probability of at most {wrong}"
    line = f"of all {cases:,} cases, at most {wrong} are expected to be decided wrongly"
    by_samples = stops.decided - stops.by_gate
    if stops.confirmed == by_samples:
        return f"{line}, and at most {wrong} of the decided ones (false discovery rate)"
    hold = "holds" if stops.confirmed == 1 else "hold"
    which = f"{stops.confirmed:,} of the {by_samples:,} decisions {hold} at a false discovery rate of {wrong}"
    return f"{line}; {which} (a smaller --alpha confirms more)"


def _cost(summary: Summary) -> str:
    """Return what all calls cost, a lower bound if a part has no price; empty if no call reported tokens or a cost."""
    unpriced = summary.unpriced
    if summary.spent_usd is None:
        return "cost unknown" if unpriced else ""
    least = "at least " if unpriced else ""
    others = {"judges": summary.judge_cost_usd, "simulated users": summary.user_cost_usd}
    parts = " and ".join(f"{money(cost)} for {whose}" for whose, cost in others.items() if cost)
    included = f" (including {parts})" if parts else ""
    return f"cost {least}{money(summary.spent_usd)}{included}" + (
        f": prices are not known for {plural(unpriced, 'trial')}" if unpriced else ""
    )


def cost_of(summary: Summary) -> str:
    """Cost of targets and judges: `$0.0123`, `≥ $0.0123` if a part of it has no price; empty if unknown."""
    if summary.spent_usd is None:
        return ""
    least = "≥ " if summary.unpriced else ""
    return least + money(summary.spent_usd)


def _tokens(summary: Summary) -> str:
    """`tokens: 1,200 in (800 cached), 300 out; judges 900 in, 120 out`; nothing where nobody counted."""
    targets, judges = summary.token_usage, summary.judge_token_usage
    parts = [_counted(targets)] if targets is not None else []
    parts += [f"judges {_counted(judges)}"] if judges is not None else []
    return f"tokens: {'; '.join(parts)}" if any(parts) else ""


def _counted(usage: TokenUsage) -> str:
    if usage.input is None and usage.output is None:
        return "not counted" if usage.total is None else f"{usage.total:,} in all"
    cached = f" ({usage.cached:,} cached)" if usage.cached else ""
    reasoning = f" ({usage.reasoning:,} reasoning)" if usage.reasoning else ""
    return f"{usage.input or 0:,} in{cached}, {usage.output or 0:,} out{reasoning}"


_CUTS: Mapping[Cut, str] = {
    "fail-fast": "the run was stopped by --fail-fast",
    "max-errors": "the run was stopped by --max-errors",
    "decided": "the run stopped when its comparison was decided",
}
_ROUNDING = 1e-9
_NAME = 40
"""Characters of a cluster's key."""


def rate_words(summary: Summary) -> str:
    """`pass rate 88.2% of 272 judged (95% CI 83.8% to 91.5%; 80.0% if all 28 errored had failed)`."""
    if summary.pass_rate is None:
        return "no case was graded" if summary.trials.passed + summary.trials.failed else "nothing was graded"
    return f"pass rate {percent(summary.pass_rate)} {judged_words(summary)} ({certainty(summary)})"


def of_all_words(summary: Summary) -> str:
    """`pass rate of all 60 cases that --sample drew 50 from: 84.0% (95% CI 78.3% to 88.3%)`; empty without a sample."""
    interval, drawn = summary.pass_rate_interval_of_all, summary.partial
    if interval is None or drawn is None or summary.pass_rate is None:
        return ""
    of = f"all {drawn.of:,} cases that --sample drew {drawn.cases:,} from"
    return f"pass rate of {of}: {percent(summary.pass_rate)} ({interval_words(interval)})"


def judged_words(summary: Summary) -> str:
    """`of 272 judged`; of several targets what it pools.

    Of cases with several samples `over 250 judged samples`, and where these may end early `over 40 judged cases`: the
    mean of the rates of cases is no share of what was judged.
    """
    judged = f"{_judged(summary):,} judged"
    pooled = _pooled(summary)
    if summary.rule_pass_rate is None:
        return f"of {judged}{pooled}"
    if summary.early_stops is not None:
        return f"over {judged} {'case' if _judged(summary) == 1 else 'cases'}{pooled}"
    return f"over {judged} samples{pooled}"


def _pooled(summary: Summary) -> str:
    """`, 3 targets and 2 prompts together`; empty where there is one of each.

    Of a run that ended before its second target, `, on 1 of 2 targets`.
    """
    ran, planned = sum(one.judged > 0 for one in summary.by_target.values()), len(summary.by_target)
    part = f", on {ran} of {plural(planned, 'target')}" if 0 < ran < planned else ""
    if summary.matrix is None:
        return part
    counts = ((len([name for name in summary.matrix.names(by) if name is not None]), by) for by in DIMENSIONS)
    several = [plural(number, by) for number, by in counts if number > 1 and not (part and by == "target")]
    return f"{part}, {' and '.join(several)} together" if several else part


def _quoted(key: str) -> str:
    return f"'{one_line(key, _NAME)}'"


def certainty(summary: Summary, quoted: Callable[[str], str] = _quoted) -> str:
    """Certainty of the pass rate: its interval, by the number of clusters, and its worst case if samples errored.

    Args:
        summary: of the run.
        quoted: how the key of clusters is shown, which may be any text.
    """
    clusters, judged = summary.interval_clusters, _judged(summary)
    plain = clusters == judged and set(summary.clustered_by) <= {CASE}
    counted = None if clusters is None or plain else clusters_words(clusters, summary.clustered_by, quoted)
    if summary.cut is not None:
        sure = f"no confidence interval: {_CUTS[summary.cut]}"
    else:
        sure = interval_words(summary.pass_rate_interval, counted)
    errored = summary.cases.errored if summary.early_stops is not None else summary.trials.errored
    return f"{sure}{_if_failed(summary.pass_rate, summary.pass_rate_bounds, errored)}"


def interval_words(interval: Interval | None, clusters: str | None = None) -> str:
    """`95% CI 35.0% to 91.0%, 10 conversations`, or `no interval …` if all are one cluster."""
    counted = "" if clusters is None else f", {clusters}"
    if interval is None:
        return f"no confidence interval: {clusters or '1 cluster'} only"
    return f"95% CI {percent(interval[0])} to {percent(interval[1])}{counted}"


def clusters_words(number: int, clustered_by: Sequence[str], quoted: Callable[[str], str] = _quoted) -> str:
    """`10 conversations`, `12 cases`, `8 clusters by 'customer'`."""
    some = "" if number == 1 else "s"
    match list(clustered_by):
        case [key] if key == CASE:
            return f"{number:,} case{some}"
        case [key] if key == CONVERSATION:
            return f"{number:,} conversation{some}"
        case [key]:
            return f"{number:,} cluster{some} by {quoted(key)}"
    return f"{number:,} cluster{some}"


def rule_words(summary: Summary) -> str:
    """Number of cases that meet their rule, if they have several samples; else empty.

    `cases that meet the rule (mean ≥ 0.8 of 5 samples): 37.5% of 40 judged (95% CI 24.2% to 53.0%)`
    """
    if summary.rule_pass_rate is None or summary.early_stops is not None or summary.cut is not None:
        return ""
    rule = "their rules" if summary.rule is None else f"the rule ({case_rule_words(summary.rule)})"
    judged, errored = summary.cases.passed + summary.cases.failed, summary.cases.errored
    sure = interval_words(summary.rule_pass_rate_interval) + _if_failed(
        summary.rule_pass_rate, summary.rule_pass_rate_bounds, errored
    )
    of = f"{judged:,} judged"
    if summary.rule_judged not in (None, judged):
        of = f"{summary.rule_judged:,} judged, each target, prompt and variant apart"
    return f"cases that meet {rule}: {percent(summary.rule_pass_rate)} of {of} ({sure})"


def case_rule_words(rule: CaseRule) -> str:
    """`mean ≥ 0.8 of 5 samples`, `any of 5 samples ≥ 0.8`."""
    mark = f"{rule.threshold:g}"
    if rule.aggregate == "mean":
        return f"mean ≥ {mark} of {rule.repeat} samples"
    which = {"pass_any": "any", "pass_all": "all", "majority": "most"}[rule.aggregate]
    return f"{which} of {rule.repeat} samples ≥ {mark}"


def mean_words(summary: Summary) -> str:
    """`mean score 0.83 (95% CI 0.78 to 0.87)`, or an empty text."""
    if summary.mean_score is None:
        return ""
    sure = (
        "" if summary.mean_score_interval is None else " (95% CI {:.2f} to {:.2f})".format(*summary.mean_score_interval)
    )
    return f"mean score {summary.mean_score:.2f}{sure}"


def _if_failed(rate: float | None, bounds: Interval | None, errored: int) -> str:
    """`; 80.0% if all 28 errored had failed`; nothing where none errored.

    A case may be sure to fail whatever its errored samples had come to. Where the rate of the others is therefore above
    both bounds, both are given: `; 46.2% to 61.5% whatever the 4 errored had come to`.
    """
    if bounds is None or not errored:
        return ""
    low, high = bounds
    if rate is not None and high < rate - _ROUNDING:
        which = "the errored one" if errored == 1 else f"the {errored:,} errored"
        range_ = percent(low) if low == high else f"{percent(low)} to {percent(high)}"
        return f"; {range_} whatever the result of {which}"
    if low == high:
        return ""
    which = "the errored one" if errored == 1 else f"all {errored:,} errored"
    return f"; {percent(low)} if {which} had failed"


def _judged(summary: Summary) -> int:
    # a summary that an earlier version wrote has only the cases
    return summary.judged or summary.cases.passed + summary.cases.failed
