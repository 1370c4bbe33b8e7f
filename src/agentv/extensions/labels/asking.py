"""Judges as a command names them, and their verdicts on stored answers, with what each cost and how long it took."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.app.planning.preparation import Prepared
from agentv.app.stored_answers import why_left_out
from agentv.app.wiring import Connections
from agentv.authoring.source.nearest import did_you_mean
from agentv.engine.calls.recorded_call import RecordedCall
from agentv.engine.calls.retry_policy import STOPPED, UNAFFORDABLE
from agentv.engine.grading import grade_entries
from agentv.engine.trial import AnsweredTrial, answer_of
from agentv.errors import BudgetSpentError, UsageError
from agentv.extensions.labels.answers import GradedAnswer, as_labelled, grouped
from agentv.judge.question import asked_judge
from agentv.model.run.context import AssertionContext, Judge, Services
from agentv.model.run.grade import Grade
from agentv.model.run.labels import LabelKey, answer_sha256
from agentv.model.run.rubric import Rubric, Verdict
from agentv.model.run.trial import Trial
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.suite import Suite, TargetSpec
from agentv.model.values.formatting import plural
from agentv.model.values.response import Failure, TargetResponse
from agentv.ports import AnswerLookup, Target, TargetRequest
from agentv.registry.fields import Document

MOST_VOTES = 101

_OPTION = re.compile(r",\s*([a-z_]+)=([^,]*)$")


class NamedJudge(Struct, frozen=True):
    """A judge, and what it does otherwise than the eval file says.

    Attributes:
        written: as the command names it.
        name: of targets.yaml, or `provider:model`.
        prompt: replaces the judge prompt; None: as in the eval file; so for the others.
    """

    written: str
    name: str
    prompt: Document | None = None
    votes: int | None = None
    temperature: float | None = None

    def rubric(self, rubric: Rubric) -> Rubric:
        """The rubric as this judge is asked, for one vote."""
        changed: dict[str, Any] = {"votes": 1}
        if self.prompt is not None:
            changed |= {"prompt": self.prompt.text, "prompt_path": self.prompt.path, "writer": None}
        if self.temperature is not None:
            changed["temperature"] = self.temperature
        return replace(rubric, **changed)


def named_judge(written: str) -> NamedJudge:
    """The judge that a text names.

    Raises:
        UsageError: an option is unknown, twice there, or wrong, or a prompt file cannot be read.
    """
    rest, options = written.strip(), dict[str, Any]()
    while (found := _OPTION.search(rest)) is not None:
        name, value = found[1], found[2].strip()
        if name not in _OPTIONS:
            hint = did_you_mean(name, _OPTIONS) or f"options of a judge: {', '.join(_OPTIONS)}"
            raise UsageError(f"'{name}' in '{written}' is not an option of a judge", hint)
        if name in options:
            raise UsageError(f"'{written}' has '{name}' twice")
        options[name] = _OPTIONS[name](value, written)
        rest = rest[: found.start()]
    if not rest.strip():
        raise UsageError(f"'{written}' names no judge", "name a judge of targets.yaml, or provider:model")
    return NamedJudge(written.strip(), rest.strip(), **options)


def named_judges(written: Sequence[str], votes: int | None) -> tuple[NamedJudge, ...]:
    """The judges of a command.

    Args:
        written: as the command names them.
        votes: of those that do not say how often they vote; None: as the eval file says.

    Raises:
        UsageError: as above.
    """
    if votes is not None:
        votes = _votes(str(votes), "--votes")
    found = [named_judge(text) for text in written]
    return tuple(replace(one, votes=one.votes or votes) for one in found)


def _prompt(value: str, written: str) -> Document:
    path = Path(value.removeprefix("file://"))
    if path.suffix in (".py", ".js", ".ts", ".mjs"):
        raise UsageError(f"the judge prompt {path} is code", "use a text file; code is named in the eval file")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"cannot read the judge prompt {path} of '{written}': {why}") from error
    return Document(text, str(path))


def _votes(value: str, written: str) -> int:
    number = int(value) if value.isascii() and value.isdigit() else 0
    if not 1 <= number <= MOST_VOTES:
        raise UsageError(f"votes in '{written}' must be a whole number from 1 to {MOST_VOTES}")
    if number % 2 == 0:
        raise UsageError(f"{number} votes in '{written}' have no majority", f"use {number - 1} or {number + 1}")
    return number


def _temperature(value: str, written: str) -> float:
    with suppress(ValueError):
        if 0 <= float(value) <= 2:
            return float(value)
    raise UsageError(f"temperature in '{written}' must be a number from 0 to 2")


_OPTIONS: dict[str, Callable[[str, str], object]] = {"prompt": _prompt, "votes": _votes, "temperature": _temperature}


class MeasuredVerdict(Struct, frozen=True):
    """What a judge says of an answer.

    Attributes:
        passed: None: it gave no verdict.
        failure: why.
        cost_usd: of its calls, also where they were made earlier; None: not known, or it shares another's calls.
        duration_ms: likewise.
        new_calls: calls that were made now.
    """

    passed: bool | None
    failure: Failure | None = None
    reason: str | None = None
    cost_usd: float | None = None
    duration_ms: float | None = None
    new_calls: int = 0


def known_sum(costs: Iterable[float | None]) -> float | None:
    """The sum of costs; None if one is not known."""
    found = list(costs)
    known = [one for one in found if one is not None]
    return sum(known, 0.0) if len(known) == len(found) else None


NOT_ASKED = MeasuredVerdict(None)
"""Of a judge that failed too often."""

_NOBODY = Failure(STOPPED, "the judge was not asked")


class _MadeCall(Struct, frozen=True):
    cost_usd: float | None
    duration_ms: float
    earlier: bool


_CALLS: ContextVar[list[_MadeCall]] = ContextVar("_CALLS")
"""The calls for one verdict."""


class MeasuredTarget:
    """The target of a judge, as one of its votes. Its answers are looked up and kept, and its calls measured.

    Args:
        wrapped: makes the calls.
        spec: of the target.
        store: of answers.
        vote: number of the vote, from 1.
    """

    def __init__(self, wrapped: Target, spec: TargetSpec, store: AnswerLookup, vote: int) -> None:
        self._wrapped = wrapped
        self._spec = spec
        self._store = store
        self._vote = vote

    async def answer(self, request: TargetRequest) -> TargetResponse | Failure:
        """Ask, unless the answer is there."""
        request = replace(request, sample=self._vote)
        call = RecordedCall(self._spec, request, self._store)
        answer = await call.found()
        if answer is None:
            answer = await call.record(self._wrapped.answer(request))
        if isinstance(answer, TargetResponse):
            free = 0.0 if getattr(self._spec.settings, "free", False) else None
            cost = answer.cost_usd if answer.cost_usd is not None else free
            _CALLS.get([]).append(_MadeCall(cost, answer.duration_ms or 0.0, answer.earlier))
        return answer

    async def close(self) -> None:
        """Let go of what the target holds."""
        await self._wrapped.close()


class AskedAs(Struct, frozen=True):
    """A judge that is asked another rubric than the one that it is given. A `Judge`."""

    judge: Judge
    changed: Callable[[Rubric], Rubric]

    async def assess(self, rubric: Rubric, context: AssertionContext) -> Verdict | Failure:
        """The verdict by the changed rubric."""
        return await self.judge.assess(self.changed(rubric), context)

    def __getattr__(self, name: str) -> Any:
        """What else a judge does."""
        return getattr(self.judge, name)


class RubricReader(Struct):
    """Notes what a judge would be asked, and asks nobody. A `Judge`."""

    rubrics: list[tuple[Rubric, AssertionContext]] = field(default_factory=list)

    async def assess(self, rubric: Rubric, context: AssertionContext) -> Failure:
        """Note the rubric."""
        self.rubrics.append((rubric, context))
        return _NOBODY

    async def choose(self, criteria: str, contexts: Sequence[AssertionContext]) -> Failure:
        """Note nothing."""
        del criteria, contexts
        return _NOBODY

    async def ask(self, prompt: str) -> Failure:
        """Note nothing."""
        del prompt
        return _NOBODY


class ServicesWithJudge(Struct, frozen=True):
    """The services of a trial with another judge. A `Services`."""

    services: Services
    asked: Judge

    def judge(self, name: str | None) -> Judge:
        """That judge, whatever an assertion names."""
        del name
        return self.asked

    def __getattr__(self, name: str) -> Any:
        """All other services."""
        return getattr(self.services, name)


class StoredAnswer(Struct, frozen=True):
    """An answer of a run, with the assertion that graded it.

    Attributes:
        rubric: what its judge is asked.
    """

    trial: Trial
    answer: TargetResponse
    context: AssertionContext
    entry: AssertionEntry
    rubric: Rubric


class JudgeCaller:
    """Asks judges about stored answers.

    Args:
        connections: of the run.
    """

    def __init__(self, connections: Connections) -> None:
        self.connections = connections
        self._judges: dict[tuple[int, int, int], Judge] = {}

    async def verdict(
        self, stored: StoredAnswer, spec: TargetSpec, changed: Callable[[Rubric], Rubric], vote: int
    ) -> MeasuredVerdict:
        """A judge's verdict on an answer.

        Args:
            stored: the answer.
            spec: of the judge.
            changed: makes the rubric that it is asked; with one vote.
            vote: number of the vote, from 1.

        Raises:
            BudgetSpentError: the budget is spent.
        """
        calls: list[_MadeCall] = []
        _CALLS.set(calls)
        judge: Any = AskedAs(self._judge(spec, stored.trial.suite, vote), changed)
        grade = await self._grade(stored.entry, stored.context, judge, stored.trial.suite)
        if grade.error is not None and grade.error.code.endswith(UNAFFORDABLE):
            limiter = self.connections.throttle.budget_limiter
            helps = limiter is not None and not limiter.uncounted
            hint = "verdicts so far are cached: the same command with a larger --budget-usd continues"
            raise BudgetSpentError(grade.error.message, hint if helps else None)
        failure = grade.error
        if grade.undecided:
            failure = Failure("unreadable-verdict", grade.reason or "the judge's reply has no verdict")
        passed = None if failure is not None else grade.passed
        cost_usd = known_sum(one.cost_usd for one in calls) if calls else None
        duration_ms = sum(one.duration_ms for one in calls) if calls else None
        new_calls = sum(not one.earlier for one in calls)
        return MeasuredVerdict(passed, failure, grade.reason, cost_usd, duration_ms, new_calls)

    async def rubric(self, entry: AssertionEntry, context: AssertionContext, suite: Suite) -> Rubric | None:
        """What the judge of an assertion is asked about an answer; None: it is asked nothing."""
        reader = RubricReader()
        await self._grade(entry, context, reader, suite)
        return reader.rubrics[0][0] if reader.rubrics else None

    async def _grade(self, entry: AssertionEntry, context: AssertionContext, judge: Judge, suite: Suite) -> Grade:
        services: Any = ServicesWithJudge(context.services, judge)
        check = self.connections.check(suite)
        (score,) = await grade_entries([entry], replace(context, _services=services), self.connections.clock, check)
        return score.grade

    def _judge(self, spec: TargetSpec, suite: Suite, vote: int) -> Judge:
        key = (id(spec), id(suite), vote)
        if key not in self._judges:
            store = self.connections.store
            self._judges[key] = self.connections.judge_through(
                lambda target: MeasuredTarget(target, spec, store, vote), spec, suite
            )
        return self._judges[key]


def check_prompts(judge: NamedJudge, rubrics: Iterable[Rubric]) -> None:
    """Refuse a judge prompt that could not work, before any call is made.

    Raises:
        UsageError: it has no placeholder, an unknown one, or shows neither the answer nor the rubric.
    """
    from agentv.assertions.judged.rubric import LlmRubric, is_criteria, prompt_issues

    prompt = judge.prompt
    if prompt is None:
        return
    if is_criteria(prompt):
        raise UsageError(f"the judge prompt {prompt.path} has no placeholder", "it must contain {{ output }}")
    for rubric in {(one.mode, bool(one.items)): one for one in rubrics}.values():
        issues = list(prompt_issues(prompt, rubric.mode))
        if not issues and rubric.mode in _WITH_VALUE:
            issues = list(LlmRubric(("item",) if rubric.items else "text", prompt=prompt).validate())
        if issues:
            raise UsageError(f"the judge prompt {prompt.path}: {issues[0].message}", issues[0].hint)


_WITH_VALUE = frozenset({"freeform", "checklist", "score-ranges", "scale"})
"""Modes of `llm-rubric`, whose prompt must show the rubric."""


Place = tuple[str, str, LabelKey]
"""A suite, an assertion, and what a label is of."""


def place_of(answer: GradedAnswer) -> Place:
    """Where an answer is found again."""
    return answer.suite, answer.assertion, answer.key


class FoundAnswers(Struct):
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


async def stored_answers_of(wanted: Iterable[GradedAnswer], prepared: Prepared, caller: JudgeCaller) -> FoundAnswers:
    """The stored answers of a run, by the rubrics of then, which labels are of. Nobody is asked.

    Args:
        wanted: as the run graded them.
        prepared: the plan of the run.
        caller: reads the rubrics.
    """
    found = FoundAnswers()
    places = {place_of(one) for one in wanted}
    cases = {(suite, key[0]) for suite, _, key in places}
    reasons: dict[tuple[str, str], str] = {}
    for trial in prepared.plan:
        case = (trial.suite.name, trial.case.id)
        if case not in cases:
            continue
        why = why_left_out(trial)
        if why is not None:
            reasons[case] = f"of {why}"
            continue
        await _add(trial, places, found, caller)
    for suite, _, key in places - found.found.keys():
        found.omitted[reasons.get((suite, key[0]), "whose input, target or rubric changed since the run")] += 1
    return found


async def _add(trial: Trial, places: Collection[Place], found: FoundAnswers, caller: JudgeCaller) -> None:
    answered = await answer_of(trial, caller.connections)
    if not isinstance(answered, AnsweredTrial):
        return
    output = (trial.suite.name, trial.case.id, answer_sha256(answered.answer.output or ""))
    wanted = grouped((one for one in places if one[:1] + one[2][:2] == output), lambda one: one[1])
    for entry in trial.case.assertions:
        if entry.name not in wanted:
            continue
        rubric = await caller.rubric(entry, answered.context, trial.suite)
        if rubric is None:
            continue
        asked = as_labelled(asked_judge("", "", rubric, answered.context.criteria), entry.shown_type)
        stored = StoredAnswer(trial, answered.answer, answered.context, entry, rubric)
        for place in wanted[entry.name]:
            if place[2][2] == asked.rubric_sha256:
                found.found.setdefault(place, stored)
