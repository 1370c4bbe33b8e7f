"""Agents with scripted tools: grading uses the recorded calls, now and in a regrade, and not what the agent reports."""

import json
import shutil
import sys

import pytest

from doubles.agents import AGENT
from e2e.command import Project
from needs import needs

pytestmark = pytest.mark.libraries

TOOLS = """
def refund(order_id, amount, state):
    state["orders"][order_id] = "refunded"
    return {"ok": True}
"""

SUITE = """
tools:
  shop:
    state: {{orders: {{"17": shipped}}}}
    tools:
      refund: {{params: {{order_id: string, amount: number}}, function: tools.py:refund}}
workspace: {{template: ./template, protected: ["tests/**"]}}
sandbox: none
{more}
tests:
  - id: refund
    input: Refund order 17
    target: {{provider: acp, command: {command}, on_denied: grade}}
    assert:
{asserts}
"""

ASSERTS = {
    "tool-errors": "{type: tool-errors, max: 0}",
    "permission-denials": "{type: permission-denials, max: 0}",
    "turns": "{type: turns, max: 3}",
    "tool-used": '{type: "trajectory:tool-used", value: shop.refund}',
    "tool-state": "{type: tool-state, path: orders.17, value: refunded}",
    "file-changes": "{type: file-changes, allow: [made.txt], max_lines: 1}",
    "diff": "{type: diff, assert: [contains: made.txt]}",
    "command": "{type: command, command: 'true'}",
}

CALL = {"call": {"server": "shop", "tool": "refund", "calls": [{"order_id": "17", "amount": 5}]}}
CLAIM = {
    "update": {"sessionUpdate": "tool_call", "toolCallId": "1", "title": "mcp__shop__refund", "status": "completed"}
}
LIST = {"call": {"server": "shop", "tool": "refund", "calls": []}}


def runner(project):
    def run(*steps, more="", asserts=("turns",)):
        command = [sys.executable, str(AGENT), json.dumps({"prompts": [[*steps, {"say": "Refunded."}]]})]
        project.write_files({"template/a.txt": "a", "tools.py": TOOLS})

        def write(names):
            lines = "\n".join(f"      - {ASSERTS[name]}" for name in names)
            text = SUITE.format(command=json.dumps(command), asserts=lines, more=more)
            project.write("suite.eval.yaml", text)

        write(asserts)
        project.run("eval", "suite.eval.yaml", "--out", "old")
        (row,) = project.rows("old")
        write(ASSERTS)
        return row

    return run


@pytest.fixture
def ran(project):
    """Return a function that runs a case whose agent performs these steps, and returns the row."""
    return runner(project)


WORK = ("tool-state", "tool-used")


def test_a_call_that_arrived_passes_and_is_in_the_trace(project, ran):
    row = ran(CALL, asserts=WORK)
    assert (row["status"], row["error"]) == ("passed", None)
    assert (row["agent_version"], row["sandbox"]) == ("1.2.3", "none")
    (trace,) = project.path.glob("old/artifacts/*/trace.json")
    (call,) = [one for one in json.loads(trace.read_text())["steps"] if one["type"] == "tool_call"]
    assert (call["name"], call["evidence"]) == ("shop.refund", "tools")


def test_a_call_that_the_agent_only_reports_fails(ran):
    row = ran(LIST, CLAIM, asserts=WORK)
    assert row["status"] == "failed"
    assert [one["pass"] for one in row["scores"]] == [False, False]


def test_an_agent_that_never_connected_is_an_error(ran):
    row = ran(CLAIM, asserts=WORK)
    assert (row["status"], row["error"]["code"]) == ("errored", "no-tools")


CLI_AGENT = """
import asyncio, json, os, sys
from mcp import Client, StdioServerParameters

async def main():
    path = sys.argv[1]
    assert path == os.environ["AGENTV_MCP_CONFIG"], path
    server = json.load(open(path))["mcpServers"]["shop"]
    address = server.get("url") or StdioServerParameters(command=server["command"], args=server["args"])
    async with Client(address) as client:
        await client.list_tools()
        await client.call_tool("refund", {"order_id": "17", "amount": 5})
    print("Refunded.")

asyncio.run(main())
"""

CLI_SUITE = """
tools:
  shop:
    transport: {transport}
    state: {{orders: {{"17": shipped}}}}
    tools:
      refund: {{params: {{order_id: string, amount: number}}, function: tools.py:refund}}
workspace: {{template: ./template, network: {network}}}
sandbox: {sandbox}
target: {{provider: cli, command: {command}}}
tests:
  - id: refund
    input: Refund order 17
    assert: [{{type: tool-state, path: orders.17, value: refunded}}]
"""


@pytest.mark.parametrize(
    ("sandbox", "network", "transport"),
    [
        ("none", "host", "stdio"),
        pytest.param("bwrap", "loopback", "http", marks=needs("bwrap")),
        pytest.param("bwrap", "none", "stdio", marks=needs("bwrap")),
    ],
)
def test_a_program_finds_the_tools_in_a_file(project, sandbox, network, transport):
    command = json.dumps([sys.executable, "agent.py", "{MCP_CONFIG}"])
    project.write_files({"agent.py": CLI_AGENT, "template/a.txt": "a", "tools.py": TOOLS})
    text = CLI_SUITE.format(sandbox=sandbox, network=network, transport=transport, command=command)
    project.write("suite.eval.yaml", text)
    ended = project.run("eval", "suite.eval.yaml")
    (row,) = project.rows()
    assert (row["status"], row["error"], row["sandbox"]) == ("passed", None, sandbox), ended.stderr


FAILED = {"update": {"sessionUpdate": "tool_call", "toolCallId": "2", "title": "Bash", "status": "failed"}}
WRITE = {"file": ["made.txt", "made\n"]}


@pytest.fixture(scope="module")
def worked(tmp_path_factory):
    """A project, made once and copied, whose agent called a tool, failed at another and wrote a file."""
    project = Project(tmp_path_factory.mktemp("worked"), libraries=True)
    (project.path / ".git").mkdir()
    old = runner(project)(CALL, FAILED, WRITE)
    assert old["status"] == "passed", old
    return project


@pytest.fixture
def copied(worked, project):
    shutil.copytree(worked.path, project.path, dirs_exist_ok=True)
    return project


def regraded(project, of="old", out="new"):
    ended = project.run("eval", "suite.eval.yaml", f"--regrade={of}", "--out", out)
    (row,) = project.rows(out)
    return row, {one["type"]: (one["pass"], one.get("error", {}).get("code")) for one in row["scores"]}, ended


def test_all_that_the_run_kept_is_graded_as_if_it_were_the_first_time(copied):
    row, scores, ended = regraded(copied)
    assert scores == {
        "tool-errors": (False, None),
        "permission-denials": (True, None),
        "turns": (True, None),
        "trajectory:tool-used": (True, None),
        "tool-state": (True, None),
        "file-changes": (True, None),
        "diff": (True, None),
        "command": (None, "no-workspace"),
    }, ended.stderr
    assert (row["sandbox"], row["reused"]) == ("none", True)
    assert row["work_path"].startswith("artifacts/")
    _, again, _ = regraded(copied, "new", "newer")
    assert again == scores


def test_a_call_that_the_agent_only_claims_is_none_when_it_is_graded_again(project, ran):
    ran(LIST, CLAIM)
    _, scores, _ = regraded(project)
    assert scores["trajectory:tool-used"] == (False, None)
    assert scores["tool-state"] == (False, None)


@pytest.mark.parametrize(("name", "removed"), [("trace.json", False), ("diff.patch", True), ("work.json", False)])
def test_what_was_edited_afterwards_is_not_graded(copied, name, removed):
    (path,) = copied.path.glob(f"old/artifacts/*/{name}")
    if removed:
        path.unlink()
    else:
        path.write_text(path.read_text().replace("failed", "completed") + " ")
    row, _, _ = regraded(copied)
    assert (row["status"], row["error"]["code"]) == ("errored", "bad-trace")
    assert "was changed or removed after it was written" in row["error"]["message"]


def test_a_row_that_names_other_work_is_not_believed(copied):
    index = copied.path / "old/index.jsonl"
    row = json.loads(index.read_text())
    index.write_text(json.dumps({**row, "work_sha256": "0" * 64}) + "\n")
    row, _, _ = regraded(copied)
    assert (row["status"], row["error"]["code"]) == ("errored", "bad-trace")


def test_protected_files_that_were_changed_fail_again(project, ran):
    old = ran(CALL, {"file": ["tests/forged.py", ""]})
    assert old["status"] == "failed"
    _, scores, _ = regraded(project)
    assert scores["protected-files"] == (False, None)


def test_parts_that_held_a_secret_are_unknown(project, ran):
    secret = "sk-shop-1234567890abcdef"
    ran(CALL, {"file": ["made.txt", secret]}, more=f"env: {{SHOP_API_KEY: {secret}}}")
    (kept,) = project.path.glob("old/artifacts/*/work.json")
    assert "patch" in json.loads(kept.read_text())["redacted"]
    _, scores, _ = regraded(project)
    assert scores["diff"] == scores["file-changes"] == (None, "no-workspace")
    assert scores["turns"] == (True, None)
