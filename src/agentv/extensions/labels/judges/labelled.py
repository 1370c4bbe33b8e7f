"""The labelled answers of a run: what judges are compared on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agentv.app.results.place import RESULTS, place_holding
from agentv.app.results.stored import StoredRun
from agentv.errors import UsageError
from agentv.extensions.labels.answers import CheckedAnswer, GradedAnswer, JudgeKey, graded_answers, grouped
from agentv.extensions.labels.checking import judge_of, same_runs
from agentv.extensions.labels.labelling import latest
from agentv.extensions.labels.stats.agreement import majority
from agentv.extensions.labels.stats.paired_accuracy import PersonLabel
from agentv.extensions.labels.stats.posterior import JudgeCounts, JudgedAnswer, judge_counts
from agentv.model.run.labels import Label, LabelKey
from agentv.model.values.formatting import plural
from agentv.store.labels.label_files import labels_directory, labels_file, read_labels


@dataclass(frozen=True, slots=True)
class LabelledAnswers:
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
    root = place_holding(RESULTS)
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
    for label in labels:
        if label.key not in keys:
            if label.assertion == assertion:
                left_out[_OTHER_RUBRIC if label.key[:2] in outputs else _OTHER_OUTPUTS] += 1
        elif label.verdict == "unsure":
            left_out[_UNSURE] += 1
        else:
            people = found.setdefault(label.key, {})
            if label.person_key not in people or people[label.person_key].time <= label.time:
                people[label.person_key] = label
    return found, left_out


def _of_judge(
    judge: JudgeKey, answers: Sequence[GradedAnswer], found: tuple[_Labels, Mapping[str, int]], run: str
) -> LabelledAnswers | None:
    every, left_out = found
    notes = [f"{plural(number, 'label')} not counted: {what}" for what, number in left_out.items() if number]
    drawn = _drawn(judge, answers, every, run)
    labels = drawn or every
    dropped = sum(map(len, every.values())) - sum(map(len, labels.values()))
    if dropped:
        notes.append(f"{plural(dropped, 'label')} not counted: not drawn at random from this run")
    persons = {key: majority(one.verdict == "pass" for one in people.values()) for key, people in labels.items()}
    ties = sum(one is None for one in persons.values())
    if ties:
        notes.append(f"{plural(ties, 'answer')} not counted: as many people pass it as fail it")
    said = {key: verdict for key, verdict in persons.items() if verdict is not None}
    if not said:
        return None
    if drawn:
        return _weighted(judge, answers, said, notes)
    notes.append("the labelled answers were not drawn at random from this run: the figures are of these answers alone")
    chosen = tuple({one.key: one for one in answers if one.key in said}.values())
    counted_alike = tuple(PersonLabel(said[one.key], cluster=one.cluster) for one in chosen)
    return LabelledAnswers(*judge[:2], chosen, counted_alike, None, tuple(notes))


def _drawn(judge: JudgeKey, answers: Sequence[GradedAnswer], found: _Labels, run: str) -> _Labels:
    """The labels of answers that were drawn from this run by the verdicts of its judge."""
    every = [one for people in found.values() for one in people.values()]
    runs = {run, *same_runs(judge, [CheckedAnswer.of(one, run) for one in answers], every)}
    drawn: _Labels = {}
    for label in every:
        if judge_of(label)[1:] == judge[1:] and label.run in runs and label.probability is not None:
            drawn.setdefault(label.key, {})[label.person_key] = label
    return drawn


def _weighted(
    judge: JudgeKey, answers: Sequence[GradedAnswer], said: Mapping[LabelKey, bool], notes: Sequence[str]
) -> LabelledAnswers:
    """The answers that were drawn, each of which stands for all with its verdict."""
    chosen = [one for one in answers if one.key in said]
    known, sizes = Counter[bool](), Counter[bool]()
    for one in answers:
        sizes[one.passed] += one.trials
        known[one.passed] += one.trials if one.key in said else 0
    made = tuple(
        PersonLabel(said[one.key], one.passed, one.trials * sizes[one.passed] / known[one.passed], one.cluster)
        for one in chosen
    )
    counts = judge_counts(JudgedAnswer(one.passed, said.get(one.key), one.cluster, one.trials) for one in answers)
    return LabelledAnswers(*judge[:2], tuple(chosen), made, counts, tuple(notes))
