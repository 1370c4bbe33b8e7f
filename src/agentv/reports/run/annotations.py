"""What did not pass in a run, as diagnostics at the assertions: each cause for GitHub, each trial for SARIF."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from agentv.errors import Diagnostic
from agentv.model.values.formatting import plural
from agentv.model.values.values import Span
from agentv.reports.run.failure_lines import FailureWords
from agentv.reports.run.failures import CASE_FAILED, FailureGroup
from agentv.reports.run.formatting import check, label, reason
from agentv.reports.run.trial_view import LONGEST, Finding, Kind, TrialView
from agentv.reports.run.view import RunView
from agentv.reports.text.escaping import one_line

SHOWN = 50
"""Trials that SARIF has one by one."""

CAUSES = 10
"""Causes that are annotated: GitHub shows ten errors of a step."""

CUT_ANSWER = "cut-answer"
"""The code of an answer that was cut at its token limit and passed: no mistake of a file, as `CASE_FAILED`."""

_KINDS: tuple[Kind, Kind] = ("errored", "failed")


def cause_diagnostics(view: RunView) -> list[Diagnostic]:
    """An error for each of the first `CAUSES` causes, at its first trial's assertion; a warning for cut answers."""
    words = FailureWords.of(view)
    causes = [_of_cause(group, words) for group in ran_groups(view)[:CAUSES]]
    cut = [trial for trial in view.trials("noted") if trial.cut is not None]
    if not cut:
        return causes
    first = _of_cut(cut[0], targets=view.several_targets)
    notes = (f"{plural(len(cut) - 1, 'more answer')} cut at the token limit",) if len(cut) > 1 else ()
    return [*causes, replace(first, notes=notes)]


def ran_groups(view: RunView) -> list[FailureGroup]:
    """The causes of failures and errors, without that of trials that did not run."""
    return [group for group in view.failure_groups() if group.status != "skipped"]


def _of_cause(group: FailureGroup, words: FailureWords) -> Diagnostic:
    trial = group.example
    failed = next((one for one in trial.findings if one.source is not None and one.state != "noted"), None)
    place = failed.source if failed is not None else trial.place if trial.place[1] else None
    notes = (words.first(group), words.others(group), *(_notes(failed) if failed is not None else ()))
    message = one_line(f"{words.title(group)}: {words.why(group)}")
    return Diagnostic(group.code, message, _start_of(place), notes=tuple(note for note in notes if note))


def run_diagnostics(view: RunView) -> list[Diagnostic]:
    """Errors for the first `SHOWN` trials that did not pass, errored ones first; warnings for cut answers."""
    trials = [trial for kind in _KINDS for trial in view.trials(kind)][:SHOWN]
    targets = view.several_targets
    cut = [trial for trial in view.trials("noted") if trial.cut is not None][: SHOWN - len(trials)]
    return [
        *(one for trial in trials for one in _of_trial(trial, targets=targets)),
        *(_of_cut(trial, targets=targets) for trial in cut),
    ]


def _of_cut(trial: TrialView, *, targets: bool) -> Diagnostic:
    message = one_line(f"{label(trial, targets=targets)}: {reason(trial)}")
    return Diagnostic(CUT_ANSWER, message, _start_of(trial.place if trial.place[1] else None), "warning")


def _of_trial(trial: TrialView, *, targets: bool) -> Iterator[Diagnostic]:
    message = f"{label(trial, targets=targets)}: {reason(trial)}"
    code = trial.error.code if trial.error is not None else CASE_FAILED
    place = trial.place if trial.place[1] else None
    failed = [one for one in trial.findings if one.source is not None and one.state != "noted"]
    noted = tuple(f"noted: {check(one)}" for one in trial.findings if one.state == "noted")
    if not failed:
        yield Diagnostic(code, one_line(message), _start_of(place), notes=noted)
    for one in failed:
        yield Diagnostic(code, one_line(message), _start_of(one.source), notes=_notes(one))


def _notes(finding: Finding) -> tuple[str, ...]:
    evidence = (one_line(finding.evidence, LONGEST),) if finding.evidence else ()
    return (f"{finding.state}: {check(finding)}", *evidence)


def _start_of(place: tuple[str, int] | None) -> Span | None:
    """The beginning of a line: a finding knows no columns."""
    return Span(place[0], place[1], 1, place[1], 1) if place is not None else None
