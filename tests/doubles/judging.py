"""Assertion types that use a judge, with fixed replies and all other services of a run."""

import asyncio
import json
import os
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from agentv.engine.transform import value_of
from agentv.judge.target import TargetJudge
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Grade
from agentv.ports import TargetRequest
from agentv.user_code.threads import DaemonThreads
from doubles.judges import FixedReplies, answer_context


@dataclass
class JudgeRun:
    """Services of a run whose judge always gives the same reply and records the requests."""

    verdict: Any
    executor: Any = None
    javascript: Any = None
    judge_target: FixedReplies = field(init=False)

    def __post_init__(self) -> None:
        reply = self.verdict if isinstance(self.verdict, str) else json.dumps(self.verdict)
        self.judge_target = FixedReplies([reply])

    def judge(self, name: str | None) -> TargetJudge:
        return TargetJudge(self.judge_target, name or "judge")

    async def evaluate(self, transform: Any, context: AssertionContext) -> Any:
        return await value_of(transform, context)

    @property
    def request(self) -> TargetRequest:
        return self.judge_target.requests[0]

    @property
    def asked(self) -> str:
        """The task of the first request, without the rules."""
        return "\n".join(message.text for message in self.request.messages[1:])


async def grade_within(assertion: Any, run: JudgeRun, output: str | None, **known: Any) -> Grade:
    """Return the grade, with its own threads."""
    run.executor = DaemonThreads()
    try:
        context = replace(answer_context(output, **{"env": dict(os.environ), **known}), _services=run)
        return await assertion.grade(context)
    finally:
        await run.executor.aclose()


def grade_judged(
    assertion: Any, verdict: Any, output: str | None = "It is Paris.", **known: Any
) -> tuple[Grade, JudgeRun]:
    """Grade an answer by a judge with this verdict; return the grade and the run with the judge's requests."""
    run = JudgeRun(verdict)
    return asyncio.run(grade_within(assertion, run, output, **known)), run
