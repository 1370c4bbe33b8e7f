"""Judges for tests: targets that answer as a judge would, well or badly, and a judge that needs no target."""

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
"""A reason that no answer of a test holds, under the keys of all modes."""

_CONFIRM = re.compile(r'(?:"confirm": "|CONFIRM=)([0-9a-f]{16})')


def answered(output: str | None, prompt: str = "What is 15 + 27?", **known) -> AssertionContext:
    """The context of one answer to one question."""
    return AssertionContext(input=(Message("user", prompt),), output=output, **known)


def shown_answer(request: TargetRequest) -> str:
    """The answer that a judge is shown, without its markers."""
    return _FENCED.search(request.messages[1].text)[2]


def shown_fence(request: TargetRequest) -> str:
    """The answer that a judge is shown, with its markers."""
    return _FENCED.search(request.messages[1].text)[0]


def token_of(request: TargetRequest) -> str:
    """What the markers of a request end in."""
    return _FENCED.search(request.messages[1].text)[1]


@dataclass
class Saying:
    """A target with fixed replies: one a request, the last of them for ever."""

    replies: list[TargetResponse | Failure | str]
    requests: list[TargetRequest] = field(default_factory=list)

    def answer(self, request: TargetRequest) -> TargetResponse | Failure:
        self.requests.append(request)
        reply = self.replies[min(len(self.requests), len(self.replies)) - 1]
        return TargetResponse(reply) if isinstance(reply, str) else reply

    async def close(self) -> None:
        pass


@dataclass
class Replying:
    """A target whose reply is made from the request; it may be awaited for."""

    reply: Callable[[TargetRequest], str]
    requests: list[TargetRequest] = field(default_factory=list)

    async def answer(self, request: TargetRequest) -> TargetResponse | Failure:
        self.requests.append(request)
        return TargetResponse(self.reply(request))

    async def close(self) -> None:
        pass


def word_of(request: TargetRequest) -> str:
    """The word that a request asks for in the verdict."""
    said = "\n".join(message.text for message in request.messages if message.role != "assistant")
    return _CONFIRM.findall(said)[-1]


def honest(verdict: dict | str) -> Callable[[TargetRequest], str]:
    """What a judge replies that has made up its mind, and says so with the word that it is asked for.

    Asked again, it gives its reasons in words of its own, as it is told to.
    """

    def reply(request: TargetRequest) -> str:
        if isinstance(verdict, str):
            return verdict.replace(" REASON=", f" CONFIRM={word_of(request)} REASON=")
        own = OWN_WORDS if len(request.messages) > 2 else {}
        return json.dumps(verdict | own | {"confirm": word_of(request)})

    return reply


@dataclass
class Deciding:
    """A judge with a fixed verdict, for what asks judges."""

    verdict: Verdict | Failure
    rubrics: list[Rubric] = field(default_factory=list)

    async def assess(self, rubric: Rubric, context: AssertionContext) -> Verdict | Failure:
        self.rubrics.append(rubric)
        return self.verdict

    async def ask(self, prompt: str) -> str | Failure:
        return self.verdict if isinstance(self.verdict, Failure) else self.verdict.reply


@dataclass
class JudgeServices:
    """The services of a run, of which only the judge is there."""

    in_force: object
    asked: list[str | None] = field(default_factory=list)

    def judge(self, name: str | None):
        self.asked.append(name)
        return self.in_force
