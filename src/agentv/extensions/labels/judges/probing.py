"""`agentv judge check --probe`: whether the verdicts of a judge change though the content of the answers does not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from msgspec import structs

from agentv.app.planning.preparation import Prepared, workers_of
from agentv.app.results.stored import StoredRun, open_run
from agentv.app.stored_answers import prepared_again, stored_answers, with_output
from agentv.app.wiring import Answers, redactor_for
from agentv.authoring.source.nearest import did_you_mean
from agentv.engine.trial import AnsweredTrial, answered
from agentv.errors import UsageError
from agentv.extensions.labels.answers import draw, graded_answers
from agentv.extensions.labels.graded_answers import GradedAnswer
from agentv.extensions.labels.judges.asking import (
    JudgeCaller,
    MeasuredVerdict,
    StoredAnswer,
    check_prompts,
    connected,
    in_parallel,
)
from agentv.extensions.labels.judges.notation import NamedJudge, named_judge
from agentv.extensions.labels.judges.probes import PROBES, Probe
from agentv.extensions.labels.judges.stored_answers import FoundAnswers, place_of, stored_answers_of
from agentv.extensions.labels.stats.compare_result import MOST_ERRORS
from agentv.extensions.labels.stats.probe_result import FlippedVerdict, Flips, JudgeProbing, ProbedJudge, ProbeOutcome
from agentv.model.run.rubric import Rubric
from agentv.model.suite.suite import TargetSpec

SAMPLE = 30
ALL = "all"

Report = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """Options of `agentv judge check --probe`.

    Attributes:
        probes: names; `all` for all.
        judge: as written; None: the judge in effect for each assertion.
        sample: answers of each assertion.
        budget_usd: what judges may cost; None: as the run and its files say.
    """

    run: str
    probes: tuple[str, ...]
    assertion: str | None = None
    judge: str | None = None
    sample: int = SAMPLE
    seed: int = 0
    budget_usd: float | None = None


@dataclass(frozen=True, slots=True)
class _Asked:
    """A stored answer with the judge's first verdict. `spec`: of the judge."""

    graded: GradedAnswer
    stored: StoredAnswer
    spec: TargetSpec
    first: MeasuredVerdict


@dataclass(slots=True)
class _Probing:
    """One run of the command.

    Attributes:
        total: verdicts to ask for, at most.
        made: verdicts so far.
    """

    caller: JudgeCaller
    named: NamedJudge | None
    workers: int
    report: Report
    total: int
    made: list[MeasuredVerdict] = field(default_factory=list)

    async def ask(
        self, stored: StoredAnswer, spec: TargetSpec, change: Callable[[Rubric], Rubric], vote: int
    ) -> MeasuredVerdict:
        """A verdict, counted."""
        found = await self.caller.verdict(stored, spec, change, vote)
        self.made.append(found)
        self.report(len(self.made), self.total)
        return found

    def as_named(self, rubric: Rubric) -> Rubric:
        """The rubric as the judge is asked it, for one vote."""
        return structs.replace(rubric, votes=1) if self.named is None else self.named.rubric(rubric)


def chosen_probes(names: Sequence[str]) -> tuple[Probe, ...]:
    """The probes with these names, in their own order.

    Raises:
        UsageError: there is no such probe.
    """
    for name in names:
        if name not in PROBES and name != ALL:
            known = f"the probes are {', '.join(PROBES)}, or {ALL}"
            raise UsageError(f"there is no probe '{name}'", did_you_mean(name, [*PROBES, ALL]) or known)
    return tuple(one for one in PROBES.values() if ALL in names or one.name in names)


def probe_judges(request: ProbeRequest, report: Report = lambda *_: None) -> JudgeProbing:
    """How often the verdicts on a run's answers change by each probe. Nothing is written to the run.

    Raises:
        UsageError: there is no such run, judge or probe, or no judge graded its answers.
        BudgetSpentError: the budget is spent.
        LoadError: an eval file of the run is wrong.
        StoreError: the files of the run cannot be read.
    """
    probes = chosen_probes(request.probes)
    named = None if request.judge is None else named_judge(request.judge)
    if named is not None and named.votes is not None:
        raise UsageError(f"'{named.written}' has votes, but a probe asks for one vote", "omit ',votes='")
    run = open_run(request.run, action="check judges")
    by_assertion: dict[str, list[GradedAnswer]] = {}
    for one in graded_answers(run, request.assertion):
        by_assertion.setdefault(one.assertion, []).append(one)
    drawn = {
        name: list({place_of(one.answer): one.answer for one in draw(found, request.sample, request.seed)}.values())
        for name, found in by_assertion.items()
    }
    prepared = prepared_again(
        run, asks_judge=True, budget_usd=request.budget_usd, judge=None if named is None else named.name
    )
    with stored_answers(run, prepared, judge=True) as answers:
        return asyncio.run(_probed(run, (prepared, answers, named), drawn, probes, report))


async def _probed(
    run: StoredRun,
    given: tuple[Prepared, Answers, NamedJudge | None],
    drawn: Mapping[str, Sequence[GradedAnswer]],
    probes: Sequence[Probe],
    report: Report,
) -> JudgeProbing:
    prepared, answers, named = given
    redact = redactor_for(prepared.suites).redact
    async with connected(prepared, answers) as caller:
        total = sum(map(len, drawn.values())) * (1 + len(probes))
        probing = _Probing(caller, named, workers_of(prepared), report, total)
        judges = []
        for assertion, wanted in drawn.items():
            stored = await stored_answers_of(wanted, prepared, caller, by_rubric=False)
            if named is not None:
                check_prompts(named, (one.rubric for one in stored.found.values()))
            if stored.found:
                judges.append(await _judge(probing, assertion, wanted, stored, (probes, redact)))
    if not judges:
        raise UsageError(f"no answer of the run {run.run_id} can be graded again: {'; '.join(stored.notes)}")
    costs = [one.cost_usd for one in probing.made if one.new_calls]
    return JudgeProbing(
        run.run_id,
        sum(one.new_calls for one in probing.made),
        sum(one for one in costs if one is not None) if None not in costs else None,
        tuple(judges),
        all(_is_complete(one) for one in judges),
    )


def _is_complete(judge: ProbedJudge) -> bool:
    """Whether few enough verdicts are missing."""
    total = judge.answers + judge.errors
    return judge.errors <= MOST_ERRORS * total and all(one.errors <= MOST_ERRORS * total for one in judge.probes)


async def _judge(
    probing: _Probing,
    assertion: str,
    wanted: Iterable[GradedAnswer],
    stored: FoundAnswers,
    chosen: tuple[Sequence[Probe], Callable[[str], str]],
) -> ProbedJudge:
    probes, redact = chosen
    answers = [(one, stored.found[place_of(one)]) for one in wanted if place_of(one) in stored.found]
    specs = [_spec_of(one) for _, one in answers]
    firsts = await in_parallel(
        [partial(probing.ask, one, spec, probing.as_named, 1) for (_, one), spec in zip(answers, specs, strict=True)],
        probing.workers,
    )
    failures = [one.failure for one in firsts if one.failure is not None]
    asked = [
        _Asked(graded, one, spec, first)
        for (graded, one), spec, first in zip(answers, specs, firsts, strict=True)
        if first.passed is not None
    ]
    outcomes: list[ProbeOutcome] = []
    if len(failures) <= MOST_ERRORS * len(answers):  # else it would fail on the changed answers too
        outcomes = [await _outcome(probing, probe, asked, redact) for probe in probes]
    return ProbedJudge(
        assertion,
        specs[0].name if probing.named is None else probing.named.written,
        specs[0].model,
        len(asked),
        sum(one.first.passed is True for one in asked),
        tuple(outcomes),
        len(failures),
        redact(f"{failures[0].message} [{failures[0].code}]") if failures else None,
        stored.notes,
    )


def _spec_of(stored: StoredAnswer) -> TargetSpec:
    """The judge in effect for an assertion.

    Raises:
        UsageError: none is.
    """
    spec = stored.trial.judge_called(getattr(stored.entry.assertion, "judge", None))
    if spec is None:
        raise UsageError(f"no judge is set for '{stored.entry.name}'", "name one with --judge")
    return spec


async def _outcome(
    probing: _Probing, probe: Probe, asked: Sequence[_Asked], redact: Callable[[str], str]
) -> ProbeOutcome:
    changed = [await _changed(probing, probe, one) for one in asked]
    fitting = [(one, made) for one, made in zip(asked, changed, strict=True) if made is not None]
    change = partial(_rubric, probing, probe)
    vote = 2 if probe.answer is None and probe.rubric is None else 1
    seconds = await in_parallel(
        [partial(probing.ask, made, one.spec, change, vote) for one, made in fitting], probing.workers
    )
    pairs = [
        (one, made, second) for (one, made), second in zip(fitting, seconds, strict=True) if second.passed is not None
    ]
    failures = [one.failure for one in seconds if one.failure is not None]
    flips = [
        FlippedVerdict(
            one.graded.case,
            one.graded.suite,
            one.first.passed is True,
            redact(made.answer.output or "") if probe.answer is not None else None,
            None if second.reason is None else redact(second.reason),
        )
        for one, made, second in pairs
        if second.passed is not one.first.passed
    ]

    def of(verdict: bool) -> Flips:
        return Flips.of(
            (second.passed is not verdict, one.graded.cluster)
            for one, _, second in pairs
            if one.first.passed is verdict
        )

    return ProbeOutcome(
        probe.name,
        of(verdict=False),
        of(verdict=True),
        len(asked) - len(fitting),
        len(failures),
        redact(f"{failures[0].message} [{failures[0].code}]") if failures else None,
        tuple(sorted(flips, key=lambda one: one.passed_before)),
    )


async def _changed(probing: _Probing, probe: Probe, asked: _Asked) -> StoredAnswer | None:
    """The answer as a probe changes it; None if the probe does not fit."""
    stored = asked.stored
    if probe.rubric is not None:
        return stored if probe.rubric(stored.rubric) is not None else None
    if probe.answer is None:
        return stored
    output = probe.answer(stored.answer.output or "", asked.spec.model)
    if output is None:
        return None
    answer = with_output(stored.answer, output)
    found = await answered(stored.trial, probing.caller.connections, answer, answer.duration_ms or 0.0)
    if not isinstance(found, AnsweredTrial):
        return None
    return replace(stored, answer=answer, context=found.context)


def _rubric(probing: _Probing, probe: Probe, rubric: Rubric) -> Rubric:
    named = probing.as_named(rubric)
    return named if probe.rubric is None else probe.rubric(named) or named
