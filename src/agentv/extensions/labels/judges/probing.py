"""`agentv judge check --probe`: whether the verdicts of a judge change though the content of the answers does not.

A judge whose verdict changes judges something else than the content. Sources: L. Zheng et al., "Judging LLM-as-a-Judge
with MT-Bench and Chatbot Arena" (2023), section 3.3, for order, length and self-preference; J. Ye et al., "Justice or
prejudice? Quantifying biases in LLM-as-a-judge" (2024), for tone and authority.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from msgspec import structs

from agentv.app.planning.preparation import Prepared, workers_of
from agentv.app.results.stored import StoredRun, open_run
from agentv.app.stored_answers import in_parallel, prepared_again, stored_answers, with_output
from agentv.app.wiring import Answers, redactor_for
from agentv.authoring.source.nearest import did_you_mean
from agentv.engine.trial import AnsweredTrial, answered
from agentv.errors import UsageError
from agentv.extensions.labels.answers import GradedAnswer, draw, graded_answers, grouped
from agentv.extensions.labels.judges.asking import (
    FoundAnswers,
    JudgeCaller,
    MeasuredVerdict,
    StoredAnswer,
    check_prompts,
    connected,
    place_of,
    spent,
    stored_answers_of,
)
from agentv.extensions.labels.judges.comparing import MOST_ERRORS
from agentv.extensions.labels.judges.notation import NamedJudge, named_judge
from agentv.model.run.rubric import Rubric
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.lazy_pattern import lazy_pattern
from agentv.stats.intervals.design_effect import ClusterSum, estimated_rate


@dataclass(frozen=True, slots=True)
class Flips:
    """Changed verdicts among answers with the same verdict before.

    Attributes:
        share: of the answers; None without any.
        interval: of the share, 95%; None with too few answers.
    """

    answers: int = 0
    flipped: int = 0
    share: float | None = None
    interval: tuple[float, float] | None = None

    @classmethod
    def of(cls, outcomes: Iterable[tuple[bool, Hashable]]) -> Flips:
        """From whether the verdict of each answer changed, and the cluster of the answer."""
        clusters: dict[Hashable, list[bool]] = {}
        for flipped, cluster in outcomes:
            clusters.setdefault(cluster, []).append(flipped)
        if not clusters:
            return cls()
        answers, flips = (sum(map(count, clusters.values())) for count in (len, sum))
        rate = estimated_rate([ClusterSum(len(one), sum(one)) for one in clusters.values()])
        return cls(answers, flips, flips / answers, rate.interval)


@dataclass(frozen=True, slots=True)
class FlippedVerdict:
    """An answer whose verdict changed.

    Attributes:
        changed_output: the changed answer; None: it was the same.
        reason: of the judge, for the second verdict.
    """

    case: str
    suite: str
    before: Literal["pass", "fail"]
    changed_output: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class ProbeOutcome:
    """What one probe shows.

    Attributes:
        fail_to_pass: of answers that the judge failed before.
        pass_to_fail: of answers that it passed before.
        does_not_fit: answers that the probe does not fit.
        errors: answers without a second verdict.
        error: why, for the first of them.
        flips: those from fail to pass first.
    """

    probe: str
    fail_to_pass: Flips
    pass_to_fail: Flips
    does_not_fit: int = 0
    errors: int = 0
    error: str | None = None
    flips: tuple[FlippedVerdict, ...] = ()


@dataclass(frozen=True, slots=True)
class ProbedJudge:
    """The judge of one assertion, probed.

    Attributes:
        answers: with a first verdict.
        passed: of these by that verdict.
        errors: answers without a first verdict.
        error: why, for the first of them.
        notes: answers that were left out.
    """

    assertion: str
    judge: str
    model: str
    answers: int
    passed: int
    errors: int
    error: str | None
    notes: tuple[str, ...]
    probes: tuple[ProbeOutcome, ...]


@dataclass(frozen=True, slots=True)
class JudgeProbing:
    """The judges of a run, probed.

    Attributes:
        new_calls: calls that were made; the others were stored.
        spent_usd: what these cost; None if it is not known.
    """

    run: str
    new_calls: int
    spent_usd: float | None
    judges: tuple[ProbedJudge, ...]

    @property
    def is_complete(self) -> bool:
        """Whether every judge gave enough verdicts."""
        return all(
            errors <= MOST_ERRORS * (judge.answers + judge.errors)
            for judge in self.judges
            for errors in (judge.errors, *(one.errors for one in judge.probes))
        )


_OPENING = "Thank you for your question. Here is my answer, which I have written as clearly as I can."
_CLOSING = (
    "I hope that this answer is helpful to you. If anything in it is unclear, please let me know. You are welcome to"
    " ask as many further questions as you like, at any time. Thank you again for getting in touch."
)
_NO_DOUBT = "There is no doubt whatsoever about any of this."
_SENTENCE_END = lazy_pattern(r"(?<=[.!?])\s+(?=[A-Z\"'(\[])")
_MARKDOWN = lazy_pattern(r"^\s*(?:[-*+]|\d+\.|#{1,6}|>|\|)\s|```", re.MULTILINE)

AnswerChange = Callable[[str, str], str | None]
"""The changed text, from the text and the judge's model; None: it does not fit."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One way to ask a judge about the same content.

    Attributes:
        answer: changes the answer.
        rubric: the changed rubric; None: it does not fit. Without either function the judge is asked the same again.
    """

    name: str
    answer: AnswerChange | None = None
    rubric: Callable[[Rubric], Rubric | None] | None = None


def _around(before: str, after: str = "") -> AnswerChange:
    """Texts around the answer; around JSON or a number they would change what the answer is."""

    def change(output: str, model: str) -> str | None:
        name = model.partition(":")[2] or model
        return "\n\n".join(filter(None, (before.format(model=name), output, after))) if _is_prose(output) else None

    return change


def _markdown(output: str, _model: str) -> str | None:
    """The sentences as a list under a heading. Text that has Markdown already is left alone."""
    if not _is_prose(output) or _MARKDOWN.search(output) is not None:
        return None
    sentences = [one for line in output.splitlines() if line.strip() for one in _SENTENCE_END.split(line.strip())]
    return "\n".join(("## Answer", "", *(f"- {one}" for one in sentences)))


def _reversed_items(rubric: Rubric) -> Rubric | None:
    return structs.replace(rubric, items=rubric.items[::-1]) if len(rubric.items) > 1 else None


def _is_prose(output: str) -> bool:
    text = output.strip()
    if not text or text.startswith(("```", "<")):
        return False
    try:
        json.loads(text)
    except ValueError:
        return True
    return False


PROBES: Mapping[str, Probe] = {
    one.name: one
    for one in (
        Probe("repeat"),
        Probe("order", rubric=_reversed_items),
        Probe("longer", _around(_OPENING, _CLOSING)),
        Probe("markdown", _markdown),
        Probe(
            "confident",
            _around("I am absolutely certain of the following.", "There is no doubt whatsoever about any of this."),
        ),
        Probe("other-model", _around("This answer was written by GPT-5.")),
        Probe("own-model", _around("This answer was written by {model}.")),
    )
}

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
    by_assertion = grouped(graded_answers(run, request.assertion), lambda one: one.assertion)
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
    return JudgeProbing(run.run_id, *spent(probing.made), tuple(judges))


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
        len(failures),
        redact(f"{failures[0].message} [{failures[0].code}]") if failures else None,
        stored.notes,
        tuple(outcomes),
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
            "pass" if one.first.passed else "fail",
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
        tuple(sorted(flips, key=lambda one: one.before)),
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
