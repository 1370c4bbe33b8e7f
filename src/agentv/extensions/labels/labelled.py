"""The labelled answers of a run, and the accuracy of several judges on them."""

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
"""Fewest clusters to compare two judges: with fewer, no difference could be significant."""


class PersonLabel(Struct, frozen=True):
    """People's verdict on an answer.

    Attributes:
        passed: whether people pass the answer.
        drawn_from: verdict of the judge from whose answers it was drawn; None if it was not drawn at random.
        weight: number of answers of the run that it represents, above 0.
        cluster: answers of the same cluster are correlated; None: a cluster of its own.
    """

    passed: bool
    drawn_from: bool | None = None
    weight: float = 1.0
    cluster: Hashable = None


def share_right(labels: Sequence[PersonLabel], verdicts: Sequence[bool]) -> float:
    """Return the weighted share of labels with which verdicts agree."""
    agreed = (one.weight for one, verdict in zip(labels, verdicts, strict=True) if one.passed is verdict)
    return fsum(agreed) / fsum(one.weight for one in labels)


def accuracy_of(
    labels: Sequence[PersonLabel], verdicts: Sequence[bool], counts: JudgeCounts | None = None
) -> JudgeAccuracy:
    """Estimate how well verdicts agree with labels.

    If the labels were drawn by another judge's verdicts, the answers fall into four groups, by that judge's verdict and
    by people's. The groups are weighted by their sizes in the run, and the share of each that this judge passes has
    Jeffreys' prior. For that judge itself, or one with the same verdicts, the result is that of `judge_accuracy`.

    Args:
        labels: people's labels, at least one.
        verdicts: the judge's verdicts, one for each label.
        counts: counts of the judge by whose verdicts the labels were drawn; None if they were not drawn, which weights
            them equally.
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
    """Return people's verdict → draws of the shares of all answers with it that the judge passes, and fails."""
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
    """The accuracy of a judge minus that of another on the same answers, with an uncorrected interval.

    Attributes:
        p_value: two-sided, of equal accuracy, corrected for the number of comparisons.
        only_this, only_other: number of answers on which only this judge, or only the other, agrees with people.
        verdict: what the difference shows at the margin, also corrected.
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
    """Compare the accuracy of two judges by the paired test of `compare`.

    The difference is between the weighted shares of right verdicts. P-values and verdicts are Bonferroni-corrected for
    several comparisons; the interval is not.

    Args:
        labels: people's labels.
        verdicts: the judge's verdicts, one for each label.
        others: verdicts of the judge that it is compared with.
        comparisons: number of comparisons made.
        margin: largest difference that does not matter.

    Returns:
        The difference, or None if there are fewer than six clusters.
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
    """The labelled answers graded by one judge of a run.

    Attributes:
        model: model of that judge.
        labels: one for each of `answers`.
        counts: counts of that judge if the answers were drawn by its verdicts; None if they were not drawn at random.
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
    """Return the labelled answers of a run, for each of its judges that graded some.

    Args:
        run: the run.
        named: the run as given on the command line.
        assertion: only answers that this assertion graded.

    Raises:
        UsageError: no label counts.
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
        labels, left_out = _sort(judge[0], answers, known)
        made = _answers_of_judge(judge, answers, (labels, left_out), run.run_id)
        if made is not None:
            found.append(made)
        reasons.update(left_out)
    if not found:
        why = "; ".join(f"{plural(number, 'label')} {what}" for what, number in reasons.items() if number)
        raise UsageError(f"no label counts for the run {run.run_id}{f': {why}' if why else ''}", hint)
    return found


def _sort(assertion: str, answers: Sequence[GradedAnswer], labels: Iterable[Label]) -> tuple[_Labels, dict[str, int]]:
    """Return the labels of a judge's answers (key → person → label), and the number of other labels by reason."""
    keys = {one.key for one in answers}
    outputs = {key[:2] for key in keys}
    found: _Labels = {}
    left_out = dict.fromkeys((_UNSURE, _OTHER_RUBRIC, _OTHER_OUTPUTS), 0)
    for label in sorted(labels, key=lambda one: one.time):  # the latest label of a person counts
        if label.key not in keys:
            if label.assertion == assertion:
                left_out[_OTHER_RUBRIC if label.key[:2] in outputs else _OTHER_OUTPUTS] += 1
        elif label.verdict == "unsure":
            left_out[_UNSURE] += 1
        else:
            found.setdefault(label.key, {})[label.person_key] = label
    return found, left_out


def _answers_of_judge(
    judge: JudgeKey, answers: Sequence[GradedAnswer], found: tuple[_Labels, Mapping[str, int]], run: str
) -> LabelledAnswers | None:
    every, left_out = found
    notes = [f"{plural(number, 'label')} not counted: {what}" for what, number in left_out.items() if number]
    # labels of answers drawn from this run by the verdicts of its judge
    all_labels = [one for people in every.values() for one in people.values()]
    runs = {run, *same_runs(judge, [CheckedAnswer.of(one, run) for one in answers], all_labels)}
    drawn: _Labels = {}
    for label in all_labels:
        if judge_of(label)[1:] == judge[1:] and label.run in runs and label.probability is not None:
            drawn.setdefault(label.key, {})[label.person_key] = label
    labels = drawn or every
    dropped = len(all_labels) - sum(map(len, labels.values()))
    if dropped:
        notes.append(f"{plural(dropped, 'label')} not counted: not drawn at random from this run")
    majorities = {key: majority(one.verdict == "pass" for one in people.values()) for key, people in labels.items()}
    ties = sum(one is None for one in majorities.values())
    if ties:
        notes.append(f"{plural(ties, 'answer')} not counted: as many people pass it as fail it")
    by_people = {key: verdict for key, verdict in majorities.items() if verdict is not None}
    if not by_people:
        return None
    if not drawn:
        notes.append(
            "the labelled answers were not drawn at random from this run: the figures are of these answers alone"
        )
        distinct = tuple({one.key: one for one in answers if one.key in by_people}.values())
        distinct_labels = tuple(PersonLabel(by_people[one.key], cluster=one.cluster) for one in distinct)
        return LabelledAnswers(*judge[:2], distinct, distinct_labels, None, tuple(notes))
    # the labelled answers represent all answers with the same verdict
    chosen = tuple(one for one in answers if one.key in by_people)
    known, sizes = Counter[bool](), Counter[bool]()
    for one in answers:
        sizes[one.passed] += one.trials
        known[one.passed] += one.trials if one.key in by_people else 0
    weighted = tuple(
        PersonLabel(by_people[one.key], one.passed, one.trials * sizes[one.passed] / known[one.passed], one.cluster)
        for one in chosen
    )
    counts = judge_counts(JudgedAnswer(one.passed, by_people.get(one.key), one.cluster, one.trials) for one in answers)
    return LabelledAnswers(*judge[:2], chosen, weighted, counts, tuple(notes))
