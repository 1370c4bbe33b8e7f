"""The trials of a run that did not pass, as diagnostics at their assertions: for GitHub and SARIF."""

from __future__ import annotations

from collections.abc import Iterator

from agentv.errors import Diagnostic
from agentv.model.values.span import Span
from agentv.reports.run.failures import CASE_FAILED
from agentv.reports.run.formatting import LONGEST, check, label, reason
from agentv.reports.run.trial_view import Finding, Kind, TrialView
from agentv.reports.run.view import RunView
from agentv.reports.text.escaping import one_line

SHOWN = 50
"""Trials that are reported one by one: GitHub shows no more than 50 of a job."""

_KINDS: tuple[Kind, Kind] = ("errored", "failed")


def omitted(view: RunView) -> int:
    """Number of trials that did not pass and that `run_diagnostics` omits."""
    return max(0, view.failed + view.errored - SHOWN)


def run_diagnostics(view: RunView) -> list[Diagnostic]:
    """Errors for the first `SHOWN` trials that did not pass; errored ones first."""
    trials = [trial for kind in _KINDS for trial in view.trials(kind)]
    return [one for trial in trials[:SHOWN] for one in _of_trial(trial, targets=view.several_targets)]


def _of_trial(trial: TrialView, *, targets: bool) -> Iterator[Diagnostic]:
    message = f"{label(trial, targets=targets)}: {reason(trial)}"
    code = trial.error.code if trial.error is not None else CASE_FAILED
    place = trial.place if trial.place[1] else None
    findings = [one for one in trial.findings if one.source is not None]
    if not findings:
        yield Diagnostic(code, one_line(message), _start_of(place))
    for one in findings:
        yield Diagnostic(code, one_line(message), _start_of(one.source), notes=_notes(one))


def _notes(finding: Finding) -> tuple[str, ...]:
    evidence = (one_line(finding.evidence, LONGEST),) if finding.evidence else ()
    return (f"{finding.state}: {check(finding)}", *evidence)


def _start_of(place: tuple[str, int] | None) -> Span | None:
    """The beginning of a line: a finding knows no columns."""
    return Span(place[0], place[1], 1, place[1], 1) if place is not None else None
