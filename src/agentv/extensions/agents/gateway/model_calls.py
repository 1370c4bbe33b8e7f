"""The trace of an agent that reports none, built from its model calls through the gateway.

Each request of an agent repeats its conversation, including the tool calls and their results. Model calls are read in
the same way as OpenTelemetry spans.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from agentv.extensions.agents.gateway.session import CountedCall
from agentv.extensions.agents.traces.otlp import traces_of
from agentv.extensions.agents.traces.otlp_spans import OtelSpan
from agentv.extensions.agents.traces.values import items, mapping
from agentv.model.values.json_text import parse
from agentv.model.values.trace import MessageStep, Step, ToolCallStep, Trace, UsageStep
from agentv.model.values.values import JsonObject

_TRACE = "gateway"


def trace_of_calls(calls: Sequence[CountedCall], new: int, began_ms: float, answer: str | None = None) -> Trace:
    """Return the trace of a trial's latest calls.

    Args:
        calls: all calls of the trial so far.
        new: how many of them belong to this turn. Earlier messages are in the traces of earlier turns.
        began_ms: when the agent was asked, on the clock of the calls.
        answer: the agent's final answer, which is added if no call shows it.
    """
    rows: list[list[Any]] = []  # the messages of each request, in the form of its API
    for call in calls:
        body = _body(call)
        value = body.get("messages", body.get("contents", body.get("input", body.get("prompt"))))
        rows.append([{"role": "user", "content": value}] if isinstance(value, str) else [*items(value)])
    known = len(rows[-new - 1]) if len(rows) > new else 0
    begin = OtelSpan(_TRACE, "start", "", "", {}, (), began_ms, None, "", {})
    spans = [begin]
    for place in range(len(calls) - new, len(calls)):
        call = calls[place]
        body = _body(call)
        system = body.get("system", body.get("instructions", body.get("systemInstruction")))
        about = {
            "gen_ai.operation.name": "chat",
            "gen_ai.system_instructions": None if known else system,
            "gen_ai.input.messages": rows[place][known:],
            "gen_ai.output.messages": [*_replied(call)],
        }
        ended = None if call.duration_ms is None else call.started_ms + call.duration_ms
        spans.append(OtelSpan(_TRACE, str(place), "start", "chat", about, (), call.started_ms, ended, "", {}))
    [trace] = traces_of(spans)
    counted = iter(calls[len(calls) - new :])
    steps: list[Step] = []
    for step in trace.steps:
        if isinstance(step, UsageStep):  # one per call, in order
            steps.append(replace(next(counted).step(), started_ms=step.started_ms))
        else:
            steps.append(replace(step, evidence="gateway") if isinstance(step, ToolCallStep) else step)
    last = next((one for one in reversed(steps) if isinstance(one, MessageStep | ToolCallStep)), None)
    if answer and not (isinstance(last, MessageStep) and last.role == "assistant"):
        steps.append(MessageStep("assistant", answer))
    return Trace(tuple(steps), source="gateway", duration_ms=trace.duration_ms)


def _replied(call: CountedCall) -> Iterator[Any]:
    """Yield the messages of a reply."""
    reply = mapping(call.reply)
    choice = mapping(next(iter(items(reply.get("choices"))), None))
    candidate = mapping(next(iter(items(reply.get("candidates"))), None))
    if call.api == "responses":
        yield from items(reply.get("output"))
    elif call.api == "messages" and reply.get("content"):
        yield {"role": "assistant", "content": reply["content"]}
    elif choice.get("message") or candidate.get("content"):
        yield choice.get("message") or candidate["content"]


def _body(call: CountedCall) -> JsonObject:
    """Return the body of a request; empty for embeddings, and if it was not kept."""
    try:
        return {} if call.api == "embeddings" else mapping(parse(call.request))
    except ValueError:
        return {}
