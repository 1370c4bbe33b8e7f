"""The outcomes of a case's trials as a test result, and the functions behind the plugin's fixtures."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentv.cli.formats import without_commands
from agentv.errors import ExitStatus
from agentv.model.run.cases import sample_of
from agentv.model.run.trial import Status, Trial, TrialResult
from agentv.reports.run.plain import render_plain, trial_lines
from agentv.reports.run.trial_view import Kind, needs_look, trial_view
from agentv.reports.run.view import FailureWords, RunView
from agentv.reports.text import one_line, safe
from agentv.sdk import Evaluation, Source, evaluate
from agentv.stats.samples.deciding import rule_of, verdict_over

OUTPUT_SHOWN = 1000
"""Maximum number of characters of an answer in the report of a failure."""


class Errored(pytest.fail.Exception):  # type: ignore[name-defined,misc]  # mypy does not see this attribute
    """A case has no verdict."""

    __module__ = "builtins"  # pytest shows the names of built-in exceptions without a module


@dataclass(frozen=True, slots=True)
class CaseResults:
    """The samples of one case on one target.

    Attributes:
        results: results of the samples that ended, in any order.
        trial: the first sample.
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
        """The mean score of the samples; None if none has a score."""
        scores = [result.score for result in self.results if result.score is not None]
        return sum(scores) / len(scores) if scores else None


def lines_of(outcome: CaseResults, here: str) -> Iterator[str]:
    """Yield lines that say why a case did not pass, or which checks failed although it passed, for each sample."""
    if not outcome.results:
        yield "not run: the run ended before it"
    for result in sorted(outcome.results, key=lambda one: one.trial.sample):
        kind: Kind = "noted" if result.status == "passed" else result.status
        if kind == "noted" and not needs_look(result):
            continue
        for line in trial_lines(trial_view(kind, result), here=here, words=FailureWords()):
            yield without_commands(line, os.environ)
        if result.output is not None and kind != "noted":
            text = safe(result.output[:OUTPUT_SHOWN]).replace("\n", "\n    ") or one_line("''")
            left = len(result.output) - OUTPUT_SHOWN
            more = f" … and {left:,} more characters" if left > 0 else ""
            yield without_commands(f"  answered: {text}{more}", os.environ)


def runner(config: pytest.Config) -> Callable[..., Evaluation]:
    """Return `agentv.evaluate`, with the target and the judge on the command line, if given."""
    targets, judge = config.option.agentv_target, config.option.agentv_judge
    if len(targets) > 1:
        raise pytest.UsageError("agentv_run takes one target, but --agentv-target gives several")

    def run(source: Source, **options: Any) -> Evaluation:
        named = {"target": targets[0] if targets else None, "judge": judge}
        return evaluate(source, **{**options, **{key: value for key, value in named.items() if value is not None}})

    return run


def asserting(run: Callable[..., Evaluation]) -> Callable[..., Evaluation]:
    """Return a function like `run` that fails the test unless every case passed."""

    def check(source: Source, **options: Any) -> Evaluation:
        found = run(source, **options)
        if found.status is not ExitStatus.PASSED:
            view = RunView(found.summary.trials.total)
            for result in found.results:
                view.add(result)
            report = render_plain(view, found.summary, here=str(Path.cwd()), results=str(found.directory))
            pytest.fail(without_commands(report, os.environ), pytrace=False)
        return found

    return check
