"""A judge made of any target: asks it, reads its reply, asks once more where that cannot be read (SPEC section 9)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agentv.judge.choice import ChoiceQuestion, Chosen, choice_questions, joined
from agentv.judge.question import Question, question_about
from agentv.judge.reply import read_reply
from agentv.judge.shapes import Reading, UnreadableError, speakable
from agentv.model.choice import Choice
from agentv.model.context import AssertionContext
from agentv.model.message import Message, prompt_text
from agentv.model.response import Failure, TargetResponse, TokenUsage
from agentv.model.rubric import JudgeFailure, Rubric, Verdict
from agentv.model.suite import JUDGE_TIMEOUT_S
from agentv.ports import Target, TargetRequest
from agentv.templating import RenderError

REPLY_KEPT = 4_000
"""Characters of a reply that are kept as evidence."""

_REQUESTS = 2
"""The question, and one repair request."""


@dataclass(frozen=True, slots=True)
class _Spent:
    """What the calls for one verdict took together; None where no call said."""

    token_usage: TokenUsage | None = None
    cost_usd: float | None = None

    def and_for(self, response: TargetResponse) -> _Spent:
        usage, cost = response.token_usage, response.cost_usd
        if self.token_usage is not None:
            usage = self.token_usage if usage is None else self.token_usage + usage
        if self.cost_usd is not None:
            cost = self.cost_usd + (cost or 0.0)
        return _Spent(usage, cost)


class TargetJudge:
    """The judge port over a connected target. It holds nothing that changes, so calls may overlap.

    Args:
        target: asked as a system under test would be; it stays its maker's to close.
        name: the judge's name, for messages.
        timeout_s: seconds that one call may take, told to the target; whoever awaits the judge sets the real limit.
        env: the environment that processes of the target get, complete.
    """

    def __init__(
        self,
        target: Target,
        name: str,
        *,
        timeout_s: float = JUDGE_TIMEOUT_S,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self._target = target
        self._timeout_s = timeout_s
        self._env = env or {}

    async def ask(self, prompt: str) -> TargetResponse | Failure:
        """The target's answer to a prompt; empty or missing is a failure, `judge-empty-output`."""
        request = TargetRequest("", prompt, (Message("user", prompt),), timeout_s=self._timeout_s, env=self._env)
        response = await self._send(request)
        if isinstance(response, Failure):
            return self._failed(response)
        if response.output is None or not response.output.strip():
            return Failure("judge-empty-output", f"judge '{self.name}' answered nothing")
        return replace(response, output=speakable(response.output))

    async def choose(self, criteria: str, contexts: Sequence[AssertionContext]) -> Choice | Failure:
        """The best of several answers, asked for in two orders; a JudgeFailure where one of them gives no choice."""
        questions = choice_questions(criteria, contexts)
        first, second = await asyncio.gather(*(self._chosen(question, contexts[0]) for question in questions))
        if isinstance(first, JudgeFailure):
            return first
        return second if isinstance(second, JudgeFailure) else joined(first, second)

    async def _chosen(self, question: ChoiceQuestion, context: AssertionContext) -> Chosen | JudgeFailure:
        spent, reply, problem, messages = _Spent(), "", "", question.messages
        for attempt in range(1, _REQUESTS + 1):
            request = TargetRequest(
                case_id=context.case_id,
                prompt=prompt_text(messages),
                messages=messages,
                vars=context.vars,
                metadata=context.metadata,
                attempt=attempt,
                timeout_s=self._timeout_s,
                env=self._env,
                temperature=0.0,
                schema=question.schema,
            )
            response = await self._send(request)
            if isinstance(response, Failure):
                return self._failed(response, reply, spent)
            spent, reply = spent.and_for(response), speakable(response.output or "")
            try:
                best, reason = question.read(reply)
            except UnreadableError as error:
                problem, messages = str(error), question.again(reply, str(error))
            else:
                return Chosen(best, reason, spent.token_usage, spent.cost_usd)
        return self._unreadable(reply, problem, spent)

    async def assess(self, rubric: Rubric, context: AssertionContext) -> Verdict | Failure:
        """The verdict on the context's answer; a JudgeFailure where there is none.

        Its code is that of the target's failure behind `judge-`, `unreadable-verdict` when the second reply cannot be
        read either, or says what is wrong with the rubric's own prompt.
        """
        try:
            question = question_about(rubric, context)
        except RenderError as error:
            return JudgeFailure(error.code, f"the judge prompt {_place(rubric)}: {error.message}")
        spent, reply, problem = _Spent(), "", ""
        for attempt in range(1, _REQUESTS + 1):
            response = await self._send(self._request(question, context, attempt))
            if isinstance(response, Failure):
                return self._failed(response, reply, spent)
            spent, reply = spent.and_for(response), speakable(response.output or "")
            try:
                return _verdict(read_reply(reply, question), reply, spent)
            except UnreadableError as error:
                problem = str(error)
            question = question.again(reply, problem)
        return self._unreadable(reply, problem, spent)

    def _request(self, question: Question, context: AssertionContext, attempt: int) -> TargetRequest:
        return TargetRequest(
            case_id=context.case_id,
            prompt=prompt_text(question.messages),
            messages=question.messages,
            vars=context.vars,
            metadata=context.metadata,
            attempt=attempt,
            timeout_s=self._timeout_s,
            env=self._env,
            temperature=question.rubric.temperature,
        )

    async def _send(self, request: TargetRequest) -> TargetResponse | Failure:
        answer = self._target.answer(request)
        return answer if isinstance(answer, TargetResponse | Failure) else await answer

    def _failed(self, failure: Failure, reply: str = "", spent: _Spent = _Spent()) -> JudgeFailure:
        return JudgeFailure(
            f"judge-{failure.code.removeprefix('judge-')}",
            f"judge '{self.name}' failed: {failure.message}",
            failure.retryable,
            _cut(reply, REPLY_KEPT),
            spent.token_usage,
            spent.cost_usd,
        )

    def _unreadable(self, reply: str, problem: str, spent: _Spent) -> JudgeFailure:
        message = f"judge '{self.name}' gave no verdict that can be read: {problem}"
        if reply.strip():
            message += f"; it replied {_cut(reply, 200)!r}"
        return JudgeFailure(
            "unreadable-verdict",
            message,
            reply=_cut(reply, REPLY_KEPT),
            token_usage=spent.token_usage,
            cost_usd=spent.cost_usd,
        )


def _verdict(reading: Reading, reply: str, spent: _Spent) -> Verdict:
    return Verdict(
        score=reading.score,
        checks=reading.checks,
        reason=reading.reason,
        reply=_cut(reply, REPLY_KEPT),
        satisfied=reading.satisfied,
        token_usage=spent.token_usage,
        cost_usd=spent.cost_usd,
    )


def _place(rubric: Rubric) -> str:
    return rubric.prompt_path or ("given inline" if rubric.prompt else f"'{rubric.mode}'")


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
