"""`agentv judge compare`: compares judges on the same labelled answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import comb
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from agentv.app.planning.preparation import Prepared, workers_of
from agentv.app.results.stored import StoredRun, open_run
from agentv.app.stored_answers import connected, in_parallel, prepare_again, stored_answers
from agentv.app.wiring import Answers, redactor_for
from agentv.errors import UsageError
from agentv.extensions.labels.asking import (
    NOT_ASKED,
    AnswerKey,
    FoundAnswers,
    JudgeCaller,
    MeasuredVerdict,
    NamedJudge,
    StoredAnswer,
    answer_key,
    check_prompts,
    known_sum,
    named_judges,
    stored_answers_of,
)
from agentv.extensions.labels.labelled import (
    AccuracyDifference,
    LabelledAnswers,
    PersonLabel,
    accuracy_difference,
    accuracy_of,
    labelled_answers,
    share_right,
)
from agentv.extensions.labels.posterior import ConfusionMatrix, JudgeAccuracy
from agentv.model.run.matrix import Verdict
from agentv.model.suite.suite import TargetSpec

NOT_WORSE = frozenset({"better", "equivalent", "non-inferior"})

MOST_ERRORS = 0.1
"""Share of answers without a verdict above which a judge is not compared: those may be the hard ones."""


class ComparedJudge(Struct, frozen=True):
    """Results of a judge on the answers on which all compared judges gave a verdict.

    Attributes:
        name: the argument of the command.
        model: provider and model.
        errors: number of answers without a verdict.
        error: why the first of them has none.
        matrix, accuracy: None if the judge gave too few verdicts.
        cost_usd: mean cost of a verdict; None if unknown.
        latency_ms: median latency of a verdict; None if unknown.
        difference: its accuracy minus that of the reference; None for the reference, and with too few answers.
        verdict: what the difference shows at the margin; None for the reference.
    """

    name: str
    model: str
    votes: int
    errors: int
    error: str | None
    matrix: ConfusionMatrix | None = None
    accuracy: JudgeAccuracy | None = None
    cost_usd: float | None = None
    latency_ms: float | None = None
    difference: AccuracyDifference | None = None
    verdict: Verdict | None = None


class AssertionComparison(Struct, frozen=True):
    """Judges compared on the labelled answers of one assertion.

    Attributes:
        model: model of the run's judge.
        answers: number of labelled answers on which all judges gave a verdict.
        weighted: whether they are a random sample of the run, weighted by their probability.
        notes: labels and answers that do not count, and why.
        reference: index of the most accurate judge; None if no judge gave enough verdicts.
    """

    assertion: str
    model: str
    answers: int
    weighted: bool
    notes: tuple[str, ...]
    judges: tuple[ComparedJudge, ...]
    reference: int | None

    @property
    def cheapest(self) -> ComparedJudge | None:
        """The cheapest among the most accurate judge and those not worse than it; None if no price is known."""
        if self.reference is None:
            return None
        best = self.judges[self.reference]
        priced = [one for one in self.judges if one.cost_usd is not None and (one is best or one.verdict in NOT_WORSE)]
        return min(priced, key=lambda one: one.cost_usd or 0.0, default=None)

    @property
    def undecided(self) -> tuple[ComparedJudge, ...]:
        """Judges that may be cheaper than the cheapest, but have an inconclusive result."""
        cheapest = self.cheapest
        limit = None if cheapest is None else cheapest.cost_usd
        return tuple(
            one
            for one in self.judges
            if one.verdict == "inconclusive" and (limit is None or one.cost_usd is None or one.cost_usd < limit)
        )


class JudgeComparison(Struct, frozen=True):
    """Judges compared on the labelled answers of a run.

    Attributes:
        margin: largest loss of accuracy with which a judge counts as not worse, 0..1.
        new_calls: number of calls made; other answers were stored.
        spent_usd: cost of these calls; None if unknown.
    """

    run: str
    margin: float
    new_calls: int
    spent_usd: float | None
    assertions: tuple[AssertionComparison, ...]

    @property
    def is_complete(self) -> bool:
        """Whether every judge gave enough verdicts."""
        return all(judge.accuracy is not None for one in self.assertions for judge in one.judges)


Votes = Mapping[AnswerKey, Sequence[MeasuredVerdict]]
"""The votes of one judge on each answer."""


class GradedByJudge(Struct, frozen=True):
    """A judge's votes on each answer."""

    name: str
    model: str
    votes: tuple[Sequence[MeasuredVerdict], ...]

    @property
    def failures(self) -> list[MeasuredVerdict]:
        """The first failed vote of each answer on which the judge was asked and gave no verdict."""
        firsts = (next((one for one in votes if one.passed is None), NOT_ASKED) for votes in self.votes)
        return [one for one in firsts if one is not NOT_ASKED]

    @property
    def is_usable(self) -> bool:
        """Whether the judge gave enough verdicts."""
        failed = sum(any(one.passed is None for one in votes) for votes in self.votes)
        return failed <= MOST_ERRORS * len(self.votes)


def _compare_on_assertion(
    labelled: LabelledAnswers,
    asked: Iterable[tuple[LoadedJudge, Votes]],
    stored: FoundAnswers,
    margin: float,
    redact: Callable[[str], str],
) -> AssertionComparison:
    """Compare judges on the labelled answers on which all of them gave a verdict.

    A judge with too few verdicts is not measured, and excludes no answers from the comparison of the others.
    """
    pairs = [
        (answer_key(answer), label)
        for answer, label in zip(labelled.answers, labelled.labels, strict=True)
        if answer_key(answer) in stored.found
    ]
    graded = [
        GradedByJudge(
            judge.named.written, next(iter(judge.specs.values())).model, tuple(votes[key] for key, _ in pairs)
        )
        for judge, votes in asked
    ]
    usable = [one for one in graded if one.is_usable]
    places = [
        at for at in range(len(pairs)) if all(vote.passed is not None for one in usable for vote in one.votes[at])
    ]
    labels = [pairs[at][1] for at in places]
    shown: list[tuple[ComparedJudge, list[bool]]] = []
    for one in graded:
        failures = one.failures
        failure = failures[0].failure if failures else None
        error = None if failure is None else redact(f"{failure.message} [{failure.code}]")
        is_compared = bool(places) and one.is_usable
        votes = [one.votes[at] for at in places] if is_compared else one.votes
        row = ComparedJudge(one.name, one.model, max(map(len, votes), default=1), len(failures), error)
        verdicts: list[bool] = []
        if is_compared:
            # the majority of the votes; a tie fails
            verdicts = [2 * sum(vote.passed is True for vote in of_answer) > len(of_answer) for of_answer in votes]
            matrix = ConfusionMatrix.of((said, label.passed) for said, label in zip(verdicts, labels, strict=True))
            accuracy = accuracy_of(labels, verdicts, labelled.counts)
            cost_usd, latency_ms = _cost_and_latency(votes)
            row = replace(row, matrix=matrix, accuracy=accuracy, cost_usd=cost_usd, latency_ms=latency_ms)
        shown.append((row, verdicts))
    answers = len(places) if usable else 0
    rows = _against_best(labels, shown, margin) if answers else (tuple(row for row, _ in shown), None)
    weighted, notes = labelled.counts is not None, (*labelled.notes, *stored.notes)
    return AssertionComparison(labelled.assertion, labelled.model, answers, weighted, notes, *rows)


def _cost_and_latency(votes: Iterable[Sequence[MeasuredVerdict]]) -> tuple[float | None, float | None]:
    """Return the mean cost of all votes on an answer and the median latency of a verdict, each None if unknown."""
    sums, times = [], []
    for of_answer in votes:
        made = [vote for vote in of_answer if vote.duration_ms is not None]
        if made:  # votes run concurrently, so the slowest one decides
            times.append(max(vote.duration_ms or 0.0 for vote in made))
        if len(made) == len(of_answer):  # skip votes that share the calls of another answer with the same text
            sums.append(known_sum(vote.cost_usd for vote in made))
    total = known_sum(sums)
    return None if total is None or not sums else total / len(sums), median(times) if times else None


def _against_best(
    labels: Sequence[PersonLabel], shown: Sequence[tuple[ComparedJudge, list[bool]]], margin: float
) -> tuple[tuple[ComparedJudge, ...], int]:
    """Add each judge's difference to the most accurate one; the cheapest wins ties.

    The most accurate judge is chosen by the same labels, so p-values are corrected for comparisons of all pairs.
    """
    usable = [place for place, (row, _) in enumerate(shown) if row.accuracy is not None]
    reference = min(
        usable,
        key=lambda place: (
            -round(share_right(labels, shown[place][1]), 12),
            float("inf") if (cost := shown[place][0].cost_usd) is None else cost,
            place,
        ),
    )
    best = shown[reference][1]
    rows = []
    for place, (row, verdicts) in enumerate(shown):
        if row.accuracy is None or place == reference:
            rows.append(row)
            continue
        found = accuracy_difference(labels, verdicts, best, comparisons=comb(len(usable), 2), margin=margin)
        rows.append(replace(row, difference=found, verdict="inconclusive" if found is None else found.verdict))
    return tuple(rows), reference


MARGIN = 0.05

Report = Callable[[int, int], None]
"""Called with the number of finished verdicts, and the total."""


class CompareRequest(Struct, frozen=True):
    """Options of `agentv judge compare`.

    Attributes:
        judges: the judge arguments.
        margin: largest loss of accuracy with which a judge counts as not worse, 0..1.
        votes: votes of judges without an option `votes`; None: as in the eval file.
        budget_usd: budget for calls; None: that of the run and its files.
    """

    judges: tuple[str, ...]
    run: str = "last"
    assertion: str | None = None
    margin: float = MARGIN
    votes: int | None = None
    budget_usd: float | None = None


class LoadedJudge(Struct, frozen=True):
    """A judge, and its target spec in each suite."""

    named: NamedJudge
    specs: Mapping[str, TargetSpec]


def compare_judges(request: CompareRequest, report: Report = lambda *_: None) -> JudgeComparison:
    """Compare how well judges agree with people on the same answers.

    Raises:
        UsageError: the run or a judge does not exist, or there are no labels.
        BudgetSpentError: the budget is spent.
        LoadError: an eval file of the run is invalid, or a judge cannot be used.
        StoreError: the run, or a file of labels, cannot be read.
    """
    named = named_judges(request.judges, request.votes)
    run = open_run(request.run, action="compare judges")
    labelled = labelled_answers(run, request.run, request.assertion)
    prepared, judges = loaded_judges(run, named, request.budget_usd)
    with stored_answers(run, prepared, judge=True) as answers:
        return asyncio.run(_compare(run, request, (prepared, judges, labelled), answers, report))


def loaded_judges(
    run: StoredRun, named: Sequence[NamedJudge], budget_usd: float | None
) -> tuple[Prepared, list[LoadedJudge]]:
    """Prepare the plan of a run again, and resolve judges in each of its suites.

    Raises:
        LoadError: a judge does not exist or cannot be used.
    """
    by_name: dict[str, Prepared] = {}
    found: list[LoadedJudge] = []
    for judge in named:
        if judge.name not in by_name:
            by_name[judge.name] = prepare_again(run, asks_judge=True, budget_usd=budget_usd, judge=judge.name)
        suites = by_name[judge.name].suites
        specs = {suite.name: suite.forced_judge for suite in suites if suite.forced_judge is not None}
        found.append(LoadedJudge(judge, specs))
    return next(iter(by_name.values())), found


async def _compare(
    run: StoredRun,
    request: CompareRequest,
    given: tuple[Prepared, list[LoadedJudge], list[LabelledAnswers]],
    answers: Answers,
    report: Report,
) -> JudgeComparison:
    prepared, judges, labelled = given
    async with connected(prepared, answers) as connections:
        caller = JudgeCaller(connections)
        wanted = [answer for one in labelled for answer in one.answers]
        stored = await stored_answers_of(wanted, prepared, caller)
        if not stored.found:
            message = f"no labelled answer of the run {run.run_id} can be graded again: {'; '.join(stored.notes)}"
            raise UsageError(message, "restore the eval file as it was, or run and label it again")
        rubrics = [one.rubric for one in stored.found.values()]
        for judge in judges:
            check_prompts(judge.named, rubrics)
        votes = await _get_votes(judges, stored, caller, workers_of(prepared), report)
    made = [verdict for of_judge in votes for of_answer in of_judge.values() for verdict in of_answer]
    redact = redactor_for(prepared.suites).redact
    asked = list(zip(judges, votes, strict=True))
    found = tuple(_compare_on_assertion(one, asked, stored, request.margin, redact) for one in labelled)
    spent_usd = known_sum(one.cost_usd for one in made if one.new_calls)
    return JudgeComparison(run.run_id, request.margin, sum(one.new_calls for one in made), spent_usd, found)


async def _get_votes(
    judges: Sequence[LoadedJudge], stored: FoundAnswers, caller: JudgeCaller, workers: int, report: Report
) -> list[Votes]:
    """Get the votes of each judge. All judges grade one answer before the next one is started.

    A judge that fails on too many answers to be compared is not asked about the others.
    """
    asked = [
        (number, key, answer, vote)
        for key, answer in stored.found.items()
        for number, judge in enumerate(judges)
        for vote in range(1, (judge.named.votes or answer.rubric.votes) + 1)
    ]
    done = 0
    failed: list[set[AnswerKey]] = [set() for _ in judges]

    async def one(number: int, key: AnswerKey, answer: StoredAnswer, vote: int) -> MeasuredVerdict:
        nonlocal done
        judge = judges[number]
        if len(failed[number]) > MOST_ERRORS * len(stored.found):
            verdict = NOT_ASKED
        else:
            verdict = await caller.verdict(answer, judge.specs[answer.trial.suite.name], judge.named.rubric, vote)
        if verdict.passed is None:
            failed[number].add(key)
        done += 1
        report(done, len(asked))
        return verdict

    report(0, len(asked))
    verdicts = await in_parallel([partial(one, *call) for call in asked], workers)
    votes: list[dict[AnswerKey, list[MeasuredVerdict]]] = [{} for _ in judges]
    for (number, key, _, _), verdict in zip(asked, verdicts, strict=True):
        votes[number].setdefault(key, []).append(verdict)
    return list(votes)
