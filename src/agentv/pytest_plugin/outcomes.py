"""What the trials of a case came to, and how a test says so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from agentv.model.cases import sample_of
from agentv.model.trial import Status, Trial, TrialResult
from agentv.reports.plain import trial_lines
from agentv.reports.text import one_line, safe
from agentv.reports.view import Kind, trial_view
from agentv.stats.deciding import rule_of, verdict_over

OUTPUT_SHOWN = 1000
"""Characters of an answer that a failure shows."""


class Errored(pytest.fail.Exception):  # type: ignore[name-defined,misc]  # pytest names it so
    """A case has no verdict. pytest shows an exception by its module too, and its own by their names alone."""

    __module__ = "builtins"


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """The samples of one case on one target.

    Attributes:
        results: of the samples that ended, in any order.
        trial: the first of them.
    """

    results: Sequence[TrialResult]
    trial: Trial

    @property
    def status(self) -> Status:
        """The verdict over all samples."""
        samples = [sample_of(result) for result in sorted(self.results, key=lambda one: one.trial.sample)]
        return verdict_over(samples, rule_of(self.trial))

    @property
    def score(self) -> float | None:
        """The mean over the samples; None where none was judged."""
        scores = [result.score for result in self.results if result.score is not None]
        return sum(scores) / len(scores) if scores else None


def lines_of(outcome: CaseOutcome, here: str) -> Iterator[str]:
    """Why a case did not pass, or which checks of a good one did not: sample by sample, with what was answered."""
    if not outcome.results:
        yield "not run: the run ended before it"
    for result in sorted(outcome.results, key=lambda one: one.trial.sample):
        kind = _kind(result)
        if kind is None:
            continue
        yield from trial_lines(trial_view(kind, result), here=here, targets=False)
        if result.output is not None and kind != "noted":
            yield f"  answered: {_shown(result.output)}"


def _kind(result: TrialResult) -> Kind | None:
    """How a trial is told; None of one that passed with all its checks."""
    if result.status != "passed":
        return result.status
    grades = [score.grade for score in result.scores]
    noted = any(grade.error or not grade.passed or not all(one.passed for one in grade.checks) for grade in grades)
    return "noted" if noted else None


def _shown(output: str) -> str:
    text = safe(output[:OUTPUT_SHOWN]).replace("\n", "\n    ")
    more = f" … and {len(output) - OUTPUT_SHOWN:,} characters more" if len(output) > OUTPUT_SHOWN else ""
    return (text or one_line("''")) + more
