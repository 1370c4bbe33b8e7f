"""The labelled answers of a run, and the accuracy of several judges on the same ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import fsum

from msgspec import Struct

from agentv.app.results.place import RESULTS, project_with
from agentv.app.results.stored import StoredRun
from agentv.errors import UsageError
from agentv.extensions.labels.answers import CheckedAnswer, GradedAnswer, JudgeKey, graded_answers, grouped
from agentv.extensions.labels.checking import judge_of, same_runs
from agentv.extensions.labels.labelling import latest
from agentv.extensions.labels.posterior import (
    LEVEL,
    Draws,
    Estimated,
    JudgeAccuracy,
    JudgeCounts,
    JudgedAnswer,
    JudgeDraws,
    Observation,
    counted,
    estimated,
    judge_accuracy,
    judge_counts,
    majority,
)
from agentv.model.run.labels import Label, LabelKey
from agentv.model.run.matrix import Verdict
from agentv.model.values.formatting import plural
from agentv.store.labels import labels_directory, labels_file, read_labels

FEWEST = 6
"""Clusters from which on two judges are compared: with fewer, no difference could be significant."""


class PersonLabel(Struct, frozen=True):
    """A labelled answer.

    Attributes:
        passed: whether people pass it.
        drawn_from: the verdict of the judge from whose answers it was drawn; None: it was not drawn at random.
        weight: answers of the run that it stands for, above 0.
        cluster: answers with the same one are alike; None: it is one of its own.
    """

    passed: bool
    drawn_from: bool | None = None
    weight: float = 1.0
    cluster: Hashable = None


def share_right(labels: Sequence[PersonLabel], verdicts: Sequence[bool]) -> float:
    """The weighted share of labels that verdicts agree with."""
    agreed = (one.weight for one, verdict in zip(labels, verdicts, strict=True) if one.passed is verdict)
    return fsum(agreed) / fsum(one.weight for one in labels)


def accuracy_of(
    labels: Sequence[PersonLabel], verdicts: Sequence[bool], counts: JudgeCounts | None = None
) -> JudgeAccuracy:
    """How well verdicts agree with labels.

    Labels that were drawn from what some judge passed, and from what it failed, are weighted by how often it did so: in
    each of the four groups of answers by that judge's verdict and by people's, the share that this judge passes has
    Jeffreys' prior. For the judge that they were drawn by, and one with its verdicts, this is `judge_accuracy`.

    Args:
        labels: by people, at least one.
        verdicts: of the judge, one for each label.
        counts: of the judge that they were drawn by; None: they were not drawn, and count alike.
    """
    if counts is None:
        pairs = zip(labels, verdicts, strict=True)
        return judge_accuracy(judge_counts(JudgedAnswer(verdict, one.passed, one.cluster) for one, verdict in pairs))
    if all(one.drawn_from is verdict for one, verdict in zip(labels, verdicts, strict=True)):
        return judge_accuracy(counts)
    cells = _cells(labels, verdicts, JudgeDraws.of(counts))
    (true_passes, false_failures), (false_passes, true_failures) = cells[True], cells[False]
    agreed = true_passes + true_failures
    person, judge = true_passes + false_failures, true_passes + false_passes
    by_chance = person * judge + (1 - person) * (1 - judge)
    some_pass, some_fail = any(one.passed for one in labels), not all(one.passed for one in labels)
    varied = some_pass and some_fail and len(set(verdicts)) > 1
    kappa = estimated((agreed - by_chance) / (1 - by_chance)) if varied else None
    tpr = estimated(true_passes / person) if some_pass else None
    tnr = estimated(true_failures / (1 - person)) if some_fail else None
    return JudgeAccuracy(tpr, tnr, estimated(agreed).at(share_right(labels, verdicts)), kappa)


def _cells(
    labels: Sequence[PersonLabel], verdicts: Sequence[bool], draws: JudgeDraws
) -> dict[bool, tuple[Draws, Draws]]:
    """What people say → draws of the shares of all answers that people say this of and the judge passes, and fails."""
    import numpy as np

    chance = np.random.default_rng([0, 2])
    found: dict[bool, tuple[Draws, Draws]] = {}
    for person in (True, False):
        passes, failures = np.zeros(len(draws.rate)), np.zeros(len(draws.rate))
        for stratum, share, by_people in ((True, draws.rate, draws.passed), (False, 1 - draws.rate, draws.failed)):
            seen = counted(
                Observation(verdict, one.cluster, one.weight)
                for one, verdict in zip(labels, verdicts, strict=True)
                if one.drawn_from is stratum and one.passed is person
            )
            size = share * (by_people if person else 1 - by_people)
            passed = seen.drawn(chance, len(size))
            passes, failures = passes + size * passed, failures + size * (1 - passed)
        found[person] = (passes, failures)
    return found


class AccuracyDifference(Estimated, frozen=True):
    """The accuracy of a judge less that of another, on the same answers, with the interval of this comparison alone.

    Attributes:
        p_value: two-sided, that both are as accurate, corrected for the number of comparisons.
        only_this, only_other: answers on which only this judge, and only the other, says what people say.
        verdict: what is shown of this judge, at the margin, corrected likewise.
    """

    p_value: float
    only_this: int
    only_other: int
    verdict: Verdict = "inconclusive"


def accuracy_difference(
    labels: Sequence[PersonLabel],
    verdicts: Sequence[bool],
    others: Sequence[bool],
    comparisons: int = 1,
    margin: float = 0.0,
) -> AccuracyDifference | None:
    """How much more accurate a judge is than another one, by the paired test of `compare`.

    The difference is that of the weighted shares of right verdicts. P-values and verdicts of several comparisons are
    corrected by Bonferroni; the interval is of this one alone.

    Args:
        labels: by people.
        verdicts: of the judge, one for each label.
        others: those of the judge that it is compared with.
        comparisons: how many are made.
        margin: a difference up to this does not matter.

    Returns:
        None: fewer than six clusters.
    """
    from agentv.stats.difference import Differences  # loads numpy

    this, other = (
        [float(verdict is one.passed) for one, verdict in zip(labels, of, strict=True)] for of in (verdicts, others)
    )
    clusters = [(place,) if one.cluster is None else one.cluster for place, one in enumerate(labels)]
    found = Differences(other, this, clusters, [one.weight for one in labels])
    if found.independent < FEWEST:
        return None
    p_value = min(1.0, comparisons * found.p())
    only_this, only_other = found.values.count(1.0), found.values.count(-1.0)
    verdict = found.evidence("pass rate", margin).claim((1 - LEVEL) / comparisons)
    return AccuracyDifference(found.mean, found.interval(LEVEL), p_value, only_this, only_other, verdict)


class LabelledAnswers(Struct, frozen=True):
    """The labelled answers that one judge of a run graded.

    Attributes:
        model: of that judge.
        labels: one for each of `answers`.
        counts: of that judge, by whose verdicts the answers were drawn; None: they were not drawn at random.
        notes: labels that do not count, and why.
    """

    assertion: str
    model: str
    answers: tuple[GradedAnswer, ...]
    labels: tuple[PersonLabel, ...]
    counts: JudgeCounts | None
    notes: tuple[str, ...]


_UNSURE, _OTHER_RUBRIC = "unsure", "by a rubric that has changed since"
_OTHER_OUTPUTS = "of answers that are not in this run"
_Labels = dict[LabelKey, dict[str, Label]]


def labelled_answers(run: StoredRun, named: str, assertion: str | None) -> list[LabelledAnswers]:
    """The labelled answers of a run, for each judge of the run that graded some.

    Args:
        run: the run.
        named: how the command names it.
        assertion: only those that this assertion graded.

    Raises:
        UsageError: no answer is labelled.
        StoreError: a file of labels cannot be read.
    """
    graded = graded_answers(run, assertion)
    root = project_with(RESULTS)
    known = latest(read_labels(sorted({labels_file(root, one.suite) for one in graded}))).values()
    hint = f"label answers: agentv label {named}"
    if not known:
        raise UsageError(f"no labels of the run {run.run_id} in {labels_directory(root)}", hint)
    found, reasons = [], Counter[str]()
    for judge, answers in grouped(graded, lambda one: one.judge).items():
        labels, left_out = _sorted(judge[0], answers, known)
        made = _of_judge(judge, answers, (labels, left_out), run.run_id)
        if made is not None:
            found.append(made)
        reasons.update(left_out)
    if not found:
        why = "; ".join(f"{plural(number, 'label')} {what}" for what, number in reasons.items() if number)
        raise UsageError(f"no label counts for the run {run.run_id}{f': {why}' if why else ''}", hint)
    return found


def _sorted(assertion: str, answers: Sequence[GradedAnswer], labels: Iterable[Label]) -> tuple[_Labels, dict[str, int]]:
    """The labels of a judge's answers: key → person → label; and how many do not count, by why."""
    keys = {one.key for one in answers}
    outputs = {key[:2] for key in keys}
    found: _Labels = {}
    left_out = dict.fromkeys((_UNSURE, _OTHER_RUBRIC, _OTHER_OUTPUTS), 0)
    for label in sorted(labels, key=lambda one: one.time):  # of several of a person, the latest counts
        if label.key not in keys:
            if label.assertion == assertion:
                left_out[_OTHER_RUBRIC if label.key[:2] in outputs else _OTHER_OUTPUTS] += 1
        elif label.verdict == "unsure":
            left_out[_UNSURE] += 1
        else:
            found.setdefault(label.key, {})[label.person_key] = label
    return found, left_out


def _of_judge(
    judge: JudgeKey, answers: Sequence[GradedAnswer], found: tuple[_Labels, Mapping[str, int]], run: str
) -> LabelledAnswers | None:
    every, left_out = found
    notes = [f"{plural(number, 'label')} not counted: {what}" for what, number in left_out.items() if number]
    # those of answers that were drawn from this run by the verdicts of its judge
    flat = [one for people in every.values() for one in people.values()]
    runs = {run, *same_runs(judge, [CheckedAnswer.of(one, run) for one in answers], flat)}
    drawn: _Labels = {}
    for label in flat:
        if judge_of(label)[1:] == judge[1:] and label.run in runs and label.probability is not None:
            drawn.setdefault(label.key, {})[label.person_key] = label
    labels = drawn or every
    dropped = len(flat) - sum(map(len, labels.values()))
    if dropped:
        notes.append(f"{plural(dropped, 'label')} not counted: not drawn at random from this run")
    persons = {key: majority(one.verdict == "pass" for one in people.values()) for key, people in labels.items()}
    ties = sum(one is None for one in persons.values())
    if ties:
        notes.append(f"{plural(ties, 'answer')} not counted: as many people pass it as fail it")
    said = {key: verdict for key, verdict in persons.items() if verdict is not None}
    if not said:
        return None
    if not drawn:
        notes.append(
            "the labelled answers were not drawn at random from this run: the figures are of these answers alone"
        )
        alike = tuple({one.key: one for one in answers if one.key in said}.values())
        persons_alike = tuple(PersonLabel(said[one.key], cluster=one.cluster) for one in alike)
        return LabelledAnswers(*judge[:2], alike, persons_alike, None, tuple(notes))
    # each answer that was drawn stands for all with its verdict
    chosen = tuple(one for one in answers if one.key in said)
    known, sizes = Counter[bool](), Counter[bool]()
    for one in answers:
        sizes[one.passed] += one.trials
        known[one.passed] += one.trials if one.key in said else 0
    weighted = tuple(
        PersonLabel(said[one.key], one.passed, one.trials * sizes[one.passed] / known[one.passed], one.cluster)
        for one in chosen
    )
    counts = judge_counts(JudgedAnswer(one.passed, said.get(one.key), one.cluster, one.trials) for one in answers)
    return LabelledAnswers(*judge[:2], chosen, weighted, counts, tuple(notes))
