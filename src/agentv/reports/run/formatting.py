"""Formatting of trials and findings, shared by all views."""

from __future__ import annotations

import re

from agentv.model.run.trial import Status
from agentv.model.values.formatting import ELLIPSIS
from agentv.model.values.response import Failure
from agentv.reports.run.trial_view import LONGEST, Finding, Kind, TrialView
from agentv.reports.text.escaping import apart, one_line, shown_from

STATUS_WORDS: dict[Status, str] = {
    "passed": "PASSED",
    "failed": "FAILED",
    "errored": "ERRORED",
    "skipped": "NOT RUN",
    "shown": "SHOWN",
}

SAID_TWICE = 100
"""Characters of an error that may stand at its trial and at its assertion both."""

HEADINGS: dict[Kind, str] = {
    "failed": "Failed: graded, and not good enough",
    "errored": "Errored: not graded because of an error",
    "skipped": "Not run: a dependency did not pass",
    "noted": "Passed, with a failed check or a cut answer",
    "shown": "Shown: answered, not checked",
}


def label(trial: TrialView, *, targets: bool, suites: bool = False) -> str:
    """Label of a trial: its id, its prompt, its target if there are several, its sample if it has several.

    Args:
        trial: view of the trial.
        targets: there are several targets.
        suites: there are several suites, so that the name of its own comes first.
    """
    name = f"{one_line(trial.suite)}: {one_line(trial.test_id)}" if suites else one_line(trial.test_id)
    if trial.prompt_id is not None:
        name += f" with {one_line(trial.prompt_id)}"
    if targets:
        name += f" on {one_line(trial.target)}"
    if trial.variant is not None:
        name += f" as {one_line(trial.variant)}"
    return f"{name} (sample {trial.sample} of {trial.repeat})" if trial.repeat > 1 else name


def sample_line(size: int, of: int, seed: int) -> str:
    """The drawn sample, with the flag that draws it again."""
    return f"sample: {size} of {of} cases; repeat with --seed {seed}"


def reason(trial: TrialView) -> str:
    """Why the trial ended as it did; of a failed sample also that its case passed."""
    message = _reason(trial)
    if trial.cut is not None and trial.kind != "noted":
        message += f"; {trial.cut}"
    if trial.case is None or trial.kind != "failed":
        return message
    case = trial.case
    of = f"{trial.repeat} samples, {case.aggregate}" if case.early is None else f"{case.early} samples"
    return f"{message}; the case passed ({case.passed} of {of})"


def _reason(trial: TrialView) -> str:
    if trial.error is not None:
        return f"{one_line(trial.error.code)}: {one_line(_own(trial, trial.error), LONGEST)}"
    if trial.kind == "shown":
        return one_line(" ".join((trial.output or "").split()), LONGEST) or "an empty answer"
    if trial.score is None:
        return "no score"
    if trial.kind == "noted":
        errored = [finding.state == "errored" for finding in trial.findings]
        checks = "" if not errored else "a check errored" if all(errored) else "a check failed"
        found = " and ".join(one for one in (checks, trial.cut) if one)
        return f"{_reached(trial.score, trial.threshold)}{found or 'an assertion failed'}"
    if trial.gated:
        return f"{_reached(trial.score, trial.threshold)}a required assertion failed"
    score, needed = apart(trial.score, trial.threshold)
    return f"score {score}, needs {needed}"


def _own(trial: TrialView, error: Failure) -> str:
    """The message; of a long one that an assertion below tells too, the name of that assertion."""
    if len(error.message) <= SAID_TWICE:
        return error.message
    for finding in trial.findings:
        same = finding.text == f"{error.code}: {error.message.removeprefix(f'{finding.name}: ')}"
        if finding.state == "errored" and same:
            return finding.name
    return error.message


def _reached(score: float, threshold: float) -> str:
    """The score that was good enough; nothing where every one is, as in exams, where the assertions alone decide."""
    return f"score {score:.2f} reaches {threshold:.2f}, but " if threshold > 0 else ""


def check(finding: Finding) -> str:
    """The assertion, what it scored and needed, and the check that failed or why it could not grade; nothing twice."""
    text, name = one_line(finding.text, LONGEST), one_line(finding.name, LONGEST)
    turn, own = _turn(name)
    known = own.replace(": ", " ", 1) == text and finding.type != own
    kind, _, value = own.partition(": ")
    says_it = kind == finding.type and value != "" and value in text  # a name that was made of type and value
    if known and not finding.scored:
        line = f"{turn}{text}"
    elif says_it and not finding.scored:
        line = name if text.startswith("not: ") else f"{turn}{text}"
    elif not text or text == finding.type or known or own == text or own.endswith(f": {text}"):
        line = f"{name}: {finding.scored.removesuffix('; but')}" if finding.scored else name
    elif own.endswith(ELLIPSIS) and text.startswith(own.partition(": ")[2][: -len(ELLIPSIS)]):
        line = ": ".join(one for one in (f"{turn}{own.partition(': ')[0]}", finding.scored, text) if one)
    else:
        joined = f"{finding.scored} {text}" if finding.scored.endswith("; but") else f"{finding.scored}: {text}"
        line = f"{name}: {joined if finding.scored else text}"
    return f"{line} (required)" if finding.required else line


def _turn(name: str) -> tuple[str, str]:
    """`turn 2: contains: 'x'` → `turn 2: `, and the name without it."""
    found = re.match(r"turn \d+: ", name)
    return (found[0], name[found.end() :]) if found else ("", name)


def source(finding: Finding, here: str) -> str | None:
    """`file:line` of the assertion, from the directory `here`."""
    if finding.source is None:
        return None
    path, line = finding.source
    return f"{one_line(shown_from(path, here))}:{line}"
