"""A run as plain text lines, for pipes and CI."""

from __future__ import annotations

from collections.abc import Iterator

from agentv.model.run.summary import Summary
from agentv.model.values.formatting import elapsed, money, plural
from agentv.reports.run.totals import totals
from agentv.reports.run.trial_view import LONGEST, STATUS_WORDS, Finding, Kind, TrialView, check, label, reason, source
from agentv.reports.run.view import SHOWN, FailureWords, RunView, closing_lines, rerun_line, run_word
from agentv.reports.text import one_line

LISTING_FLAGS: dict[Kind, str] = {"noted": "--passed", "shown": "--shown"}
"""Kinds of trials that are listed although they did not fail → the option of `results show` that lists them."""


def render_plain(view: RunView, summary: Summary, *, here: str, results: str) -> str:
    """The trials that need attention, then the totals.

    Args:
        view: view of the run.
        summary: summary of the run.
        here: absolute path of the directory that paths are relative to.
        results: path of the run's directory, as typed in a command.
    """
    lines = [*_failures(view, summary, here, results), *_trials(view, here, run_word(summary, results))]
    if summary.samples is not None or summary.early_stops is not None:
        from agentv.reports.run.samples import case_lists  # most runs have one sample of each case

        for listed in case_lists(summary, targets=view.several_targets):
            lines += [f"SAMPLES {name}: {words}" for name, _, words in listed.rows]
            lines += [listed.more] if listed.more else []
    return "\n".join([*lines, *totals(summary, view.noted, results)])


SLOW_S = 30.0
"""Seconds after which the longest-running trial is named."""


def progress_line(view: RunView) -> str:
    """Progress of a run, for a log.

    `120/1000 trials: 118 passed, 1 failed, 1 errored, 10 running, 870 waiting, $0.0123, 2 min 10 s left`
    """
    shown = f", {view.shown} shown" if view.shown else ""
    outcomes = f"{view.passed} passed, {view.failed} failed, {view.errored} errored{shown}"
    cost = "" if view.cost_usd is None else f", {money(view.cost_usd)}"
    line = f"{view.done}/{view.planned} trials: {outcomes}"
    if view.progress is None:
        return f"{line}{cost}"
    left_s = view.left_s(view.progress.elapsed_s)
    left = "" if left_s is None else f", {elapsed(left_s)} left"
    return "; ".join([f"{line}, {running_words(view)}{cost}{left}", *doing_words(view)])


def running_words(view: RunView) -> str:
    """`10 running, 870 waiting`."""
    running = 0 if view.progress is None else min(view.progress.running, view.planned - view.done)
    return f"{running:,} running, {max(0, view.planned - view.done - running):,} waiting"


def doing_words(view: RunView) -> list[str]:
    """What a run is waiting for: rate limits of servers, and a slow trial."""
    if view.progress is None:
        return []
    words = [
        f"{one_line(one.name)} {_LIMITS.get(one.status or 0, 'limits requests')} ({one.status}), "
        f"next call in {elapsed(one.next_s)}"
        for one in view.progress.limited
    ]
    if view.progress.slowest_s >= SLOW_S:
        case, *others = map(one_line, view.progress.slowest)
        ran = f" ({', '.join(others)})" if others else ""
        words.append(f"slowest: {case}{ran}, {elapsed(view.progress.slowest_s)}")
    return words


_LIMITS = {503: "is unavailable", 529: "is overloaded"}


def _failures(view: RunView, summary: Summary, here: str, results: str) -> Iterator[str]:
    groups, words = view.failure_groups(), FailureWords.of(view)
    for group in groups[:SHOWN]:
        verdict = STATUS_WORDS[group.status]
        if group.trials == 1:
            yield f"{verdict} {words.title(group)}: {reason(group.example)}"
        else:
            yield f"{verdict} {words.title(group)}: {one_line(group.cause, LONGEST)}"
            yield f"  {words.first(group)}"
        for finding in group.example.findings:
            yield f"  {finding_line(finding, here)}"
        if others := words.others(group):
            yield f"  {others}"
        rerun = view.rerun.rerun(group) if view.rerun is not None else None
        if rerun is not None:
            yield f"  {rerun_line(rerun, group)}"
    yield from closing_lines(view, groups, summary, results)


def _trials(view: RunView, here: str, run: str) -> Iterator[str]:
    for kind, flag in LISTING_FLAGS.items():
        trials = view.trials(kind)
        for trial in trials[:SHOWN]:
            yield from trial_lines(trial, here=here, words=FailureWords.of(view))
        if omitted := len(trials[SHOWN:]) + view.omitted(kind):
            yield f"{STATUS_WORDS[kind]} {omitted} more: agentv results show {run} {flag}"
    for why, number in view.stopped.items():
        yield f"{STATUS_WORDS['skipped']} {plural(number, 'trial')}: {one_line(why, LONGEST)}"


def trial_lines(trial: TrialView, *, here: str, words: FailureWords) -> Iterator[str]:
    """A trial: a line with its verdict and the reason, then a line for every finding."""
    name = label(trial, targets=words.targets, suites=words.suites)
    yield f"{STATUS_WORDS[trial.kind]} {name}: {reason(trial)}"
    for finding in trial.findings:
        yield f"  {finding_line(finding, here)}"


def finding_line(finding: Finding, here: str) -> str:
    """`evals/a.yaml:7: failed: contains 'x' | what was found`."""
    place = source(finding, here)
    at = f"{place}: " if place else ""
    evidence = f" | {one_line(finding.evidence, LONGEST)}" if finding.evidence else ""
    return f"{at}{finding.state}: {check(finding)}{evidence}"
