"""A judge made of any target: asks it, reads its reply, asks once more where that cannot be read (SPEC section 9)."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import random
import secrets
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any, ClassVar, Generic, TypeVar

from msgspec.structs import replace

from agentv.judge.material import CONFIRM, Delimiter, Excerpt, new_word, without
from agentv.judge.question import RubricQuestion, asked_judge, built_in, question_of
from agentv.judge.reply import UnconfirmedError, UsageTotal, outcome_of, read_reply, said_in, verdicts_in
from agentv.judge.shapes import TEXT, ReadVerdict, UnreadableError, closed, speakable
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Check
from agentv.model.run.rubric import MAX_CHARS, Choice, JudgeFailure, Rubric, Verdict
from agentv.model.suite.suite import JUDGE_TIMEOUT_S
from agentv.model.values.formatting import shorten
from agentv.model.values.message import Message, prompt_text
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.values import EMPTY, JsonObject
from agentv.ports import Target, TargetRequest
from agentv.templating import RenderError
from agentv.user_code.deadline import LIMIT, Deadline


@dataclass(frozen=True, slots=True)
class ChoiceQuestion:
    """One question: the answers in one order.

    Attributes:
        places: id of an answer in this question → its place among all answers. The ids are new for each question, so
            that no answer can name itself.
        token: of the markers around what is shown.
        mark: the word that the choice shall carry; it stands in our instruction alone.
        earlier: the marks of the requests before this one.
    """

    messages: tuple[Message, ...]
    places: dict[str, int]
    token: str
    mark: str
    earlier: tuple[str, ...] = ()
    temperature: ClassVar[float] = 0.0

    @property
    def nonces(self) -> tuple[str, ...]:
        """Random values that are new in each question."""
        return (self.token, *self.places, *self.earlier, self.mark)

    @property
    def schema(self) -> JsonObject:
        """JSON Schema of the reply."""
        best: JsonObject = {"type": "string", "enum": list(self.places)}
        return closed({"reason": TEXT, "best": best, CONFIRM: TEXT})

    def again(self, reply: str, problem: str) -> ChoiceQuestion:
        """Follow-up request after an unreadable reply, with a new confirmation word."""
        mark = new_word()
        shape = f'{{"reason": <why>, "best": <id>, "{CONFIRM}": "{mark}"}}'
        request = f"Your reply cannot be used: {problem}. Reply with {shape} and nothing else."
        previous = (Message("assistant", reply),) if reply.strip() else ()
        messages = (*self.messages, *previous, Message("user", request))
        return dataclasses.replace(self, messages=messages, mark=mark, earlier=(*self.earlier, self.mark))

    def read(self, said: str) -> tuple[int, str | None]:
        """The place of the answer that is chosen, and why.

        Raises:
            UnreadableError: there is no choice, one of no answer, or several that differ.
        """
        rows, _ = verdicts_in(said, "best", self.mark)
        chosen = {f"{row['best']}" for row in rows}
        if not chosen <= self.places.keys():
            raise UnreadableError(f"'best' must be one of {', '.join(self.places)}")
        if len(chosen) > 1:
            raise UnreadableError("it contains several choices that disagree")
        reason = rows[-1].get("reason")
        return self.places[chosen.pop()], reason if isinstance(reason, str) and reason.strip() else None


def choice_questions(criteria: str, contexts: Sequence[AssertionContext]) -> tuple[ChoiceQuestion, ChoiceQuestion]:
    """The question which answer is best, in an order that the case's id determines, and in the opposite one.

    A judge tends to prefer what it reads first, or last: a choice that changes with the order is a tie. Source: L.
    Zheng et al., Judging LLM-as-a-Judge with MT-Bench and Chatbot Arena, 2023, section 3.3.
    """
    order = list(range(len(contexts)))
    random.Random(contexts[0].case_id).shuffle(order)  # noqa: S311  # the same at each run, which is the point
    return _question(criteria, contexts, order), _question(criteria, contexts, order[::-1])


def _question(criteria: str, contexts: Sequence[AssertionContext], order: Sequence[int]) -> ChoiceQuestion:
    delimiter = Delimiter.new()
    places: dict[str, int] = {}
    while len(places) < len(order):
        places.setdefault(secrets.token_hex(4), order[len(places)])
    shown = "\n\n".join(
        delimiter.around(f"answer-{name}", Excerpt.of(contexts[at].output or "", MAX_CHARS).text)
        for name, at in places.items()
    )
    mark = new_word()
    rules = built_in("choice")
    for name, value in (("token", delimiter.token), ("mark", mark), ("ids", ", ".join(places))):
        rules = rules.replace(f"{{{{ {name} }}}}", value)
    rubric, first = delimiter.around("criteria", criteria), contexts[0]
    task = f"The task:\n{delimiter.around('task', first.prompt)}\n\n"
    if first.metadata:
        metadata = json.dumps(first.metadata, ensure_ascii=False, indent=2)
        task += f"The metadata of the case:\n{delimiter.around('metadata', metadata)}\n\n"
    task += f"The criteria:\n{rubric}\n\nThe answers:\n{shown}"
    return ChoiceQuestion((Message("system", rules), Message("user", task)), places, delimiter.token, mark)


T = TypeVar("T")


@dataclass(slots=True)
class _Flight(Generic[T]):
    """A call on its way, and the time limit of whoever made it."""

    task: asyncio.Task[T]
    limit: Deadline | None
    waiting: int = 0

    def joined(self) -> AbstractContextManager[None]:
        """What holds up whoever made the call, such as a rate limit, holds up those who wait for it beside them."""
        own = LIMIT.get()
        if own is None or self.limit is None or own is self.limit:
            return nullcontext()
        return self.limit.shared_by(own, asyncio.get_running_loop().time)


class SharedCalls(Generic[T]):
    """Outcomes of calls by key, shared by concurrent callers.

    Args:
        keeps: whether an outcome is remembered; one that is not serves those alone who waited for it.
        most: outcomes that are remembered; the one that was asked for longest ago is forgotten first.
    """

    def __init__(self, keeps: Callable[[T], bool], most: int) -> None:
        self._keeps = keeps
        self._most = most
        self._kept: OrderedDict[bytes, T] = OrderedDict()
        self._flights: dict[bytes, _Flight[T]] = {}

    async def once(self, key: bytes, call: Callable[[], Coroutine[Any, Any, T]]) -> tuple[T, bool]:
        """The outcome for a key, and whether somebody else's call gave it.

        One caller that is cancelled leaves the call to the others who wait for it; the last of them cancels it.
        """
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key], True
        flight = self._flights.get(key)
        shared = flight is not None
        if flight is None:
            flight = self._flights[key] = _Flight(asyncio.create_task(call()), LIMIT.get())
        return await self._outcome(key, flight), shared

    async def _outcome(self, key: bytes, flight: _Flight[T]) -> T:
        flight.waiting += 1
        try:
            with flight.joined():
                outcome = await asyncio.shield(flight.task)
        except asyncio.CancelledError:
            if flight.waiting == 1 and not flight.task.done():
                self._forget(key, flight)  # first, so that nobody else comes to wait for it
                flight.task.cancel()
                await asyncio.wait({flight.task})  # so that what it started has ended
            raise
        finally:
            flight.waiting -= 1
            if flight.task.done():
                self._forget(key, flight)
        if self._keeps(outcome):
            self._kept[key] = outcome
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return outcome

    def _forget(self, key: bytes, flight: _Flight[T]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]


REPLY_KEPT = 4_000
"""Characters of a reply that are kept as evidence."""

REMEMBERED = 1_000
"""Verdicts that a judge remembers, of a kilobyte or so each: samples of one case are judged soon after each other."""

_REQUESTS = 2
"""The question, and one repair request."""


_NO_USAGE = UsageTotal()


class TargetJudge:
    """The judge port over a connected target. Calls may overlap.

    A question that was put before is not put again, unless the rubric asks for chance by its temperature.

    Args:
        target: asked as a system under test would be; it stays its maker's to close.
        name: the judge's name, for messages.
        timeout_s: seconds that one call may take, passed to the target; the caller of the judge enforces the limit.
        env: the environment that processes of the target get, complete.
        own_env: what its target sets itself, for an agent in a copy of the workspace.
        model: its provider and model, for labels.
    """

    def __init__(
        self,
        target: Target,
        name: str,
        *,
        model: str = "",
        timeout_s: float = JUDGE_TIMEOUT_S,
        env: Mapping[str, str] | None = None,
        own_env: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self._model = model
        self._target = target
        self.timeout_s = timeout_s
        self._env = env or {}
        self._own_env = own_env or {}
        # what failed may do better the next time
        self._calls: SharedCalls[Verdict | JudgeFailure] = SharedCalls(lambda one: isinstance(one, Verdict), REMEMBERED)

    async def ask(self, prompt: str) -> TargetResponse | Failure:
        """The target's answer to a prompt; empty or missing is a failure, `judge-empty-output`."""
        request = TargetRequest("", prompt, (Message("user", prompt),), timeout_s=self.timeout_s, env=self._env)
        response = await self._send(request)
        if isinstance(response, Failure):
            return self._failed(response)
        if response.output is None or not response.output.strip():
            return Failure("judge-empty-output", f"judge '{self.name}' returned an empty reply")
        return replace(response, output=speakable(response.output))

    async def choose(self, criteria: str, contexts: Sequence[AssertionContext]) -> Choice | Failure:
        """The best of several answers, asked for in two orders; a JudgeFailure where one of them gives no choice."""
        questions = choice_questions(criteria, contexts)
        first, second = await asyncio.gather(*(self._chosen(question, contexts[0]) for question in questions))
        if isinstance(first, JudgeFailure):
            return first
        if isinstance(second, JudgeFailure):
            return second
        (best, reason, usage), (other, why, more) = first, second
        usage = usage.plus(more)
        return Choice((best, other), (reason, why), usage.token_usage, usage.cost_usd)

    async def _chosen(
        self, question: ChoiceQuestion, context: AssertionContext
    ) -> tuple[int, str | None, UsageTotal] | JudgeFailure:
        """The place of the answer that is chosen in one order, why, and what the calls took."""
        usage, reply, problem = UsageTotal(), "", ""
        for attempt in range(1, _REQUESTS + 1):
            response = await self._send(self._request(question, context, 1, attempt))
            if isinstance(response, Failure):
                return self._failed(response, reply, usage)
            usage, reply = usage.plus(response), speakable(response.output or "")
            try:
                return (*question.read(said_in(response)), usage)
            except UnreadableError as error:
                problem = str(error)
                question = question.again(reply, problem)
        return self._unreadable(reply, problem, usage)

    async def assess(self, rubric: Rubric, context: AssertionContext) -> Verdict | Failure:
        """The verdict on the context's answer, the median of all votes, or a JudgeFailure.

        Its code is that of the target's failure behind `judge-`, `unreadable-verdict` when the second reply cannot be
        read either, or says what is wrong with the rubric's own prompt. A scale's verdict that cannot be read is one
        that fails (SPEC section 9).
        """
        outcome: Verdict | Failure
        votes = range(1, rubric.votes + 1)
        if rubric.votes == 1:
            outcome = await self._vote(rubric, context, 1)
        elif context.judge_workspace is not None:  # one agent after the other works in it
            outcome = outcome_of([await self._vote(rubric, context, vote) for vote in votes])
        else:
            outcome = outcome_of(await asyncio.gather(*(self._vote(rubric, context, vote) for vote in votes)))
        if isinstance(outcome, Failure):
            return outcome
        return replace(outcome, asked=asked_judge(self.name, self._model, rubric, context.criteria))

    async def _vote(self, rubric: Rubric, context: AssertionContext, vote: int) -> Verdict | JudgeFailure:
        try:
            question = await question_of(rubric, context)
        except RenderError as error:
            place = rubric.prompt_path or ("given inline" if rubric.prompt else f"'{rubric.mode}'")
            return JudgeFailure(error.code, f"the judge prompt {place}: {error.message}")
        decide = partial(self._decide, question, context, vote)
        if rubric.temperature > 0:
            return await decide()
        outcome, shared = await self._calls.once(_key(question, context, vote), decide)
        if not shared:
            return outcome
        # nothing was spent again on what somebody else's call gave; a price that is not known stays so
        cost = None if outcome.cost_usd is None else 0.0
        if isinstance(outcome, JudgeFailure):
            return replace(outcome, token_usage=None, cost_usd=cost)
        return replace(outcome, token_usage=None, cost_usd=cost, shared=True)

    async def _decide(self, question: RubricQuestion, context: AssertionContext, vote: int) -> Verdict | JudgeFailure:
        usage, reply, problem = UsageTotal(), "", ""
        looked = context.judge_workspace is None
        for attempt in range(1, _REQUESTS + 1):
            response = await self._send(self._request(question, context, vote, attempt))
            if isinstance(response, Failure):
                return self._failed(response, reply, usage)
            usage, reply = usage.plus(response), speakable(response.output or "")
            trace = response.trace  # of a judge that may look; what is no whole trace cannot show that it did not
            if trace is None or trace.partial or any(not call.failed for call in trace.tool_calls):
                looked = True
            evidence, undecided = _evidence(reply, question), False
            try:
                if not looked:
                    raise UnreadableError("no tool was used, so that nothing was looked at")  # noqa: TRY301
                reading = read_reply(said_in(response), question)
            except UnreadableError as error:
                problem = str(error)
                repairs = attempt < _REQUESTS and isinstance(error, UnconfirmedError)
                if question.rubric.mode != "scale" or repairs:
                    question = question.again(reply, problem)
                    continue
                # eva's rule: a reply without a verdict fails the answer, without another call
                reason, undecided = f"the judge's reply is not a verdict: {problem}", True
                check = Check(reason, passed=False, evidence=evidence or None)
                reading = ReadVerdict(0.0, (check,), reason, None, passed=False)
            cuts = {"characters_left_out": dict(question.left_out)} if question.left_out else EMPTY
            return Verdict(
                score=reading.score,
                checks=reading.checks,
                reason=reading.reason,
                reply=evidence,
                satisfied=reading.satisfied,
                token_usage=usage.token_usage,
                cost_usd=usage.cost_usd,
                passed=reading.passed,
                undecided=undecided,
                details={**reading.details, **cuts},
            )
        return self._unreadable(without(question.nonces, reply, "…"), problem, usage)

    def _request(
        self, question: RubricQuestion | ChoiceQuestion, context: AssertionContext, vote: int, attempt: int
    ) -> TargetRequest:
        request = TargetRequest(
            case_id=context.case_id,
            prompt=prompt_text(question.messages),
            messages=question.messages,
            vars=context.vars,
            metadata=context.metadata,
            attempt=attempt,
            sample=vote,
            timeout_s=self.timeout_s,
            env=self._env,
            temperature=question.temperature,
            schema=question.schema,
            nonces=question.nonces,
        )
        place = context.judge_workspace
        if place is None:
            return request
        return replace(
            request,
            env=place.sandbox.environment(self._own_env),
            workspace_path=place.path,
            workspace_key=place.sha256,
            sandbox=place.sandbox,
            max_turns=place.max_turns,
        )

    async def _send(self, request: TargetRequest) -> TargetResponse | Failure:
        answer = self._target.answer(request)
        return answer if isinstance(answer, TargetResponse | Failure) else await answer

    def _failed(self, failure: Failure, reply: str = "", usage: UsageTotal = _NO_USAGE) -> JudgeFailure:
        return JudgeFailure(
            f"judge-{failure.code.removeprefix('judge-')}",
            f"judge '{self.name}' failed: {failure.message}",
            failure.retryable,
            shorten(reply, REPLY_KEPT),
            usage.token_usage,
            usage.cost_usd,
        )

    def _unreadable(self, reply: str, problem: str, usage: UsageTotal) -> JudgeFailure:
        message = f"judge '{self.name}' gave no readable verdict: {problem}"
        if reply.strip():
            message += f"; it replied {shorten(reply, 200)!r}"
        return JudgeFailure(
            "unreadable-verdict",
            message,
            reply=shorten(reply, REPLY_KEPT),
            token_usage=usage.token_usage,
            cost_usd=usage.cost_usd,
        )


def _key(question: RubricQuestion, context: AssertionContext, vote: int) -> bytes:
    """The same for questions that are the same in all that a target gets to see, and in how the reply is read.

    The fence and the word are others each time, so they are taken out; nothing else of a text can hold them.
    """
    messages = [without(question.nonces, message.text) for message in question.messages]
    place = context.judge_workspace
    files = () if place is None else (place.sha256,)
    calls = tuple(call for message in context.messages for call in message.tool_calls)
    content = repr((question.rubric, vote, dict(context.vars), dict(context.metadata), calls, *files))
    key = sha256()
    for text in (*messages, content, context.output or "", context.prompt, context.case_id):
        part = text.encode(errors="surrogatepass")
        key.update(len(part).to_bytes(8, "big"))  # so that no two lists of parts look the same
        key.update(part)
    return key.digest()


def _evidence(reply: str, question: RubricQuestion) -> str:
    """A reply as evidence, without what is new for each call: runs of the same replies have the same rows."""
    return shorten(without(question.nonces, reply, "…"), REPLY_KEPT)
