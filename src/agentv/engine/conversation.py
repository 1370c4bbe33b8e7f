"""Run trials that are conversations: cases with several turns, and cases that continue an earlier one.

Each turn is sent to the target with the transcript so far. A model's text enters later requests unchanged: it is
never rendered as a template.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.engine.grading import grade_entries
from agentv.engine.trial import (
    RunContext,
    answer_or_limit,
    ask,
    attempts_of,
    case_transformed,
    context_of,
    is_conversation,
    is_empty,
    no_answer,
    partial_answer,
    request_of,
    result_of,
    with_kept_work,
)
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Check, Grade
from agentv.model.run.trial import Score, Trial, TrialResult
from agentv.model.run.verdict import combined, combined_parts
from agentv.model.suite.conversation import Turn, UserDone, answer_messages
from agentv.model.values.message import SEPARATOR, Message, transcript_text
from agentv.model.values.response import STRUCTURED, Attempt, Failure, TargetResponse
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import EMPTY as NO_METADATA
from agentv.ports import TargetRequest
from agentv.work_ports import ConversationUser, TrialWork

N = TypeVar("N", int, float)

_ENDING_NOTES: dict[UserDone, str] = {
    "max_turns": "the conversation reached the 'max_turns' of its user",
    "repeated": "the user repeated its message three times, so the conversation was ended",
    "gave_up": "the user gave up",
}
"""Notes for conversations that ended before the user reached its goal."""

_COUNTED = ("input", "output", "total", "cached", "reasoning")


async def run_conversation(trial: Trial, run_context: RunContext, work: TrialWork | None = None) -> TrialResult:
    """Run a trial with turns or a user, or one that continues another, and return its result. Never raises.

    A turn without an answer ends the conversation: the trial is errored, and later turns are not sent. A turn whose
    assertions fail ends it only with `on_turn_failure: stop`: the assertions of later turns then score 0. The case's
    own assertions grade the whole conversation at the end. All turns share one workspace, which only the case's own
    assertions see.
    """
    conversation = _Conversation(trial, run_context, work)
    number = 0
    async for turn in conversation.turns():
        number += 1
        if isinstance(turn, Failure):
            failure: Failure | None = turn
        else:
            failure = None if conversation.skip_if_stopped(turn) else await conversation.send(turn, number)
        if failure is not None:
            if work is not None:
                await work.finish()
            return conversation.result(error=failure)
    failure = None
    if run_context.kept_works is not None:
        answer = await with_kept_work(conversation.answers[-1], trial, run_context, work)
        if isinstance(answer, Failure):
            failure = answer
        else:
            conversation.answers[-1] = answer
    if work is not None:
        failure = await work.finish() or failure
    return conversation.result(error=failure) if failure is not None else await conversation.graded()


def turns_of(trial: Trial) -> tuple[Turn, ...]:
    """Return the turns known before the trial starts: the case's turns, its user's opening message, or its input."""
    user = trial.case.user
    if user is None:
        return trial.case.turns or (Turn(opening_of(trial)),)
    opens = bool(user.start) and not trial.case.asks_first
    return (Turn((Message("user", user.start),) if opens else ()),)


def opening_of(trial: Trial) -> tuple[Message, ...]:
    """Return the case's input, without the suite's part of it if the trial continues an earlier case."""
    case = trial.case
    return case.input[case.preamble :] if trial.history else case.input


def first_request(trial: Trial) -> TargetRequest:
    """Return the first request of a trial."""
    if not is_conversation(trial):
        return request_of(trial, trial.case.input)
    asked = trial.case.flow.messages_for(transcript_of(trial, ()), turns_of(trial)[0].input)
    return request_of(trial, asked, 1 if trial.case.has_turns else None)


def transcript_of(trial: Trial, answers: Iterable[TargetResponse]) -> tuple[Message, ...]:
    """Return the transcript of a trial and of the cases before it, given the answers to its turns."""
    messages = [*trial.history, *(opening_of(trial) if trial.case.has_turns else ())]
    for turn, answer in zip(turns_of(trial), answers, strict=False):
        messages += turn.input
        messages += answer_messages(answer, messages)
    return tuple(messages)


class _Conversation(Struct):
    """A conversation in progress.

    Attributes:
        transcript: all messages so far.
        spoken: the same without tool calls.
        sent: messages of the last call to the target.
        answer_texts: text of each answer.
        parts: scores of each turn, then of the case.
        retries: failed calls that were made again.
        calls: number of calls to the target, without retries.
        user: the simulated user; None before the first turn, or if the case has none.
        done: how the user ended the conversation; None while it goes on.
        failed: number of the failed turn after which no more turns are sent; None if none exists.
    """

    trial: Trial
    run_context: RunContext
    work: TrialWork | None = None
    transcript: list[Message] = field(default_factory=list)
    spoken: list[Message] = field(default_factory=list)
    sent: tuple[Message, ...] = ()
    answers: list[TargetResponse] = field(default_factory=list)
    answer_texts: list[str] = field(default_factory=list)
    parts: list[tuple[Score, ...]] = field(default_factory=list)
    retries: list[Attempt] = field(default_factory=list)
    calls: int = 0
    user: ConversationUser | None = None
    done: UserDone | None = None
    failed: int | None = None
    _unanswered_ms: float = 0.0

    def __post_init__(self) -> None:
        self.transcript = list(transcript_of(self.trial, ()))
        self.spoken = list(self.transcript)

    async def turns(self) -> AsyncIterator[Turn | Failure]:
        """Yield the case's turns, or those of its user until it is done; a Failure if the user cannot reply."""
        if self.trial.case.user is None:
            for turn in turns_of(self.trial):
                yield turn
            return
        self.user = self.run_context.works.user(self.trial)
        if self.trial.case.asks_first:
            yield Turn(())
        while self.done is None:
            reply = await self.user.reply(self.transcript)
            if isinstance(reply, Failure):
                yield reply
                return
            self.done = reply.done
            if reply.done is None:
                yield Turn((Message("user", reply.message),))

    async def send(self, turn: Turn, number: int) -> Failure | None:
        """Send a turn, then keep and grade its answer; return a Failure if none exists or it cannot be graded."""
        trial, run_context = self.trial, self.run_context
        self.sent = trial.case.flow.messages_for(self.transcript, turn.input)
        self.calls += 1
        started = run_context.clock.monotonic()
        answer = await ask(trial, run_context, self.sent, number if self.trial.case.has_turns else None, self.work)
        if self.work is not None:
            answer = answer_or_limit(answer, self.work)
        measured = (run_context.clock.monotonic() - started) * 1000
        if isinstance(answer, Failure):
            self._unanswered_ms = measured
            self.retries += attempts_of(answer)
            return _in_turn(answer, number) if self.trial.case.has_turns else answer
        self.retries += attempts_of(answer)
        if answer.duration_ms is None:
            answer = replace(answer, duration_ms=measured)
        self.answers.append(answer)
        if is_empty(answer, trial, self.work):
            failure = no_answer(answer)
            return _in_turn(failure, number) if self.trial.case.has_turns else failure
        own = answer_messages(answer, self.sent)
        self.transcript += [*turn.input, *own]
        texts = [one.text for one in own if one.role == "assistant" and one.text.strip()]
        self.answer_texts.append("\n\n".join([*texts[:-1], answer.output] if answer.output else texts))
        self.spoken += [*turn.input, Message("assistant", self.answer_texts[-1])]
        if not turn.assertions:
            return None
        # a turn's assertions see its answer and all messages that were sent for it
        context = context_of(trial, answer, 0.0, run_context)
        expected, criteria = turn.expected_output, turn.criteria
        context = replace(context, input=self.sent, messages=own, expected_output=expected, criteria=criteria)
        return await self._grade(turn, context, number)

    async def _grade(self, turn: Turn, context: AssertionContext, number: int) -> Failure | None:
        """Grade the answer to a turn; return a Failure if the case's `transform` fails."""
        run_context, trial = self.run_context, self.trial
        shaped = await case_transformed(trial, context)
        if isinstance(shaped, Failure):
            return _in_turn(shaped, number)
        check = run_context.check(trial.suite)
        scores = await grade_entries(turn.assertions, shaped, run_context.clock, check)
        if number < len(trial.case.turns):  # a row holds only the last answer, which these spans are not about
            scores = tuple(replace(one, grade=one.grade.without_spans()) for one in scores)
        self.parts.append(scores)
        if trial.case.flow.on_turn_failure == "stop" and not combined(scores, trial.threshold).passed:
            self.failed = number
        return None

    def skip_if_stopped(self, turn: Turn) -> bool:
        """Return whether a turn is skipped because an earlier one failed; if so, score its assertions 0."""
        if self.failed is None:
            return False
        reason = f"not sent: turn {self.failed} failed"
        grade = Grade(0.0, False, (Check("the turn is sent", False, reason),), reason)
        self.parts.append(tuple(Score(entry, grade, 0.0) for entry in turn.assertions))
        return True

    async def graded(self) -> TrialResult:
        """Grade the case's own assertions and return the trial's result."""
        trial, run_context = self.trial, self.run_context
        shaped = await case_transformed(trial, self.whole()) if trial.case.assertions else self.whole()
        if isinstance(shaped, Failure):
            return self.result(error=shaped)
        check = run_context.check(trial.suite)
        self.parts.append(await grade_entries(trial.case.assertions, shaped, run_context.clock, check))
        return self.result()

    def whole(self) -> AssertionContext:
        """Return the context of the case's own assertions: last answer, transcript, and usage of all calls."""
        context = context_of(self.trial, self._summed(), 0.0, self.run_context)
        begin = len(self.trial.history) if self.trial.case.has_turns else len(self.sent)
        has_transcript = all(answer.messages for answer in self.answers)
        messages = tuple(self.transcript[begin:])
        whole = replace(context, input=self.sent, messages=messages, has_transcript=has_transcript)
        return whole if self.work is None else self.work.context(whole)

    def _summed(self) -> TargetResponse:
        """Return the last answer, with the usage, cost and duration of all answers."""
        answers, user = self.answers, self.trial.case.user
        last = answers[-1]
        if user is not None and user.output != "answer":
            output = transcript_text(self.spoken) if user.output == "transcript" else SEPARATOR.join(self.answer_texts)
            text = {key: one for key, one in last.metadata.items() if key != STRUCTURED}
            last = replace(last, output=output, metadata=text)
        first = [one.time_to_first_token_ms for one in answers if one.time_to_first_token_ms is not None]
        return replace(
            last,
            token_usage=_usage(one.token_usage for one in answers),
            cost_usd=_sum(one.cost_usd for one in answers),
            duration_ms=_sum(one.duration_ms for one in answers),
            time_to_first_token_ms=None if len(first) < len(answers) else max(first),
        )

    def result(self, *, error: Failure | None = None) -> TrialResult:
        """Return the trial's result. An errored one keeps the scores of earlier turns."""
        answer = self._summed() if self.answers else None
        took = ((answer.duration_ms if answer else None) or 0.0) + self._unanswered_ms
        answer = answer and replace(answer, duration_ms=took)
        if answer is not None and len(self.answers) < self.calls:
            answer = replace(
                answer, output=partial_answer(error).output, messages=(), context=(), metadata=NO_METADATA
            )  # the last call gave no answer
        if answer is not None and any(one.earlier for one in self.answers):
            fresh = [one for one in self.answers if not one.earlier]
            paid = fresh or self.answers  # an earlier run's cost is reported only if this run paid nothing
            cost, usage = _sum(one.cost_usd for one in paid), _usage(one.token_usage for one in paid)
            answer = replace(answer, cost_usd=cost, token_usage=usage, earlier=not fresh)
        scores = tuple(score for part in self.parts for score in part)
        made = result_of(self.trial, self.run_context, took, answer, scores, error=error)
        aggregation = self.trial.case.flow.aggregation
        if self.user is not None:
            note = _ENDING_NOTES.get(self.done or "achieved")
            made = replace(
                made,
                user_done=self.done,
                user_cost_usd=self.user.cost_usd,
                user_token_usage=self.user.token_usage,
                notes=(*made.notes, note) if note is not None else made.notes,
            )
        elif aggregation is not None and made.status != "errored":
            verdict = combined_parts(self.parts, self.trial.threshold, aggregation)
            made = replace(made, score=verdict.score, status="passed" if verdict.passed else "failed")
        attempts, retries = self.calls + len(self.retries), tuple(self.retries)
        return replace(made, input=self.sent, turns=tuple(self.answers), attempts=attempts, retries=retries)


def _in_turn(failure: Failure, number: int) -> Failure:
    return replace(failure, message=f"turn {number}: {failure.message}")


def _usage(usages: Iterable[TokenUsage | None]) -> TokenUsage | None:
    known = list(usages)
    if None in known:
        return None
    return TokenUsage(*(_sum(getattr(usage, name) for usage in known) for name in _COUNTED))


def _sum(numbers: Iterable[N | None]) -> N | None:
    """Return the sum, or None if any number is unknown: a partial sum would be mistaken for the whole."""
    known: list[N] = []
    for number in numbers:
        if number is None:
            return None
        known.append(number)
    return sum(known, start=type(known[0])()) if known else None
