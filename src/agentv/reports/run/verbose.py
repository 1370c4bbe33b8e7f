"""Every trial as it finishes: what `--verbose` writes."""

from __future__ import annotations

from collections.abc import Iterator

from agentv.model.run.trial import TrialResult
from agentv.model.values.formatting import duration
from agentv.model.values.response import Attempt
from agentv.reports.run.formatting import STATUS_WORDS, label, reason
from agentv.reports.run.plain import finding_line
from agentv.reports.run.trial_view import LONGEST, Kind, TrialView, costs_of, trial_view
from agentv.reports.text.escaping import one_line

_BRIEF_MS = 100
"""Durations below are reported in milliseconds."""


def verbose_lines(result: TrialResult, *, number: int, planned: int, here: str) -> Iterator[str]:
    """A line for the trial, then one for every call that was made again, and for every check that did not pass.

    Args:
        result: of the trial, without secrets.
        number: how many trials have ended, this one among them.
        planned: how many there are to be.
        here: absolute path of the directory that paths are shown from.
    """
    kind: Kind = "noted" if result.status == "passed" else result.status
    trial = trial_view(kind, result)
    name = f"{one_line(trial.suite)}: {label(trial, targets=True)}"
    yield f"[{number}/{planned}] {STATUS_WORDS[result.status]} {name}: {', '.join(_facts(result, trial))}"
    for tried, attempt in enumerate(result.retries, 1):
        yield f"  {_retry(tried, attempt)}"
    for finding in trial.findings:
        yield f"  {finding_line(finding, here)}"


def _facts(result: TrialResult, trial: TrialView) -> Iterator[str]:
    if result.status != "passed":
        yield reason(trial)
    elif trial.score is not None:
        yield f"score {trial.score:.2f}"
    if result.status == "skipped":
        return
    if result.error is not None and trial.score is not None:
        yield f"score {trial.score:.2f}"
    yield _took(result.duration_ms)
    if result.time_to_first_token_ms is not None:
        yield f"first token after {_took(result.time_to_first_token_ms)}"
    yield from costs_of(result)
    if result.reused:
        yield "reused from an earlier run or a recording"


def _retry(tried: int, attempt: Attempt) -> str:
    why = f"{one_line(attempt.code)}: {one_line(attempt.message, LONGEST)}"
    return f"call {tried} got no answer after {_took(attempt.duration_ms)}, waited {_took(attempt.waited_ms)}: {why}"


def _took(milliseconds: float) -> str:
    return f"{milliseconds:.0f} ms" if milliseconds < _BRIEF_MS else duration(milliseconds)
