"""Messages, events and counts derived from a trace or a transcript; an answer completed from its trace."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import asdict, replace

from agentv.model.values.message import Message, ToolCall
from agentv.model.values.response import TargetResponse
from agentv.model.values.trace import MessageStep, PermissionStep, Step, ToolCallStep, Trace, UsageStep
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import Json


class Spent(Struct, frozen=True):
    """Usage of a call as reported by the target; None if unknown."""

    token_usage: TokenUsage | None = None
    cost_usd: float | None = None
    duration_ms: float | None = None


class ToolCount(Struct, frozen=True):
    """Number of calls of a tool, and how many of them failed."""

    name: str
    calls: int
    errors: int = 0


class TraceSummary(Struct, frozen=True):
    """Counts over the trace or the transcript of one answer.

    Attributes:
        event_count: number of messages and tool calls.
        error_count: number of failed tool and model calls; 0 if there is only a transcript.
        llm_call_count: number of model calls in the trace; assistant messages if there is only a transcript.
        tools: counts by canonical name, in the order of the first calls.
    """

    event_count: int = 0
    tool_calls: int = 0
    error_count: int = 0
    llm_call_count: int = 0
    tools: tuple[ToolCount, ...] = ()
    token_usage: TokenUsage | None = None
    cost_usd: float | None = None
    duration_ms: float | None = None

    def as_json(self) -> dict[str, Json]:
        """Return the JSON object. `tools` is a list, so that tool names are unchanged when keys become camelCase."""
        tools: list[Json] = [asdict(tool) for tool in self.tools]
        return {**asdict(self), "tools": tools, "token_usage": usage_json(self.token_usage)}


def summary_of_messages(messages: Sequence[Message], spent: Spent) -> TraceSummary:
    """Return the counts for a transcript."""
    calls = [call.name for message in messages for call in message.tool_calls]
    return TraceSummary(
        event_count=len(messages) + len(calls),
        tool_calls=len(calls),
        llm_call_count=sum(message.role == "assistant" for message in messages),
        tools=_counted((name, False) for name in calls),
        token_usage=spent.token_usage,
        cost_usd=spent.cost_usd,
        duration_ms=spent.duration_ms,
    )


def summary_of_trace(trace: Trace, spent: Spent) -> TraceSummary:
    """Return the counts for a trace; usage that the target does not report comes from the trace, if it is complete."""
    calls = trace.tool_calls
    seen = Spent() if trace.partial else Spent(trace.tokens, trace.cost_usd, trace.duration_ms)
    return TraceSummary(
        event_count=len(calls) + sum(isinstance(step, MessageStep) for step in trace.steps),
        tool_calls=len(calls),
        error_count=trace.error_count,
        llm_call_count=model_calls(trace),
        tools=_counted((call.name, call.failed) for call in calls),
        token_usage=spent.token_usage or seen.token_usage,
        cost_usd=seen.cost_usd if spent.cost_usd is None else spent.cost_usd,
        duration_ms=seen.duration_ms if spent.duration_ms is None else spent.duration_ms,
    )


def _counted(calls: Iterable[tuple[str, bool]]) -> tuple[ToolCount, ...]:
    counts: dict[str, list[int]] = {}
    for name, failed in calls:
        count = counts.setdefault(name, [0, 0])
        count[0] += 1
        count[1] += failed
    return tuple(ToolCount(name, *count) for name, count in counts.items())


def events_of_messages(messages: Sequence[Message]) -> list[Json]:
    """Return the messages and tool calls of a transcript, in order."""
    events: list[Json] = []
    for message in messages:
        events.append({"type": "message", "role": message.role})
        events += [{"type": "tool_call", "name": call.name, "arguments": call.arguments} for call in message.tool_calls]
    return events


def events_of_trace(trace: Trace) -> list[Json]:
    """Return the steps of a trace as JSON objects, in order."""
    return [_event(step) for step in trace.steps]


def _event(step: Step) -> dict[str, Json]:
    known: dict[str, Json] = {"started_ms": step.started_ms, "parent": step.parent}
    other = {name: value for name, value in known.items() if value is not None}
    if isinstance(step, MessageStep):
        return {"type": "message", "role": step.role, "text": step.text, **other}
    if isinstance(step, PermissionStep):
        return {"type": "permission", "tool": step.tool, "allowed": step.allowed, "reason": step.reason, **other}
    if isinstance(step, UsageStep):
        return {
            "type": "usage",
            "model": step.model,
            "token_usage": usage_json(step.tokens),
            "cost_usd": step.cost_usd,
            "duration_ms": step.duration_ms,
            "error": step.error,
            **other,
        }
    return {
        "type": "tool_call",
        "name": step.name,
        "arguments": step.arguments,
        "native_name": step.native_name or step.name,
        "id": step.id,
        "status": step.status,
        "result": step.result,
        "error": step.error,
        "duration_ms": step.duration_ms,
        "evidence": step.evidence,
        **other,
    }


def provenance_of(trace: Trace) -> Mapping[str, Json]:
    """Return the source of a trace, and whether it is complete."""
    return {
        "source": trace.source,
        "agent": trace.agent,
        "agent_version": trace.agent_version,
        "session_id": trace.session_id,
        "stop_reason": trace.stop_reason,
        "partial": trace.partial or None,
    }


def usage_json(usage: TokenUsage | None) -> Json:
    """Return token counts as a JSON object; None if unknown."""
    return None if usage is None else asdict(usage)


PARTIAL = "trace_partial"
"""Key of an answer's metadata that says why its trace is partial."""


def messages_of(trace: Trace) -> tuple[Message, ...]:
    """Return the messages of a trace, with each tool call and its result in the preceding assistant message."""
    messages: list[Message] = []
    message: MessageStep | None = None
    calls: list[ToolCall] = []
    for step in trace.steps:
        if isinstance(step, ToolCallStep):
            output = step.error if step.result is None else step.result
            if output is not None and not isinstance(output, str):
                output = json.dumps(output, ensure_ascii=False)
            calls.append(
                ToolCall(
                    name=step.name,
                    arguments=step.arguments,
                    id=step.id,
                    duration_ms=step.duration_ms,
                    output=output,
                    native_name=step.native_name or step.name,
                )
            )
        elif isinstance(step, MessageStep):
            messages += _turn(message, calls)
            message, calls = step, []
    return (*messages, *_turn(message, calls))


def _turn(message: MessageStep | None, calls: list[ToolCall]) -> Iterator[Message]:
    if message is not None and message.role == "assistant":
        yield Message("assistant", message.text, tool_calls=tuple(calls))
        return
    if message is not None:
        yield Message(message.role, message.text)
    if calls:
        yield Message("assistant", "", tool_calls=tuple(calls))


def model_calls(trace: Trace) -> int:
    """Return the number of model calls in a trace: the largest of the counts of turns, usages and messages."""
    assistant_messages = sum(message.role == "assistant" for message in messages_of(trace))
    return max(trace.turns, len(trace.usages), assistant_messages)


def completed(answer: TargetResponse) -> TargetResponse:
    """Return the answer with its transcript and usage filled in from its trace.

    The usage in a partial trace is incomplete, so it is not used.
    """
    trace = answer.trace
    if trace is None:
        return answer
    if trace.partial:
        known = {**answer.metadata, PARTIAL: trace.partial}  # stored answers keep their metadata, but not their trace
        return replace(answer, messages=answer.messages or messages_of(trace), metadata=known)
    return replace(
        answer,
        messages=answer.messages or messages_of(trace),
        token_usage=answer.token_usage or trace.tokens,
        cost_usd=trace.cost_usd if answer.cost_usd is None else answer.cost_usd,
        duration_ms=trace.duration_ms if answer.duration_ms is None else answer.duration_ms,
        finish_reason=answer.finish_reason or trace.stop_reason or None,
    )
