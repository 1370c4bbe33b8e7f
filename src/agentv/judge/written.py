"""Prompts that code of the user's writes: it gets the answer behind a fence, and must show it so (SPEC section 9)."""

from __future__ import annotations

from dataclasses import replace

from agentv.judge.delimiter import Delimiter
from agentv.judge.question import TEXTS_OF_THE_CASE, RubricQuestion, WrittenPrompt, question_about, variables
from agentv.model.run.context import AssertionContext
from agentv.model.run.rubric import Rubric
from agentv.model.values.message import Message
from agentv.model.values.response import Failure
from agentv.templating import RenderError


async def question_of(rubric: Rubric, context: AssertionContext) -> RubricQuestion:
    """The question about the context's answer, whoever writes its prompt.

    Raises:
        RenderError: there is no prompt, or it does not show the answer.
    """
    if rubric.writer is None:
        return question_about(rubric, context)
    delimiter = Delimiter.new()
    values = dict(variables(rubric, context, delimiter))
    for name, marker in TEXTS_OF_THE_CASE.items():  # code has no placeholders that could fence what they show
        text = values[name]
        values[name] = delimiter.wrap_data(marker, text) if isinstance(text, str) and text else text
    found = await rubric.writer.write(values, replace(context, output=str(values["output"])))
    if isinstance(found, Failure):
        raise RenderError(found.code, found.message)
    messages = (Message("user", found),) if isinstance(found, str) else found
    return question_about(rubric, context, WrittenPrompt(messages, delimiter))
