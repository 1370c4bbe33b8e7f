"""Codex: the meaning of its recorded streams, and how it is started."""

import json
import tomllib

import pytest

from agentv.extensions.agents.adapters.codex import Codex
from agentv.extensions.agents.adapters.native_settings import Directories, Launch, Memory
from agentv.extensions.agents.adapters.recorder import Recording
from agentv.extensions.agents.adapters.settings import McpServerSettings, PermissionRule
from agentv.model.suite.tools import McpServer
from agentv.model.values.response import Failure
from agentv.model.values.trace import PermissionStep, ToolCallStep
from agentv.model.values.usage import TokenUsage
from agentv.registry.fields import Command
from doubles.asking import request
from doubles.native_agents import read, read_recording, stream

CODEX = Codex(command=Command(("codex",)), api_key="real-key", base_url="http://127.0.0.1:2/v1")
CAREFUL = Codex(command=Command(("codex",)), permissions="deny")
FRESH = Directories("/workspace", "/home/agent", "/home/agent")
OF_HOST = Directories("/workspace", "/home/user", "/home/user/.agentv-agent-1")


def launched(settings: Codex, directories: Directories = FRESH, session: str = "", **asked) -> Launch:
    return settings.launch(request("Do the task.", **asked), directories, session)


def config_of(launch: Launch) -> dict:
    return tomllib.loads(launch.files[".codex/config.toml"])


def test_an_mcp_tool_has_the_name_of_its_server():
    recording, _ = read_recording(CODEX, "tool")
    call = next(one for one in recording.steps() if isinstance(one, ToolCallStep))
    assert (call.name, call.arguments, call.result) == ("shop.get_order", {"order_id": "7"}, {"status": "shipped"})


@pytest.mark.parametrize(
    ("situation", "tool"), [("denied", "edit"), ("denied-in-code", "edit"), ("denied-command", "shell")]
)
def test_what_its_sandbox_refuses_is_a_denial_once_in_a_session(situation, tool):
    memory, first, second = Memory(), Recording("a"), Recording("b")
    read(CAREFUL.reader(first, memory), stream("codex", situation))
    denials = [one for one in first.steps() if isinstance(one, PermissionStep)]
    assert [(one.tool, one.allowed) for one in denials] == [(tool, False)]
    recorded_lines = [one for one in stream("codex", situation).read_text().splitlines() if '"response_item"' in one]
    reader = CAREFUL.reader(second, memory)
    for line in recorded_lines:
        reader.read(json.loads(line))
    assert not [one for one in second.steps() if isinstance(one, PermissionStep)]


def test_the_usage_of_a_later_turn_is_that_of_the_session_less_the_earlier_ones():
    memory, found = Memory(), []
    for situation in ("two-turns", "two-turns-2"):
        recording = Recording("x")
        read(CODEX.reader(recording, memory), stream("codex", situation))
        found.append(recording.tokens)
    assert found == [TokenUsage(10, 5, 15, 0, 0)] * 2


def test_its_configuration_is_a_file_in_a_home_of_its_own():
    settings = Codex(
        command=Command(("codex",)),
        api_key="real-key",
        base_url="http://127.0.0.1:2/v1",
        model="gpt-5.1",
        system_prompt="Be brief.",
        append_system_prompt='Say "so".\n',
        mcp={"docs": McpServerSettings(url="http://127.0.0.1:9/mcp", headers={"X-Key": "k"})},
    )
    launch = launched(settings, session="t-1", mcp_servers=(McpServer("shop", command=("relay", "a")),))
    config = config_of(launch)
    assert config["model_providers"]["agentv"]["base_url"] == "http://127.0.0.1:2/v1"
    assert (config["model_provider"], config["sandbox_mode"], config["approval_policy"]) == (
        *("agentv", "danger-full-access", "never"),
    )
    assert config["developer_instructions"] == 'Say "so".\n'
    assert launch.files[config["model_instructions_file"].removeprefix("/home/agent/")] == "Be brief."
    assert config["mcp_servers"] == {
        "shop": {"command": "relay", "args": ["a"]},
        "docs": {"url": "http://127.0.0.1:9/mcp", "http_headers": {"X-Key": "k"}},
    }
    assert config["otel"] == {"metrics_exporter": "none"}
    assert launch.argv[:3] == ("exec", "resume", "t-1")
    assert launch.env["CODEX_HOME"] == "/home/agent/.codex"
    assert not launch.env["CODEX_HOME"].startswith(launch.env["TMPDIR"])
    assert "real-key" not in repr((launch.argv, dict(launch.files)))


def test_in_the_home_of_the_user_nothing_is_written():
    launch = launched(CODEX, OF_HOST)
    assert not launch.files
    assert "CODEX_HOME" not in launch.env
    assert 'model_provider="agentv"' in launch.argv
    refused = CAREFUL.launch(request(), OF_HOST, "")
    assert isinstance(refused, Failure)


@pytest.mark.parametrize(
    ("settings", "path"),
    [({"allowed_tools": ("a",)}, ("allowed_tools",)), ({"permissions": (PermissionRule("allow"),)}, ("permissions",))],
)
def test_a_setting_that_it_has_not_is_an_error(settings, path):
    assert [one.path for one in Codex(command=Command(("codex",)), **settings).validate()] == [path]
