"""Text for the rates and means of a run with their uncertainty, shared by all reports.

Two rates are distinguished by name: the *pass rate* is the mean of the cases' rates over their judged samples, and the
*cases that meet the rule* are those whose samples together pass (`mean ≥ 0.8 of 5 samples`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from agentv.model.run.cases import CASE, CONVERSATION
from agentv.model.run.matrix import DIMENSIONS, Interval
from agentv.model.run.summary import CaseRule, Cut, Summary
from agentv.model.values.formatting import plural
from agentv.reports.text import one_line, percent


def signed(number: float, places: int) -> str:
    """A signed number with this many decimal places: `+8.0`, `-0.04`; without a sign if it is rounded to 0."""
    shown = f"{number:+.{places}f}"
    return shown if float(shown) else shown[1:]


_CUTS: Mapping[Cut, str] = {
    "fail-fast": "the run was stopped by --fail-fast",
    "max-errors": "the run was stopped by --max-errors",
    "decided": "the run stopped when its comparison was decided",
}


_ROUNDING = 1e-9


_NAME = 40
"""Characters shown of a cluster's key."""


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
    """`of 272 judged`: what the pass rate is based on, and what it pools.

    For cases with several samples it is `over 250 judged samples`, or `over 40 judged cases` if sampling may end early,
    since the mean of the cases' rates is not a share of the judged samples.
    """
    judged = f"{summary.judged:,} judged"
    pooled = _pooled(summary)
    if summary.rule_pass_rate is None:
        return f"of {judged}{pooled}"
    if summary.early_stops is not None:
        return f"over {judged} {'case' if summary.judged == 1 else 'cases'}{pooled}"
    return f"over {judged} samples{pooled}"


def _pooled(summary: Summary) -> str:
    """`, 3 targets and 2 prompts together`; empty if there is one of each.

    It is `, on 1 of 2 targets` for a run that ended before its second target.
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
    """Uncertainty of the pass rate: its interval, the number of clusters, and its bounds if samples errored.

    Args:
        summary: summary of the run.
        quoted: function that formats the key of clusters, which can be any text.
    """
    clusters, judged = summary.interval_clusters, summary.judged
    plain = clusters == judged and set(summary.clustered_by) <= {CASE}
    counted = None if clusters is None or plain else clusters_words(clusters, summary.clustered_by, quoted)
    if summary.cut is not None:
        sure = f"no confidence interval: {_CUTS[summary.cut]}"
    else:
        sure = interval_words(summary.pass_rate_interval, counted)
    errored = summary.cases.errored if summary.early_stops is not None else summary.trials.errored
    return f"{sure}{_if_failed(summary.pass_rate, summary.pass_rate_bounds, errored)}"


def interval_words(interval: Interval | None, clusters: str | None = None) -> str:
    """`95% CI 35.0% to 91.0%, 10 conversations`, or `no confidence interval …` if there is only one cluster."""
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
    """Share of cases that meet their rule, or empty unless they have several samples.

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
    """`mean score 0.83 (95% CI 0.78 to 0.87)`, or empty if none exists."""
    if summary.mean_score is None:
        return ""
    sure = (
        "" if summary.mean_score_interval is None else " (95% CI {:.2f} to {:.2f})".format(*summary.mean_score_interval)
    )
    return f"mean score {summary.mean_score:.2f}{sure}"


def _if_failed(rate: float | None, bounds: Interval | None, errored: int) -> str:
    """`; 80.0% if all 28 errored had failed`; empty if nothing errored.

    A case may fail whatever the results of its errored samples. If the rate of the other cases is above both bounds for
    this reason, both are given: `; 46.2% to 61.5% whatever the result of the 4 errored`.
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
