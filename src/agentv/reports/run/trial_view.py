"""Views of single trials: what did not pass, and why, without formatting."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from typing import Literal

from agentv.lazy_dataclass import dataclass
from agentv.model.run.grade import NOT, Grade, reaches
from agentv.model.run.trial import Score, Status, Trial, TrialResult
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.suite import Aggregate
from agentv.model.values.response import Failure
from agentv.model.values.span import Span
from agentv.reports.text.escaping import apart

OUTPUT_KEPT = 2000
"""Characters of an answer that are held."""

Kind = Literal["failed", "errored", "skipped", "noted", "shown"]
"""Why a trial is listed: it failed, errored, was skipped, passed with a failed check, or is only shown."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One check that did not pass, or one assertion that could not judge.

    Attributes:
        name, type: of the assertion.
        source: absolute path and line of the assertion; None where it has none.
        text: what was looked for, or why there is no judgement.
        required: it is a gate: the case cannot pass without it.
    """

    state: Literal["failed", "errored"]
    name: str
    type: str
    source: tuple[str, int] | None
    text: str
    evidence: str | None = None
    required: bool = False


@dataclass(frozen=True, slots=True)
class PassedCase:
    """A case that passed over its samples: how many of them did, and by which rule.

    `early`: how many samples there were, where they may end early; None: as many as there were to be.
    """

    passed: int
    aggregate: Aggregate
    early: int | None = None


@dataclass(frozen=True, slots=True)
class TrialView:
    """One trial that needs a look.

    Attributes:
        place: absolute path of the eval file and line of the case.
        prompt_id: of the suite's prompt that it ran with, if it has some.
        variant: of its agent, if the suite has variants.
        workspace: where its workspace is kept, relative to the run's directory.
        output: the beginning of the answer.
        case: of a sample, what its case came to where that is a pass.
    """

    kind: Kind
    test_id: str
    suite: str
    target: str
    place: tuple[str, int]
    sample: int
    repeat: int
    status: Status
    score: float | None
    threshold: float
    error: Failure | None
    findings: tuple[Finding, ...]
    output: str | None = None
    case: PassedCase | None = None
    prompt_id: str | None = None
    variant: str | None = None
    workspace: str | None = None

    @property
    def gated(self) -> bool:
        """Whether it failed although its score was good enough: a required assertion did."""
        return self.status == "failed" and self.score is not None and reaches(self.score, self.threshold)


def trial_view(kind: Kind, result: TrialResult) -> TrialView:
    """View of a trial."""
    trial = result.trial
    findings = tuple(finding for score in result.scores for finding in findings_of(score))
    if kind == "failed" and not findings:
        findings = tuple(
            low_finding(score) for score in result.scores if not reaches(score.grade.counted, trial.threshold)
        )
    return TrialView(
        kind=kind,
        test_id=trial.case.id,
        suite=trial.suite.name,
        target=trial.target.name,
        place=place_of(trial),
        sample=trial.sample,
        repeat=trial.repeat,
        status=result.status,
        score=None if result.score is None or isnan(result.score) else result.score,
        threshold=trial.threshold,
        error=result.error,
        findings=findings,
        output=None if result.output is None else result.output[:OUTPUT_KEPT],
        prompt_id=trial.case.prompt_id,
        variant=trial.variant_name,
        workspace=result.stored.workspace_path if result.stored is not None else None,
    )


def place_of(trial: Trial) -> tuple[str, int]:
    """Absolute path of the eval file and line of the case of a trial."""
    span = trial.case.span
    return (span.file, span.line) if span else (trial.suite.path, 0)


def findings_of(score: Score) -> Iterator[Finding]:
    """What is to be said against one grade."""
    grade = score.grade
    if grade.error is not None:
        yield _finding(score, "errored", f"{grade.error.code}: {grade.error.message}")
        return
    failed = [check for check in grade.checks if not check.passed]
    below = _below(grade, score.entry.settings.required)
    if below and len(failed) == 1:  # one line for one thing
        yield _finding(score, "failed", f"{failed[0].text}: {below}", failed[0].evidence)
        return
    for check in failed:
        yield _finding(score, "failed", check.text, check.evidence)
    if below or not (failed or grade.passed):
        yield _finding(score, "failed", below or grade.reason or f"scored {grade.score:.2f}")


def low_finding(score: Score) -> Finding:
    """An assertion that passes by its own word, and whose score is what fails the case."""
    return _finding(score, "failed", f"it passes with the score {score.grade.counted:.2f}, which is what counts")


def _below(grade: Grade, required: bool | float) -> str | None:
    """Which gate of a number was missed."""
    if isinstance(required, bool) or reaches(grade.score, required):
        return None
    score, needed = apart(grade.score, required)
    return f"scored {score}, required {needed}"


def _finding(score: Score, state: Literal["failed", "errored"], text: str, evidence: str | None = None) -> Finding:
    entry = score.entry
    span = _span_of(entry, text)
    source = (span.file, span.line) if span else None
    return Finding(
        state, entry.name, entry.shown_type, source, text, evidence, required=entry.settings.required is not False
    )


def _span_of(entry: AssertionEntry, text: str) -> Span | None:
    """Where the assertion stands that a check is of: inside a set the one whose name the text begins with."""
    value = text.removeprefix(NOT)
    for inner in entry.inner:
        if value == inner.name or value.startswith(f"{inner.name}: "):
            return _span_of(inner, value[len(inner.name) + 2 :]) or entry.span
    return entry.span
