"""Trials whose verdicts depend on a judge: the verdict is made again with a label in the place of the judge's grade."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from agentv.extensions.labels.answers import asks_judge, graded_answer
from agentv.extensions.labels.checked_answers import CheckedAnswer
from agentv.model.run.clusters import ClusterId, TrialCluster, cluster_of
from agentv.model.run.grade import TOLERANCE, Grade
from agentv.model.run.trial import Score, TrialResult
from agentv.model.run.verdict import combined, counts

SEVERAL = "the verdicts of trials depend on several judged assertions at once"
NESTED = "a judge grades within an assert-set or picks the best answer, which cannot be labelled"
TURNS = "the verdicts of conversations cannot be made again from their rows"
UNCLEAR = "the verdicts of some trials cannot be made again from their rows"

Part = tuple[str, str, str | None, str | None]
"""A suite, a target, a prompt and a variant."""


@dataclass(frozen=True, slots=True)
class RatedTrial:
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
    part = (trial.suite.name, trial.target.name, trial.case.prompt_id, trial.variant_name)
    rated = RatedTrial(
        part, (trial.suite.path, trial.case.id), cluster_of(TrialCluster.of(trial)), result.status == "passed"
    )
    graded = {place: _checked(result, score, run) for place, score in enumerate(result.scores) if _by_judge(score)}
    rated = replace(rated, judged=tuple(graded.values()))
    return _with_dependence(rated, result, graded)


def _with_dependence(rated: RatedTrial, result: TrialResult, graded: Mapping[int, CheckedAnswer]) -> RatedTrial:
    """The trial with the grade that decides its verdict, or why that is not known."""
    counting = [place for place, score in enumerate(result.scores) if counts(score)]
    labelled = [place for place in counting if place in graded]
    problem: str | None = None
    if any(_asks(result.scores[place]) for place in counting if place not in graded):
        problem = NESTED
    elif not labelled:
        return rated
    elif result.turns:
        problem = TURNS
    elif (outcomes := _outcomes(result, labelled)) is None:
        problem = UNCLEAR
    elif outcomes[0] == outcomes[1]:
        return rated
    elif len(labelled) > 1:
        problem = SEVERAL
    if problem is not None:
        return replace(rated, problem=problem)
    return replace(rated, decided_by=graded[labelled[0]], alone=len(counting) == 1)


def _by_judge(score: Score) -> bool:
    return score.grade.asked_judge is not None and score.grade.error is None


def _asks(score: Score) -> bool:
    """Whether a judge has a part in the grade, or may have: a set within a set does not say what it holds."""
    inner = list(_inner_types(score.grade.details))
    return (
        "assert-set" in inner
        or score.grade.details.get("aggregator") == "llm"
        or any(map(asks_judge, (score.entry.type, *inner)))
    )


def _inner_types(details: Mapping[str, object]) -> Iterator[str]:
    scores = details.get("scores")
    for one in scores if isinstance(scores, list | tuple) else ():
        if isinstance(one, Mapping):
            yield str(one.get("type", ""))


def _checked(result: TrialResult, score: Score, run: str) -> CheckedAnswer:
    answer = graded_answer(result, score)
    judge = (answer.assertion, answer.asked.model, answer.asked.prompt_sha256)
    name, rubric = answer.asked.judge, answer.asked.rubric
    return CheckedAnswer(answer.key, judge, name, answer.passed, answer.cluster, 1, run, answer.suite, rubric=rubric)


def _outcomes(result: TrialResult, labelled: Sequence[int]) -> tuple[bool, bool] | None:
    """Whether the trial passes if people fail what these judged, and if they pass it; None: it cannot be told.

    A label that says what the judge says leaves the judge's grade, and any other one is a score of 0 or 1.
    """
    scores, threshold = result.scores, result.trial.threshold
    found = combined(scores, threshold)
    same = result.score is not None and abs(found.score - result.score) <= TOLERANCE
    if not same or found.passed != (result.status == "passed"):
        return None
    failing, passing = (_labelled(scores, labelled, verdict) for verdict in (False, True))
    return combined(failing, threshold).passed, combined(passing, threshold).passed


def _labelled(scores: Sequence[Score], labelled: Sequence[int], verdict: bool) -> list[Score]:
    """The scores with the label in the place of grades that say something else."""
    found = list(scores)
    for place in labelled:
        grade = found[place].grade
        if grade.passed is not verdict:
            found[place] = _with_grade(found[place], structs.replace(grade, score=float(verdict), passed=verdict))
    return found


def _with_grade(score: Score, grade: Grade) -> Score:
    return structs.replace(score, grade=grade)
