"""Judges for tests: targets that reply as a judge would, well or badly, and a judge without a target."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from agentv.model.run.context import AssertionContext
from agentv.model.run.rubric import Rubric, Verdict
from agentv.model.values.message import Message
from agentv.model.values.response import Failure, TargetResponse
from agentv.ports import TargetRequest

_FENCED = re.compile(r"<answer-([0-9a-f]{16})>\n(.*)\n</answer-\1>", re.DOTALL)
OWN_WORDS = {"reason": "So it seems to me.", "overall_reasoning": "So it seems to me."}
"""A reason that occurs in no test's answer, under the keys of all modes."""

_CONFIRM = re.compile(r'(?:"confirm": "|CONFIRM=)([0-9a-f]{16})')


def answer_context(output: str | None, prompt: str = "What is 15 + 27?", **known) -> AssertionContext:
    """Return the context of one answer to one question."""
    return AssertionContext(input=(Message("user", prompt),), output=output, **known)


def shown_answer(request: TargetRequest) -> str:
    """Return the answer shown to a judge, without its markers."""
    return _FENCED.search(request.messages[1].text)[2]


def shown_fence(request: TargetRequest) -> str:
    """Return the answer shown to a judge, with its markers."""
    return _FENCED.search(request.messages[1].text)[0]


def fence_token(request: TargetRequest) -> str:
    """Return the token at the end of a request's markers."""
    return _FENCED.search(request.messages[1].text)[1]


@dataclass
class FixedReplies:
    """A target with fixed replies, one per request; the last one repeats."""

    replies: list[TargetResponse | Failure | str]
    requests: list[TargetRequest] = field(default_factory=list)

    def answer(self, request: TargetRequest) -> TargetResponse | Failure:
        self.requests.append(request)
        reply = self.replies[min(len(self.requests), len(self.replies)) - 1]
        return TargetResponse(reply) if isinstance(reply, str) else reply

    async def close(self) -> None:
        pass


@dataclass
class ComputedReplies:
    """A target whose reply, perhaps awaitable, is made from the request."""

    reply: Callable[[TargetRequest], str]
    requests: list[TargetRequest] = field(default_factory=list)

    async def answer(self, request: TargetRequest) -> TargetResponse | Failure:
        self.requests.append(request)
        return TargetResponse(self.reply(request))

    async def close(self) -> None:
        pass


def confirmation_word(request: TargetRequest) -> str:
    said = "\n".join(message.text for message in request.messages if message.role != "assistant")
    return _CONFIRM.findall(said)[-1]


def honest(verdict: dict | str) -> Callable[[TargetRequest], str]:
    """Return a function that replies with a fixed verdict and the requested confirmation word.

    When asked again, it states the reasons in its own words, as requested.
    """

    def reply(request: TargetRequest) -> str:
        if isinstance(verdict, str):
            return verdict.replace(" REASON=", f" CONFIRM={confirmation_word(request)} REASON=")
        own = OWN_WORDS if len(request.messages) > 2 else {}
        return json.dumps(verdict | own | {"confirm": confirmation_word(request)})

    return reply


@dataclass
class FixedVerdict:
    """A judge with a fixed verdict, for tests of its callers."""

    verdict: Verdict | Failure
    rubrics: list[Rubric] = field(default_factory=list)

    async def assess(self, rubric: Rubric, context: AssertionContext) -> Verdict | Failure:
        self.rubrics.append(rubric)
        return self.verdict

    async def ask(self, prompt: str) -> str | Failure:
        return self.verdict if isinstance(self.verdict, Failure) else self.verdict.reply


@dataclass
class JudgeServices:
    """Services of a run that provide only the judge."""

    in_force: object
    asked: list[str | None] = field(default_factory=list)

    def judge(self, name: str | None):
        self.asked.append(name)
        return self.in_force
