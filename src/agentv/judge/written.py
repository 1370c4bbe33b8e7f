"""Prompts that code of the user's writes: it gets the answer behind a fence, and must show it so (SPEC section 9)."""

from __future__ import annotations

from dataclasses import replace

from agentv.judge.fence import Fence
from agentv.judge.question import Question, Written, question_about, variables
from agentv.model.context import AssertionContext
from agentv.model.message import Message
from agentv.model.response import Failure
from agentv.model.rubric import Rubric
from agentv.templating import RenderError


async def question_of(rubric: Rubric, context: AssertionContext) -> Question:
    """The question about the context's answer, whoever writes its prompt.

    Raises:
        RenderError: there is no prompt, or it does not show the answer.
    """
    if rubric.writer is None:
        return question_about(rubric, context)
    fence = Fence.new()
    values = variables(rubric, context, fence)
    found = await rubric.writer.write(values, replace(context, output=str(values["output"])))
    if isinstance(found, Failure):
        raise RenderError(found.code, found.message)
    messages = (Message("user", found),) if isinstance(found, str) else found
    return question_about(rubric, context, Written(messages, fence))
