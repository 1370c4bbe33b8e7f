"""Views of single trials: what did not pass and why, and the text for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isnan
from typing import Literal

from msgspec import Struct

from agentv.model.run.grade import NOT, Grade, reaches
from agentv.model.run.trial import Score, Status, Trial, TrialResult
from agentv.model.run.verdict import passes_gate
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.suite import Aggregate
from agentv.model.values.formatting import ELLIPSIS, money
from agentv.model.values.response import Failure, is_cut
from agentv.model.values.values import Span
from agentv.reports.text import distinct_decimals, one_line, shown_from

LONGEST = 300
"""Characters shown of a check or of its evidence."""

OUTPUT_KEPT = 2000
"""Characters kept of an answer."""

FindingState = Literal["failed", "errored", "noted"]
"""State of an assertion; `noted` if it passed although a check failed."""

Kind = Literal["failed", "errored", "skipped", "noted", "shown"]
"""Why a trial is listed: it failed, errored, was skipped, passed with a failed check, or is only shown."""


class Finding(Struct, frozen=True):
    """A check that did not pass, or an assertion that errored.

    Attributes:
        name, type: name and type of the assertion.
        source: absolute path and line of the assertion, or None.
        text: what was checked, or the error.
        evidence: what was found.
        required: whether the case cannot pass without the assertion.
        scored: score and pass mark of the assertion, `scored 0.40, needs 0.50`; empty if it only passes or fails.
    """

    state: FindingState
    name: str
    type: str
    source: tuple[str, int] | None
    text: str
    evidence: str | None = None
    required: bool = False
    scored: str = ""


class PassedCase(Struct, frozen=True):
    """A case that passed by its samples.

    Attributes:
        passed: number of samples that passed.
        aggregate: rule by which the samples were combined.
        early: number of samples if sampling may end early, otherwise None.
    """

    passed: int
    aggregate: Aggregate
    early: int | None = None


class TrialView(Struct, frozen=True):
    """A trial that needs attention.

    Attributes:
        place: absolute path of the eval file and line of the case.
        output: the beginning of the answer.
        case: the case of a sample, if the case passed.
        prompt_id: id of the suite's prompt that it ran with, if any.
        variant: name of the agent's variant, if the suite has variants.
        workspace: path of the kept workspace, relative to the run's directory.
        cut: a note that the answer was cut at its token limit, or None.
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
    cut: str | None = None

    @property
    def gated(self) -> bool:
        """Whether it failed because of a required assertion although its score was high enough."""
        return self.status == "failed" and self.score is not None and reaches(self.score, self.threshold)


def needs_look(result: TrialResult) -> bool:
    """Whether a passed trial is listed because a check failed or its answer was cut."""
    return has_failed_check(result) or cut_words(result) is not None


def has_failed_check(result: TrialResult) -> bool:
    """Whether an assertion of a trial, or one of its checks, did not pass."""
    for score in result.scores:  # a loop for speed: this runs for every trial
        grade = score.grade
        if not grade.passed or grade.error is not None:
            return True
        for check in grade.checks:
            if not check.passed:
                return True
    return False


def trial_view(kind: Kind, result: TrialResult) -> TrialView:
    """Create the view of a trial."""
    trial = result.trial
    found = [finding for score in result.scores for finding in findings_of(score)]
    findings = sorted(found, key=lambda one: one.state == "noted")
    if kind == "failed" and (not findings or findings[0].state == "noted"):
        low = [score for score in result.scores if not reaches(score.grade.counted, trial.threshold)]
        findings = [*map(low_finding, low), *findings]
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
        findings=tuple(findings),
        cut=cut_words(result),
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
    """The findings of one grade; failed checks of a grade that passed are only noted."""
    grade = score.grade
    if grade.error is not None:
        yield _finding(score, "errored", f"{grade.error.code}: {grade.error.message}")
        return
    failed = [check for check in grade.checks if not check.passed]
    if grade.passed and passes_gate(score):
        for check in failed:
            yield _finding(score, "noted", check.text, check.evidence, f"passed{_at(grade)}; but")
        return
    below = _below(grade, score.entry.settings.required)
    scored = below or ("" if grade.needs is None else f"scored{_at(grade).removeprefix(' at')}")
    for number, check in enumerate(failed):
        yield _finding(score, "failed", check.text, check.evidence, "" if number else scored)
    if not failed:
        yield _finding(score, "failed", grade.reason or "", scored=scored or f"scored {grade.score:.2f}")


def low_finding(score: Score) -> Finding:
    """A finding for an assertion that passed but whose score makes the case fail."""
    scored = f"passed{_at(score.grade)}; {score.grade.counted:.2f} is what counts"
    return _finding(score, "noted", "", scored=scored)


def needed(grade: Grade) -> str | None:
    """`needs 0.50`, or None if the grade has no pass mark."""
    return None if grade.needs is None else f"needs {distinct_decimals(grade.score, grade.needs)[1]}"


def costs_of(result: TrialResult) -> Iterator[str]:
    """Costs of a trial: of its target, its judges and its simulated user, each if known."""
    for whose, cost in (
        ("", result.cost_usd),
        ("judges ", result.judge_cost_usd),
        ("simulated user ", result.user_cost_usd),
    ):
        if cost is not None:
            yield f"{whose}{money(cost)}"


def cut_words(result: TrialResult) -> str | None:
    """A note that the answer, or answers to some turns, were cut at the token limit, or None."""
    turns = [number for number, one in enumerate(result.turns, 1) if is_cut(one.finish_reason)]
    if not turns and not is_cut(result.finish_reason):
        return None
    which = f"the answer to turn {', '.join(map(str, turns))}" if len(result.turns) > 1 else "the answer"
    reason = result.turns[turns[0] - 1].finish_reason if turns else result.finish_reason
    return f"{which} was cut at its token limit (finish_reason: {reason})"


def _at(grade: Grade) -> str:
    """` at 0.50, needs 0.50`, or only the score for a grade without a pass mark."""
    words = needed(grade)
    return (
        f" at {grade.score:.2f}"
        if words is None
        else f" at {distinct_decimals(grade.score, grade.needs or 0.0)[0]}, {words}"
    )


def _below(grade: Grade, required: bool | float) -> str | None:
    """`scored 0.40, required 0.50` if a required score was missed, else None."""
    if isinstance(required, bool) or reaches(grade.score, required):
        return None
    score, needed = distinct_decimals(grade.score, required)
    return f"scored {score}, required {needed}"


def _finding(score: Score, state: FindingState, text: str, evidence: str | None = None, scored: str = "") -> Finding:
    entry = score.entry
    span = _span_of(entry, text)
    source = (span.file, span.line) if span else None
    return Finding(
        state,
        entry.name,
        entry.shown_type,
        source,
        text,
        evidence,
        required=entry.settings.required is not False,
        scored=scored,
    )


def _span_of(entry: AssertionEntry, text: str) -> Span | None:
    """Span of the assertion that a check belongs to; in a set, the inner assertion whose name the text begins with."""
    value = text.removeprefix(NOT)
    for inner in entry.inner:
        if value == inner.name or value.startswith(f"{inner.name}: "):
            return _span_of(inner, value[len(inner.name) + 2 :]) or entry.span
    return entry.span


STATUS_WORDS: dict[Status | Kind, str] = {
    "passed": "PASSED",
    "noted": "PASSED",
    "failed": "FAILED",
    "errored": "ERRORED",
    "skipped": "NOT RUN",
    "shown": "SHOWN",
}

LONGEST_REPEATED = 100
"""Longest error, in characters, that is shown both for its trial and for its assertion."""

HEADINGS: dict[Kind, str] = {
    "failed": "Failed: graded, and not good enough",
    "errored": "Errored: not graded because of an error",
    "skipped": "Not run: a dependency did not pass",
    "noted": "Passed, with a failed check or a cut answer",
    "shown": "Shown: answered, not checked",
}


def case_words(
    test_id: str, prompt: str | None, target: str | None, variant: str | None = None, longest: int | None = None
) -> str:
    """`late with brief on gpt as skilled`: a case, its prompt, target and variant, each cut to `longest` characters."""
    beside = (("with", prompt), ("on", target), ("as", variant))
    return one_line(test_id, longest) + "".join(
        f" {word} {one_line(one, longest)}" for word, one in beside if one is not None
    )


def label(trial: TrialView, *, targets: bool, suites: bool = False) -> str:
    """Label of a trial: its id, its prompt, its target if there are several, its sample if it has several.

    Args:
        trial: view of the trial.
        targets: include the target, because there are several.
        suites: begin with the suite, because there are several.
    """
    name = case_words(trial.test_id, trial.prompt_id, trial.target if targets else None, trial.variant)
    name = f"{one_line(trial.suite)}: {name}" if suites else name
    return f"{name} (sample {trial.sample} of {trial.repeat})" if trial.repeat > 1 else name


def reason(trial: TrialView) -> str:
    """The reason for the status of a trial, and for a failed sample, a note if its case passed."""
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
        return f"{one_line(trial.error.code)}: {one_line(_error_message(trial, trial.error), LONGEST)}"
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
    score, needed = distinct_decimals(trial.score, trial.threshold)
    return f"score {score}, needs {needed}"


def _error_message(trial: TrialView, error: Failure) -> str:
    """The error message, or if it is long and also shown for an assertion, the name of that assertion."""
    if len(error.message) <= LONGEST_REPEATED:
        return error.message
    for finding in trial.findings:
        same = finding.text == f"{error.code}: {error.message.removeprefix(f'{finding.name}: ')}"
        if finding.state == "errored" and same:
            return finding.name
    return error.message


def _reached(score: float, threshold: float) -> str:
    """`score 0.90 reaches 0.80, but `; empty for a threshold of 0, as in exams, where only assertions decide."""
    return f"score {score:.2f} reaches {threshold:.2f}, but " if threshold > 0 else ""


def check(finding: Finding) -> str:
    """The assertion, its score and pass mark, and the failed check or error, without repetition."""
    text, name = one_line(finding.text, LONGEST), one_line(finding.name, LONGEST)
    found = re.match(r"turn \d+: ", name)
    turn, own = (found[0], name[found.end() :]) if found else ("", name)
    known = own.replace(": ", " ", 1) == text and finding.type != own
    kind, _, value = own.partition(": ")
    says_it = kind == finding.type and value != "" and value in text  # the name was generated from type and value
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


def source(finding: Finding, here: str) -> str | None:
    """`file:line` of the assertion, relative to the directory `here`, or None if it has no source."""
    if finding.source is None:
        return None
    path, line = finding.source
    return f"{one_line(shown_from(path, here))}:{line}"
