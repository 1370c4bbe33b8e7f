"""`agentv targets`, against servers on loopback."""

import json

import pytest

from agentv.testing import ModelServer

pytestmark = pytest.mark.libraries

KEY = "sk-ant-right-1234567890"
BOOK = """targets:
  - name: haiku
    provider: anthropic
    model: claude-haiku-4-5
    base_url: {url}
  - name: sonnet
    provider: anthropic:claude-sonnet-5
    base_url: {url}
    api_key: ${{{{ TEAM_KEY }}}}
    judge_target: haiku
  - name: agent
    provider: cli
    command: "true {{PROMPT}}"
    allow_empty: true
  - {{name: canned, provider: mock, response: hello}}
defaults:
  target: haiku
"""


@pytest.fixture(scope="module")
def server():
    with ModelServer("OK", keys={KEY}) as running:
        yield running


def listed(project, *words, env=None):
    """Return `--json`'s entry for each target by name, and the exit status."""
    ended = project.run("targets", "--json", *words, env=env or {})
    return {one["name"]: one for one in json.loads(ended.stdout)["targets"]}, ended


def test_what_is_configured_and_which_keys_are_set(project, server):
    project.write(".agentv/targets.yaml", BOOK.format(url=server.anthropic))
    project.write(".env", f"ANTHROPIC_API_KEY={KEY}\n")
    found, ended = listed(project)
    assert ended.status == 0
    assert found["haiku"]["keys"] == [{"names": ["ANTHROPIC_API_KEY"], "found": "ANTHROPIC_API_KEY", "needed": True}]
    assert found["sonnet"]["keys"] == [{"names": ["TEAM_KEY"], "found": None, "needed": True}]
    assert (found["sonnet"]["provider"], found["sonnet"]["model"]) == ("anthropic", "claude-sonnet-5")
    assert found["haiku"]["marks"] == ["default target", "judge of sonnet"]
    assert found["haiku"]["source"] == ".agentv/targets.yaml:2"
    shown = project.run("targets").stdout
    assert "TEAM_KEY not set" in shown
    assert KEY not in shown + ended.stdout
    assert server.calls == []


def test_a_call_to_each_and_what_to_do_where_it_fails(project, server):
    project.write(".agentv/targets.yaml", BOOK.format(url=server.anthropic))
    env = {"ANTHROPIC_API_KEY": KEY, "TEAM_KEY": "sk-ant-wrong-1234567890"}
    found, ended = listed(project, "--check", env=env)
    assert ended.status == 3
    shown = {name: one["check"]["state"] for name, one in found.items()}
    assert shown == {"haiku": "ok", "sonnet": "failed", "agent": "ok", "canned": "untried"}
    assert found["haiku"]["check"]["duration_ms"] > 0
    assert "check TEAM_KEY" in found["sonnet"]["check"]["fix"]
    assert server.calls[-1].body["max_tokens"] <= 16
    assert "sk-ant" not in ended.stdout + ended.stderr


def test_a_missing_key_fails_the_check_without_a_call(project, server):
    before = len(server.calls)
    found, ended = listed(project, "--check", "anthropic:claude-opus-4-8")
    assert (ended.status, len(server.calls)) == (3, before)
    check = found["anthropic:claude-opus-4-8"]["check"]
    shown = (check["code"], check["fix"])
    assert shown == ("no-api-key", "set ANTHROPIC_API_KEY, in the environment or in a .env file")


@pytest.mark.parametrize(
    ("book", "words", "said"),
    [("targts: [{name: a, provider: mock}]\n", (), "unknown-key"), ("targets: []\n", ("nobody",), "unknown-target")],
)
def test_what_is_wrong_is_told_and_ends_with_2(project, book, words, said):
    project.write(".agentv/targets.yaml", book)
    project.run("targets", *words, status=2, says=said)


def test_each_target_is_shown_with_what_is_wrong_with_it(project):
    book = """targets:
  - {name: good, provider: echo}
  - {name: misspelt, provider: mokc}
  - {name: agent, provider: vscode}
  - {name: alias, use_target: good}
  - {name: open, use_target: "${{ WHICH }}"}
  - {name: lost, use_target: nobody}
"""
    project.write(".agentv/targets.yaml", book)
    ended = project.run("targets", "--json", status=0)
    listed = {one["name"]: one for one in json.loads(ended.stdout)["targets"]}
    assert {name: one["problem_code"] for name, one in listed.items()} == {
        "good": None,
        "misspelt": "unknown-provider",
        "agent": "not-yet",
        "alias": None,
        "open": None,
        "lost": "unknown-target",
    }
    assert (listed["alias"]["provider"], listed["alias"]["source"]) == ("echo", ".agentv/targets.yaml:5")
    assert listed["open"]["keys"][0]["names"] == ["WHICH"]
    assert "misspelt: no provider 'mokc'" in project.run("targets").stdout
    checked = project.run("targets", "--check")
    assert (checked.status, "short call" in checked.stderr) == (3, False)
    assert "lost: unknown-target: no target 'nobody'" in checked.stdout
