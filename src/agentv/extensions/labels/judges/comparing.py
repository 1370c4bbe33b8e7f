"""`agentv judge compare`: several judges on the same labelled answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from agentv.app.planning.preparation import Prepared, workers_of
from agentv.app.results.stored import StoredRun, open_run
from agentv.app.stored_answers import prepared_again, stored_answers
from agentv.app.wiring import Answers, redactor_for
from agentv.errors import UsageError
from agentv.extensions.labels.judges.asking import (
    NOT_ASKED,
    JudgeCaller,
    MeasuredVerdict,
    StoredAnswer,
    check_prompts,
    connected,
    in_parallel,
)
from agentv.extensions.labels.judges.labelled import LabelledAnswers, labelled_answers
from agentv.extensions.labels.judges.measuring import GradedByJudge, compared
from agentv.extensions.labels.judges.notation import NamedJudge, named_judges
from agentv.extensions.labels.judges.stored_answers import FoundAnswers, Place, place_of, stored_answers_of
from agentv.extensions.labels.stats.compare_result import MOST_ERRORS, AssertionComparison, JudgeComparison
from agentv.model.suite.suite import TargetSpec

MARGIN = 0.05

Report = Callable[[int, int], None]
"""Called with the number of verdicts that are there, and of all."""

Votes = Mapping[Place, Sequence[MeasuredVerdict]]
"""The votes of one judge on each answer."""


@dataclass(frozen=True, slots=True)
class CompareRequest:
    """Options of `agentv judge compare`.

    Attributes:
        judges: as written.
        margin: how much less accurate a judge may be and count as not worse, 0..1.
        votes: of judges that do not say how often they vote; None: as the eval file says.
        budget_usd: what judges may cost; None: as the run and its files say.
    """

    judges: tuple[str, ...]
    run: str = "last"
    assertion: str | None = None
    margin: float = MARGIN
    votes: int | None = None
    budget_usd: float | None = None


@dataclass(frozen=True, slots=True)
class LoadedJudge:
    """A judge with its specs, by the names of suites."""

    named: NamedJudge
    specs: Mapping[str, TargetSpec]

    @property
    def model(self) -> str:
        """Provider and model."""
        return next(iter(self.specs.values())).model


def compare_judges(request: CompareRequest, report: Report = lambda *_: None) -> JudgeComparison:
    """How well several judges agree with people, on the same answers.

    Raises:
        UsageError: there is no such run or judge, one is given twice, or there are no labels.
        BudgetSpentError: the budget is spent.
        LoadError: an eval file of the run is wrong, or a judge cannot be used.
        StoreError: the run, or a file of labels, cannot be read.
    """
    named = named_judges(request.judges, request.votes)
    run = open_run(request.run, action="compare judges")
    labelled = labelled_answers(run, request.run, request.assertion)
    prepared, judges = loaded_judges(run, named, request.budget_usd)
    with stored_answers(run, prepared, judge=True) as answers:
        return asyncio.run(_compared(run, request, (prepared, judges, labelled), answers, report))


def loaded_judges(
    run: StoredRun, named: Sequence[NamedJudge], budget_usd: float | None
) -> tuple[Prepared, list[LoadedJudge]]:
    """The plan of a run, and judges as its suites know them.

    Raises:
        UsageError: two names mean one judge.
        LoadError: there is no such judge, or it cannot be used.
    """
    by_name: dict[str, Prepared] = {}
    found: list[LoadedJudge] = []
    seen: dict[tuple[object, ...], str] = {}
    for judge in named:
        if judge.name not in by_name:
            by_name[judge.name] = prepared_again(run, asks_judge=True, budget_usd=budget_usd, judge=judge.name)
        suites = by_name[judge.name].suites
        specs = {suite.name: suite.forced_judge for suite in suites if suite.forced_judge is not None}
        spec = next(iter(specs.values()))
        facts = (spec.provider, spec.fingerprint or id(spec), judge.prompt, judge.votes, judge.temperature)
        if facts in seen:
            raise UsageError(f"'{seen[facts]}' and '{judge.written}' are the same judge", "each is compared once")
        seen[facts] = judge.written
        found.append(LoadedJudge(judge, specs))
    return next(iter(by_name.values())), found


async def _compared(
    run: StoredRun,
    request: CompareRequest,
    given: tuple[Prepared, list[LoadedJudge], list[LabelledAnswers]],
    answers: Answers,
    report: Report,
) -> JudgeComparison:
    prepared, judges, labelled = given
    async with connected(prepared, answers) as caller:
        wanted = [answer for one in labelled for answer in one.answers]
        stored = await stored_answers_of(wanted, prepared, caller)
        _check(run, judges, stored)
        votes = await _asked(judges, stored, caller, workers_of(prepared), report)
    made = [verdict for of_judge in votes for of_answer in of_judge.values() for verdict in of_answer]
    costs = [one.cost_usd for one in made if one.new_calls]
    redact = redactor_for(prepared.suites).redact
    return JudgeComparison(
        run.run_id,
        request.margin,
        sum(one.new_calls for one in made),
        sum(one for one in costs if one is not None) if None not in costs else None,
        tuple(_of_assertion(one, (judges, votes), stored, request.margin, redact) for one in labelled),
    )


def _check(run: StoredRun, judges: Sequence[LoadedJudge], stored: FoundAnswers) -> None:
    """Refuse what cannot be compared, before any call is made."""
    if not stored.found:
        raise UsageError(
            f"no labelled answer of the run {run.run_id} can be graded again: {'; '.join(stored.notes)}",
            "restore the eval file as it was, or run and label it again",
        )
    rubrics = [one.rubric for one in stored.found.values()]
    for judge in judges:
        check_prompts(judge.named, rubrics)
    if len(judges) == 1 and all(judges[0].named.votes_for(one) == 1 for one in rubrics):
        raise UsageError("one judge with one vote: there is nothing to compare", "name another judge, or use --votes 3")


async def _asked(
    judges: Sequence[LoadedJudge], stored: FoundAnswers, caller: JudgeCaller, workers: int, report: Report
) -> list[Votes]:
    """The votes of each judge. All judges grade one answer before the next one.

    A judge that fails on too many answers to be compared is not asked about the others.
    """
    asked = [
        (number, place, answer, vote)
        for place, answer in stored.found.items()
        for number, judge in enumerate(judges)
        for vote in range(1, judge.named.votes_for(answer.rubric) + 1)
    ]
    done = 0
    failed: list[set[Place]] = [set() for _ in judges]

    async def one(number: int, place: Place, answer: StoredAnswer, vote: int) -> MeasuredVerdict:
        nonlocal done
        judge = judges[number]
        if len(failed[number]) > MOST_ERRORS * len(stored.found):
            verdict = NOT_ASKED
        else:
            verdict = await caller.verdict(answer, judge.specs[answer.trial.suite.name], judge.named.rubric, vote)
        if verdict.passed is None:
            failed[number].add(place)
        done += 1
        report(done, len(asked))
        return verdict

    report(0, len(asked))
    verdicts = await in_parallel([partial(one, *call) for call in asked], workers)
    votes: list[dict[Place, list[MeasuredVerdict]]] = [{} for _ in judges]
    for (number, place, _, _), verdict in zip(asked, verdicts, strict=True):
        votes[number].setdefault(place, []).append(verdict)
    return list(votes)


def _of_assertion(
    labelled: LabelledAnswers,
    asked: tuple[Sequence[LoadedJudge], Sequence[Votes]],
    stored: FoundAnswers,
    margin: float,
    redact: Callable[[str], str],
) -> AssertionComparison:
    pairs = [
        (place_of(answer), label)
        for answer, label in zip(labelled.answers, labelled.labels, strict=True)
        if place_of(answer) in stored.found
    ]
    graded = [
        GradedByJudge(
            judge.named.written,
            judge.model,
            len(pairs) == len(labelled.answers) and _is_of_run(judge, labelled, stored, pairs[0][0]),
            tuple(tuple(votes[place]) for place, _ in pairs),
        )
        for judge, votes in zip(*asked, strict=True)
    ]
    found = compared([label for _, label in pairs], labelled.counts, graded, margin, redact)
    notes = (*labelled.notes, *stored.notes)
    return AssertionComparison(
        labelled.assertion, labelled.model, found.answers, labelled.counts is not None, notes, *found.rows
    )


def _is_of_run(judge: LoadedJudge, labelled: LabelledAnswers, stored: FoundAnswers, place: Place) -> bool:
    """Whether the answers were drawn by this judge's verdicts: it has the same model and prompt as then."""
    from agentv.judge.asked import asked_judge

    if not labelled.own_draw or judge.model != labelled.model:
        return False
    answer = stored.found[place]
    rubric = answer.rubric if judge.named.prompt is None and judge.named.temperature is None else None
    if rubric is None or judge.named.votes_for(rubric) != rubric.votes:
        return False
    return asked_judge("", "", rubric, answer.context.criteria).prompt_sha256 == labelled.prompt_sha256
