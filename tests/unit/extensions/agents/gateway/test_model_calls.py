"""What a trial's model calls show about its agent, in the gateway's protocols."""

import json
from typing import Any

import pytest

from agentv.extensions.agents.gateway.model_calls import trace_of_calls
from agentv.extensions.agents.gateway.session import CountedCall
from agentv.extensions.agents.gateway.usage import ReplyReader, StreamReader
from agentv.model.values.response import Failure
from agentv.model.values.trace import MessageStep, ToolCallStep, UsageStep

ARGUMENTS = {"order_id": "A-42"}


def called(api: Any, request: Any, reply: Any = None, at: float = 10.0, error: str | None = None) -> CountedCall:
    reader = ReplyReader(api)
    if isinstance(reply, bytes):
        StreamReader(reader).feed(reply)
        reader.end()
    elif reply is not None:
        reader.read_whole(json.dumps(reply).encode())
    failure = None if error is None else Failure("connection", error)
    call = CountedCall(1, "m", at, failure, duration_ms=5.0, ended=True, api=api)
    call.request, call.reply = json.dumps(request).encode(), reader.body
    return call


def events(*rows: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(row).encode() + b"\n\n" for row in rows) + b"data: [DONE]\n\n"


def chat(text: str, **more: Any) -> Any:
    return {"choices": [{"message": {"role": "assistant", "content": text, **more}}]}


FUNCTION = {"id": "c1", "type": "function", "function": {"name": "get_order", "arguments": json.dumps(ARGUMENTS)}}
CHAT = [{"role": "system", "content": "be kind"}, {"role": "user", "content": "where?"}]
AFTER = [*CHAT, {"role": "assistant", "content": "I look", "tool_calls": [FUNCTION]}, {"role": "tool", "tool_call_id": "c1", "content": "shipped"}]  # fmt: skip
CHAT_EVENTS = events(
    {"choices": [{"delta": {"role": "assistant", "content": "I "}}]}, {"choices": [{"delta": {"content": "look"}}]},
    {"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "get_order", "arguments": '{"order_id"'}}]}}]},
    {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": ': "A-42"}'}}]}}]}, {"choices": [], "usage": {}},
)  # fmt: skip

ITEM = {"type": "function_call", "id": "f1", "call_id": "c1", "name": "get_order", "arguments": json.dumps(ARGUMENTS)}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look"}]}
DONE = {"output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]}]}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "shipped"}
ASKED = {"instructions": "be kind", "input": "where?"}

USE = {"type": "tool_use", "id": "c1", "name": "get_order", "input": ARGUMENTS}
BLOCKS = [{"type": "text", "text": "I look"}, USE]
MESSAGES = [{"role": "user", "content": [{"type": "text", "text": "where?", "cache_control": {"type": "ephemeral"}}]}]
GIVEN = [{"role": "user", "content": "where?"}, {"role": "assistant", "content": BLOCKS}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "shipped"}]}]}]  # fmt: skip
MESSAGE_EVENTS = events(
    {"type": "message_start", "message": {}}, {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "I look"}}, {"type": "content_block_start", "index": 1, "content_block": {**USE, "input": {}}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"order_id": "A-42"}'}}, {"type": "message_stop"},
)  # fmt: skip

PARTS = [{"text": "I look"}, {"functionCall": {"name": "get_order", "args": ARGUMENTS}}]
CONTENTS = [{"role": "user", "parts": [{"text": "where?"}]}]
RESPONDED = [*CONTENTS, {"role": "model", "parts": PARTS}, {"role": "user", "parts": [{"functionResponse": {"name": "get_order", "response": {"status": "shipped"}}}]}]  # fmt: skip
KIND = {"systemInstruction": {"parts": [{"text": "be kind"}]}}


def candidate(*parts: Any) -> Any:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}}]}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (called("chat", {"messages": CHAT}, chat("I look", tool_calls=[FUNCTION])), called("chat", {"messages": AFTER}, chat("done"), 20.0)),
        (called("chat", {"messages": CHAT}, CHAT_EVENTS), called("chat", {"messages": AFTER}, events({"choices": [{"delta": {"content": "done"}}]}), 20.0)),
        (called("responses", ASKED, {"output": [SAID, ITEM]}), called("responses", {**ASKED, "input": [OUTPUT], "previous_response_id": "r1"}, DONE, 20.0)),
        (called("responses", ASKED, events({"type": "response.created", "response": {"output": []}}, {"type": "response.completed", "response": {"output": [SAID, ITEM]}})),
         called("responses", {**ASKED, "input": [{"role": "user", "content": "where?"}, SAID, ITEM, OUTPUT]}, DONE, 20.0)),
        (called("messages", {"system": "be kind", "messages": MESSAGES}, {"content": BLOCKS}), called("messages", {"system": "be kind", "messages": GIVEN}, {"content": [{"type": "text", "text": "done"}]}, 20.0)),
        (called("messages", {"system": "be kind", "messages": MESSAGES}, MESSAGE_EVENTS), called("messages", {"system": "be kind", "messages": GIVEN}, None, 20.0)),
        (called("gemini", {"contents": CONTENTS, **KIND}, candidate(*PARTS)), called("gemini", {"contents": RESPONDED, **KIND}, candidate({"text": "done"}), 20.0)),
        (called("gemini", {"contents": CONTENTS, **KIND}, [candidate(one) for one in PARTS]), called("gemini", {"contents": RESPONDED, **KIND}, None, 20.0)),
    ],
    ids=["chat", "chat-streamed", "responses", "responses-streamed", "messages", "messages-streamed", "gemini", "gemini-list"],
)  # fmt: skip
def test_the_tools_of_an_agent_are_seen_in_each_protocol(first, second):
    trace = trace_of_calls([first, second], 2, 4.0, "done")
    [call] = trace.tool_calls
    assert (call.name, call.arguments, call.status, call.evidence) == ("get_order", ARGUMENTS, "completed", "gateway")
    assert call.result in ("shipped", '{"status":"shipped"}')
    texts = [(step.role, step.text) for step in trace.steps if isinstance(step, MessageStep)]
    assert texts == [("system", "be kind"), ("user", "where?"), ("assistant", "I look"), ("assistant", "done")]
    assert [replaced.started_ms for replaced in trace.usages] == [6.0, 16.0]
    assert (trace.source, trace.partial, trace.error) == ("gateway", "", "")


@pytest.mark.parametrize("body", [b"", b"not json", b"[1]", b'{"messages": 7}', b'{"messages": [7]}'])
def test_bodies_that_cannot_be_read_leave_the_counts(body):
    chat = CountedCall(1, "m", 1.0, ended=True, request=body, reply={"choices": 7})
    other = CountedCall(2, "m", 1.0, ended=True, api="embeddings", request=b'{"input": "x"}', reply={})
    trace = trace_of_calls([chat, other], 2, 0.0)
    assert [type(one) for one in trace.steps] == [UsageStep, UsageStep]
    assert not isinstance(trace.steps[0], ToolCallStep)
