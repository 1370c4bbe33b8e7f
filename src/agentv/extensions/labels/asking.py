"""Judges named on the command line, and their verdicts on stored answers with cost and duration."""

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
    """A judge, and the settings that override those of the eval file.

    Attributes:
        written: the argument of the command.
        name: a name from targets.yaml, or `provider:model`.
        prompt: replaces the judge prompt; None keeps that of the eval file, as for `votes` and `temperature`.
    """

    written: str
    name: str
    prompt: Document | None = None
    votes: int | None = None
    temperature: float | None = None

    def rubric(self, rubric: Rubric) -> Rubric:
        """Return the rubric with this judge's settings, for a single vote."""
        changed: dict[str, Any] = {"votes": 1}
        if self.prompt is not None:
            changed |= {"prompt": self.prompt.text, "prompt_path": self.prompt.path, "writer": None}
        if self.temperature is not None:
            changed["temperature"] = self.temperature
        return replace(rubric, **changed)


def named_judge(written: str) -> NamedJudge:
    """Parse a judge argument.

    Raises:
        UsageError: an option is unknown, repeated or invalid, or a prompt file cannot be read.
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
    """Parse the judge arguments of a command.

    Args:
        written: the arguments.
        votes: votes of judges without an option `votes`; None: as in the eval file.

    Raises:
        UsageError: a judge argument or the number of votes is invalid.
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
    """A judge's verdict on an answer.

    Attributes:
        passed: None if the judge gave no verdict.
        failure: why it gave none.
        cost_usd: cost of its calls, including stored ones; None: unknown, or the calls are counted for another verdict.
        duration_ms: duration of the same calls; None: no call is counted for this verdict.
        new_calls: number of calls that were not stored before.
    """

    passed: bool | None
    failure: Failure | None = None
    cost_usd: float | None = None
    duration_ms: float | None = None
    new_calls: int = 0


def known_sum(costs: Iterable[float | None]) -> float | None:
    """Return the sum of costs, or None if one is unknown."""
    found = list(costs)
    known = [one for one in found if one is not None]
    return sum(known, 0.0) if len(known) == len(found) else None


NOT_ASKED = MeasuredVerdict(None)
"""Verdict of a judge that is no longer asked because it failed too often."""

_NOT_CALLED = Failure(STOPPED, "the judge was not asked")


class _MadeCall(Struct, frozen=True):
    cost_usd: float | None
    duration_ms: float
    earlier: bool


_CALLS: ContextVar[list[_MadeCall]] = ContextVar("_CALLS")
"""The calls made for the current verdict."""


class MeasuredTarget:
    """The target behind one vote of a judge: it replays stored answers, stores new ones, and measures the calls.

    Args:
        wrapped: the target that makes the calls.
        spec: settings of the target.
        store: stored answers.
        vote: number of the vote, from 1.
    """

    def __init__(self, wrapped: Target, spec: TargetSpec, store: AnswerLookup, vote: int) -> None:
        self._wrapped = wrapped
        self._spec = spec
        self._store = store
        self._vote = vote

    async def answer(self, request: TargetRequest) -> TargetResponse | Failure:
        """Return the stored answer, or call the target and store its answer."""
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
        """Close the wrapped target."""
        await self._wrapped.close()


class ChangedRubricJudge(Struct, frozen=True):
    """A `Judge` that changes each rubric before passing it to another judge."""

    judge: Judge
    changed: Callable[[Rubric], Rubric]

    async def assess(self, rubric: Rubric, context: AssertionContext) -> Verdict | Failure:
        """Return the verdict by the changed rubric."""
        return await self.judge.assess(self.changed(rubric), context)

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute of the wrapped judge."""
        return getattr(self.judge, name)


class RubricReader(Struct):
    """A `Judge` that records the rubrics it is given and makes no calls."""

    rubrics: list[tuple[Rubric, AssertionContext]] = field(default_factory=list)

    async def assess(self, rubric: Rubric, context: AssertionContext) -> Failure:
        """Record the rubric."""
        self.rubrics.append((rubric, context))
        return _NOT_CALLED

    async def choose(self, criteria: str, contexts: Sequence[AssertionContext]) -> Failure:
        """Return a failure without recording anything."""
        del criteria, contexts
        return _NOT_CALLED

    async def ask(self, prompt: str) -> Failure:
        """Return a failure without recording anything."""
        del prompt
        return _NOT_CALLED


class ServicesWithJudge(Struct, frozen=True):
    """The `Services` of a trial with the judge replaced."""

    services: Services
    replacement: Judge

    def judge(self, name: str | None) -> Judge:
        """Return the replacement, whatever judge an assertion names."""
        del name
        return self.replacement

    def __getattr__(self, name: str) -> Any:
        """Return any other service of the trial."""
        return getattr(self.services, name)


class StoredAnswer(Struct, frozen=True):
    """An answer of a run, with one assertion that graded it.

    Attributes:
        rubric: the rubric for the judge.
    """

    trial: Trial
    answer: TargetResponse
    context: AssertionContext
    entry: AssertionEntry
    rubric: Rubric


class JudgeCaller:
    """Gets judges' verdicts on stored answers.

    Args:
        connections: connections of the run.
    """

    def __init__(self, connections: Connections) -> None:
        self.connections = connections
        self._judges: dict[tuple[int, int, int], Judge] = {}

    async def verdict(
        self, stored: StoredAnswer, spec: TargetSpec, changed: Callable[[Rubric], Rubric], vote: int
    ) -> MeasuredVerdict:
        """Get one vote of a judge on an answer.

        Args:
            stored: the answer.
            spec: target spec of the judge.
            changed: turns the rubric of the eval file into that of this judge, with a single vote.
            vote: number of the vote, from 1.

        Raises:
            BudgetSpentError: the budget is spent.
        """
        calls: list[_MadeCall] = []
        _CALLS.set(calls)
        judge: Any = ChangedRubricJudge(self._judge(spec, stored.trial.suite, vote), changed)
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
        return MeasuredVerdict(passed, failure, cost_usd, duration_ms, new_calls)

    async def rubric(self, entry: AssertionEntry, context: AssertionContext, suite: Suite) -> Rubric | None:
        """Return the rubric that an assertion gives its judge for an answer, or None if it calls no judge."""
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
    """Raise if a judge's prompt cannot work, before any call is made.

    Raises:
        UsageError: the prompt has no placeholder or an unknown one, or omits the answer or the rubric.
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


AnswerKey = tuple[str, str, LabelKey]
"""A suite, an assertion, and the key of a label."""


def answer_key(answer: GradedAnswer) -> AnswerKey:
    """Return the key by which an answer is looked up."""
    return answer.suite, answer.assertion, answer.key


class FoundAnswers(Struct):
    """The stored answers that were found.

    Attributes:
        omitted: reason why answers were left out → their number.
    """

    found: dict[AnswerKey, StoredAnswer] = field(default_factory=dict)
    omitted: Counter[str] = field(default_factory=Counter)

    @property
    def notes(self) -> tuple[str, ...]:
        """One note for each reason why answers were left out."""
        return tuple(f"left out: {plural(number, 'answer')} {why}" for why, number in self.omitted.items())


async def stored_answers_of(wanted: Iterable[GradedAnswer], prepared: Prepared, caller: JudgeCaller) -> FoundAnswers:
    """Look up the stored answers whose rubrics have not changed since the run. No calls are made.

    Args:
        wanted: the answers, as the run graded them.
        prepared: the plan of the run.
        caller: reads the rubrics.
    """
    found = FoundAnswers()
    keys = {answer_key(one) for one in wanted}
    cases = {(suite, label_key[0]) for suite, _, label_key in keys}
    reasons: dict[tuple[str, str], str] = {}
    for trial in prepared.plan:
        case = (trial.suite.name, trial.case.id)
        if case not in cases:
            continue
        why = why_left_out(trial)
        if why is not None:
            reasons[case] = f"of {why}"
            continue
        await _add(trial, keys, found, caller)
    for suite, _, label_key in keys - found.found.keys():
        found.omitted[reasons.get((suite, label_key[0]), "whose input, target or rubric changed since the run")] += 1
    return found


async def _add(trial: Trial, keys: Collection[AnswerKey], found: FoundAnswers, caller: JudgeCaller) -> None:
    answered = await answer_of(trial, caller.connections)
    if not isinstance(answered, AnsweredTrial):
        return
    output = (trial.suite.name, trial.case.id, answer_sha256(answered.answer.output or ""))
    wanted = grouped((one for one in keys if one[:1] + one[2][:2] == output), lambda one: one[1])
    for entry in trial.case.assertions:
        if entry.name not in wanted:
            continue
        rubric = await caller.rubric(entry, answered.context, trial.suite)
        if rubric is None:
            continue
        asked = as_labelled(asked_judge("", "", rubric, answered.context.criteria), entry.shown_type)
        stored = StoredAnswer(trial, answered.answer, answered.context, entry, rubric)
        for key in wanted[entry.name]:
            if key[2][2] == asked.rubric_sha256:
                found.found.setdefault(key, stored)
