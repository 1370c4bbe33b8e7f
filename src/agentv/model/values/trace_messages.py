"""The transcript that a trace gives, and an answer completed from its trace."""

from __future__ import annotations

import json
from collections.abc import Iterator

from msgspec.structs import replace

from agentv.model.values.message import Message, ToolCall
from agentv.model.values.response import TargetResponse
from agentv.model.values.trace import MessageStep, ToolCallStep, Trace
from agentv.model.values.values import Json

PARTIAL = "trace_partial"
"""Key of an answer's metadata: why its trace is partial."""


def messages_of(trace: Trace) -> tuple[Message, ...]:
    """What was said and called, in order: each call in the assistant's message before it, with its result."""
    return tuple(_messages(trace))


def _messages(trace: Trace) -> Iterator[Message]:
    said: MessageStep | None = None
    calls: list[ToolCall] = []
    for step in trace.steps:
        if isinstance(step, ToolCallStep):
            calls.append(_call(step))
        elif isinstance(step, MessageStep):
            yield from _turn(said, calls)
            said, calls = step, []
    yield from _turn(said, calls)


def _turn(said: MessageStep | None, calls: list[ToolCall]) -> Iterator[Message]:
    if said is not None and said.role == "assistant":
        yield Message("assistant", said.text, tool_calls=tuple(calls))
        return
    if said is not None:
        yield Message(said.role, said.text)
    if calls:
        yield Message("assistant", "", tool_calls=tuple(calls))


def _call(step: ToolCallStep) -> ToolCall:
    return ToolCall(
        name=step.name,
        arguments=step.arguments,
        id=step.id,
        duration_ms=step.duration_ms,
        output=_text(step.error if step.result is None else step.result),
        native_name=step.native_name or step.name,
    )


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) or value is None else json.dumps(value, ensure_ascii=False)


def model_calls(trace: Trace) -> int:
    """How many calls of models a trace shows: the agent's turns, or what it and its sub-agents used or said."""
    said = sum(message.role == "assistant" for message in messages_of(trace))
    return max(trace.turns, len(trace.usages), said)


def completed(answer: TargetResponse) -> TargetResponse:
    """The answer with what only its trace says: its transcript, and what it used.

    What a partial trace says of use is not all, so it counts as unknown.
    """
    trace = answer.trace
    if trace is None:
        return answer
    if trace.partial:
        known = {**answer.metadata, PARTIAL: trace.partial}  # which a kept answer has, too: its trace is not kept
        return replace(answer, messages=answer.messages or messages_of(trace), metadata=known)
    return replace(
        answer,
        messages=answer.messages or messages_of(trace),
        token_usage=answer.token_usage or trace.tokens,
        cost_usd=trace.cost_usd if answer.cost_usd is None else answer.cost_usd,
        duration_ms=trace.duration_ms if answer.duration_ms is None else answer.duration_ms,
        finish_reason=answer.finish_reason or trace.stop_reason or None,
    )
