"""Run one trial: call the target, store the answer, grade it, return the verdict (SPEC sections 10 and 12)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from agentv.engine.calls.call_throttle import CallThrottle
from agentv.engine.calls.recorded_call import RecordedCall, Unanswered
from agentv.engine.grading import GraderCheck, grade_entries
from agentv.model.run.context import AssertionContext, Judge
from agentv.model.run.grade import spent_on
from agentv.model.run.trial import AgentWork, Score, Status, Trial, TrialResult
from agentv.model.run.verdict import combined
from agentv.model.suite.assertion import AssertionEntry, Transform
from agentv.model.suite.suite import CODE_TIMEOUT_S, Suite, TargetSpec
from agentv.model.values.formatting import timestamp
from agentv.model.values.message import Message, prompt_text
from agentv.model.values.response import ANSWER_KEYS, Attempt, CallFailure, Failure, TargetResponse
from agentv.model.values.values import Json, lazy_pattern
from agentv.ports import AnswerLookup, Clock, Embedder, Executor, JavaScriptHost, Target, TargetRequest
from agentv.user_code.deadline import Deadline, in_time
from agentv.user_code.guard import attempt
from agentv.work_ports import TrialWork, TrialWorks, WorkArchive

DEPENDENCY_NOT_PASSED = "dependency-not-passed"
_MISSPELT = 80
"""Similarity to a known key, in percent, from which an ignored key counts as misspelt."""

_EMPTY = Failure("empty-output", "the target returned an empty answer; `allow_empty: true` would accept it")
_ONLY_THOUGHTS = Failure(
    "empty-output",
    "the answer ends within its thoughts: no text follows the <think> block; raise 'max_tokens', "
    "or write 'thoughts: keep' on the target if the block is the answer",
)


class RunContext(Protocol):
    """Services of a run for the engine. `app/wiring` implements it."""

    @property
    def executor(self) -> Executor:
        """Threads and an event loop for user code."""

    @property
    def store(self) -> AnswerLookup:
        """The store in which answers are looked up and saved."""

    @property
    def clock(self) -> Clock:
        """The clock of the run."""

    @property
    def throttle(self) -> CallThrottle:
        """The throttle of all calls: it limits, times and retries them, and knows the stopped targets."""

    @property
    def unanswered(self) -> Unanswered | None:
        """Function that returns the failure of a call without a recorded answer; None: the target is called instead."""

    @property
    def kept_works(self) -> WorkArchive | None:
        """Agents' work in the run that is regraded; None if no run is regraded."""

    @property
    def works(self) -> TrialWorks:
        """Opens what trials have besides their calls, such as workspaces; loaded when the first trial needs it."""

    def target(self, spec: TargetSpec) -> Target:
        """Return the connected target of a spec, the same one at every call."""

    def judge(self, spec: TargetSpec, suite: Suite) -> Judge:
        """Return the judge that calls a spec's target, in the environment of a suite."""

    def embedder(self, spec: TargetSpec) -> Embedder:
        """Return the embedder of a spec's target, the same one at every call.

        Raises:
            LookupError: the target cannot embed, which loading should have reported.
        """

    def javascript(self, suite: Suite) -> JavaScriptHost:
        """Return the JavaScript runtime in the environment of a suite."""

    def check(self, suite: Suite) -> GraderCheck | None:
        """Return the check whether entries of a suite may still grade, or None if all of them may."""


class AnsweredTrial(Struct, frozen=True):
    """A trial that has been answered but not graded.

    Attributes:
        measured_ms: how long the answer took.
        work: work of its agent, whose workspace stays open until the trial is graded; None if it has none.
    """

    trial: Trial
    run_context: RunContext
    answer: TargetResponse
    measured_ms: float
    context: AssertionContext
    work: TrialWork | None = None

    def result(self, scores: tuple[Score, ...]) -> TrialResult:
        """Return the result with these scores."""
        return result_of(self.trial, self.run_context, self.measured_ms, self.answer, scores)


def is_conversation(trial: Trial) -> bool:
    """Return whether a trial has several turns, or is part of a conversation of several cases."""
    return trial.case.has_turns or trial.case.conversation_id is not None


async def answer_of(
    trial: Trial, run_context: RunContext, work: TrialWork | None = None
) -> AnsweredTrial | TrialResult:
    """Ask the target of a trial and return the answered trial, or its errored result."""
    clock = run_context.clock
    started = clock.monotonic()
    answer = await ask(trial, run_context, trial.case.input, work=work)
    measured = (clock.monotonic() - started) * 1000
    if run_context.kept_works is not None and isinstance(answer, TargetResponse):
        answer = await with_kept_work(answer, trial, run_context, work)
    if work is not None:
        answer = answer_or_limit(answer, work)
        failure = await work.finish()
        if failure is not None and not isinstance(answer, Failure):
            answer = failure
    if isinstance(answer, Failure):
        return result_of(trial, run_context, measured, None, (), error=answer)
    if is_empty(answer, trial, work):
        return result_of(trial, run_context, measured, answer, (), error=no_answer(answer))
    return await ready_to_grade(trial, run_context, answer, measured, work)


async def with_kept_work(
    answer: TargetResponse, trial: Trial, run_context: RunContext, work: TrialWork | None
) -> TargetResponse | Failure:
    """Return a recorded answer with the trace that an earlier run kept; a Failure if the kept work cannot be used.

    Args:
        answer: the last answer of the trial.
        trial: the trial of the answer.
        run_context: context whose archive holds the kept work.
        work: receives what the agent left; None if the case has neither a workspace nor tools.
    """
    archive = run_context.kept_works
    kept = await asyncio.to_thread(archive.work, trial, answer.output) if archive is not None else None
    if isinstance(kept, Failure):
        return kept
    if work is not None:
        work.restore(kept)
    return answer if kept is None or kept.trace is None else replace(answer, trace=kept.trace)


def answer_or_limit(answer: TargetResponse | Failure, work: TrialWork) -> TargetResponse | Failure:
    """Return an agent's answer, or a Failure if it reached a limit and is not graded all the same."""
    if isinstance(answer, Failure):
        return work.outcome_of(answer)
    exceeded = work.exceeded_limit(answer)
    return answer if exceeded is None or work.grades_at_limits else exceeded


async def ready_to_grade(
    trial: Trial, run_context: RunContext, answer: TargetResponse, measured_ms: float, work: TrialWork | None = None
) -> AnsweredTrial | TrialResult:
    """Return a trial with its answer, ready to be graded, or its errored result if the case's `transform` fails."""
    seen = context_of(trial, answer, measured_ms, run_context)
    context = await case_transformed(trial, seen if work is None else work.context(seen))
    if isinstance(context, Failure):
        return result_of(trial, run_context, measured_ms, answer, (), error=context)
    return AnsweredTrial(trial, run_context, answer, measured_ms, context, work)


async def case_transformed(trial: Trial, context: AssertionContext) -> AssertionContext | Failure:
    """Return the context with the case's `transform` applied to the answer, or a Failure."""
    transform = trial.case.transform
    if transform is None:
        return context
    from agentv.engine.transform import transformed

    given = transformed(transform, context)
    return await in_time(given, Deadline(CODE_TIMEOUT_S), code="transform-failed", what="transform", missing="answer")


def is_empty(answer: TargetResponse, trial: Trial, work: TrialWork | None = None) -> bool:
    """Return whether a required answer is missing. A tool call in the last message counts as an answer.

    An agent that is graded although it reached a limit need not have answered.
    """
    if work is not None and work.grades_at_limits:
        return False
    if trial.target.allow_empty or trial.case.asks_judge or shows_text(answer.output or ""):
        return False  # an empty reply of a judge is graded, and fails
    return answer.output is not None or not (answer.messages and answer.messages[-1].tool_calls)


_COLORS = lazy_pattern(r"\x1b\[[0-?]*[ -/]*[@-~]")


def shows_text(text: str) -> bool:
    """Return whether a text has a visible character, not counting white space, control characters and colors."""
    text = text.strip()
    if text[:1].isprintable():
        return bool(text)
    return any(one.isprintable() and not one.isspace() for one in _COLORS.sub("", text))


def no_answer(answer: TargetResponse) -> Failure:
    """Return the failure for an empty answer."""
    return _ONLY_THOUGHTS if answer.thoughts else _EMPTY


def context_of(trial: Trial, answer: TargetResponse, measured_ms: float, run_context: RunContext) -> AssertionContext:
    """Return the context of a trial's assertions."""
    case = trial.case
    return AssertionContext(
        input=case.input,
        output=answer.output if answer.output is not None or not case.asks_judge else "",
        messages=answer.messages or (Message("assistant", answer.said),),
        expected_output=case.expected_output,
        criteria=case.criteria,
        metadata=case.metadata,
        vars=case.vars,
        token_usage=answer.token_usage,
        cost_usd=answer.cost_usd,
        duration_ms=answer.duration_ms if answer.duration_ms is not None else measured_ms,
        finish_reason=answer.finish_reason,
        time_to_first_token_ms=answer.time_to_first_token_ms,
        case_id=case.id,
        env=trial.suite.env,
        threshold=trial.threshold,
        response_metadata=answer.metadata,
        context=answer.context,
        has_transcript=bool(answer.messages),
        agent_trace=answer.trace,
        target=trial.target.name,
        allow_empty=trial.target.allow_empty,
        _services=TrialServices(run_context, trial),
    )


async def ask(
    trial: Trial,
    run_context: RunContext,
    messages: tuple[Message, ...],
    turn: int | None = None,
    work: TrialWork | None = None,
) -> TargetResponse | Failure:
    """Return the target's answer to the messages, from the store or by a call, or a Failure.

    A stored answer keeps its thoughts, so that it can be regraded with another `thoughts` setting of the target.

    No stored answer is used for a trial with an open workspace or scripted tools: what the agent did there was not
    stored with the answer.
    """
    request = request_of(trial, messages, turn)
    if work is not None:
        request = work.request(request)
    call = RecordedCall(trial.target, request, run_context.store, run_context.unanswered)
    answer = None
    runs_again = work is not None and work.must_call
    if request.workspace_path is None and not request.mcp_servers and not runs_again:
        answer = await call.found()
    else:
        call.begin()
    if answer is None:
        target, agents = run_context.target(trial.target), run_context.throttle.agents
        is_agent = work is not None or trial.target.is_agent
        if is_agent:
            request = agents.begin(trial, request, None if work is None else work.corrected)
        try:
            given = attempt(target.answer, request, "target-raised", f"target '{trial.target.name}'")
            answer = await call.record(given if work is None else work.with_usage(given))
        finally:
            if is_agent:
                agents.end(trial)
        if work is not None:
            work.note(answer)
    if isinstance(answer, Failure) or trial.target.thoughts == "keep":
        return answer
    return answer.without_thoughts()


def request_of(trial: Trial, messages: tuple[Message, ...], turn: int | None = None) -> TargetRequest:
    """Return the request that sends these messages for a trial."""
    case = trial.case
    is_plain = case.workspace is None and trial.variant is None and not case.tools
    return TargetRequest(
        case_id=case.id,
        prompt=prompt_text(messages),
        messages=messages,
        vars=case.vars,
        metadata=case.metadata,
        sample=trial.sample,
        prompt_id=case.prompt_id,
        timeout_s=trial.timeout_s,
        env={**trial.suite.env, **trial.target.env} if trial.target.env else trial.suite.env,
        turn=turn,
        suite=f"{trial.suite.name}\0{trial.suite.env_sha256}" if trial.suite.env_sha256 else trial.suite.name,
        root=trial.suite.root,
        variant=trial.variant_name,
        workspace_key="" if is_plain else _workspace_key(trial),
    )


def _workspace_key(trial: Trial) -> str:
    """Return a key that tells answers in different workspaces, variants and tools apart."""
    spec, variant, tools = trial.case.workspace, trial.variant, trial.case.tools
    key = f"{spec.sha256 if spec is not None else ''} {variant.sha256 if variant is not None else ''}"
    if not tools:
        return key
    facts = json.dumps([one.facts() for one in tools], sort_keys=True)
    return f"{key} {sha256(facts.encode(errors='surrogatepass')).hexdigest()}"


def result_of(
    trial: Trial,
    run_context: RunContext,
    duration_ms: float,
    answer: TargetResponse | None,
    scores: tuple[Score, ...],
    *,
    error: Failure | None = None,
) -> TrialResult:
    """Return the result of a trial whose answer has these scores, or which ended with an error."""
    score: float | None = None
    status: Status = "errored"
    if error is None and trial.case.show_only:
        status = "shown"
    elif error is None:
        verdict = combined(scores, trial.threshold)
        error = verdict.error
        if error is None:
            score, status = verdict.score, "passed" if verdict.passed else "failed"
    retries = attempts_of(answer if answer is not None else error)
    response = answer or partial_answer(error)
    notes = [_note_on_ignored(response.ignored)] if response.ignored else []
    notes += (f"assertion '{one.entry.name}': {one.grade.note}" for one in scores if one.grade.note)
    spent, used = spent_on(one.grade for one in scores)
    return TrialResult(
        trial=trial,
        status=status,
        score=score,
        output=response.output,
        input=trial.case.input,
        scores=scores,
        error=error,
        duration_ms=response.duration_ms if response.duration_ms is not None else duration_ms,
        timestamp=timestamp(run_context.clock.utc()),
        messages=response.messages,
        token_usage=response.token_usage,
        cost_usd=response.cost_usd,
        judge_cost_usd=spent,
        metadata=trial.case.metadata,
        attempts=1 + len(retries),
        retries=retries,
        judge_token_usage=used,
        reused=response.earlier,
        work=None if response.trace is None else AgentWork(trace=response.trace, logs=response.logs),
        notes=tuple(notes),
        thoughts=response.thoughts,
        finish_reason=response.finish_reason,
        time_to_first_token_ms=response.time_to_first_token_ms,
        context=response.context,
        response_metadata=response.metadata,
    )


_NOTHING = TargetResponse(None)


def partial_answer(error: Failure | None) -> TargetResponse:
    """Return the part of an answer that arrived before its call failed; an empty answer if none did."""
    return (error.response if isinstance(error, CallFailure) else None) or _NOTHING


def _note_on_ignored(keys: Sequence[str]) -> str:
    """Return a note on unknown keys of the target's mapping."""
    from rapidfuzz.process import extractOne  # imported here, since few answers have such keys

    names = ", ".join(f"'{name:.60}'" for name in keys)
    found = (extractOne(name, ANSWER_KEYS, score_cutoff=_MISSPELT) for name in keys)
    near = next((one[0] for one in found if one is not None), None)
    hint = f"did you mean '{near}'?" if near is not None else "put other data under 'metadata'"
    if "tool_calls" in keys:
        hint = "tool calls belong in the messages of 'output'"
    return f"the target's mapping has keys that are ignored: {names}; {hint}"


def attempts_of(outcome: TargetResponse | Failure | None) -> tuple[Attempt, ...]:
    """Return the failed attempts before the one that gave this answer or failure."""
    return outcome.attempts if isinstance(outcome, TargetResponse | CallFailure) else ()


def not_run(trial: Trial, why: Failure, run_context: RunContext) -> TrialResult:
    """Return the result of a trial that will not run: skipped, or errored with `on_dependency_failure: fail`."""
    fails = why.code == DEPENDENCY_NOT_PASSED and trial.case.on_dependency_failure == "fail"
    status: Status = "errored" if fails else "skipped"
    return replace(result_of(trial, run_context, 0.0, None, (), error=why), status=status, attempts=0)


class TrialServices(Struct, frozen=True):
    """The services that one trial offers to its assertions."""

    run_context: RunContext
    trial: Trial

    @property
    def executor(self) -> Executor:
        """Threads and an event loop for user code."""
        return self.run_context.executor

    @property
    def javascript(self) -> JavaScriptHost:
        """The JavaScript runtime of the trial's suite."""
        return self.run_context.javascript(self.trial.suite)

    def judge(self, name: str | None) -> Judge:
        """Return the judge of that name, or the trial's own; the command line's judge overrides both.

        Raises:
            LookupError: no judge is set, which loading should have reported.
        """
        spec = self.trial.judge_called(name)
        if spec is None:
            raise LookupError("no judge is set")
        return self.run_context.judge(spec, self.trial.suite)

    def embedder(self, name: str | None) -> Embedder:
        """Return the embedder of that name, or the first of the trial's target and judge that computes embeddings.

        Raises:
            LookupError: no embedder is set, which loading should have reported.
        """
        trial = self.trial
        candidates = (trial.suite.judges.get(name),) if name else (trial.target, trial.judge)
        for spec in candidates:
            if spec is not None and spec.embeds:
                return self.run_context.embedder(spec)
        raise LookupError("no target that computes embeddings is set")

    async def grade(self, entries: Sequence[AssertionEntry], context: AssertionContext) -> tuple[Score, ...]:
        """Grade with a list of entries, one after the other."""
        return await grade_entries(entries, context, self.run_context.clock, self.run_context.check(self.trial.suite))

    async def evaluate(self, transform: Transform, context: AssertionContext) -> Json | Failure:
        """Return the value of an expression over the answer, or a Failure `transform-failed`."""
        from agentv.engine.transform import value_of

        value: Json | Failure = await value_of(transform, context)
        return value
