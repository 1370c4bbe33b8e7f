"""The labelled answers of a run: what judges are compared on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agentv.app.results.place import RESULTS, place_holding
from agentv.app.results.stored import StoredRun
from agentv.errors import UsageError
from agentv.extensions.labels.answers import GradedAnswer, JudgeKey, graded_answers, grouped
from agentv.extensions.labels.labelling import latest
from agentv.extensions.labels.stats.agreement import majority
from agentv.extensions.labels.stats.paired_accuracy import PersonLabel
from agentv.extensions.labels.stats.posterior import Counted, JudgeCounts, JudgedAnswer, judge_counts
from agentv.model.run.labels import Label, LabelKey
from agentv.model.values.formatting import plural
from agentv.store.labels.label_files import labels_directory, labels_file, read_labels

_Drawn = tuple[str, str]
"""The model and the prompt of the judge whose answers were drawn."""


@dataclass(frozen=True, slots=True)
class LabelledAnswers:
    """The labelled answers that one judge of a run graded.

    Attributes:
        model, prompt_sha256: of that judge.
        labels: one for each of `answers`.
        counts: of the judge that the answers were drawn by; None: they were not drawn at random.
        own_draw: that judge is the one of this run.
        notes: labels that do not count, and why.
    """

    assertion: str
    model: str
    prompt_sha256: str
    answers: tuple[GradedAnswer, ...]
    labels: tuple[PersonLabel, ...]
    counts: JudgeCounts | None
    own_draw: bool
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
    drawn = _largest_draw(judge, answers, every, run)
    labels = every if drawn is None else drawn[1]
    if drawn is not None:
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
    if drawn is None:
        notes.append(
            "the labelled answers were not drawn at random from this run: the figures are of these answers alone"
        )
        chosen = tuple({one.key: one for one in answers if one.key in said}.values())
        counted_alike = tuple(PersonLabel(said[one.key], cluster=one.cluster) for one in chosen)
        return LabelledAnswers(*judge, chosen, counted_alike, None, own_draw=False, notes=tuple(notes))
    return _weighted(judge, answers, said, drawn, notes)


def _largest_draw(
    judge: JudgeKey, answers: Sequence[GradedAnswer], found: _Labels, run: str
) -> tuple[_Drawn, _Labels] | None:
    """The judge by whose verdicts most labelled answers of this run were drawn, and these labels.

    Answers of another run count as drawn from this one if both have the same answers, as after `--regrade`.
    """
    keys, trials = {one.key for one in answers}, sum(one.trials for one in answers)
    of_draws = (one for people in found.values() for one in people.values() if one.probability is not None)
    draws = grouped(of_draws, lambda one: ((one.model, one.prompt_sha256), one.run))
    by_judge: dict[_Drawn, _Labels] = {}
    for (asked, of_run), labels in draws.items():
        sizes = {one.judge_passed: one.drawn_from or 0 for one in labels}
        same = all(one.key in keys for one in labels) and sum(sizes.values()) == trials
        if (of_run == run and asked == judge[1:]) or same:
            members = by_judge.setdefault(asked, {})
            for label in labels:
                members.setdefault(label.key, {})[label.person_key] = label
    return max(by_judge.items(), key=lambda one: (len(one[1]), one[0] == judge[1:]), default=None)


def _weighted(
    judge: JudgeKey,
    answers: Sequence[GradedAnswer],
    said: Mapping[LabelKey, bool],
    drawn: tuple[_Drawn, Mapping[LabelKey, Mapping[str, Label]]],
    notes: Sequence[str],
) -> LabelledAnswers:
    asked, labels = drawn
    own = asked == judge[1:]
    strata = {
        (one.key, one.passed): one.passed if own else next(iter(labels[one.key].values())).judge_passed
        for one in answers
        if one.key in said
    }
    chosen = [one for one in answers if one.key in said]
    known: Counter[bool] = Counter()
    for one in chosen:
        known[strata[one.key, one.passed]] += one.trials
    sizes = _sizes(answers, labels, own=own)
    made = tuple(
        PersonLabel(
            said[one.key],
            (stratum := strata[one.key, one.passed]),
            one.trials * max(1.0, sizes[stratum] / known[stratum]),
            one.cluster,
        )
        for one in chosen
    )
    if own:
        counts = judge_counts(JudgedAnswer(one.passed, said.get(one.key), one.cluster, one.trials) for one in answers)
    else:
        of_labels = judge_counts(
            JudgedAnswer(one.drawn_from is True, one.passed, one.cluster, answer.trials)
            for one, answer in zip(made, chosen, strict=True)
        )
        counts = JudgeCounts(of_labels.of_passed, of_labels.of_failed, Counted(sizes[True], sizes[False]))
    return LabelledAnswers(*judge, tuple(chosen), made, counts, own, tuple(notes))


def _sizes(
    answers: Sequence[GradedAnswer], labels: Mapping[LabelKey, Mapping[str, Label]], *, own: bool
) -> Mapping[bool, int]:
    """How many trials the judge passed, and failed, by whose verdicts the answers were drawn."""
    if own:
        found: Counter[bool] = Counter()
        for one in answers:
            found[one.passed] += one.trials
        return found
    of_labels: Counter[bool] = Counter()
    for people in labels.values():
        for label in people.values():
            of_labels[label.judge_passed] = max(of_labels[label.judge_passed], label.drawn_from or 0)
    return of_labels
