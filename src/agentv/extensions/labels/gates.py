"""Gates decided by labels: `gate: corrected`, and the minimums in a suite's `judge:`.

Both fail without labels that count. The lower end of the corrected rate's interval must reach the required rate. A
judge fails if the point estimate of its TPR or TNR is below the minimum; if only the lower end is, it passes with a
warning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from agentv.extensions.labels.answers import CheckedAnswer, distinct, grouped
from agentv.extensions.labels.checking import FEW
from agentv.extensions.labels.posterior import Estimated, JudgeCounts, judge_accuracy, judge_counts
from agentv.extensions.labels.run_rates import (
    NESTED,
    NOTHING_JUDGED,
    Part,
    RatedTrial,
    RunLabels,
    labelled_part,
    run_rate,
    unlabelled,
)
from agentv.model.run.summary import CorrectedRate, GateResult
from agentv.model.suite.suite import MIN_PASS_RATE, JudgeMinimums, Suite
from agentv.reports.run.rates import interval_words
from agentv.reports.run.totals import corrected_rate_words
from agentv.reports.text import percent


class GradedRun(Struct, frozen=True):
    """A finished run whose gates are evaluated.

    Attributes:
        trials: trials that passed or failed.
        labels: labels from before the run began.
        problem: why no gate can pass, or None.
        failed: suite → number of failed cases.
        label: command that labels the run's answers.
    """

    trials: Sequence[RatedTrial]
    labels: RunLabels
    label: str
    problem: str | None = None
    failed: Mapping[str, int] = field(default_factory=dict)


def gate_results(suites: Iterable[Suite], run: GradedRun) -> tuple[GateResult, ...]:
    """Evaluate the gates of suites; in each suite, its judges come first."""
    results: list[GateResult] = []
    for suite in suites:
        trials = [trial for trial in run.trials if trial.part[0] == suite.name]
        if suite.judge_minimums is not None:
            results.append(_judges_gate(suite.name, suite.judge_minimums, trials, run))
        if suite.run.gate is not None:
            required = MIN_PASS_RATE if suite.run.min_pass_rate is None else suite.run.min_pass_rate
            results.append(_corrected_rate_gate(suite.name, required, trials, run))
    return tuple(dict.fromkeys(results))


def _corrected_rate_gate(suite: str, required: float, trials: Sequence[RatedTrial], run: GradedRun) -> GateResult:
    """Check that the corrected rate of each target, prompt and variant reaches the required one."""
    if run.problem is not None:
        return GateResult("corrected", suite, passed=False, why=run.problem)
    parts = grouped(trials, lambda one: one.part)
    known: list[tuple[Part, CorrectedRate]] = []
    for part, own in parts.items():
        rate = run_rate(own, run.labels)
        if isinstance(rate, str):
            why = f"{_part_prefix(part, parts)}there is no corrected pass rate: {rate}; label answers: {run.label}"
            return GateResult("corrected", suite, passed=False, why=why)
        known.append((part, rate))
    if not known:
        return GateResult("corrected", suite, passed=False, why=NOTHING_JUDGED)
    part, worst = min(known, key=lambda one: one[1].interval[0])
    why = f"{_part_prefix(part, parts)}{corrected_rate_words(worst)}; the lower bound must reach {percent(required)}"
    return GateResult("corrected", suite, worst.interval[0] >= required, why, failed=run.failed.get(suite, 0))


def _part_prefix(part: Part, parts: Iterable[Part]) -> str:
    """Return a prefix with the names that distinguish a part of a suite from the others, or "" if it has one part."""
    names = [name for place, name in enumerate(part) if name is not None and len({one[place] for one in parts}) > 1]
    return f"with {', '.join(names)}: " if names else ""


def _judges_gate(suite: str, minimums: JudgeMinimums, trials: Sequence[RatedTrial], run: GradedRun) -> GateResult:
    """Check that each judge of a suite reaches the required agreement with people."""
    if run.problem is not None:
        return GateResult("judge", suite, passed=False, why=run.problem)
    if not trials:
        return GateResult("judge", suite, passed=False, why=NOTHING_JUDGED)
    if any(trial.problem == NESTED for trial in trials):
        return GateResult("judge", suite, passed=False, why=NESTED)
    judges = grouped((one for trial in trials for one in trial.judged), lambda one: one.judge[1:])
    if not judges:
        return GateResult("judge", suite, passed=False, why="no judge graded a trial")
    findings, warned = [], []
    for answers in judges.values():
        checked = CheckedMinimums.of(answers, run.labels, minimums)
        if checked.refusal is not None:
            hint = f"; label answers: {run.label}" if checked.unknown else ""
            return GateResult("judge", suite, passed=False, why=checked.refusal + hint)
        findings.append(checked.found)
        warned += [checked.warning] if checked.warning else []
    return GateResult("judge", suite, True, "; ".join(findings), "; ".join(warned) or None)


class CheckedMinimums(Struct, frozen=True):
    """A judge compared with a suite's minimums.

    Attributes:
        found: the judge's TPR and TNR, as text.
        refusal: why the judge fails, or None.
        unknown: whether it fails for lack of labels.
        warning: which intervals reach below their minimum, or None.
    """

    found: str
    refusal: str | None = None
    unknown: bool = False
    warning: str | None = None

    @classmethod
    def of(cls, answers: Sequence[CheckedAnswer], labels: RunLabels, minimums: JudgeMinimums) -> CheckedMinimums:
        """Check a judge on all its answers, and on those of each assertion with enough labels."""
        by_assertion = grouped(answers, lambda one: one.judge)
        name = f"the judge '{answers[0].name}'"
        whole = _check_minimums(name, _label_evidence(answers, labels), minimums)
        if whole.refusal is not None:
            return whole
        for (assertion, *_), own in by_assertion.items() if len(by_assertion) > 1 else ():
            single = _check_minimums(f"{name} by '{assertion}'", _label_evidence(own, labels), minimums)
            if single.refusal is not None and not single.unknown:
                return single
        lacking = unlabelled(answers, labels)
        return whole if lacking is None else cls("", f"no label counts for {lacking} of {name}", unknown=True)


_LabelEvidence = tuple[JudgeCounts | None, int, str | None]
"""Counts of a judge, the number of labelled answers, and the verdict of the judge that has no labels, if any."""


def _label_evidence(answers: Sequence[CheckedAnswer], labels: RunLabels) -> _LabelEvidence:
    """Return the counts by labels of the run's answers, or else by labels of other runs."""
    part, number = labelled_part(distinct(answers), labels)
    counts = part.calibration or (judge_counts(part.answers) if number else None)
    return counts, number, _unlabelled_verdict(counts, elsewhere=part.calibration is not None)


def _unlabelled_verdict(counts: JudgeCounts | None, *, elsewhere: bool) -> str | None:
    """Return the verdict (`passes`, `fails`) that none of the labelled answers has, or None.

    Labels of other runs do not tell how many answers had a verdict, so both must be labelled there.
    """
    if counts is None:
        return None
    if not counts.of_passed.total and (elsewhere or counts.verdicts.passed):
        return "passes"
    return "fails" if not counts.of_failed.total and (elsewhere or counts.verdicts.failed) else None


def _check_minimums(name: str, known: _LabelEvidence, minimums: JudgeMinimums) -> CheckedMinimums:
    counts, number, missing = known
    if counts is None or not number:
        return CheckedMinimums("", f"no label counts for {name}", unknown=True)
    if number < FEW:
        labels = "1 labelled answer" if number == 1 else f"{number} labelled answers"
        return CheckedMinimums("", f"{name} has {labels} that count, and {FEW} are needed", unknown=True)
    if missing is not None:
        return CheckedMinimums("", f"no label that counts is of an answer that {name} {missing}", unknown=True)
    accuracy = judge_accuracy(counts)
    measures = (("TPR", accuracy.tpr, minimums.tpr, "passes"), ("TNR", accuracy.tnr, minimums.tnr, "fails"))
    shown = [_shown(measure, found) for measure, found, least, _ in measures if found is not None and least is not None]
    finding = f"{name} has {', '.join(shown)} by {number} labelled answers"
    unsure: list[str] = []
    for measure, found, least, verdict in measures:
        if least is None:
            continue
        if found is None:
            why = f"the {measure} of {name} is unknown: no labelled answer {verdict}"
            return CheckedMinimums(finding, why, unknown=True)
        if found.value < least:
            why = f"{_shown(measure, found)} of {name} is below the required {percent(least)}"
            return CheckedMinimums(finding, f"{why} ({number} labelled answers)")
        if found.low < least:
            below = f"reaches below the required {percent(least)}; more labels narrow it"
            unsure.append(f"the interval of the {measure} {below}")
    return CheckedMinimums(finding, warning="; ".join(unsure) or None)


def _shown(measure: str, found: Estimated) -> str:
    return f"{measure} {percent(found.value)} ({interval_words(found.interval)})"
