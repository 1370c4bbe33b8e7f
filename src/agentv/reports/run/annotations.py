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

CUT_ANSWER = "cut-answer"
"""The code of an answer that was cut at its token limit and passed: no mistake of a file, as `CASE_FAILED`."""

_KINDS: tuple[Kind, Kind] = ("errored", "failed")


def omitted(view: RunView) -> int:
    """Number of trials that did not pass and that `run_diagnostics` omits."""
    return max(0, view.failed + view.errored - SHOWN)


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
