"""Grade one answer in a test, with a context and its services."""

import asyncio
import inspect
import os
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Grade
from agentv.model.values.message import Message
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.usage import TokenUsage
from agentv.user_code.threads import DaemonThreads


@dataclass
class FixedReplyJudge:
    """A judge that answers with a fixed reply and records the prompts."""

    reply: str | Failure
    prompts: list[str]

    async def ask(self, prompt: str) -> TargetResponse | Failure:
        self.prompts.append(prompt)
        if isinstance(self.reply, Failure):
            return self.reply
        return TargetResponse(self.reply, token_usage=TokenUsage(input=10, total=12), cost_usd=0.25)

    async def assess(self, rubric: Any, context: AssertionContext) -> Failure:
        raise NotImplementedError


@dataclass
class Services:
    """The services of a run that graders need in tests."""

    executor: Any = None
    javascript: Any = None
    asked: FixedReplyJudge | None = None

    def judge(self, name: str | None) -> Any:
        assert name is None
        return self.asked

    async def grade(self, entries: Any, context: Any) -> Any:
        raise NotImplementedError


def context_of(output: str | None = "hello there you", **others: Any) -> AssertionContext:
    given = {"input": (Message("user", "say hello"),), "env": dict(os.environ), **others}
    return AssertionContext(output=output, **given)


async def grade_async(assertion: Any, context: AssertionContext | None = None, **services: Any) -> Grade:
    """Return the grade of an assertion, with its own threads and workers."""
    (grade,) = await grade_concurrently(assertion, 1, context, **services)
    return grade


async def grade_concurrently(
    assertion: Any, times: int, context: AssertionContext | None = None, **services: Any
) -> list[Grade]:
    """Return the grades of an assertion that grades several times concurrently."""
    executor = DaemonThreads()
    whole = replace(context or context_of(), _services=Services(executor, **services))

    async def one() -> Grade:
        grade = assertion.grade(whole)
        return await grade if inspect.isawaitable(grade) else grade

    try:
        return await asyncio.gather(*(one() for _ in range(times)))
    finally:
        await executor.aclose()


def grade(assertion: Any, output: str | None = "hello there you", **others: Any) -> Grade:
    return asyncio.run(grade_async(assertion, context_of(output, **others)))
