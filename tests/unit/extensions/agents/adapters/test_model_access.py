import json

import pytest

from agentv.extensions.agents.adapters.native_settings import Directories, Launch
from agentv.extensions.agents.adapters.settings import PermissionRule
from agentv.model.suite.tools import GatewayAccess, McpServer
from doubles.asking import request
from doubles.native_agents import settings_of

AGENTS = ("gemini-cli", "copilot-cli", "pi-cli", "opencode", "mini-swe-agent")
OF_ANY_MODEL = AGENTS[1:]
HOME = Directories("/workspace", "/home/agent", "/home/agent")
HOME_OF_USER = Directories("/workspace", "/home/user", "/home/user/.agentv-agent-1")
SHOP = McpServer("shop", "stdio", ("python", "shop.py"), {"A": "1"})
REMOTE = McpServer("far", "http", url="http://127.0.0.1:9/mcp", headers={"X-Key": "h"})


def launched(provider, one=None, directories=HOME, session="", **settings):
    found = settings_of(provider, **settings).launch(one or request("Fix it."), directories, session)
    assert isinstance(found, Launch), found
    return found


def everything(launch):
    return json.dumps([launch.argv, dict(launch.env), dict(launch.files)]) + launch.stdin.decode()


@pytest.mark.parametrize("agent", ["claude", "codex", *AGENTS])
def test_with_the_gateway_the_agent_gets_its_address_and_token_and_never_the_key(agent):
    one = request("Fix it.", gateway=GatewayAccess("http://127.0.0.1:7777", "token-of-trial"))
    said = everything(launched(agent, one, model="m-1", api_key="real-key", base_url="https://real.example"))
    assert "http://127.0.0.1:7777/" in said
    assert "token-of-trial" in said
    assert "real-key" not in said
    assert "real.example" not in said


@pytest.mark.parametrize("agent", AGENTS)
def test_without_the_gateway_it_gets_the_key_and_no_argument_shows_it(agent):
    launch = launched(agent, model="m-1", api_key="real-key", base_url="https://real.example")
    assert "real-key" in everything(launch)
    assert "https://real.example" in everything(launch)
    assert not [word for word in launch.argv if "real-key" in word]


@pytest.mark.parametrize("agent", AGENTS)
def test_without_a_key_it_is_signed_in_as_it_is(agent):
    launch = launched(agent, model="m-1")
    assert "base" not in "".join(launch.env).lower()
    assert not [name for name in launch.env if "KEY" in name]


@pytest.mark.parametrize("agent", AGENTS)
def test_the_prompt_is_no_argument_so_that_its_length_is_not_limited(agent):
    launch = launched(agent, request("Fix it."), model="m-1", api_key="k")
    assert "Fix it." in everything(launch)
    assert not [word for word in launch.argv if "Fix it." in word]


@pytest.mark.parametrize(
    ("agent", "api", "url"),
    [
        ("opencode", "openai", "/openai/v1"),
        ("opencode", "anthropic", "/anthropic/v1"),
        ("opencode", "gemini", "/gemini/v1beta"),
        ("pi-cli", "anthropic", "/anthropic"),
        ("pi-cli", "gemini", "/gemini/v1beta"),
        ("copilot-cli", "anthropic", "/anthropic"),
        ("mini-swe-agent", "anthropic", "/anthropic"),
    ],
)
def test_the_base_url_is_as_each_program_takes_it(agent, api, url):
    one = request("Fix it.", gateway=GatewayAccess("http://127.0.0.1:7777", "t"))
    assert f'7777{url}"' in everything(launched(agent, one, model="m-1", api=api)).replace("\\", "")


@pytest.mark.parametrize("agent", OF_ANY_MODEL)
def test_the_upstream_of_the_gateway_has_the_protocol_that_the_agent_speaks(agent):
    upstream = settings_of(agent, model="m-1", api_key="k", api="anthropic").upstream({})
    assert (upstream.protocol, upstream.base_url, upstream.api_key) == ("anthropic", "https://api.anthropic.com", "k")
    assert settings_of(agent, model="m-1").upstream({"OPENAI_API_KEY": "k"}) is None
    named = settings_of(agent, model="anthropic/m-1")
    assert named.upstream({"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a"}).api_key == "a"
    one = request("Fix it.", gateway=GatewayAccess("http://127.0.0.1:7777", "t"))
    said = everything(launched(agent, one, model="anthropic/m-1"))
    assert "7777/anthropic" in said
    assert ("anthropic/m-1" in said) == (agent == "mini-swe-agent")  # its library needs the provider


@pytest.mark.parametrize("agent", ["gemini-cli", "copilot-cli", "opencode"])
def test_mcp_servers_are_in_its_settings(agent):
    said = everything(launched(agent, request("Fix it.", mcp_servers=(SHOP, REMOTE)), model="m-1", api_key="k"))
    plain = said.replace("\\", "")
    assert '"shop"' in plain
    assert "shop.py" in plain
    assert '"A": "1"' in plain
    assert "http://127.0.0.1:9/mcp" in plain
    assert '"X-Key": "h"' in plain


@pytest.mark.parametrize("agent", ["pi-cli", "mini-swe-agent"])
def test_an_agent_without_mcp_is_not_started_for_a_case_with_tools(agent):
    found = settings_of(agent).launch(request("Fix it.", mcp_servers=(SHOP,)), HOME, "")
    assert found.code == "no-tools"


def test_an_agent_without_sessions_is_not_asked_a_second_turn():
    found = settings_of("mini-swe-agent").launch(request("Fix it.", turn=2), HOME, "")
    assert (found.code, "cannot continue a session" in found.message) == ("no-session", True)


@pytest.mark.parametrize(
    ("agent", "allowed", "denied"),
    [
        ("gemini-cli", "yolo", "default"),
        ("copilot-cli", "--allow-all", "--no-ask-user"),
        ("opencode", "--auto", "--format"),
    ],
)
def test_permissions(agent, allowed, denied):
    assert allowed in launched(agent).argv
    careful = launched(agent, permissions="deny").argv
    assert allowed not in careful
    assert denied in careful


@pytest.mark.parametrize(
    ("agent", "word", "of_server"),
    [
        ("gemini-cli", "run_shell_command", "mcp_shop_get_order"),
        ("copilot-cli", "--allow-tool=shell", "--allow-tool=shop(get_order)"),
        ("opencode", '"bash": "allow"', '"shop_get_order": "allow"'),
    ],
)
def test_allowed_tools_have_the_names_of_the_agent(agent, word, of_server):
    launch = launched(agent, permissions="deny", allowed_tools=("shell", "shop.get_order"))
    assert of_server in everything(launch).replace("\\", "")
    assert word in everything(launch).replace("\\", "")


def issues(agent, **settings):
    given = {"command": settings_of("claude").command.__class__(("agent",)), **settings}
    return [".".join(map(str, one.path)) for one in settings_of(agent, **given).validate()]


@pytest.mark.parametrize("agent", AGENTS)
def test_rules_are_refused_where_the_agent_takes_none(agent):
    assert issues(agent, permissions=(PermissionRule("allow"),)) == ["permissions"]


@pytest.mark.parametrize(
    ("agent", "settings", "place"),
    [
        ("copilot-cli", {"system_prompt": "x"}, "system_prompt"),
        ("copilot-cli", {"api": "gemini"}, "api"),
        ("pi-cli", {"permissions": "deny"}, "permissions"),
        ("pi-cli", {"allowed_tools": ("shell",)}, "allowed_tools"),
        ("mini-swe-agent", {"append_system_prompt": "x"}, "append_system_prompt"),
        ("opencode", {"api_key": "k"}, "model"),
    ],
)
def test_a_setting_that_has_no_effect_is_an_issue(agent, settings, place):
    assert issues(agent, **settings) == [place]


@pytest.mark.parametrize("agent", AGENTS)
def test_a_program_that_is_not_installed_is_an_issue_that_says_how_to_install_it(agent, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    (issue,) = settings_of(agent).validate()
    assert issue.code == "missing-agent"
    assert " install " in (issue.hint or "")


@pytest.mark.parametrize("agent", ["gemini-cli", "copilot-cli", "pi-cli", "opencode"])
def test_prompts_of_the_target_reach_the_agent(agent):
    launch = launched(agent, append_system_prompt="Be brief.", model="m-1", api_key="k")
    assert "Be brief." in launch.files.values()


@pytest.mark.parametrize("agent", ["gemini-cli", "copilot-cli"])
def test_what_stands_in_the_home_of_the_user_is_left_alone(agent):
    found = settings_of(agent, append_system_prompt="Be brief.").launch(request(), HOME_OF_USER, "")
    assert found.code == "cannot-start"


def test_a_system_prompt_is_no_template():
    launch = launched("mini-swe-agent", system_prompt="Use {{ braces }}.")
    assert "{% raw %}Use {{ braces }}.{% endraw %}" in launch.files[".agentv/mini.yaml"]


@pytest.mark.parametrize("agent", ["claude", "codex", *OF_ANY_MODEL])
def test_each_agent_is_told_how_much_to_think(agent):
    launch = launched(agent, model="m-1", base_url="http://127.0.0.1:1/v1", api_key="real-key", reasoning_effort="high")
    assert "high" in everything(launch)
    assert "high" not in everything(launched(agent, model="m-1", base_url="http://127.0.0.1:1/v1", api_key="real-key"))
