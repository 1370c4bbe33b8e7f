"""A judge backed by any target: it asks, reads the reply, and asks once more if it is unreadable (SPEC section 9)."""

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

from agentv.judge.material import CONFIRM, Delimiter, Excerpt, new_word, replace_words
from agentv.judge.question import RubricQuestion, asked_judge, built_in, question_of
from agentv.judge.reply import UnconfirmedError, UsageTotal, median_of_votes, read_reply, reply_text, verdicts_in
from agentv.judge.shapes import TEXT, ReadVerdict, UnreadableError, closed, without_surrogates
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
    """A question which answer is best, with the answers in one order.

    Attributes:
        places: id of an answer in this question → its place among all answers. The ids are new for each question, so
            that no answer can name itself.
        token: token of the delimiters around the answers.
        word: the confirmation word that the choice must carry; only our instruction contains it.
        earlier: the confirmation words of earlier requests.
    """

    messages: tuple[Message, ...]
    places: dict[str, int]
    token: str
    word: str
    earlier: tuple[str, ...] = ()
    temperature: ClassVar[float] = 0.0

    @property
    def nonces(self) -> tuple[str, ...]:
        """Random values that are new in each question."""
        return (self.token, *self.places, *self.earlier, self.word)

    @property
    def schema(self) -> JsonObject:
        """JSON Schema of the reply."""
        best: JsonObject = {"type": "string", "enum": list(self.places)}
        return closed({"reason": TEXT, "best": best, CONFIRM: TEXT})

    def again(self, reply: str, problem: str) -> ChoiceQuestion:
        """Return the request after an unreadable reply, with a new confirmation word."""
        word = new_word()
        shape = f'{{"reason": <why>, "best": <id>, "{CONFIRM}": "{word}"}}'
        request = f"Your reply cannot be used: {problem}. Reply with {shape} and nothing else."
        previous = (Message("assistant", reply),) if reply.strip() else ()
        messages = (*self.messages, *previous, Message("user", request))
        return dataclasses.replace(self, messages=messages, word=word, earlier=(*self.earlier, self.word))

    def read(self, said: str) -> tuple[int, str | None]:
        """Return the place of the chosen answer, and the reason.

        Raises:
            UnreadableError: there is no choice, an unknown id is chosen, or several choices disagree.
        """
        rows, _ = verdicts_in(said, "best", self.word)
        chosen = {f"{row['best']}" for row in rows}
        if not chosen <= self.places.keys():
            raise UnreadableError(f"'best' must be one of {', '.join(self.places)}")
        if len(chosen) > 1:
            raise UnreadableError("it contains several choices that disagree")
        reason = rows[-1].get("reason")
        return self.places[chosen.pop()], reason if isinstance(reason, str) and reason.strip() else None


def choice_questions(criteria: str, contexts: Sequence[AssertionContext]) -> tuple[ChoiceQuestion, ChoiceQuestion]:
    """Return the question which answer is best, in an order given by the case's id and in the reverse order.

    Judges tend to prefer the first or the last answer, so a choice that changes with the order is a tie. Source: L.
    Zheng et al., Judging LLM-as-a-Judge with MT-Bench and Chatbot Arena, 2023, section 3.3.
    """
    order = list(range(len(contexts)))
    random.Random(contexts[0].case_id).shuffle(order)  # noqa: S311  # it must be the same in each run
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
    word = new_word()
    rules = built_in("choice")
    for name, value in (("token", delimiter.token), ("mark", word), ("ids", ", ".join(places))):
        rules = rules.replace(f"{{{{ {name} }}}}", value)
    rubric, first = delimiter.around("criteria", criteria), contexts[0]
    task = f"The task:\n{delimiter.around('task', first.prompt)}\n\n"
    if first.metadata:
        metadata = json.dumps(first.metadata, ensure_ascii=False, indent=2)
        task += f"The metadata of the case:\n{delimiter.around('metadata', metadata)}\n\n"
    task += f"The criteria:\n{rubric}\n\nThe answers:\n{shown}"
    return ChoiceQuestion((Message("system", rules), Message("user", task)), places, delimiter.token, word)


T = TypeVar("T")


@dataclass(slots=True)
class _SharedCall(Generic[T]):
    """A running call, and the deadline of the caller that started it."""

    task: asyncio.Task[T]
    limit: Deadline | None
    waiting: int = 0

    def share_deadline(self) -> AbstractContextManager[None]:
        """Return a context that extends the current caller's deadline when that of the first caller is paused."""
        own = LIMIT.get()
        if own is None or self.limit is None or own is self.limit:
            return nullcontext()
        return self.limit.shared_by(own, asyncio.get_running_loop().time)


class SharedCalls(Generic[T]):
    """Outcomes of calls by key, shared by concurrent callers.

    Args:
        keeps: returns whether an outcome is cached; others only go to the callers that waited for them.
        most: maximum number of cached outcomes; the least recently used one is dropped first.
    """

    def __init__(self, keeps: Callable[[T], bool], most: int) -> None:
        self._keeps = keeps
        self._most = most
        self._kept: OrderedDict[bytes, T] = OrderedDict()
        self._running: dict[bytes, _SharedCall[T]] = {}

    async def once(self, key: bytes, call: Callable[[], Coroutine[Any, Any, T]]) -> tuple[T, bool]:
        """Return the outcome for a key, and whether another caller's call gave it.

        If a caller is cancelled, the call goes on for the others that wait for it; the last one to leave cancels it.
        """
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key], True
        running = self._running.get(key)
        shared = running is not None
        if running is None:
            running = self._running[key] = _SharedCall(asyncio.create_task(call()), LIMIT.get())
        return await self._outcome(key, running), shared

    async def _outcome(self, key: bytes, running: _SharedCall[T]) -> T:
        running.waiting += 1
        try:
            with running.share_deadline():
                outcome = await asyncio.shield(running.task)
        except asyncio.CancelledError:
            if running.waiting == 1 and not running.task.done():
                self._forget(key, running)  # first, so that no new caller waits for it
                running.task.cancel()
                await asyncio.wait({running.task})  # until it has cleaned up
            raise
        finally:
            running.waiting -= 1
            if running.task.done():
                self._forget(key, running)
        if self._keeps(outcome):
            self._kept[key] = outcome
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return outcome

    def _forget(self, key: bytes, running: _SharedCall[T]) -> None:
        if self._running.get(key) is running:
            del self._running[key]


MAX_EVIDENCE = 4_000
"""Maximum number of characters of a reply that are kept as evidence."""

CACHED_VERDICTS = 1_000
"""Maximum number of verdicts that a judge caches, about 1 KB each. Samples of one case are judged close together."""

_MAX_REQUESTS = 2
"""Maximum number of requests: the question, and one repair request."""


_NO_USAGE = UsageTotal()


class TargetJudge:
    """A judge that calls a connected target. Calls may overlap.

    A question is asked only once, unless the rubric's temperature is above 0.

    Args:
        target: called like a system under test; the judge does not close it.
        name: the judge's name, for messages.
        timeout_s: timeout of one call in seconds, passed to the target; the caller of the judge enforces it.
        env: the complete environment of the target's processes.
        own_env: environment variables set by the target itself, for an agent in a copy of the workspace.
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
        # failures are not cached, since a later call may succeed
        self._calls: SharedCalls[Verdict | JudgeFailure] = SharedCalls(
            lambda one: isinstance(one, Verdict), CACHED_VERDICTS
        )

    async def ask(self, prompt: str) -> TargetResponse | Failure:
        """Return the target's answer to a prompt; an empty or missing one is a Failure `judge-empty-output`."""
        request = TargetRequest("", prompt, (Message("user", prompt),), timeout_s=self.timeout_s, env=self._env)
        response = await self._send(request)
        if isinstance(response, Failure):
            return self._failed(response)
        if response.output is None or not response.output.strip():
            return Failure("judge-empty-output", f"judge '{self.name}' returned an empty reply")
        return replace(response, output=without_surrogates(response.output))

    async def choose(self, criteria: str, contexts: Sequence[AssertionContext]) -> Choice | Failure:
        """Return the best of several answers, asked in two orders, or a JudgeFailure if one order gives no choice."""
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
        """Return the place of the answer chosen in one order, the reason, and the usage of the calls."""
        usage, reply, problem = UsageTotal(), "", ""
        for attempt in range(1, _MAX_REQUESTS + 1):
            response = await self._send(self._request(question, context, 1, attempt))
            if isinstance(response, Failure):
                return self._failed(response, reply, usage)
            usage, reply = usage.plus(response), without_surrogates(response.output or "")
            try:
                return (*question.read(reply_text(response)), usage)
            except UnreadableError as error:
                problem = str(error)
                question = question.again(reply, problem)
        return self._unreadable(reply, problem, usage)

    async def assess(self, rubric: Rubric, context: AssertionContext) -> Verdict | Failure:
        """Return the verdict on the context's answer, the median of all votes, or a JudgeFailure.

        The failure's code is `judge-` and that of the target's failure, `unreadable-verdict` if the second reply is
        unreadable too, or a code for an error in the rubric's own prompt. On a scale, an unreadable verdict fails the
        answer (SPEC section 9).
        """
        outcome: Verdict | Failure
        votes = range(1, rubric.votes + 1)
        if rubric.votes == 1:
            outcome = await self._vote(rubric, context, 1)
        elif context.judge_workspace is not None:  # its agents work one after the other
            outcome = median_of_votes([await self._vote(rubric, context, vote) for vote in votes])
        else:
            outcome = median_of_votes(await asyncio.gather(*(self._vote(rubric, context, vote) for vote in votes)))
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
        # another caller's call costs nothing again; an unknown cost stays unknown
        cost = None if outcome.cost_usd is None else 0.0
        if isinstance(outcome, JudgeFailure):
            return replace(outcome, token_usage=None, cost_usd=cost)
        return replace(outcome, token_usage=None, cost_usd=cost, shared=True)

    async def _decide(self, question: RubricQuestion, context: AssertionContext, vote: int) -> Verdict | JudgeFailure:
        usage, reply, problem = UsageTotal(), "", ""
        looked = context.judge_workspace is None
        for attempt in range(1, _MAX_REQUESTS + 1):
            response = await self._send(self._request(question, context, vote, attempt))
            if isinstance(response, Failure):
                return self._failed(response, reply, usage)
            usage, reply = usage.plus(response), without_surrogates(response.output or "")
            trace = response.trace  # without a complete trace, a judge that may look at files is assumed to have looked
            if trace is None or trace.partial or any(not call.failed for call in trace.tool_calls):
                looked = True
            evidence, undecided = _evidence(reply, question), False
            try:
                if not looked:
                    raise UnreadableError("no tool was used, so that nothing was looked at")  # noqa: TRY301
                reading = read_reply(reply_text(response), question)
            except UnreadableError as error:
                problem = str(error)
                repairs = attempt < _MAX_REQUESTS and isinstance(error, UnconfirmedError)
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
        return self._unreadable(replace_words(question.nonces, reply, "…"), problem, usage)

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
            shorten(reply, MAX_EVIDENCE),
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
            reply=shorten(reply, MAX_EVIDENCE),
            token_usage=usage.token_usage,
            cost_usd=usage.cost_usd,
        )


def _key(question: RubricQuestion, context: AssertionContext, vote: int) -> bytes:
    """Return a key that is the same for questions that agree in all that a target sees and in how the reply is read.

    The delimiter's token and the confirmation words differ each time, so they are removed; no other text contains them.
    """
    messages = [replace_words(question.nonces, message.text) for message in question.messages]
    place = context.judge_workspace
    files = () if place is None else (place.sha256,)
    calls = tuple(call for message in context.messages for call in message.tool_calls)
    content = repr((question.rubric, vote, dict(context.vars), dict(context.metadata), calls, *files))
    key = sha256()
    for text in (*messages, content, context.output or "", context.prompt, context.case_id):
        part = text.encode(errors="surrogatepass")
        key.update(len(part).to_bytes(8, "big"))  # so that different lists of parts cannot give the same bytes
        key.update(part)
    return key.digest()


def _evidence(reply: str, question: RubricQuestion) -> str:
    """Return a reply as evidence without its random tokens, so that equal replies give equal rows."""
    return shorten(replace_words(question.nonces, reply, "…"), MAX_EVIDENCE)
