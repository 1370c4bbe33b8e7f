"""Stored answers of a run, with the assertions of its eval files as they are now, for judges to grade again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from agentv.app.planning.preparation import Prepared
from agentv.app.stored_answers import left_out
from agentv.engine.trial import AnsweredTrial, answer_of
from agentv.extensions.labels.answers import as_labelled
from agentv.extensions.labels.graded_answers import GradedAnswer
from agentv.extensions.labels.judges.asking import JudgeCaller, StoredAnswer
from agentv.judge.asked import asked_judge
from agentv.model.run.labelled.labels import LabelKey, answer_sha256
from agentv.model.run.trial import Trial
from agentv.model.values.formatting import plural

NOT_AS_IN_THE_RUN = "whose input, target or rubric changed since the run"

Place = tuple[str, str, LabelKey]
"""A suite, an assertion, and what a label is of."""


def place_of(answer: GradedAnswer) -> Place:
    """Where an answer is found again."""
    return answer.suite, answer.assertion, answer.key


@dataclass(slots=True)
class FoundAnswers:
    """The stored answers that were looked for.

    Attributes:
        omitted: why others were not found → how many.
    """

    found: dict[Place, StoredAnswer] = field(default_factory=dict)
    omitted: Counter[str] = field(default_factory=Counter)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out."""
        return tuple(f"left out: {plural(number, 'answer')} {why}" for why, number in self.omitted.items())


async def stored_answers_of(
    wanted: Iterable[GradedAnswer], prepared: Prepared, caller: JudgeCaller, *, by_rubric: bool = True
) -> FoundAnswers:
    """The stored answers of a run. Nobody is asked.

    Args:
        wanted: as the run graded them.
        prepared: the plan of the run.
        caller: reads the rubrics.
        by_rubric: only those with the rubric of then, which their labels are of.
    """
    found = FoundAnswers()
    places = {place_of(one) for one in wanted}
    cases = {(suite, key[0]) for suite, _, key in places}
    assertions = {assertion for _, assertion, _ in places}
    reasons: dict[tuple[str, str], str] = {}
    for trial in prepared.plan:
        case = (trial.suite.name, trial.case.id)
        if case not in cases:
            continue
        why = left_out(trial)
        if why is not None:
            reasons[case] = f"of {why}"
            continue
        await _add(trial, places, assertions, (caller, found, by_rubric))
    for suite, _, key in places - found.found.keys():
        found.omitted[reasons.get((suite, key[0]), NOT_AS_IN_THE_RUN)] += 1
    return found


async def _add(
    trial: Trial, places: Collection[Place], assertions: Collection[str], into: tuple[JudgeCaller, FoundAnswers, bool]
) -> None:
    caller, found, by_rubric = into
    answered = await answer_of(trial, caller.connections)
    if not isinstance(answered, AnsweredTrial):
        return
    of_output = {place for place in places if place[:1] + place[2][:2] == _output_of(trial, answered)}
    for entry in trial.case.assertions if of_output else ():
        if entry.name not in assertions:
            continue
        rubric = await caller.rubric(entry, answered.context, trial.suite)
        if rubric is None:
            continue
        asked = as_labelled(asked_judge("", "", rubric, answered.context.criteria), entry.shown_type)
        stored = StoredAnswer(trial, answered.answer, answered.context, entry, rubric)
        for place in of_output:
            if place[1] == entry.name and (not by_rubric or place[2][2] == asked.rubric_sha256):
                found.found.setdefault(place, stored)


def _output_of(trial: Trial, answered: AnsweredTrial) -> tuple[str, str, str]:
    return trial.suite.name, trial.case.id, answer_sha256(answered.answer.output or "")
