"""Pass rate of a run by people, where the verdicts of some of its trials depend on a judge and those of others do not.

The run is its parts: trials that checks alone decide, and for each judge the trials that its grade decides. The rate is
the sum over the parts of share × rate. The shares have Jeffreys' prior, as the rate of those decided has; the rate of
a judge's trials is the corrected one (`posterior`), or, by labels of other runs, the transferred one (`corrected`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import fsum

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.app.registries import registries
from agentv.extensions.labels.answers import CheckedAnswer, JudgeKey, VerdictKey, distinct, graded_answer, grouped
from agentv.extensions.labels.checking import (
    calibration_of,
    judge_of,
    judged_answer,
    labelled_answers_of,
    same_runs,
    unlabelled_part,
    verdicts_of,
)
from agentv.extensions.labels.labelling import latest
from agentv.extensions.labels.posterior import (
    DRAWS,
    Draws,
    JudgeCounts,
    JudgedAnswer,
    JudgeDraws,
    Observation,
    counted_within,
    counts_within,
    estimated,
    transferred_draws,
    with_label_weights,
)
from agentv.model.run.cases import ClusterId, TrialCluster, cluster_of
from agentv.model.run.grade import TOLERANCE
from agentv.model.run.labels import Label
from agentv.model.run.summary import AssertionRate, CorrectedRate, CorrectedRates
from agentv.model.run.trial import Score, TrialResult
from agentv.model.run.verdict import combined, counts

_SHARES, _NEXT = 2, 101
"""What keeps the draws of shares and of further judges apart from those of the first judge."""


class JudgedPart(Struct, frozen=True):
    """The trials whose verdicts one judge decides.

    Attributes:
        answers: of these trials.
        calibration: the judge in other runs, whose errors are taken to be the same here; None: `answers` have labels.
    """

    answers: Sequence[JudgedAnswer]
    calibration: JudgeCounts | None = None


class RunParts(Struct, frozen=True):
    """The trials of a run.

    Attributes:
        judged: those that judges decide; a judge's part has at least one answer.
        decided: those whose verdicts are the same whatever a judge says.
        always_judged: no trial can be decided without a judge, so that there is no share of such.
    """

    judged: Sequence[JudgedPart]
    decided: Sequence[Observation] = field(default=())
    always_judged: bool = False


def run_rate_draws(parts: RunParts) -> Draws | None:
    """Draws of the pass rate by people; None: labels of other runs do not show that a judge is better than chance.

    With one judge on which every verdict depends, they are those of `corrected_rate`, or of `transferred_rate`.
    """
    import numpy as np  # only runs with labels need it

    effect = _design_effect(parts)
    rates: list[Draws] = []
    found: Draws | None
    for place, part in enumerate(parts.judged):
        counts, seed = counts_within(part.answers, effect), _NEXT * place
        if part.calibration is None:
            found = JudgeDraws.of(counts, seed).truth
        else:
            found = transferred_draws(part.calibration, counts.verdicts, seed)
        if found is None:
            return None
        rates.append(found)
    if len(rates) == 1 and parts.always_judged:
        return rates[0]
    rates = [np.resize(one, DRAWS) for one in rates]  # where a judge may be worse than chance there are fewer
    chance = np.random.default_rng([0, _SHARES])
    sizes = [[Observation(True, one.cluster, one.weight) for one in part.answers] for part in parts.judged]
    if not parts.always_judged:
        sizes.append([Observation(True, one.cluster, one.weight) for one in parts.decided])
        rates.append(counted_within(parts.decided, effect).drawn(chance))
    whole = np.zeros(DRAWS)
    left = np.ones(DRAWS)
    for place, rate in enumerate(rates[:-1]):
        rest = [Observation(False, one.cluster, one.weight) for size in sizes[place + 1 :] for one in size]
        share = counted_within([*sizes[place], *rest], effect).drawn(chance)
        whole += left * share * rate
        left *= 1 - share
    return whole + left * rates[-1]


def _design_effect(parts: RunParts) -> float:
    """How much more the rate varies than that of trials without clusters, by its linearization; at least 1.

    As in `posterior`, with a stratum for each verdict of each judge, and one for the trials that are decided.
    """
    observed: list[JudgedAnswer | Observation] = [one for part in parts.judged for one in part.answers]
    observed += parts.decided
    if all(one.cluster is None for one in observed):
        return 1.0
    total = fsum(one.weight for one in observed)
    # each answer with the rate of its stratum, and what its label adds to the error of that
    found: list[tuple[JudgedAnswer | Observation, float, float]] = []
    for part in parts.judged:
        for verdict in (True, False):
            stratum = [one for one in part.answers if one.judge is verdict]
            labelled = fsum(one.label_weight for one in stratum if one.person is not None)
            rate = fsum(one.label_weight for one in stratum if one.person) / labelled if labelled else float(verdict)
            share = fsum(one.weight for one in stratum) / total
            for one in stratum:
                person = 0.0 if one.person is None else one.label_weight * share * (one.person - rate) / labelled
                found.append((one, rate, person))
    found += [(one, float(one.passed), 0.0) for one in parts.decided]
    truth = fsum(one.weight * rate for one, rate, _ in found) / total
    summed: dict[Hashable, float] = {}
    alone = 0.0
    for place, (seen, rate, label) in enumerate(found):
        influence = seen.weight * (rate - truth) / total + label
        cluster = (place,) if seen.cluster is None else seen.cluster
        summed[cluster] = summed.get(cluster, 0.0) + influence
        alone += influence * influence
    return max(1.0, fsum(one * one for one in summed.values()) / alone) if alone else 1.0


SEVERAL = "the verdicts of trials depend on several judged assertions at once"
NESTED = "a judge grades within an assert-set or picks the best answer, which cannot be labelled"
TURNS = "the verdicts of conversations cannot be made again from their rows"
UNCLEAR = "the verdicts of some trials cannot be made again from their rows"

Part = tuple[str, str, str | None, str | None]
"""A suite, a target, a prompt and a variant."""


class RatedTrial(Struct, frozen=True):
    """A trial that passed or failed.

    Attributes:
        case: its file and id.
        judged: the answer, once for each assertion that a judge graded.
        decided_by: the one among them whose label decides the verdict; None: the verdict stands whatever labels say.
        alone: no other assertion counts.
        problem: why it is not known what a label makes of the verdict.
    """

    part: Part
    case: tuple[str | None, str]
    cluster: ClusterId
    passed: bool
    judged: tuple[CheckedAnswer, ...] = ()
    decided_by: CheckedAnswer | None = None
    alone: bool = False
    problem: str | None = None


def rated_trial(result: TrialResult, run: str) -> RatedTrial | None:
    """A finished trial of a run; None: it neither passed nor failed."""
    if result.status not in ("passed", "failed"):
        return None
    trial = result.trial
    judged = ((place, one) for place, one in enumerate(result.scores) if one.grade.asked_judge and not one.grade.error)
    graded = {place: CheckedAnswer.of(graded_answer(result, score), run) for place, score in judged}
    counting = [place for place, score in enumerate(result.scores) if counts(score)]
    labelled = [place for place in counting if place in graded]
    problem: str | None = None
    decided_by: CheckedAnswer | None = None
    if any(_asks(result.scores[place]) for place in counting if place not in graded):
        problem = NESTED
    elif labelled and result.turns:
        problem = TURNS
    elif labelled:
        outcomes = _outcomes(result, labelled)
        if outcomes is None:
            problem = UNCLEAR
        elif outcomes[0] != outcomes[1] and len(labelled) > 1:
            problem = SEVERAL
        elif outcomes[0] != outcomes[1]:
            decided_by = graded[labelled[0]]
    return RatedTrial(
        part=(trial.suite.name, trial.target.name, trial.case.prompt_id, trial.variant_name),
        case=(trial.suite.path, trial.case.id),
        cluster=cluster_of(TrialCluster.of(trial)),
        passed=result.status == "passed",
        judged=tuple(graded.values()),
        decided_by=decided_by,
        alone=decided_by is not None and len(counting) == 1,
        problem=problem,
    )


def _asks(score: Score) -> bool:
    """Whether a judge has a part in the grade, or may have: a set within a set does not say what it holds."""
    details = score.grade.details
    scores = details.get("scores")
    inner = scores if isinstance(scores, list | tuple) else ()
    types = [score.entry.type, *(str(one.get("type", "")) for one in inner if isinstance(one, Mapping))]
    if "assert-set" in types[1:] or details.get("aggregator") == "llm":
        return True
    known = (registries().assertions.find(written.removeprefix("not-")) for written in types)
    return any(found is not None and found.options.needs_judge for found in known)


def _outcomes(result: TrialResult, labelled: Sequence[int]) -> tuple[bool, bool] | None:
    """Whether the trial passes if people fail what these judged, and if they pass it; None if unknown.

    A label that says what the judge says leaves the judge's grade, and any other one is a score of 0 or 1.
    """
    scores, threshold = result.scores, result.trial.threshold
    found = combined(scores, threshold)
    same = result.score is not None and abs(found.score - result.score) <= TOLERANCE
    if not same or found.passed != (result.status == "passed"):
        return None
    outcomes = []
    for verdict in (False, True):
        by_people = list(scores)
        for place in labelled:
            grade = scores[place].grade
            if grade.passed is not verdict:
                grade = replace(grade, score=float(verdict), passed=verdict)
                by_people[place] = replace(scores[place], grade=grade)
        outcomes.append(combined(by_people, threshold).passed)
    return outcomes[0], outcomes[1]


JudgeModel = tuple[str, str]
"""The model and the prompt of a judge: it may grade by several assertions."""

NOTHING_JUDGED = "no trial passed or failed"
NOT_BETTER = "the labels do not show that the judge is better than chance"


class RunLabels(Struct, frozen=True):
    """The labels that count for the judges of a run.

    Attributes:
        drawn: of answers of the run: judge → answer and verdict → person → whether it passes.
        elsewhere: of answers of other runs, by the same judge and a rubric of this run.
        any: judges with a label for their assertion, whatever it is of.
    """

    drawn: Mapping[JudgeKey, Mapping[VerdictKey, Mapping[str, bool]]]
    elsewhere: Mapping[JudgeKey, Sequence[Label]]
    any: frozenset[JudgeKey]

    @classmethod
    def of(cls, trials: Iterable[RatedTrial], labels: Sequence[Label], run: str) -> RunLabels:
        """The labels that count, sorted by the judges of these trials, which are all of the run."""
        current = list(latest(labels).values())
        answers = by_judge(trials)
        drawn, elsewhere, some = {}, {}, set()
        for judge, found in answers.items():
            own = [one for one in current if judge_of(one) == judge]
            here = {run, *same_runs(judge, distinct(found), own)}
            usable = [one for one in own if one.verdict != "unsure" and one.probability is not None]
            rubrics, keys = {one.key[2] for one in found}, {one.verdict_key for one in found}
            drawn[judge] = verdicts_of(one for one in usable if one.run in here and (one.key, one.judge_passed) in keys)
            elsewhere[judge] = [one for one in usable if one.run not in here and one.rubric_sha256 in rubrics]
            suites = {one.suite for one in found}
            if any(one.assertion == judge[0] and one.suite in suites for one in current):
                some.add(judge)
        return cls(drawn, elsewhere, frozenset(some))

    def counts_for(self, judge: JudgeKey) -> bool:
        """Whether any label counts for a judge."""
        return bool(self.drawn.get(judge) or self.elsewhere.get(judge))


def by_judge(trials: Iterable[RatedTrial]) -> dict[JudgeKey, list[CheckedAnswer]]:
    """The judged answers of trials, by their judges."""
    return grouped((one for trial in trials for one in trial.judged), lambda one: one.judge)


def corrected_rates(trials: Sequence[RatedTrial], labels: RunLabels) -> CorrectedRates:
    """The corrected rates of the trials of a run."""
    answers = by_judge(trials)
    rates = tuple(_assertion_rate(judge, found, labels) for judge, found in answers.items())
    checked = {found[0].name for judge, found in answers.items() if labels.counts_for(judge)}
    unchecked = tuple(dict.fromkeys(found[0].name for found in answers.values() if found[0].name not in checked))
    labelled = {found[0].name for judge, found in answers.items() if judge in labels.any}
    found_rate = run_rate(trials, labels) if checked else None
    rate = found_rate if isinstance(found_rate, CorrectedRate) else None
    why_none = found_rate if isinstance(found_rate, str) else None
    return CorrectedRates(rate, why_none, rates, unchecked, tuple(one for one in unchecked if one in labelled))


def _assertion_rate(judge: JudgeKey, answers: Sequence[CheckedAnswer], labels: RunLabels) -> AssertionRate:
    found = distinct(answers)
    by_judge = sum(one.passed for one in answers) / len(answers)
    rate = AssertionRate(judge[0], found[0].name, judge[1], by_judge)
    if not labels.counts_for(judge):
        return rate
    part, number = labelled_part(found, labels)
    lacks = unlabelled(found, labels) is not None or not (number or part.calibration)
    drawn = None if lacks else run_rate_draws(RunParts([part], always_judged=True))
    return rate if drawn is None else replace(rate, corrected=_rate(by_judge, drawn, number, [part]))


def run_rate(trials: Sequence[RatedTrial], labels: RunLabels) -> CorrectedRate | str:
    """The corrected rate of trials, which may be a part of a run, or why it cannot be computed."""
    if not trials:
        return NOTHING_JUDGED
    problem = next((trial.problem for trial in trials if trial.problem is not None), None)
    if problem is not None:
        return problem
    judges: dict[JudgeModel, list[CheckedAnswer]] = {}
    # each case counts once, as in the pass rate, however many of its samples were judged
    samples = Counter((one.part, one.case) for one in trials)
    usual = len(trials) / len(samples)
    weights = [usual / samples[one.part, one.case] for one in trials]
    for trial, weight in zip(trials, weights, strict=True):
        if (one := trial.decided_by) is not None:
            judges.setdefault(one.judge[1:], []).append(replace(one, trials=one.trials * weight))
    if not judges:
        return "no verdict depends on a judge"
    parts: list[JudgedPart] = []
    number = 0
    for answers in judges.values():
        found = distinct(answers)
        part, used = labelled_part(found, labels)
        lacking = unlabelled(found, labels)
        if lacking is not None or not (used or part.calibration):
            what = f"the judge '{found[0].name}'" if lacking is None else lacking
            return f"no label counts for {what}"
        parts.append(part)
        number += used
    weighted = list(zip(trials, weights, strict=True))
    decided = [Observation(one.passed, one.cluster, weight) for one, weight in weighted if one.decided_by is None]
    draws = run_rate_draws(RunParts(parts, decided, all(one.alone for one in trials)))
    if draws is None:
        return NOT_BETTER
    by_judge = fsum(weight for one, weight in weighted if one.passed) / fsum(weights)
    return _rate(by_judge, draws, number, parts)


def labelled_part(answers: Sequence[CheckedAnswer], labels: RunLabels) -> tuple[JudgedPart, int]:
    """The answers of one judge with their labels, or else those of other runs, and how many answers are labelled.

    Its labels speak for all answers of their assertion and verdict.
    """
    judged = [judged_answer(one, labels.drawn.get(one.judge, {})) for one in answers]
    judged = with_label_weights(judged, [one.judge for one in answers])
    number = sum(one.person is not None for one in judged)
    if number:
        return JudgedPart(judged), number
    keys = dict.fromkeys(one.judge for one in answers)
    elsewhere = [one for key in keys for one in labels.elsewhere.get(key, ())]
    return JudgedPart(judged, calibration_of(elsewhere)), labelled_answers_of(elsewhere)


def unlabelled(answers: Sequence[CheckedAnswer], labels: RunLabels) -> str | None:
    """An assertion or a rubric of one judge without a label, so that nothing is known of its grades there, or None."""
    found = distinct(answers)
    of_run = {(one.judge, one.key[2]) for one in found if one.verdict_key in labels.drawn.get(one.judge, {})}
    judges = {one.judge for one in found}
    elsewhere = {(judge, label.rubric_sha256) for judge in judges for label in labels.elsewhere.get(judge, ())}
    return unlabelled_part(found, of_run or elsewhere)


def _rate(by_judge: float, draws: Draws, number: int, parts: Sequence[JudgedPart]) -> CorrectedRate:
    found, transferred = estimated(draws), any(one.calibration for one in parts)
    return CorrectedRate(by_judge, found.value, found.interval, number, transferred)
