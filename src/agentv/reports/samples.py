"""Cases of several samples in words: how often each passes, how sure that is, and which are flaky."""

from __future__ import annotations

from collections.abc import Iterator

from agentv.model.samples import SampledCase, Samples
from agentv.model.sampling import EarlyCase
from agentv.reports.text import one_line, percent
from agentv.stats.proportion import wilson_interval

HEADING = "Samples: cases that do not always pass"

SHOWN = 100
"""Cases that are listed; the summary holds more."""


def unsteady(samples: Samples) -> list[SampledCase]:
    """The cases that are listed: those that passed all their samples are counted in the totals, by `samples_lines`."""
    return [case for case in samples.by_case if case.passed < case.judged][:SHOWN]


def number_unsteady(samples: Samples) -> int:
    """How many cases do not always pass."""
    return samples.cases - sum(samples.always_passed.values())


def sampled_label(case: SampledCase | EarlyCase, *, targets: bool) -> str:
    """Which case it is: its id, its prompt, its target where there are several."""
    name = one_line(case.test_id)
    if case.prompt_id is not None:
        name += f" with {one_line(case.prompt_id)}"
    return f"{name} on {one_line(case.target)}" if targets else name


def sampled_words(case: SampledCase) -> str:
    """`3 of 5 passed, 60.0% (95% interval 23.1% to 88.2%), pass@3 100.0%, pass^3 10.0%, flaky`."""
    low, high = case.pass_rate_interval
    rate = f"{percent(case.pass_rate)} (95% interval {percent(low)} to {percent(high)})"
    chances = [f"pass@{k} {_chance(case.pass_at_k[k])}, pass^{k} {_chance(case.pass_hat_k[k])}" for k in _telling(case)]
    flaky = ["flaky"] if case.flaky else []
    return ", ".join([f"{case.passed} of {case.judged} passed", rate, *chances, *flaky])


def more_words(samples: Samples) -> str | None:
    """How many cases are not listed; None where all are."""
    more = number_unsteady(samples) - len(unsteady(samples))
    cases = "case that does" if more == 1 else "cases that do"
    return f"and {more:,} more {cases} not always pass, in summary.json" if more > 0 else None


def samples_lines(samples: Samples) -> Iterator[str]:
    """For the totals: how many cases are flaky, and how often one sample passes, one of all does, and all do.

    `always passed: 7 cases with 5 samples (95% interval of the rate of each 56.6% to 100.0%)`,
    `flaky: 4 of 12 cases (33.3%, 95% interval 13.8% to 60.9%)`, `pass@1 60.0%, pass@5 100.0%, pass^5 20.0%`
    """
    for judged, cases in samples.always_passed.items():
        if judged > 1:
            low, high = wilson_interval(judged, judged)
            of_each = f"95% interval of the rate of each {percent(low)} to {percent(high)}"
            yield f"always passed: {'1 case' if cases == 1 else f'{cases:,} cases'} with {judged} samples ({of_each})"
    if samples.flaky_share_interval is not None:
        low, high = samples.flaky_share_interval
        share = f"{percent(samples.flaky / samples.compared)}, 95% interval {percent(low)} to {percent(high)}"
        yield f"flaky: {samples.flaky} of {samples.compared} cases ({share})"
    most = max(samples.pass_at_k)
    several = [f"pass@{most} {_chance(samples.pass_at_k[most])}", f"pass^{most} {_chance(samples.pass_hat_k[most])}"]
    yield ", ".join([f"pass@1 {_chance(samples.pass_at_k[1])}", *(several if most > 1 else [])])


def _chance(share: float) -> str:
    """A chance to a tenth of a percent: samples tell it no finer, so one that is next to certain is above 99.9 %."""
    said = percent(share)
    if said == f"{share:.1%}":
        return said
    return ">99.9%" if share > 0.5 else "<0.1%"


def _telling(case: SampledCase) -> list[int]:
    """The k that says most: of all samples it is known already, of one it is the rate."""
    found = [k for k in case.pass_at_k if 1 < k < case.judged] or [k for k in case.pass_at_k if k > 1]
    return found[-1:]
