"""Outcomes of the trials of a case as test results."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from agentv.cli.actions_log import without_commands
from agentv.model.run.cases import sample_of
from agentv.model.run.trial import Status, Trial, TrialResult
from agentv.reports.run.failure_lines import FailureWords
from agentv.reports.run.plain import trial_lines
from agentv.reports.run.trial_view import Kind, needs_look, trial_view
from agentv.reports.text.escaping import one_line, safe
from agentv.stats.samples.deciding import rule_of, verdict_over

OUTPUT_SHOWN = 1000
"""Characters of an answer that a failure shows."""


class Errored(pytest.fail.Exception):  # type: ignore[name-defined,misc]  # pytest names it so
    """A case has no verdict. pytest shows an exception by its module too, and its own by their names alone."""

    __module__ = "builtins"


@dataclass(frozen=True, slots=True)
class CaseResults:
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


def lines_of(outcome: CaseResults, here: str) -> Iterator[str]:
    """Why a case did not pass, or which checks of a good one did not: sample by sample, with what was answered."""
    if not outcome.results:
        yield "not run: the run ended before it"
    for result in sorted(outcome.results, key=lambda one: one.trial.sample):
        kind = _kind(result)
        if kind is None:
            continue
        for line in trial_lines(trial_view(kind, result), here=here, words=FailureWords()):
            yield without_commands(line, os.environ)
        if result.output is not None and kind != "noted":
            yield without_commands(f"  answered: {_shown(result.output)}", os.environ)


def _kind(result: TrialResult) -> Kind | None:
    """How a trial is reported; None of one that passed with all its checks."""
    if result.status != "passed":
        return result.status
    return "noted" if needs_look(result) else None


def _shown(output: str) -> str:
    text = safe(output[:OUTPUT_SHOWN]).replace("\n", "\n    ")
    more = f" … and {len(output) - OUTPUT_SHOWN:,} more characters" if len(output) > OUTPUT_SHOWN else ""
    return (text or one_line("''")) + more
