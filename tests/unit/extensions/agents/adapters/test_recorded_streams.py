"""Every adapter against recorded output of its real program: trace, tokens, outcome."""

import json
import sys

import pytest

from agentv.extensions.agents.adapters.native_settings import Directories, Memory
from agentv.model.suite.tools import McpServer
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.trace import MessageStep
from agentv.model.values.usage import TokenUsage
from agentv.registry.fields import Command
from doubles.asking import answer, request
from doubles.native_agents import STREAMS, printing_program, replaying_settings, settings_of, stream

AGENTS = ("gemini-cli", "copilot-cli", "pi-cli", "opencode", "mini-swe-agent")
WITH_MCP = ("gemini-cli", "copilot-cli", "opencode")
TURNS = AGENTS[:4]

DONE = "Done: price is 2."
EDITED = TokenUsage(850, 50, 900, 40, 0)
"""Server's count over four calls (input/output): 100/11 with 40 cached, 200/13, 250/9, 300/17."""

TOOLS = {
    "gemini-cli": [("read", "read_file"), ("write", "write_file"), ("shell", "run_shell_command")],
    "copilot-cli": [("read", "view"), ("edit", "edit"), ("shell", "bash")],
    "pi-cli": [("read", "read"), ("edit", "edit"), ("shell", "bash")],
    "opencode": [("read", "read"), ("edit", "edit"), ("shell", "bash")],
    "mini-swe-agent": [("shell", "bash")] * 4,
}


def asked(settings, workspace, **others):
    return answer(settings, request(workspace_path=str(workspace), **others))


def counts(usage, *, reasoning=True):
    return (usage.input, usage.output, usage.total, usage.cached, *((usage.reasoning,) if reasoning else ()))


@pytest.mark.parametrize("agent", AGENTS)
def test_edited_file(agent, tmp_path):
    found = asked(replaying_settings(agent, "edit"), tmp_path)
    assert isinstance(found, TargetResponse), found
    assert found.output.strip().lower() == DONE.lower().strip() if agent != "mini-swe-agent" else "done: price is 2"
    trace = found.trace
    assert [(one.name, one.native_name) for one in trace.tool_calls] == TOOLS[agent]
    assert {one.status for one in trace.tool_calls} <= {"completed", "failed"}
    assert trace.partial == ""
    assert trace.metadata["turns"] == 4
    assert counts(trace.tokens, reasoning=agent != "pi-cli") == counts(EDITED, reasoning=agent != "pi-cli")
    said = [one.text for one in trace.steps if isinstance(one, MessageStep) and one.role == "assistant"]
    assert said[0] == "I will look."


@pytest.mark.parametrize("agent", ["pi-cli", "opencode", "mini-swe-agent"])
def test_each_call_of_the_model_is_a_step_where_the_agent_reports_it(agent, tmp_path):
    usages = asked(replaying_settings(agent, "edit"), tmp_path).trace.usages
    shown = [(one.tokens.input, one.tokens.output, one.tokens.cached) for one in usages]
    assert shown == [(100, 11, 40), (200, 13, 0), (250, 9, 0), (300, 17, 0)]


@pytest.mark.parametrize("agent", WITH_MCP)
def test_a_tool_of_an_mcp_server_has_one_name(agent, tmp_path):
    servers = (McpServer("shop", "stdio", (sys.executable,)),)
    found = asked(replaying_settings(agent, "mcp"), tmp_path, mcp_servers=servers)
    assert isinstance(found, TargetResponse), found
    (call,) = found.trace.tool_calls
    assert (call.name, call.arguments, call.status) == ("shop.get_order", {"order_id": "7"}, "completed")
    assert "shipped" in str(call.result)
    assert counts(found.token_usage)[:3] == (400, 28, 428)


FAILURES = [
    ("gemini-cli", "401", 145, "agent-api", "invalid authentication credentials"),
    ("copilot-cli", "401", 1, "agent-api", "Authentication failed"),
    ("pi-cli", "401", 0, "agent-api", "401 Incorrect API key"),
    ("opencode", "401", 1, "agent-api", "Incorrect API key"),
    ("mini-swe-agent", "401", 1, "agent-api", "AuthenticationError"),
    ("gemini-cli", "late400", 144, "agent-api", "invalid argument"),
    ("copilot-cli", "late400", 1, "agent-api", "400 Invalid request"),
    ("pi-cli", "late400", 0, "agent-api", "400 Invalid request"),
    ("opencode", "late400", 1, "agent-api", "Invalid request"),
    ("copilot-cli", "500", 1, "agent-api", "retried 5 times"),
    ("pi-cli", "500", 0, "agent-api", "500 The server had an error"),
    ("gemini-cli", "empty", 0, "agent-api", "empty response"),
    ("copilot-cli", "empty", 1, "agent-api", "No response was returned"),
    ("mini-swe-agent", "empty", 0, "agent-stopped", "RepeatedFormatError"),
    ("gemini-cli", "loop-limit", 53, "agent-limit", "max session turns"),
    ("pi-cli", "length", 0, "agent-limit", "maximum length"),
    ("opencode", "length", 0, "agent-limit", "maximum length"),
    ("mini-swe-agent", "loop-limit", 0, "agent-limit", "LimitsExceeded"),
    ("gemini-cli", "edit-deny", 0, "permission-denied", "write"),
    ("copilot-cli", "edit-deny", 0, "permission-denied", "edit"),
    ("opencode", "edit-deny", 0, "permission-denied", "rejected permission"),
    ("copilot-cli", "no-server", 0, "no-tools", "shop"),
    *((agent, "sleep", 143, "agent-stopped", "") for agent in TURNS),
]


@pytest.mark.parametrize(("agent", "scenario", "status", "code", "said"), FAILURES)
def test_what_went_wrong_is_an_error_whatever_the_exit_status_says(agent, scenario, status, code, said, tmp_path):
    found = asked(replaying_settings(agent, scenario, status), tmp_path)
    assert isinstance(found, Failure), found
    assert (found.code, said.lower() in found.message.lower()) == (code, True), found.message


@pytest.mark.parametrize("agent", ["gemini-cli", "copilot-cli", "mini-swe-agent"])
def test_tokens_of_an_errored_turn_are_kept(agent, tmp_path):
    found = asked(replaying_settings(agent, "empty"), tmp_path)
    used = found.response.token_usage
    calls = {"gemini-cli": 4, "mini-swe-agent": 3}.get(agent, 1)
    assert (used.input, used.output) == (100 * calls, 20 * calls)


@pytest.mark.parametrize("agent", ["pi-cli", "opencode"])
def test_an_agent_that_says_nothing_gives_an_empty_answer(agent, tmp_path):
    """The engine turns it into the error `empty-output`."""
    found = asked(replaying_settings(agent, "empty"), tmp_path)
    assert isinstance(found, TargetResponse), found
    assert (found.output, found.token_usage.input, found.token_usage.output) == ("", 100, 20)


@pytest.mark.parametrize("agent", WITH_MCP)
def test_a_denial_counts_as_an_answer_where_it_is_graded(agent, tmp_path):
    found = asked(replaying_settings(agent, "edit-deny", on_denied="grade"), tmp_path)
    assert isinstance(found, TargetResponse), found
    assert [one.tool for one in found.trace.denials]
    assert "denied" in {one.status for one in found.trace.tool_calls}


@pytest.mark.parametrize("agent", TURNS)
def test_the_next_turn_resumes_the_session_and_counts_its_own_tokens(agent, tmp_path):
    """Copilot's file has the usage of the whole session, so here both turns share one session."""
    settings = replaying_settings(agent, "two-1")
    first = asked(settings, tmp_path)
    assert isinstance(first, TargetResponse), first
    session = first.trace.session_id
    assert session
    home = str(tmp_path)
    launched = settings.launch(request(workspace_path=home), Directories(home, home, home), session)
    assert any(session in word for word in launched.argv)


def test_usage_of_a_session_is_not_counted_twice():
    from agentv.extensions.agents.adapters.recorder import Recording

    settings, memory = settings_of("copilot-cli"), Memory()
    totals = []
    for turn in ("two-1", "two-2"):
        reader = settings.reader(Recording(""), memory)
        for line in stream("copilot-cli", turn).read_text().splitlines():
            reader.read(json.loads(line))
        totals.append(reader.ending().tokens)
    assert totals == [TokenUsage(100, 20, 120, 0, 0)] * 2


def spoiled(lines, damage):
    if damage == "unknown":
        return b"".join(b'{"type":"brand_new","data":[1],"part":7,"message":null}\n' + one for one in lines)
    if damage == "noise":
        return b"".join(b"npm notice\n[1,2]\n\n" + one for one in lines)
    if damage == "utf-8":
        return b"\xff\xfe\x80\n" + b"".join(lines)
    whole = b"".join(lines)
    return whole[: len(whole) - len(lines[-1]) // 2 - 2]


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize(
    ("damage", "code"), [("unknown", None), ("noise", None), ("utf-8", None), ("cut", "agent-stopped")]
)
def test_spoiled_stream(agent, damage, code, tmp_path):
    lines = [one + b"\n" for one in stream(agent, "edit").read_bytes().splitlines() if b"modelMetrics" not in one]
    file = tmp_path / "stream"
    file.write_bytes(spoiled(lines, damage))
    found = asked(settings_of(agent, command=printing_program(file)), tmp_path)
    assert getattr(found, "code", None) == code, found
    if code is None:
        assert [(one.name, one.native_name) for one in found.trace.tool_calls] == TOOLS[agent]


@pytest.mark.parametrize("agent", ["gemini-cli", "copilot-cli"])
def test_two_results_are_none(agent, tmp_path):
    result = next(one for one in stream(agent, "edit").read_text().splitlines() if '"type":"result"' in one)
    file = tmp_path / "stream"
    file.write_text(f"{stream(agent, 'edit').read_text()}{result}\n")
    found = asked(settings_of(agent, command=printing_program(file)), tmp_path)
    assert found.code == "agent-stopped"
    assert "more than one result" in found.message


def test_recorded_streams_hold_nothing_of_a_machine():
    for file in STREAMS.rglob("*.jsonl"):
        text = file.read_text()
        assert not [one for one in ("/work/", "/tmp/", "/root/", "key-1234567") if one in text], file


def test_repeated_messages_are_neither_read_nor_kept(tmp_path):
    """pi repeats all previous text with each piece, so that a long answer exceeds any limit."""
    program = """
import sys
for _ in range(80):
    sys.stdout.write('{"type":"message_update","message":"' + "a" * 1_000_000 + '"}\\n')
sys.stdout.write(open(sys.argv[1]).read())
"""
    settings = settings_of("pi-cli", command=Command((sys.executable, "-c", program, str(stream("pi-cli", "edit")))))
    found = asked(settings, tmp_path)
    assert isinstance(found, TargetResponse), found
    assert b"message_update" not in found.trace.native


USE = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
AFTER_THE_END = {
    "claude": {"type": "assistant", "message": {"id": "m", "content": [USE]}},
    "codex": {"type": "item.started", "item": {"id": "i", "type": "command_execution", "command": "rm -r ."}},
    "gemini-cli": {"type": "tool_use", "tool_id": "t", "tool_name": "run_shell_command", "parameters": {}},
    "copilot-cli": {"type": "tool.execution_start", "data": {"toolCallId": "t", "toolName": "bash"}},
}


@pytest.mark.parametrize("agent", AFTER_THE_END)
def test_an_agent_that_works_on_after_its_result_has_given_none(agent, tmp_path):
    for more, code in (("", None), (json.dumps(AFTER_THE_END[agent]), "agent-stopped")):
        file = tmp_path / "stream"
        file.write_bytes(stream(agent, "edit").read_bytes().rstrip(b"\n") + f"\n{more}\n".encode())
        found = asked(settings_of(agent, command=printing_program(file)), tmp_path)
        assert (found.code if isinstance(found, Failure) else None) == code, found


def test_a_refusal_of_claudes_model_is_no_answer(tmp_path):
    file = tmp_path / "stream"
    recorded = stream("claude", "answer").read_text()
    assert recorded.count('"stop_reason":"end_turn"')
    file.write_text(recorded.replace('"stop_reason":"end_turn"', '"stop_reason":"refusal"'))
    assert asked(settings_of("claude", command=printing_program(file)), tmp_path).code == "refused"
