"""Text for the totals of a run, including early stopping, comparisons and corrected rates (SPEC section 1)."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from agentv.model.run.matrix import Counts
from agentv.model.run.summary import (
    CorrectedRate,
    CorrectedRates,
    GateResult,
    PartialRun,
    SequentialComparison,
    Summary,
)
from agentv.model.run.trial import EarlyStops
from agentv.model.values.formatting import duration, money, plural
from agentv.model.values.usage import TokenUsage
from agentv.reports.run.rates import interval_words, mean_words, of_all_words, rate_words, rule_words, signed
from agentv.reports.run.view import run_word
from agentv.reports.text import one_line, percent


def against_line(found: SequentialComparison) -> str:
    """`worse than 20261122T184730Z-a1f8: pass rate -0.120 (95.0% confidence interval -0.215 to -0.012), …`."""
    low, high = found.interval
    interval = f"{percent(1 - found.alpha)} confidence interval {signed(low, 3)} to {signed(high, 3)}, anytime-valid"
    drawn = f"{found.drawn:,} of {plural(found.cases, 'case')} drawn at random"
    if found.clusters != found.drawn:
        drawn += f", in {plural(found.clusters, 'cluster')}"
    notes = f"; {found.errored:,} of them errored and may have passed or failed" if found.errored else ""
    notes += f"; {found.unpaired:,} more are new or edited, and not counted" if found.unpaired else ""
    if found.verdict == "inconclusive" and found.drawn == found.cases:
        notes += "; more cases would be needed"
    least, most = found.difference
    difference = signed(least, 3) if round(most - least, 9) == 0 else f"{signed(least, 3)} to {signed(most, 3)}"
    return f"{_claim_against(found)}: pass rate {difference} ({interval}) on {drawn}{notes}"


def _claim_against(found: SequentialComparison) -> str:
    base = one_line(found.base)
    if found.verdict == "non-inferior":
        return f"not worse than {base} by more than {found.margin:g}"
    by = f" by more than {found.margin:g}" if found.margin and found.verdict != "inconclusive" else ""
    return f"inconclusive against {base}" if found.verdict == "inconclusive" else f"{found.verdict} than {base}{by}"


def totals(summary: Summary, noted: int, results: str, width: int = 100) -> list[str]:
    """The totals of a run as lines of text.

    Args:
        summary: summary of the run.
        noted: number of trials that passed with a failed check.
        results: path of the run's directory, as typed in a command.
        width: width of the terminal.
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
    if summary.activation:
        from agentv.reports.run.activation import activation_lines  # few runs have queries

        yield from (line for one in summary.activation for line in activation_lines(one))
    cost = _cost(summary)
    took = duration(summary.duration_ms) if summary.duration_ms else ""  # a killed run has no duration
    yield f"{cost}, {took}" if cost and took else cost or (took and f"took {took}")
    targets, judges = summary.token_usage, summary.judge_token_usage
    counted = [_counted(targets)] if targets is not None else []
    counted += [f"judges {_counted(judges)}"] if judges is not None else []
    yield f"tokens: {'; '.join(counted)}" if counted else ""
    yield f"results: {one_line(results)}"
    yield from map(gate_line, summary.gates)
    unchecked = unchecked_words(summary.corrected)
    if unchecked and not summary.gates:  # gates report it themselves
        yield f"note: {unchecked}; label answers: agentv label {quote(run_word(summary, results))}"


def partial_words(partial: PartialRun) -> str:
    """`--last-failed selected 12 of 100 cases (20 of 200 trials); the rest did not run`."""
    if not partial.trials:
        return "this shard is empty: there are more shards than selected cases"
    line = f"{' '.join(f'--{one_line(name)}' for name in partial.why)} selected {partial.badge}"
    if partial.cases < partial.of and (partial.trials, partial.of_trials) != (partial.cases, partial.of):
        line += f" ({partial.trials:,} of {plural(partial.of_trials, 'trial', ',')})"
    return f"{line}; the rest did not run"


def outcomes(counts: Counts) -> str:
    """`3 passed, 1 failed, 0 errored`, and how many did not run or are only shown, if any."""
    parts = [f"{counts.passed} passed", f"{counts.failed} failed", f"{counts.errored} errored"]
    parts += [f"{number} {word}" for number, word in ((counts.skipped, "not run"), (counts.shown, "shown")) if number]
    return ", ".join(parts)


def _early(stops: EarlyStops | None, *, errored: bool = False, cases: int = 0) -> str:
    """`decided 26 of 500 cases with 4,300 of 5,000 samples; of all 500 cases at most 5.0% are expected …`.

    The error rate is per sampled case. It says nothing about the decided cases alone if most cases are undecided, so
    the number of decisions that hold at that false discovery rate is reported too. Empty if no case has ended.
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
    """How many decisions may be wrong, among all cases and among the decided ones."""
    wrong = percent(stops.alpha)
    if stops.cases == 1:
        return f"wrong with a probability of at most {wrong}"
    line = f"of all {stops.cases:,} cases, at most {wrong} are expected to be decided wrongly"
    by_samples = stops.decided - stops.by_gate
    if stops.confirmed == by_samples:
        return f"{line}, and at most {wrong} of the decided ones (false discovery rate)"
    hold = "holds" if stops.confirmed == 1 else "hold"
    which = f"{stops.confirmed:,} of the {by_samples:,} decisions {hold} at a false discovery rate of {wrong}"
    return f"{line}; {which} (a smaller --alpha confirms more)"


def _cost(summary: Summary) -> str:
    """Cost of all calls, a lower bound if prices are missing; empty if no call reported tokens or a cost."""
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


def _counted(usage: TokenUsage) -> str:
    if usage.input is None and usage.output is None:
        return "not counted" if usage.total is None else f"{usage.total:,} in all"
    cached = f" ({usage.cached:,} cached)" if usage.cached else ""
    reasoning = f" ({usage.reasoning:,} reasoning)" if usage.reasoning else ""
    return f"{usage.input or 0:,} in{cached}, {usage.output or 0:,} out{reasoning}"


SHOWN = 10
"""Assertions whose rates are listed; `--json` has all of them."""

_NAME = 80
_LONGEST = 300


def corrected_words(found: CorrectedRate) -> str:
    """`81.0% by the judge; 74.2% (95% CI 67.9% to 80.1%) corrected by 60 labelled answers`."""
    return f"{percent(found.by_judge)} by the judge; {corrected_rate_words(found)}"


def corrected_rate_words(found: CorrectedRate) -> str:
    """`74.2% (95% CI 67.9% to 80.1%) corrected by 60 labelled answers`, or by answers of other runs."""
    labels = plural(found.labels, "labelled answer")
    if found.transferred:
        labels = f"{labels} of other runs, if the judge errs as often here as there"
    return f"{percent(found.rate)} ({interval_words(found.interval)}) corrected by {labels}"


def corrected_lines(found: CorrectedRates) -> Iterator[str]:
    """The corrected rate of the run, or why none exists and the rates of single assertions."""
    if found.run is not None:
        yield f"pass rate {corrected_words(found.run)}"
        return
    if found.reason is None:
        return
    yield f"no corrected pass rate of the run: {one_line(found.reason, _LONGEST)}"
    known = [(one.assertion, one.corrected) for one in found.assertions if one.corrected is not None]
    for name, rate in known[:SHOWN]:
        yield f"  {one_line(name, _NAME)}: {corrected_words(rate)}"
    if len(known) > SHOWN:
        yield f"  and {len(known) - SHOWN} more assertions; --json lists all"


def unchecked_words(found: CorrectedRates | None) -> str:
    """Judges that were never checked against people; empty if none exist."""
    if found is None or not found.unchecked:
        return ""
    outdated = [name for name in found.unchecked if name in found.outdated]
    never = [name for name in found.unchecked if name not in found.outdated]
    parts = [f"{_judges(never)} {'was' if len(never) == 1 else 'were'} never checked against people"] if never else []
    if outdated:
        parts.append(f"no label counts for {_judges(outdated)} with the present model, prompt and rubric")
    return "; ".join(parts)


def gate_line(found: GateResult) -> str:
    """The result of a gate."""
    state = "passed" if found.passed else "failed"
    warning = f"; warning: {one_line(found.warning, _LONGEST)}" if found.warning else ""
    return f"gate {state}: {found.title} of {one_line(found.suite, _NAME)}: {one_line(found.why, _LONGEST)}{warning}"


def _judges(names: list[str]) -> str:
    quoted = [f"'{one_line(name, _NAME)}'" for name in names]
    if len(quoted) == 1:
        return f"the judge {quoted[0]}"
    return f"the judges {', '.join(quoted[:-1])} and {quoted[-1]}"
