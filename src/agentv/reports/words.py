"""How a trial and its findings are put into words, in every view alike."""

from __future__ import annotations

from agentv.reports.paths import shown_from
from agentv.reports.text import one_line
from agentv.reports.view import Finding, Kind, TrialView

LONGEST = 300
"""Characters of a check, or of its evidence, that are shown."""

HEADINGS: dict[Kind, str] = {
    "failed": "Failed: judged, and not good enough",
    "errored": "Errored: not judged, because something broke",
    "noted": "Passed, with a check that did not pass",
}


def label(trial: TrialView, *, targets: bool) -> str:
    """Which trial it is: its id, its target where there are several, its sample where it has several."""
    name = one_line(trial.test_id)
    if targets:
        name += f" on {one_line(trial.target)}"
    return f"{name} (sample {trial.sample} of {trial.repeat})" if trial.repeat > 1 else name


def reason(trial: TrialView) -> str:
    """Why the trial ended as it did; of a failed sample also that its case passed."""
    said = _reason(trial)
    if trial.case is None or trial.kind != "failed":
        return said
    return f"{said}; the case passed ({trial.case.passed} of {trial.repeat} samples, {trial.case.aggregate})"


def _reason(trial: TrialView) -> str:
    if trial.error is not None:
        return f"{one_line(trial.error.code)}: {one_line(trial.error.message, LONGEST)}"
    if trial.score is None:
        return "no score"
    if trial.kind == "noted":
        what = "failed" if any(finding.state == "failed" for finding in trial.findings) else "errored"
        return f"score {trial.score:.2f} reaches {trial.threshold:.2f}, but a check {what}"
    if trial.gated:
        return f"score {trial.score:.2f} reaches {trial.threshold:.2f}, but a required assertion failed"
    return f"score {trial.score:.2f}, needs {trial.threshold:.2f}"


def check(finding: Finding) -> str:
    """What was looked for, or why an assertion could not judge."""
    text, name = one_line(finding.text, LONGEST), one_line(finding.name, LONGEST)
    said = f"{name}: {text}"
    if text == finding.type:  # a verdict without a word: the name says what was asked
        said = name
    elif name.replace(": ", " ", 1) == text:
        said = text
    return f"{said} (required)" if finding.required else said


def source(finding: Finding, here: str) -> str | None:
    """`file:line` of the assertion, from the directory `here`."""
    if finding.source is None:
        return None
    path, line = finding.source
    return f"{one_line(shown_from(path, here))}:{line}"
