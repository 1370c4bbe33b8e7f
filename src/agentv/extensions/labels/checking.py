"""`agentv judge check`: how well judges agree with people, and pass rates corrected accordingly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from agentv.app.results.place import RESULTS, project_with
from agentv.app.results.stored import open_run
from agentv.errors import UsageError
from agentv.extensions.labels.answers import CheckedAnswer, JudgeKey, VerdictKey, graded_answers, grouped
from agentv.extensions.labels.labelling import LabelFiles, LabelStore, latest
from agentv.extensions.labels.posterior import (
    ConfusionMatrix,
    Estimated,
    JudgeAccuracy,
    JudgeCounts,
    JudgedAnswer,
    corrected_rate,
    judge_accuracy,
    judge_counts,
    majority,
    mean_pairwise_agreement,
    transferred_rate,
)
from agentv.model.run.labels import Label, LabelVerdict
from agentv.reports.text import one_line
from agentv.stats.intervals.design_effect import ClusterSum, estimated_rate
from agentv.store.labels import read_labels

FEW = 10
"""Number of labelled answers below which results carry a warning."""


class LabelCounts(Struct, frozen=True):
    """Numbers of labels that count for a judge, and of those that do not.

    Attributes:
        labels: labels with verdict pass or fail, one for each person and answer.
        people: number of people who gave them.
        unsure: labels with verdict unsure.
        ties: answers that as many people pass as fail.
        not_drawn: those of the labels whose answers were not drawn at random; they do not correct the pass rate.
        other_judge: labels of these answers that were compared with another judge model or prompt.
        other_rubric: labels of these answers by another version of the rubric.
        other_outputs: labels of other answers, such as those of another run.
    """

    labels: int = 0
    people: int = 0
    unsure: int = 0
    ties: int = 0
    not_drawn: int = 0
    other_judge: int = 0
    other_rubric: int = 0
    other_outputs: int = 0


class PeopleAgreement(Struct, frozen=True):
    """How well people agree with each other.

    Attributes:
        answers: number of answers with two or more labels.
        agreement: share of pairs of labels of an answer that agree.
    """

    answers: int
    agreement: float


class PersonVerdict(Struct, frozen=True):
    """A person's label of an answer."""

    person: str
    label: LabelVerdict
    note: str


class Disagreement(Struct, frozen=True):
    """An answer on which the judge disagrees with most people.

    Attributes:
        target, prompt, variant: of a trial with this answer; None if only labels are known.
    """

    case: str
    suite: str
    run: str
    kind: Literal["false-pass", "false-failure"]
    labels: tuple[PersonVerdict, ...]
    target: str | None = None
    prompt: str | None = None
    variant: str | None = None


class CheckedJudge(Struct, frozen=True):
    """The judge of one assertion, compared with people.

    Attributes:
        matrix: labelled answers, by the majority of people.
        judge_rate: the judge's own pass rate over all trials, with Wilson's interval, which is None for one cluster.
        accuracy: None without labels of randomly drawn answers.
        corrected: likewise, and None if `unlabelled` is set.
        transferred: pass rate corrected by labels of other runs; None if this run has labels, or if those do not show
            that the judge is better than chance.
        transferred_answers: number of labelled answers of other runs.
        unlabelled: an assertion or rubric without labels, which keeps pass rates from being corrected, or None.
    """

    assertion: str
    model: str
    judge: str
    counts: LabelCounts
    matrix: ConfusionMatrix
    judge_rate: tuple[float, tuple[float, float] | None]
    people: PeopleAgreement | None = None
    disagreements: tuple[Disagreement, ...] = ()
    accuracy: JudgeAccuracy | None = None
    corrected: Estimated | None = None
    transferred: Estimated | None = None
    transferred_answers: int = 0
    unlabelled: str | None = None


class JudgeCheck(Struct, frozen=True):
    """The checked judges of a run, or of labels alone.

    Attributes:
        run: id of the run; None if only labels were checked.
    """

    run: str | None
    judges: tuple[CheckedJudge, ...]


_MOST_ANSWERS = 100_000
"""Most answers of a run that are rebuilt from labels; more would hardly make the judge's pass rate more precise."""


class NoLabelsError(UsageError):
    """There are no labels to check a judge with."""


def check_judges(named: str, assertion: str | None = None, store: LabelStore | None = None) -> JudgeCheck:
    """Check the judges of a run, or of a file of labels.

    Args:
        named: a run, or the path of a file of labels.
        assertion: check only the judge of this assertion.
        store: store of the run's labels; None: the files of the project in the working directory.

    Raises:
        UsageError: the run or the file does not exist, or there are no labels.
        StoreError: a file cannot be read.
    """
    path = Path(named)
    if named.endswith(".jsonl") and not path.is_dir():
        if not path.is_file():
            raise UsageError(f"no file of labels {path}", "labels are in .agentv/labels/SUITE.jsonl")
        of = f" of the assertion '{assertion}'" if assertion else ""
        return check_labels(read_labels([path]), assertion, NoLabelsError(f"{path} has no labels{of}"))
    store = store or LabelFiles(project_with(RESULTS))
    run = open_run(named, action="check")
    answers = [CheckedAnswer.of(one, run.run_id) for one in graded_answers(run, assertion)]
    suites = {one.suite for one in answers}
    labels = store.read(suites)
    if not labels:
        places = ", ".join(store.places(suites))
        raise NoLabelsError(f"no labels of the run {run.run_id} in {places}", f"label answers: agentv label {named}")
    return _check_all(answers, labels, run.run_id)


def check_labels(labels: Sequence[Label], assertion: str | None, missing: NoLabelsError) -> JudgeCheck:
    """Check the judges that labels were compared with, without a run.

    Raises:
        NoLabelsError: `missing`, if there are no labels of the assertion.
    """
    labels = [one for one in labels if assertion in (None, one.assertion)]
    if not labels:
        raise missing
    return _check_all(labelled_answers(labels), labels, None)


def labelled_answers(labels: Sequence[Label]) -> list[CheckedAnswer]:
    """Rebuild a run's answers from its labels: the labelled ones, and the unlabelled rest that they were drawn from."""
    found: dict[tuple[object, ...], CheckedAnswer] = {}
    sizes: dict[tuple[JudgeKey, str, bool], int] = {}
    for label in labels:
        judge = judge_of(label)
        answer = CheckedAnswer(
            label.key, judge, "", label.judge_passed, ("case", label.suite, label.case), 1, label.run, label.suite
        )
        found[label.key, judge, label.judge_passed] = answer
        stratum = (judge, label.run, label.judge_passed)
        sizes[stratum] = max(sizes.get(stratum, 0), label.drawn_from or 0)
    known = Counter((one.judge, one.run, one.passed) for one in found.values())
    answers = list(found.values())
    for (judge, run, passed), size in sizes.items():
        of_run = sizes.get((judge, run, True), 0) + sizes.get((judge, run, False), 0)
        fewer = min(1.0, _MOST_ANSWERS / max(of_run, 1))  # the same factor for both verdicts keeps the judge's rate
        rest = round(size * fewer) - known[judge, run, passed]
        answers += rest * [CheckedAnswer(("", "", ""), judge, "", passed, None, 1, run, "")]
    return answers


def judge_of(label: Label) -> JudgeKey:
    """Return the judge that a label is compared with."""
    return label.assertion, label.model, label.prompt_sha256


def _check_all(answers: Sequence[CheckedAnswer], labels: Sequence[Label], run: str | None) -> JudgeCheck:
    counting = list(latest(labels).values())
    checked = []
    for judge, found in grouped(answers, lambda one: one.judge).items():
        runs = {one.run for one in found} if run is None else {run, *same_runs(judge, found, counting)}
        checked.append(_check_judge(found, counting, runs))
    return JudgeCheck(run, tuple(checked))


def same_runs(judge: JudgeKey, answers: Sequence[CheckedAnswer], labels: Sequence[Label]) -> set[str]:
    """Find other runs with the same answers and verdicts, such as copies; draws from them are draws from this run.

    The labels of a run that shares only some answers are not a random sample of this one.
    """
    known = {one.verdict_key for one in answers}
    trials = {verdict: sum(one.trials for one in answers if one.passed is verdict) for verdict in (True, False)}
    found: set[str] = set()
    for run in {one.run for one in labels}:
        of_run = [one for one in labels if one.run == run and judge_of(one) == judge]
        sizes = {one.judge_passed: one.drawn_from for one in of_run if one.drawn_from}
        same_answers = all((one.key, one.judge_passed) in known for one in of_run)
        if of_run and same_answers and all(trials[verdict] == size for verdict, size in sizes.items()):
            found.add(run)
    return found


def _check_judge(answers: Sequence[CheckedAnswer], labels: Sequence[Label], runs: Collection[str]) -> CheckedJudge:
    """Check the judge of one assertion.

    Args:
        answers: the answers that it graded.
        labels: the latest labels, of any judge.
        runs: runs whose draws are draws from these answers.
    """
    judge, keys = answers[0].judge, dict.fromkeys(one.key for one in answers)
    by_key = grouped(labels, lambda one: one.key)
    answer_labels = [label for key in keys for label in by_key.get(key, ())]
    judge_labels = [one for one in answer_labels if judge_of(one)[1:] == judge[1:]]
    decided = [one for one in judge_labels if one.verdict != "unsure"]
    drawn_labels = [one for one in decided if one.probability is not None and one.run in runs]
    drawn = verdicts_of(drawn_labels)
    verdicts = {
        key: {one.person_key: one.verdict == "pass" for one in found}
        for key, found in grouped(decided, lambda one: one.key).items()
    }
    others = [one for one in labels if one.key not in keys and one.assertion == judge[0]]
    same_output = {key[:2] for key in keys}
    counts = LabelCounts(
        labels=sum(map(len, verdicts.values())),
        people=len({one.person_key for one in decided}),
        unsure=len(judge_labels) - len(decided),
        ties=sum(majority(one.values()) is None for one in verdicts.values()),
        not_drawn=len(decided) - len(drawn_labels),
        other_judge=len(answer_labels) - len(judge_labels),
        other_rubric=sum(one.key[:2] in same_output for one in others),
        other_outputs=sum(one.key[:2] not in same_output for one in others),
    )
    rubrics = {key[2] for key in keys}
    elsewhere = [
        one for one in labels if judge_of(one) == judge and one.run not in runs and one.rubric_sha256 in rubrics
    ]
    judged = [judged_answer(one, drawn) for one in answers]
    pairs = [(one, verdict) for one in answers if (verdict := majority(verdicts.get(one.key, {}).values())) is not None]
    shared = [found.values() for found in verdicts.values() if len(found) > 1]
    agreement = mean_pairwise_agreement(shared)
    disagreements: list[Disagreement] = []
    for answer, verdict in pairs:
        if answer.passed is not verdict:
            own = [label for label in by_key[answer.key] if judge_of(label)[1:] == judge[1:]]
            people = tuple(PersonVerdict(label.person, label.verdict, label.note) for label in own)
            kind: Literal["false-pass", "false-failure"] = "false-pass" if answer.passed else "false-failure"
            disagreements.append(Disagreement(answer.key[0], answer.suite, answer.run, kind, people, *answer.found_at))
    checked = CheckedJudge(
        *judge[:2],
        answers[0].name,
        counts,
        ConfusionMatrix.of((one.passed, verdict) for one, verdict in pairs),
        judge_rate=_judge_pass_rate(judged),
        people=None if agreement is None else PeopleAgreement(len(shared), agreement),
        disagreements=tuple(sorted(disagreements, key=lambda one: one.kind, reverse=True)),
    )
    known, without_labels = judge_counts(judged), None
    if any(one.person is not None for one in judged):
        if any(one.rubric for one in answers):
            without_labels = unlabelled_part(answers, {(judge, key[2]) for key, _ in drawn})
        corrected = None if without_labels is not None else corrected_rate(known)
        return replace(checked, accuracy=judge_accuracy(known), unlabelled=without_labels, corrected=corrected)
    if elsewhere:
        without_labels = unlabelled_part(answers, {(judge, one.rubric_sha256) for one in elsewhere})
    calibration = None if without_labels is not None else calibration_of(elsewhere)
    return replace(
        checked,
        unlabelled=without_labels,
        transferred=None if calibration is None else transferred_rate(calibration, known.verdicts),
        transferred_answers=0 if without_labels is not None else labelled_answers_of(elsewhere),
    )


LARGE_PART = 0.1
"""Share of a judge's answers above which an assertion, or a rubric with at least `FEW` answers, needs a label."""

_LONGEST_RUBRIC = 60


def unlabelled_part(answers: Sequence[CheckedAnswer], labelled: Collection[tuple[JudgeKey, str]]) -> str | None:
    """Return an assertion or a rubric without labels that grades a large part of a judge's answers, or None.

    The judge may err more often on that part than on the others.

    Args:
        answers: answers of one judge, graded by one or more assertions.
        labelled: the assertions and rubrics of labels that count.
    """
    judges = {judge for judge, _ in labelled}
    for judge, own in grouped(answers, lambda one: one.judge).items():
        if judge not in judges and len(own) >= LARGE_PART * len(answers):
            return f"'{judge[0]}'"
        for rubric, part in grouped(own, lambda one: one.key[2]).items():
            if (judge, rubric) not in labelled and len(part) >= max(FEW, LARGE_PART * len(answers)):
                return f"the rubric \"{one_line(part[0].rubric, _LONGEST_RUBRIC)}\" of '{judge[0]}'"
    return None


def judged_answer(answer: CheckedAnswer, labels: Mapping[VerdictKey, Mapping[str, bool]]) -> JudgedAnswer:
    """Return an answer with the majority verdict of the people who labelled it."""
    verdict = majority(labels.get(answer.verdict_key, {}).values())
    return JudgedAnswer(answer.passed, verdict, answer.cluster, answer.trials)


def _judge_pass_rate(judged: Iterable[JudgedAnswer]) -> tuple[float, tuple[float, float] | None]:
    """Return the judge's own pass rate over trials, with an interval that ignores the judge's errors."""
    sums: dict[Hashable, tuple[int, int]] = {}
    for place, one in enumerate(judged):
        cluster = (place,) if one.cluster is None else one.cluster
        size, passed = sums.get(cluster, (0, 0))
        sums[cluster] = size + int(one.weight), passed + int(one.weight) * one.judge
    found = estimated_rate(ClusterSum(size, passed) for size, passed in sums.values())
    return found.mean, found.interval


def calibration_of(labels: Sequence[Label]) -> JudgeCounts | None:
    """Return counts of a judge in other runs, from their labels, or None if no label counts."""
    verdicts = verdicts_of(labels)
    return judge_counts(judged_answer(one, verdicts) for one in labelled_answers(labels)) if verdicts else None


def verdicts_of(labels: Iterable[Label]) -> dict[VerdictKey, dict[str, bool]]:
    """Return people's verdicts on drawn answers: (answer, judge's verdict) → person → whether it passes."""
    found: dict[VerdictKey, dict[str, bool]] = {}
    for label in labels:
        if label.verdict != "unsure" and label.probability is not None:
            found.setdefault((label.key, label.judge_passed), {})[label.person_key] = label.verdict == "pass"
    return found


def labelled_answers_of(labels: Iterable[Label]) -> int:
    """Count the drawn answers on which a majority of people agree."""
    return sum(majority(said.values()) is not None for said in verdicts_of(labels).values())
