"""Pass rate of a run by people, if only some of its verdicts depend on a judge.

A run consists of parts: the trials decided by checks alone, and for each judge the trials decided by its grade. The
rate is the sum over the parts of share × rate. The shares and the rate of the decided trials have Jeffreys' prior. The
rate of a judge's trials is the corrected one or, with labels of other runs, the transferred one (`posterior`).
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

_SHARES_SEED, _SEED_STEP = 2, 101
"""Seeds that keep the draws of shares and of further judges independent of those of the first judge."""


class JudgedPart(Struct, frozen=True):
    """The trials whose verdicts are decided by one judge.

    Attributes:
        answers: the answers of these trials.
        calibration: counts of the judge in other runs, assumed to err equally here; None if `answers` have labels.
    """

    answers: Sequence[JudgedAnswer]
    calibration: JudgeCounts | None = None


class RunParts(Struct, frozen=True):
    """The trials of a run, by what decides their verdicts.

    Attributes:
        judged: trials decided by judges; each part has at least one answer.
        decided: trials whose verdicts do not depend on a judge.
        always_judged: whether every trial needs a judge, so that the share of decided trials is 0, not estimated.
    """

    judged: Sequence[JudgedPart]
    decided: Sequence[Observation] = field(default=())
    always_judged: bool = False


def run_rate_draws(parts: RunParts) -> Draws | None:
    """Draw the pass rate by people, or return None if labels of other runs do not show a judge better than chance.

    If every verdict depends on the same judge, the draws are those of `corrected_rate` or `transferred_rate`.
    """
    import numpy as np  # deferred: only runs with labels need numpy

    effect = _design_effect(parts)
    rates: list[Draws] = []
    found: Draws | None
    for place, part in enumerate(parts.judged):
        counts, seed = counts_within(part.answers, effect), _SEED_STEP * place
        if part.calibration is None:
            found = JudgeDraws.of(counts, seed).truth
        else:
            found = transferred_draws(part.calibration, counts.verdicts, seed)
        if found is None:
            return None
        rates.append(found)
    if len(rates) == 1 and parts.always_judged:
        return rates[0]
    rates = [np.resize(one, DRAWS) for one in rates]  # `transferred_draws` drops draws with a judge worse than chance
    chance = np.random.default_rng([0, _SHARES_SEED])
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
    """Return the ratio of the rate's variance to that without clusters, by linearization, at least 1.

    Computed as in `posterior`, with a stratum for each verdict of each judge, and one for the decided trials.
    """
    observed: list[JudgedAnswer | Observation] = [one for part in parts.judged for one in part.answers]
    observed += parts.decided
    if all(one.cluster is None for one in observed):
        return 1.0
    total = fsum(one.weight for one in observed)
    # each answer with the rate of its stratum, and its label's contribution to the error of that rate
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
        case: eval file and id of the case.
        judged: the answer, once for each assertion that a judge graded.
        decided_by: the one of `judged` whose label decides the verdict; None if labels cannot change the verdict.
        alone: whether no other assertion counts.
        problem: why the effect of a label on the verdict is unknown, or None.
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
    """Return a trial of a run that passed or failed, or None for any other."""
    if result.status not in ("passed", "failed"):
        return None
    trial = result.trial
    judged = ((place, one) for place, one in enumerate(result.scores) if one.grade.asked_judge and not one.grade.error)
    graded = {place: CheckedAnswer.of(graded_answer(result, score), run) for place, score in judged}
    counting = [place for place, score in enumerate(result.scores) if counts(score)]
    labelled = [place for place in counting if place in graded]
    problem: str | None = None
    decided_by: CheckedAnswer | None = None
    if any(_involves_judge(result.scores[place]) for place in counting if place not in graded):
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


def _involves_judge(score: Score) -> bool:
    """Whether a judge takes part in the grade, or may: a nested set does not list its assertions."""
    details = score.grade.details
    scores = details.get("scores")
    inner = scores if isinstance(scores, list | tuple) else ()
    types = [score.entry.type, *(str(one.get("type", "")) for one in inner if isinstance(one, Mapping))]
    if "assert-set" in types[1:] or details.get("aggregator") == "llm":
        return True
    known = (registries().assertions.find(written.removeprefix("not-")) for written in types)
    return any(found is not None and found.options.needs_judge for found in known)


def _outcomes(result: TrialResult, labelled: Sequence[int]) -> tuple[bool, bool] | None:
    """Return whether the trial passes if people fail, and if they pass, the answer by these assertions.

    A label that agrees with the judge keeps the judge's grade; any other sets the score to 0 or 1. None if the verdict
    of the trial cannot be recomputed from its scores.
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
"""The model and the prompt of a judge, which several assertions may share."""

NOTHING_JUDGED = "no trial passed or failed"
NOT_BETTER = "the labels do not show that the judge is better than chance"


class RunLabels(Struct, frozen=True):
    """The labels that count for the judges of a run.

    Attributes:
        drawn: labels of answers of the run: judge → (answer, judge's verdict) → person → whether it passes.
        elsewhere: judge → labels of answers of other runs, by the same judge and a rubric of this run.
        labelled: judges with any label of their assertion, whether it counts or not.
    """

    drawn: Mapping[JudgeKey, Mapping[VerdictKey, Mapping[str, bool]]]
    elsewhere: Mapping[JudgeKey, Sequence[Label]]
    labelled: frozenset[JudgeKey]

    @classmethod
    def of(cls, trials: Iterable[RatedTrial], labels: Sequence[Label], run: str) -> RunLabels:
        """Select the labels that count for the judges of a run's trials. `trials` must be all trials of the run."""
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
    """Group the judged answers of trials by judge."""
    return grouped((one for trial in trials for one in trial.judged), lambda one: one.judge)


def corrected_rates(trials: Sequence[RatedTrial], labels: RunLabels) -> CorrectedRates:
    """Return the corrected rates of a run's trials."""
    answers = by_judge(trials)
    rates = tuple(_assertion_rate(judge, found, labels) for judge, found in answers.items())
    checked = {found[0].name for judge, found in answers.items() if labels.counts_for(judge)}
    unchecked = tuple(dict.fromkeys(found[0].name for found in answers.values() if found[0].name not in checked))
    labelled = {found[0].name for judge, found in answers.items() if judge in labels.labelled}
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
    return rate if drawn is None else replace(rate, corrected=_corrected_rate(by_judge, drawn, number, [part]))


def run_rate(trials: Sequence[RatedTrial], labels: RunLabels) -> CorrectedRate | str:
    """Return the corrected rate of a run's trials or some of them, or why it cannot be computed."""
    if not trials:
        return NOTHING_JUDGED
    problem = next((trial.problem for trial in trials if trial.problem is not None), None)
    if problem is not None:
        return problem
    judges: dict[JudgeModel, list[CheckedAnswer]] = {}
    # each case counts once, as in the pass rate, whatever its number of samples
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
    return _corrected_rate(by_judge, draws, number, parts)


def labelled_part(answers: Sequence[CheckedAnswer], labels: RunLabels) -> tuple[JudgedPart, int]:
    """Return one judge's answers with their labels or those of other runs, and the number of labelled answers.

    The labels represent all answers of their assertion and verdict.
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
    """Return an assertion or a rubric of one judge that lacks labels, as `unlabelled_part`, or None."""
    found = distinct(answers)
    of_run = {(one.judge, one.key[2]) for one in found if one.verdict_key in labels.drawn.get(one.judge, {})}
    judges = {one.judge for one in found}
    elsewhere = {(judge, label.rubric_sha256) for judge in judges for label in labels.elsewhere.get(judge, ())}
    return unlabelled_part(found, of_run or elsewhere)


def _corrected_rate(by_judge: float, draws: Draws, number: int, parts: Sequence[JudgedPart]) -> CorrectedRate:
    found, transferred = estimated(draws), any(one.calibration for one in parts)
    return CorrectedRate(by_judge, found.value, found.interval, number, transferred)
