"""Transcripts as traces."""

import pytest
from msgspec.structs import replace

from agentv.extensions.agents.traces.messages import trace_of_messages
from agentv.model.values.response import Failure
from agentv.model.values.trace import MessageStep, ToolCallStep, UsageStep
from agentv.model.values.usage import TokenUsage


def test_chat_messages_of_openai():
    trace = trace_of_messages([
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "refund 7"}, {"type": "image_url", "image_url": {}}]},
        {"role": "assistant", "content": None, "reasoning_content": "hm", "usage": {"prompt_tokens": 3, "completion_tokens": 2,
         "prompt_tokens_details": {"cached_tokens": 1}}, "model": "m",
         "tool_calls": [{"id": "a", "type": "function", "function": {"name": "mcp__shop__get", "arguments": '{"id": 7}'}},
                        {"id": "b", "type": "function", "function": {"name": "Bash", "arguments": "not json"}}]},
        {"role": "tool", "tool_call_id": "b", "content": "second"},
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "first"}]},
        {"role": "assistant", "content": "done"},
    ])  # fmt: skip
    assert trace.partial == ""
    assert trace.steps == (
        MessageStep("system", "be brief"),
        MessageStep("user", "refund 7\n\n[image_url]"),
        MessageStep("assistant", "", "hm"),
        UsageStep("m", TokenUsage(3, 2, 5, 1)),
        ToolCallStep("shop.get", {"id": 7}, "mcp__shop__get", "a", "first", status="completed"),
        ToolCallStep("shell", {"input": "not json"}, "Bash", "b", "second", status="completed"),
        MessageStep("assistant", "done"),
    )


def test_items_of_the_responses_api():
    trace = trace_of_messages([
        {"role": "user", "content": [{"type": "input_text", "text": "go"}]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "think"}]},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "get", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "42"},
        {"type": "mcp_call", "id": "m1", "server_label": "shop", "name": "refund", "arguments": '{"id": 1}', "error": "declined", "output": None},
        {"type": "local_shell_call", "call_id": "s1", "action": {"command": ["ls"]}, "status": "completed"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
    ])  # fmt: skip
    assert trace.steps == (
        MessageStep("user", "go"),
        MessageStep("assistant", "", "think"),
        ToolCallStep("get", {}, "get", "c1", "42", status="completed"),
        ToolCallStep("shop.refund", {"id": 1}, "mcp__shop__refund", "m1", error="declined", status="failed"),
        ToolCallStep("shell", {"command": ["ls"]}, "local_shell_call", "s1"),
        MessageStep("assistant", "done"),
    )


def test_blocks_of_anthropic():
    trace = trace_of_messages([
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "let me"}, {"type": "text", "text": "I look"},
                                          {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "a"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": "no such file"}]},
    ])  # fmt: skip
    assert trace.steps == (
        MessageStep("assistant", "I look", "let me"),
        ToolCallStep("read", {"file_path": "a"}, "Read", "t1", error="no such file", status="failed"),
    )


def test_our_own_transcripts():
    trace = trace_of_messages([
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": "y", "tool_calls": [
            {"name": "shell", "native_name": "Bash", "arguments": {"command": "ls"}, "output": "a\nb", "duration_ms": 5}, {"name": "get"}]},
        {"role": "tool", "content": "without an id"},
    ])  # fmt: skip
    assert trace.steps[2:] == (
        ToolCallStep("shell", {"command": "ls"}, "Bash", None, "a\nb", status="completed", duration_ms=5.0),
        ToolCallStep("get", {}, "get", None, "without an id", status="completed"),
    )


@pytest.mark.parametrize(
    "rows",
    [
        [{"role": "user", "parts": [{"text": "where?"}]}, {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": "I look"}, {"functionCall": {"name": "get", "args": {"id": 7}}}]},
         {"role": "user", "parts": [{"functionResponse": {"name": "get", "response": {"price": 40}}}]}, {"role": "model", "parts": [{"functionCall": {"id": "c2", "name": "refund", "args": {}}}]},
         {"author": "shop", "content": {"role": "user", "parts": [{"function_response": {"id": "c2", "name": "refund", "response": {"error": "closed"}}}]}}, {"role": "model", "parts": [{"text": "done"}]}],
        [("user", "where?"), {"type": "ai", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "I look"}], "tool_calls": [{"name": "get", "args": {"id": 7}, "id": "c1", "type": "tool_call"}]},
         {"lc": 1, "type": "constructor", "id": ["langchain", "ToolMessage"], "kwargs": {"type": "tool", "content": '{"price":40}', "tool_call_id": "c1", "id": "m1"}}, {"type": "ai", "data": {"content": "", "tool_calls": [{"name": "refund", "args": {}, "id": "c2"}]}},
         {"type": "tool", "content": "closed", "tool_call_id": "c2", "status": "error"}, {"type": "ai", "content": "done"}],
        [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "where?"}]}, {"kind": "response", "parts": [{"part_kind": "thinking", "content": "hm"}, {"part_kind": "text", "content": "I look"}, {"part_kind": "tool-call", "tool_name": "get", "args": '{"id": 7}', "tool_call_id": "c1"}]},
         {"kind": "request", "parts": [{"part_kind": "tool-return", "tool_name": "get", "content": {"price": 40}, "tool_call_id": "c1"}]}, {"kind": "response", "parts": [{"part_kind": "tool-call", "tool_name": "refund", "args": None, "tool_call_id": "c2"}]},
         {"kind": "request", "parts": [{"part_kind": "retry-prompt", "tool_name": "refund", "content": "closed", "tool_call_id": "c2"}]}, {"kind": "response", "parts": [{"part_kind": "text", "content": "done"}]}],
    ],
    ids=["gemini and adk", "langchain", "pydantic-ai"],
)  # fmt: skip
def test_messages_of_other_apis_and_frameworks(rows):
    trace = trace_of_messages(rows)
    assert [replace(step, id=None) if isinstance(step, ToolCallStep) else step for step in trace.steps] == [
        MessageStep("user", "where?"),
        MessageStep("assistant", "I look", "hm"),
        ToolCallStep("get", {"id": 7}, "get", None, '{"price":40}', status="completed"),
        ToolCallStep("refund", {}, "refund", None, error="closed", status="failed"),
        MessageStep("assistant", "done"),
    ]
    assert trace.partial == ""


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["x"], "message 2 is no object"),
        ([{"role": "clown", "content": "x"}], "message 2 has no known role and no known type"),
        ([{"role": "tool", "content": "x"}], "a tool's result belongs to no call"),
        ([{"role": "assistant", "tool_calls": [{"function": {}}]}], "a tool call has no name"),
        ([{"role": "assistant", "tool_calls": [7]}], "a tool call has no name"),
    ],
)
def test_what_cannot_be_read_makes_the_trace_partial(rows, said):
    trace = trace_of_messages([{"role": "user", "content": "kept"}, *rows])
    assert trace.partial == said
    assert trace.steps[0] == MessageStep("user", "kept")


def test_nothing_to_read_is_a_failure():
    assert trace_of_messages([]) == Failure("bad-trace", "the transcript has no messages")
    assert trace_of_messages([3]) == Failure("bad-trace", "the transcript has no messages: message 1 is no object")
    deep: list = []
    for _ in range(5000):
        deep = [deep]
    assert isinstance(trace_of_messages([{"role": "user", "content": deep}]), Failure)
