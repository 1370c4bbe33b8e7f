"""Streams of the Agent Client Protocol as traces."""

import json

import pytest

from agentv.extensions.agents.traces.acp import AcpCall, acp_tool_names, read_acp
from agentv.model.values.trace import MessageStep, PermissionStep, ToolCallStep, Trace, UsageStep
from agentv.model.values.usage import TokenUsage
from doubles.traces import mutations


def update(at=None, **told):
    row = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s1", "update": told}}
    return row if at is None else {"at_ms": at, **row}


def chunk(kind, text, **more):
    return update(sessionUpdate=kind, content={"type": "text", "text": text}, **more)


def lines(*records) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def read(*records) -> Trace:
    found = read_acp(lines(*records))
    assert isinstance(found, Trace), found
    return found


CLAUDE = (
    {"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": 1, "agentInfo": {"name": "claude-agent-acp", "version": "0.9"}}},
    {"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s1"}},
    {"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": {"sessionId": "s1", "prompt": [{"type": "text", "text": "mend it"}]}},
    chunk("agent_thought_chunk", "let me "),
    chunk("agent_thought_chunk", "look"),
    chunk("agent_message_chunk", "I re"),
    chunk("agent_message_chunk", "ad it"),
    update(sessionUpdate="plan", entries=[{"content": "read", "status": "pending", "priority": "high"}]),
    update(100, sessionUpdate="tool_call", toolCallId="t1", title="Read a.py", kind="read", status="pending",
           _meta={"claudeCode": {"toolName": "Read"}}, rawInput={"file_path": "a.py"}),
    update(150, sessionUpdate="tool_call_update", toolCallId="t1", status="completed",
           content=[{"type": "content", "content": {"type": "text", "text": "x = 1"}}]),
    update(160, sessionUpdate="tool_call", toolCallId="t2", title="mcp__shop__refund", kind="other", rawInput={"id": 7},
           _meta={"claudeCode": {"parentToolUseId": "t1"}}),
    {"jsonrpc": "2.0", "id": 5, "method": "session/request_permission", "params": {"sessionId": "s1", "toolCall": {"toolCallId": "t2"},
     "options": [{"optionId": "yes", "kind": "allow_once"}, {"optionId": "no", "kind": "reject_once"}]}},
    {"jsonrpc": "2.0", "id": 5, "result": {"outcome": {"outcome": "selected", "optionId": "no"}}},
    update(200, sessionUpdate="tool_call_update", toolCallId="t2", status="failed", rawOutput={"why": "denied"}),
    update(sessionUpdate="usage_update", used=10, size=100, cost={"amount": 0.25, "currency": "USD"}),
    chunk("agent_message_chunk", "done"),
    {"jsonrpc": "2.0", "id": 2, "result": {"stopReason": "end_turn", "usage": {"inputTokens": 10, "outputTokens": 4, "cachedReadTokens": 3, "totalTokens": 14}}},
)  # fmt: skip


def test_a_session():
    trace = read(*CLAUDE)
    assert trace.steps == (
        MessageStep("user", "mend it"),
        MessageStep("assistant", "I read it", "let me look"),
        ToolCallStep("read", {"file_path": "a.py"}, "Read", "t1", "x = 1", None, "completed", 0.0, 50.0),
        ToolCallStep(
            "shop.refund", {"id": 7}, "mcp__shop__refund", "t2", None, '{"why":"denied"}', "denied", 60.0, 40.0, "t1"
        ),
        PermissionStep("shop.refund", False, "no", 60.0),
        MessageStep("assistant", "done", None, 100.0),
        UsageStep(None, TokenUsage(10, 4, 14, 3), None, 100.0),
    )
    shown = (trace.agent, trace.agent_version, trace.session_id, trace.stop_reason)
    assert shown == ("claude-agent-acp", "0.9", "s1", "end_turn")
    assert (trace.source, trace.partial, trace.duration_ms) == ("acp", "", 100.0)
    assert (trace.cost_usd, trace.unanswered) == (0.25, "")
    assert (trace.native, trace.native_name) == (lines(*CLAUDE), "acp.jsonl")


@pytest.mark.parametrize(
    ("outcome", "allowed"),
    [
        ({"outcome": "selected", "optionId": "yes"}, True),
        ({"outcome": "selected", "optionId": "no"}, False),
        ({"outcome": "cancelled"}, False),
    ],
)
def test_permissions_with_their_outcomes(outcome, allowed):
    asked = {
        "toolCall": {"toolCallId": "t", "title": "Bash"},
        "options": [{"optionId": "yes", "kind": "allow_once"}, {"optionId": "no", "kind": "reject_once"}],
    }
    trace = read(
        {"id": 1, "method": "session/request_permission", "params": asked}, {"id": 1, "result": {"outcome": outcome}}
    )
    shown = [(step.tool, step.allowed) for step in trace.steps if isinstance(step, PermissionStep)]
    assert shown == [("shell", allowed)]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (lines(*CLAUDE[:-1]), "the stream ends before the agent has answered"),
        (lines(*CLAUDE)[:-40], "line 17: the stream ends in the middle of a record; the stream ends before the agent has answered"),
        (lines(chunk("agent_message_chunk", "x")) + b"{oops}\n" + lines(CLAUDE[-1]), "line 2: "),
        (lines(chunk("agent_message_chunk", "x"), 7), "line 2 is no message of the protocol"),
        (lines(chunk("agent_message_chunk", "x"), update(sessionUpdate="tool_call")), "line 2: a session/update has no 'toolCallId'"),
        (lines(chunk("agent_message_chunk", "x"), update(sessionUpdate="agent_message_chunk", content=9)), "line 2: a session/update has no 'content'"),
        (lines(chunk("agent_message_chunk", "x")) + b'{"a":' + b"[" * 100_000 + b"\n", "line 2: it is nested more than 100 levels deep"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_makes_the_trace_partial(data, said):
    trace = read_acp(data)
    assert trace.partial.startswith(said)
    assert trace.steps


@pytest.mark.parametrize(
    "data", [b"", b"\n\n", b"[]", b"{}", b"null", b"7", b'"x"', b"[" * 100_000, b"\xff", lines({"a": 1}), b"PK\x03\x04"]
)
def test_nothing_to_read_is_a_failure(data):
    found = read_acp(data)
    assert (found.code, found.message[:31]) == ("bad-trace", "the stream has no session update"[:31])


@pytest.mark.parametrize("junk", [None, True, 7, -1, 1e308, "x", "\ud800", [], {}, [[]], {"a": None}, 10**30])
def test_no_value_of_a_wrong_type_raises(junk):
    for record in CLAUDE:
        for mutated in mutations(record, junk):
            found = read_acp(lines(*CLAUDE[:3], mutated, *CLAUDE[3:]))
            assert len(found.steps) >= 7


def prompted(number, text="go"):
    return {"id": number, "method": "session/prompt", "params": {"sessionId": "s", "prompt": [{"type": "text", "text": text}]}}  # fmt: skip


READ_FAILS = (
    {"id": 1, "method": "fs/read_text_file", "params": {"path": "/gone"}},
    {"id": 1, "error": {"code": -32002, "message": "no such file"}},
)


def test_a_refused_request_of_the_agent_is_no_end_of_its_turn():
    saying = update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": "I look."})
    cut = read(prompted(1), saying, *READ_FAILS)
    assert (cut.error, cut.unanswered) == ("", "the stream ends before the agent has answered")
    whole = read(prompted(1), saying, *READ_FAILS, {"id": 1, "result": {"stopReason": "end_turn"}})
    assert (whole.error_count, whole.unanswered) == (0, "")


def test_the_last_turn_decides_whether_a_session_ended_in_an_error():
    saying = update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": "I look."})
    failed = {"id": 1, "error": {"code": -32603, "message": "model is overloaded"}}
    assert read(prompted(1), saying, failed).unanswered == "the session ended in an error: model is overloaded"
    again = (prompted(2), saying, {"id": 2, "result": {"stopReason": "end_turn"}})
    assert read(prompted(1), saying, failed, *again).unanswered == ""


RM = {"command": "rm -rf build"}


@pytest.mark.parametrize(
    ("kind", "title", "given", "names"),
    [
        ("execute", "cleanup", RM, ("shell", "cleanup")),
        ("execute", "grep", {"command": "grep x"}, ("shell", "grep")),
        ("execute", "Read the log", {"command": ["cat", "log"]}, ("shell", "Read the log")),
        ("execute", "build (ci MCP Server)", RM, ("shell", "build (ci MCP Server)")),
        ("execute", "build (ci MCP Server)", {"target": "all"}, ("ci.build", "ci.build")),
        ("edit", "refactor", None, ("edit", "refactor")),
        ("edit", "write", None, ("write", "write")),
        ("read", "config", None, ("read", "config")),
        ("search", "glob", None, ("find", "glob")),
        ("delete", "cleanup", None, ("delete", "cleanup")),
        ("fetch", "web_search", None, ("web_search", "web_search")),
        ("read", "mcp__shop__get_order", None, ("shop.get_order", "mcp__shop__get_order")),
        ("other", "cleanup", None, ("cleanup", "cleanup")),
        ("think", "Weigh the options", None, ("think", "Weigh the options")),
        ("other", "", {"server": "shop", "tool": "refund"}, ("shop.refund", "shop.refund")),
        ("edit", "", None, ("edit", "edit")),
    ],
)
def test_a_tool_is_named_by_what_the_call_did(kind, title, given, names):
    assert acp_tool_names("1", (title,), kind, "", given) == names


def test_the_first_title_may_be_the_name_of_the_tool_and_a_name_beside_it_counts_more():
    titles = ("List the files", "bash")
    assert acp_tool_names("1", titles, "execute", "", RM)[1] == "bash"
    assert acp_tool_names("1", titles, "execute", "KillShell", None)[0] == "KillShell"
    assert acp_tool_names("1", titles, "execute", "run_it", RM)[0] == "shell"
    assert acp_tool_names("1", titles, "other", "mcp__shop__refund", None)[0] == "shop.refund"


def test_a_name_in_the_id_counts_where_it_is_known():
    for identity, name in (("run_shell_command-1763890000000", "shell"), ("call-1763890000000", "Run it")):
        call = AcpCall(identity, 0.0)
        call.update({"title": "Run it"}, 1.0)
        assert call.names[0] == name


def test_the_files_of_a_call_are_those_of_its_places_arguments_and_diffs():
    call = AcpCall("1", 0.0)
    call.update({"locations": [{"path": "a"}], "rawInput": {"file_path": "b"}}, 1.0)
    call.update({"content": [{"type": "diff", "path": "c", "newText": ""}, {"type": "content"}, 5]}, 2.0)
    assert call.paths == ("a", "c", "b")


TEXT = {"type": "text", "text": "no such order"}


@pytest.mark.parametrize(
    ("update", "result", "error"),
    [
        ({"status": "completed", "rawOutput": {"rows": 2}}, {"rows": 2}, None),
        ({"status": "completed", "content": [{"type": "content", "content": TEXT}]}, "no such order", None),
        ({"status": "completed", "content": [{"type": "diff", "path": "a", "newText": "x"}]}, None, None),
        ({"status": "failed", "rawOutput": [TEXT]}, None, "no such order"),
        ({"status": "failed", "rawOutput": {"why": "denied"}}, None, '{"why":"denied"}'),
        ({"status": "failed"}, None, "the tool failed"),
    ],
)
def test_what_a_tool_gave_is_its_output_else_the_texts_of_its_content(update, result, error):
    call = AcpCall("1", 5.0)
    call.update({"title": "get_order", "rawInput": '{"id": 1}'}, 6.0)
    call.update(update, 7.5)
    step = call.step(cancelled=False)
    assert (step.result, step.error, step.arguments, step.duration_ms) == (result, error, {"id": 1}, 2.5)
