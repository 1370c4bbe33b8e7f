"""Text for cases with several samples: pass rates with intervals, and flaky cases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from agentv.model.run.summary import SampledCase, Samples, Summary
from agentv.model.run.trial import EarlyCase, Why
from agentv.model.values.formatting import plural
from agentv.reports.run.rates import interval_words
from agentv.reports.run.trial_view import case_words
from agentv.reports.text import percent
from agentv.stats.intervals.proportion import wilson_interval
from agentv.stats.samples.case_samples import tells_at_k

HEADING = "Samples: cases that do not always pass"

NAMED = 10
"""Cases that a line names."""

SHOWN = 100
"""Cases of each kind that are listed; the summary has more."""


_EARLY_HEADING = "Samples that ended early: cases that failed or are undecided"

_EARLY_ENDS: dict[Why, str] = {
    "above": "the rate is above the threshold, but a required assertion failed",
    "below": "the rate is below the threshold",
    "gate": "a required assertion failed",
    "undecided": "undecided",
}


def early_words(case: EarlyCase) -> str:
    """`3 of 12 passed, undecided (fails by this share); anytime-valid bounds of the rate: 3.1% to 79.2%, …`."""
    stopped = case.stopped
    bounds = f"{percent(stopped.low)} to {percent(stopped.high)}, error rate at most {percent(case.alpha)} each"
    why = _EARLY_ENDS.get(stopped.why, stopped.why)
    if stopped.why == "undecided":
        why += f" ({'passes' if case.status == 'passed' else 'fails'} by this share)"
    return f"{stopped.passed} of {stopped.samples} passed, {why}; anytime-valid bounds of the rate: {bounds}"


class CaseList(NamedTuple):
    """A list of cases with several samples that need attention.

    Attributes:
        heading: heading of the list.
        rows: label of each case, a mark if it is flaky or undecided, and its results.
        more: how many cases are not listed; empty if all are.
    """

    heading: str
    rows: list[tuple[str, str, str]]
    more: str


def case_lists(summary: Summary, *, targets: bool) -> Iterator[CaseList]:
    """Lists of cases that do not always pass, and of cases that failed or are undecided after sampling ended early."""
    if (samples := summary.samples) is not None:
        unsteady = [case for case in samples.by_case if case.passed < case.judged][:SHOWN]
        number = samples.cases - sum(samples.always_passed.values())
        rows = [
            (sampled_label(case, targets=targets), "~" if case.flaky else "", sampled_words(case)) for case in unsteady
        ]
        yield CaseList(f"{HEADING} ({number})", rows, _more(number - len(rows), "does", "do", "not always pass"))
    if (stops := summary.early_stops) is not None:
        number = len(stops.by_case) + stops.omitted
        rows = [
            (sampled_label(one, targets=targets), "~" if one.stopped.why == "undecided" else "", early_words(one))
            for one in stops.by_case[:SHOWN]
        ]
        more = _more(number - len(rows), "failed or is", "failed or are", "undecided")
        yield CaseList(f"{_EARLY_HEADING} ({number})", rows, more)


def _more(number: int, one: str, several: str, what: str) -> str:
    which = f"case that {one}" if number == 1 else f"cases that {several}"
    return f"and {number:,} more {which} {what}, in summary.json" if number > 0 else ""


def sampled_label(case: SampledCase | EarlyCase, *, targets: bool) -> str:
    """Label of a case: its id, its prompt, its target if there are several."""
    return case_words(case.test_id, case.prompt_id, case.target if targets else None)


def sampled_words(case: SampledCase) -> str:
    """`3 of 5 passed, 60.0% (95% CI 23.1% to 88.2%), pass@4 ≥ 65.0%, pass^4 ≤ 60.6% (…), flaky`."""
    rate = f"{percent(case.pass_rate)} ({interval_words(case.pass_rate_interval)})"
    # for k = 1 it is the rate, and for all samples it is trivial
    tell = [k for k in case.pass_at_k if 1 < k < case.judged] or [k for k in case.pass_at_k if k > 1]
    chances = [_chances(case, k) for k in tell[-1:]]
    flaky = ["flaky"] if case.flaky else []
    return ", ".join([f"{case.passed} of {case.judged} passed", rate, *chances, *flaky])


def samples_lines(samples: Samples) -> Iterator[str]:
    """Lines for the totals: how many cases are flaky, and pass@k and pass^k for the largest k.

    `always passed: 7 cases with 5 samples (95% CI of the rate of each 56.6% to 100.0%)`,
    `flaky: 4 of 12 cases (33.3%, 95% CI 13.8% to 60.9%)`,
    `pass@5 91.7% (95% CI 64.6% to 98.5%), pass^5 58.3% (95% CI 32.0% to 80.7%)`
    """
    for judged, cases in samples.always_passed.items():
        if judged > 1:
            low, high = wilson_interval(judged, judged)
            of_each = f"95% CI of the rate of each {percent(low)} to {percent(high)}"
            yield f"always passed: {'1 case' if cases == 1 else f'{cases:,} cases'} with {judged} samples ({of_each})"
    if samples.compared:
        share = f"{percent(samples.flaky / samples.compared)}, {interval_words(samples.flaky_share_interval)}"
        yield f"flaky: {samples.flaky} of {samples.compared} cases ({share})"
    most = max(samples.pass_at_k)
    if most == 1:  # with one sample, both are the pass rate, which is reported already
        return
    at = interval_words(samples.pass_at_k_interval.get(most))
    all_pass = interval_words(samples.pass_hat_k_interval.get(most))
    one, every = _chance(samples.pass_at_k[most]), _chance(samples.pass_hat_k[most])
    line = f"pass@{most} {one} ({at}), pass^{most} {every} ({all_pass})"
    rest = samples.cases - samples.complete
    if not rest:
        yield line
        return
    targets = len({case.target for case in samples.by_case}) > 1
    fewer = [sampled_label(case, targets=targets) for case in samples.by_case if case.judged < most][:NAMED]
    more = f" and {rest - len(fewer)} more" if rest > len(fewer) else ""
    yield f"{line}; without {plural(rest, 'case')} with fewer graded samples: {', '.join(fewer)}{more}"


def _chances(case: SampledCase, k: int) -> str:
    """pass@k and pass^k of one case with their intervals, or only a bound if there are too few samples.

    `pass@2 90.0% (95% CI 40.8% to 98.6%), pass^2 30.0% (95% CI 5.3% to 77.9%)`,
    `pass@4 ≥ 65.0%, pass^4 ≤ 60.6% (with 5 samples cannot show more)`
    """
    at, all_pass = case.pass_at_k_interval[k], case.pass_hat_k_interval[k]
    any_known = tells_at_k(case.judged, case.passed, k)
    all_known = tells_at_k(case.judged, case.judged - case.passed, k)
    one = f"{_chance(case.pass_at_k[k])} ({interval_words(at)})" if any_known else f"≥ {_chance(at[0])}"
    every = f"{_chance(case.pass_hat_k[k])} ({interval_words(all_pass)})" if all_known else f"≤ {_chance(all_pass[1])}"
    few = "" if any_known and all_known else f" (with {case.judged} samples cannot show more)"
    return f"pass@{k} {one}, pass^{k} {every}{few}"


def _chance(share: float) -> str:
    """A probability with one decimal place, `>99.9%` or `<0.1%`: samples do not show it more precisely."""
    share_text = percent(share)
    if share_text == f"{share:.1%}":
        return share_text
    return ">99.9%" if share > 0.5 else "<0.1%"
