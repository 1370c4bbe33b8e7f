"""A run as plain lines, for pipes and CI."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from agentv.model.run.summary import Summary
from agentv.model.values.formatting import money, plural
from agentv.reports.run.formatting import LONGEST, check, label, reason, source
from agentv.reports.run.totals import totals
from agentv.reports.run.trial_view import Finding, Kind, TrialView
from agentv.reports.run.view import RunView
from agentv.reports.text.escaping import one_line

_VERDICTS: dict[Kind, str] = {
    "failed": "FAILED",
    "errored": "ERRORED",
    "skipped": "NOT RUN",
    "noted": "PASSED",
    "shown": "SHOWN",
}


def render_plain(view: RunView, summary: Summary, *, here: str, results: str) -> str:
    """Every trial that needs a look, then the totals.

    Args:
        view: of the run.
        summary: of the run.
        here: absolute path of the directory that paths are shown from.
        results: where the rows are, as a person would type it.
    """
    return "\n".join(
        [*_trials(view, here), *_samples(view, summary), *_early(view, summary), *totals(summary, view.noted, results)]
    )


def progress_line(view: RunView) -> str:
    """Progress of a run, for a log: `120/1000 trials: 118 passed, 1 failed, 1 errored, $0.0123`."""
    shown = f", {view.shown} shown" if view.shown else ""
    outcomes = f"{view.passed} passed, {view.failed} failed, {view.errored} errored{shown}"
    cost = "" if view.cost_usd is None else f", {money(view.cost_usd)}"
    return f"{view.done}/{view.planned} trials: {outcomes}{cost}"


def _trials(view: RunView, here: str) -> Iterator[str]:
    for kind in get_args(Kind):
        for trial in view.trials(kind):
            yield from trial_lines(trial, here=here, targets=view.several_targets)
        if omitted := view.omitted(kind):
            yield f"{_VERDICTS[kind]} {omitted} more, listed in the results"
    for why, number in view.stopped.items():
        yield f"{_VERDICTS['skipped']} {plural(number, 'trial')}: {one_line(why, LONGEST)}"


def _samples(view: RunView, summary: Summary) -> Iterator[str]:
    if summary.samples is None:
        return
    from agentv.reports.run.samples import more_words, sampled_label, sampled_words, unsteady

    for case in unsteady(summary.samples):
        yield f"SAMPLES {sampled_label(case, targets=view.several_targets)}: {sampled_words(case)}"
    if more := more_words(summary.samples):
        yield more


def _early(view: RunView, summary: Summary) -> Iterator[str]:
    if summary.early_stops is None:
        return
    from agentv.reports.run.early import early_words, listed, more_early
    from agentv.reports.run.samples import sampled_label

    for case in listed(summary.early_stops):
        yield f"SAMPLES {sampled_label(case, targets=view.several_targets)}: {early_words(case)}"
    if more := more_early(summary.early_stops):
        yield more


def trial_lines(trial: TrialView, *, here: str, targets: bool) -> Iterator[str]:
    """One trial: its verdict and why, then a line for every finding."""
    yield f"{_VERDICTS[trial.kind]} {label(trial, targets=targets)}: {reason(trial)}"
    for finding in trial.findings:
        yield f"  {finding_line(finding, here)}"


def finding_line(finding: Finding, here: str) -> str:
    """`evals/a.yaml:7: failed: contains 'x' | what was found`."""
    place = source(finding, here)
    at = f"{place}: " if place else ""
    evidence = f" | {one_line(finding.evidence, LONGEST)}" if finding.evidence else ""
    return f"{at}{finding.state}: {check(finding)}{evidence}"
