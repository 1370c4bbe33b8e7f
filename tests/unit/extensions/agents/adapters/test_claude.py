"""Claude Code: the meaning of its recorded streams, and how it is started."""

import json

import pytest

from agentv.extensions.agents.adapters.claude import Claude
from agentv.extensions.agents.adapters.native_settings import Directories, Launch, Memory
from agentv.extensions.agents.adapters.settings import McpServerSettings, PermissionRule
from agentv.model.suite.tools import McpServer
from agentv.model.values.trace import PermissionStep, ToolCallStep
from agentv.model.values.usage import TokenUsage
from agentv.registry.fields import Command
from doubles.asking import request
from doubles.native_agents import read_recording

CLAUDE = Claude(command=Command(("claude",)), api_key="real-key")
FRESH = Directories("/workspace", "/home/agent", "/home/agent")
OF_HOST = Directories("/workspace", "/home/user", "/home/user/.agentv-agent-1")


def launched(settings: Claude, directories: Directories = FRESH, session: str = "", **asked) -> Launch:
    return settings.launch(request("Do the task.", **asked), directories, session)


def test_a_denial_counts_once_though_the_stream_reports_it_twice():
    recording, ending = read_recording(CLAUDE, "denied")
    denials = [one for one in recording.steps() if isinstance(one, PermissionStep)]
    assert [(one.tool, one.allowed) for one in denials] == [("write", False)]
    assert "don't ask mode" in str(denials[0].reason)
    assert ending.failure is None  # the stream reports success; `endings` decides
    assert [one.status for one in recording.steps() if isinstance(one, ToolCallStep)] == ["denied"]


def test_an_answer_that_was_cut_off_is_none():
    reader = CLAUDE.reader(read_recording(CLAUDE, "answer")[0], Memory())
    reader.read({"type": "result", "subtype": "success", "is_error": False, "result": "T", "stop_reason": "max_tokens"})
    assert reader.ending().failure.code == "agent-limit"


def test_the_turns_of_a_session_have_their_own_tokens_also_where_a_version_adds_them_up():
    memory = Memory()
    used = {"inputTokens": 10, "outputTokens": 5, "cacheReadInputTokens": 4, "costUSD": 0.5}
    totals = []
    for number in (1, 2):
        recording, _ = read_recording(CLAUDE, "answer")
        fresh = type(recording)("x")
        whole = {key: value * number for key, value in used.items()}
        CLAUDE.reader(fresh, memory).read({"type": "result", "subtype": "success", "modelUsage": {"m": whole}})
        totals.append((fresh.tokens, fresh.cost_usd))
    assert totals == [(TokenUsage(14, 5, 19, 4, 0), 0.5)] * 2
    second, _ = read_recording(CLAUDE, "two-turns-2")
    assert second.tokens == TokenUsage(10, 5, 15, 0, 0)


def test_while_a_sub_agent_works_the_stream_is_not_complete_and_a_shell_does_not_matter():
    reader = CLAUDE.reader(read_recording(CLAUDE, "answer")[0], Memory())
    reader.read({"type": "system", "subtype": "background_tasks_changed", "tasks": [{"task_type": "local_agent"}]})
    reader.read({"type": "result", "subtype": "success", "result": "Started."})
    assert not reader.ending().complete
    assert read_recording(CLAUDE, "background")[1].complete


@pytest.mark.parametrize(
    ("numbers", "repeated"), [((0, 1), False), ((0, 0), True), ((None, None), True), ((0,), False)]
)
def test_results_that_do_not_follow_each_other_are_repeated(numbers, repeated):
    reader = CLAUDE.reader(read_recording(CLAUDE, "answer")[0], Memory())
    for number in numbers:
        reader.read({"type": "result", "subtype": "success", "result": "x", "result_index": number})
    assert reader.ending().repeated == repeated


def test_its_settings_are_files_named_by_flags():
    settings = Claude(
        command=Command(("claude",)),
        model="haiku",
        system_prompt="You are brief.",
        append_system_prompt="Say so.",
        allowed_tools=("Read", "Bash"),
        max_turns=9,
        mcp={"docs": McpServerSettings(url="http://127.0.0.1:9/mcp", headers={"X-Key": "k"})},
        permissions=(
            PermissionRule("deny", tool="edit", path="tests/**"),
            PermissionRule("allow", tool="shop.*"),
            PermissionRule("allow", tool="edit"),
        ),
    )
    launch = launched(settings, session="s-1", mcp_servers=(McpServer("shop", command=("relay", "a")),), max_turns=4)
    texts = {
        launch.argv[place - 1]: launch.files[word.removeprefix("/home/agent/")]
        for place, word in enumerate(launch.argv)
        if word.startswith("/home/agent/")
    }
    assert texts["--system-prompt-file"] == "You are brief."
    assert texts["--append-system-prompt-file"] == "Say so."
    assert json.loads(texts["--mcp-config"])["mcpServers"] == {
        "shop": {"type": "stdio", "command": "relay", "args": ["a"], "env": {}},
        "docs": {"type": "http", "url": "http://127.0.0.1:9/mcp", "headers": {"X-Key": "k"}},
    }
    rules = json.loads(texts["--settings"])["permissions"]
    assert rules["deny"] == ["Edit(./tests/**)", "MultiEdit(./tests/**)", "NotebookEdit(./tests/**)"]
    assert rules["allow"] == ["mcp__shop", "Edit", "MultiEdit", "NotebookEdit"]
    argv = " ".join(launch.argv)
    for part in (
        "--model haiku",
        "--max-turns 4",
        "--resume s-1",
        "--allowedTools Read,Bash",
        "--permission-mode dontAsk",
    ):
        assert part in argv
    assert "--strict-mcp-config" in launch.argv
    assert launch.env["MCP_CONNECTION_NONBLOCKING"] == "false"
    assert "--dangerously-skip-permissions" not in launch.argv


@pytest.mark.parametrize(
    ("permissions", "skips"),
    [("allow", True), ("deny", False), ((PermissionRule("deny", tool="shell"), PermissionRule("allow")), True)],
)
def test_permissions_are_skipped_only_where_the_rest_is_allowed(permissions, skips):
    argv = launched(Claude(command=Command(("claude",)), permissions=permissions)).argv
    assert ("--dangerously-skip-permissions" in argv) == skips


def test_in_the_home_of_the_user_skills_are_found_by_a_flag(tmp_path):
    settings = Claude(command=Command(("claude",)), skills=(str(tmp_path),))
    argv = launched(settings, OF_HOST).argv
    assert argv[argv.index("--add-dir") + 1] == OF_HOST.config
    assert "--add-dir" not in launched(settings).argv


@pytest.mark.parametrize(
    ("rule", "path", "says"),
    [
        ([PermissionRule("allow", kind="edit")], ("permissions", 0, "kind"), "no kinds"),
        ([PermissionRule("allow", path="a")], ("permissions", 0), "needs 'tool'"),
        ([PermissionRule("allow"), PermissionRule("deny", tool="Bash")], ("permissions", 0), "needs 'tool'"),
        ([PermissionRule("allow", tool="a"), PermissionRule("deny", tool="b")], ("permissions", 1), "a denial wins"),
        ([PermissionRule("deny", tool="*")], ("permissions", 0, "tool"), "no tool '*'"),
    ],
)
def test_a_rule_without_a_counterpart_is_an_error(rule, path, says):
    issues = list(Claude(command=Command(("claude",)), permissions=tuple(rule)).validate())
    assert any(one.path == path and says in one.message for one in issues)
