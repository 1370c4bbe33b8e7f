"""The steps of a conversation: what was said and called, each result with the call that it belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from agentv.extensions.agents.traces.messages import Spoken, SpokenCall, SpokenResult, messages_in
from agentv.extensions.agents.traces.values import Problems, text_of
from agentv.model.values.json_text import compact, plain
from agentv.model.values.response import Failure
from agentv.model.values.tool_names import names_of_call
from agentv.model.values.trace import MessageStep, Step, ToolCallStep, Trace, UsageStep
from agentv.model.values.values import Json


def trace_of_messages(rows: Sequence[Json], source: str = "transcript") -> Trace | Failure:
    """The trace that a transcript gives.

    Args:
        rows: messages in any of the forms of `messages`.
        source: of the trace.

    Returns:
        A Failure where no row is a message or a call; a partial trace where some are not.
    """
    try:
        rows = plain(rows)
    except ValueError as error:
        return Failure("bad-trace", f"the transcript cannot be read: {error}")
    conversation = Conversation()
    for one in messages_in(rows, None, conversation.problems):
        conversation.add(one)
    steps, problems = conversation.steps, str(conversation.problems)
    if not steps:
        return Failure("bad-trace", f"the transcript has no messages{f': {problems}' if problems else ''}")
    return Trace(tuple(steps), source=source, partial=problems)


class Conversation:
    """Takes messages in their order. A result finds its call by its id, else by its name, else the first open one."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.problems = Problems()
        self._open: list[int] = []
        self._system = ""

    def add(self, said: Spoken) -> None:
        """Add a message with its calls and results."""
        for result in said.results:
            self._result(result)
        if said.role == "tool" or (said.role == "system" and said.text == self._system):
            return  # pydantic-ai repeats its instructions in each request
        self._system = said.text if said.role == "system" else self._system
        if said.text or said.reasoning or not (said.calls or said.tokens):
            self.steps.append(MessageStep(said.role, said.text, said.reasoning or None))
        if said.tokens is not None:
            self.steps.append(UsageStep(said.model, said.tokens, said.cost_usd))
        for call in said.calls:
            if call.status == "unknown":
                self._open.append(len(self.steps))
            self.steps.append(step_of(call))

    def _result(self, result: SpokenResult) -> None:
        place = next(self._matching(result), None)
        if place is None:
            self.problems.note("a tool's result belongs to no call")
            return
        self._open.remove(place)
        step = self.steps[place]
        assert isinstance(step, ToolCallStep)  # noqa: S101  # only calls are open
        self.steps[place] = with_result(step, result)

    def _matching(self, result: SpokenResult) -> Iterator[int]:
        for place in self._open:
            step = self.steps[place]
            assert isinstance(step, ToolCallStep)  # noqa: S101  # only calls are open
            is_named = bool(result.call) or not result.name or step.native_name == result.name
            if is_named and (step.id == result.call or not (result.call and step.id)):
                yield place


def step_of(call: SpokenCall, started_ms: float | None = None, parent: str | None = None) -> ToolCallStep:
    """The step of a call that a model asked for."""
    name, native = names_of_call(call.name, call.arguments)
    return ToolCallStep(
        name,
        call.arguments,
        call.native_name or native,
        call.id or None,
        call.result,
        call.error,
        call.status,
        started_ms,
        call.duration_ms,
        parent,
    )


def with_result(step: ToolCallStep, result: SpokenResult) -> ToolCallStep:
    """The step of a call with its result, as text."""
    value = result.value
    said = compact(value) if isinstance(value, Mapping) and "type" not in value else text_of(value)
    if result.failed:
        return replace(step, error=said or "the tool failed", status="failed")
    return replace(step, result=said, status="completed")
