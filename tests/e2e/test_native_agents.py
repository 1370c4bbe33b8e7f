"""Named agents end to end: recorded streams of Claude Code and Codex, and the real programs where installed."""

import json
import os
import sys
from pathlib import Path

import pytest

from agentv.extensions.agents.adapters.claude import Claude
from agentv.extensions.agents.adapters.codex import Codex
from agentv.testing import AgentScript, Answer, ModelServer, Status, use_tool
from doubles.native_agents import PROGRAM, stream, target_of
from needs import needs

SITUATIONS = {
    "answer": None,
    "edit": None,
    "api-error": "agent-api",
    "denied": "permission-denied",
    "empty": "empty-output",
}


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_each_situation_has_its_verdict_and_its_trace(project, agent):
    cases = "".join(f"  - {{id: {one}, input: {one}, assert: [regex: .]}}\n" for one in SITUATIONS)
    project.write(
        "a.eval.yaml",
        f"target: {target_of(agent, dict(zip(SITUATIONS, SITUATIONS, strict=True)), permissions='deny', api_key='sk-of-mine-1234567', gateway=False)}\n"
        f"sandbox: none\nworkspace: {{keep: none}}\ntests:\n{cases}",
    )
    project.run("eval", "a.eval.yaml", "--out", "out", status=3)
    rows = {row["test_id"]: row for row in project.rows("out")}
    assert {name: (row.get("error") or {}).get("code") for name, row in rows.items()} == SITUATIONS
    assert {name for name, row in rows.items() if row["status"] == "passed"} == {"answer", "edit"}
    assert {row["agent_version"] for row in rows.values()} == {"2.1.330" if agent == "claude" else "0.163.0"}
    versions = json.loads((project.path / "out" / "run.json").read_text())["agent_versions"]
    assert versions == {agent: ["2.1.330" if agent == "claude" else "0.163.0"]}
    edit = rows["edit"]
    assert edit["token_usage"]["total"] == 45
    trace = json.loads((project.path / "out" / edit["trace_path"]).read_text())
    assert [one["name"] for one in trace["steps"] if one.get("type") == "tool_call"][-1] == "shell"
    native = (project.path / "out" / edit["native_path"]).read_text()
    assert native == stream(agent, "edit").read_text()
    kept = "".join(path.read_text() for path in (project.path / "out").rglob("*") if path.is_file())
    assert "sk-of-mine-1234567" not in kept


def test_a_check_has_each_agent_take_one_turn_and_says_what_it_found_and_no_secret(project):
    def named(name, agent, situation):
        script = {"text": stream(agent, situation).read_text()}  # when sandboxed, it cannot read the repository's files
        command = [sys.executable, str(PROGRAM), json.dumps(script)]
        return {"name": name, "provider": agent, "command": command, "api_key": "sk-of-mine-1234567", "gateway": False}

    targets = [named("fine", "claude", "answer"), named("lost", "codex", "api-error")]
    project.write(".agentv/targets.yaml", json.dumps({"targets": targets}))
    ended = project.run("targets", "--check", status=3)
    assert "check: one turn of 2 agents (fine, lost; ended after 4 model calls or 30 s)" in ended.stderr
    assert "fine: claude 2.1.330 (tested: 2.1.330, 2.1.332); sandbox " in ended.stdout
    assert "model calls do not pass the gateway" in ended.stdout
    assert "lost: agent-api: " in ended.stdout
    assert "does the agent reach its model?" in ended.stdout
    found = project.run("targets", "--check", "--json")
    checks = {one["name"]: one["check"] for one in json.loads(found.stdout)["targets"]}
    assert (checks["fine"]["state"], checks["lost"]["code"]) == ("ok", "agent-api")
    assert (checks["fine"]["agent"]["version"], checks["fine"]["agent"]["gateway"]) == ("2.1.330", None)
    assert "sk-of-mine-1234567" not in ended.stdout + ended.stderr + found.stdout + found.stderr


def test_a_program_that_is_not_installed_is_an_error_at_load_that_says_how_to(project):
    project.write("a.eval.yaml", "target: claude-code\ntests: [{id: a, input: x, assert: [contains: x]}]\n")
    path = project.path / "empty"
    path.mkdir()
    (path / "claude_agent_sdk.py").touch()  # hides the installed package
    ended = project.run("eval", "a.eval.yaml", env={"PATH": str(path), "PYTHONPATH": str(path)}, status=2)
    assert "missing-agent" in ended.stderr
    assert "pip install 'agentv[claude]'" in ended.stderr


@pytest.fixture(
    params=[
        pytest.param(Claude, id="claude", marks=needs("claude")),
        pytest.param(Codex, id="codex", marks=needs("codex")),
    ]
)
def real(request, project):
    """Return the suite of a real program that can only reach a server in the role of its model."""
    settings = request.param

    def run(script: AgentScript, suite: str, **more: object):
        with ModelServer(script) as server:
            url = server.anthropic if settings is Claude else server.openai
            named = {"provider": settings.program.name, "base_url": url, "api_key": "sk-of-mine-1234567", **more}
            project.write("a.eval.yaml", f"target: {json.dumps(named)}\n{suite}")
            ended = project.run("eval", "a.eval.yaml", "--out", "out", timeout=300, env={"PATH": os.environ["PATH"]})
            return ended, project.rows("out"), server

    return run


@pytest.mark.agents
def test_a_real_agent_edits_and_calls_our_tools(real):
    steps = [
        use_tool("write", path="a.txt", content="hi\n"),
        use_tool("shop.get_order", order_id="7"),
        Answer("It is shipped."),
    ]
    suite = (
        "workspace: {keep: none}\n"
        "tools: {shop: {get_order: {description: Look up, params: {order_id: string}, returns: {status: shipped}}}}\n"
        "tests:\n  - id: a\n    input: Look it up.\n    assert:\n"
        "      - contains: shipped\n      - file-contains: {path: a.txt, value: hi}\n      - tool-trajectory: {mode: any_order, expected: [{tool: shop.get_order}]}\n"
    )
    ended, rows, server = real(AgentScript(steps), suite)
    assert ended.status == 0, ended.stderr
    assert rows[0]["token_usage"]["total"] == server.tokens.total
    assert rows[0]["agent_version"]


@pytest.mark.agents
@pytest.mark.parametrize(
    ("steps", "settings", "code"),
    [
        (
            [use_tool("write", path="a.txt", content="hi\n"), Answer("Wrote it.")],
            {"permissions": "deny"},
            "permission-denied",
        ),
        ([Status(400, "no")], {}, "agent-api"),
        ([use_tool("shell", command="echo x")], {"max_turns": 2}, "agent-limit"),
    ],
)
def test_a_real_agent_whose_success_is_none_is_errored(real, steps, settings, code):
    suite = "workspace: {keep: none}\ntests: [{id: a, input: Do it., assert: [regex: .]}]\n"
    ended, rows, _ = real(AgentScript(steps), suite, **settings)
    assert (ended.status, rows[0]["error"]["code"]) == (3, code), ended.stderr


@pytest.mark.agents
def test_a_real_agent_goes_on_with_its_session(real):
    suite = (
        "workspace: {keep: none}\ntests:\n  - id: a\n    turns:\n"
        "      - {input: One., assert: [contains: First]}\n      - {input: Two., assert: [contains: Second]}\n"
    )
    ended, rows, server = real(AgentScript(["First.", "Second."]), suite)
    assert ended.status == 0, ended.stderr
    assert server.calls[-1].text.count("One.") >= 1
    assert Path(rows[0]["trace_path"]).name
