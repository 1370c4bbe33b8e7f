"""Agents with scripted tools: what their calls left is graded, and an agent's own word for them is not."""

from __future__ import annotations

import json
import sys

import pytest

from doubles.agents import AGENT
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
workspace: {{template: ./template}}
sandbox: none
tests:
  - id: refund
    input: Refund order 17
    target: {{provider: acp, command: {command}}}
    assert:
      - {{type: tool-state, path: orders.17, value: refunded}}
      - {{type: "trajectory:tool-used", value: shop.refund}}
"""

CALL = {"call": {"server": "shop", "tool": "refund", "calls": [{"order_id": "17", "amount": 5}]}}
CLAIM = {
    "update": {"sessionUpdate": "tool_call", "toolCallId": "1", "title": "mcp__shop__refund", "status": "completed"}
}
LIST = {"call": {"server": "shop", "tool": "refund", "calls": []}}


@pytest.fixture
def run(project):
    """The row of a case whose agent does these steps."""

    def run(*steps):
        command = [sys.executable, str(AGENT), json.dumps({"prompts": [[*steps, {"say": "Refunded."}]]})]
        project.write("template/a.txt", "a")
        project.write("tools.py", TOOLS)
        project.write("suite.eval.yaml", SUITE.format(command=json.dumps(command)))
        project.run("eval", "suite.eval.yaml")
        (row,) = project.rows()
        return row, project

    return run


def test_a_call_that_arrived_passes_and_is_in_the_trace(run):
    row, project = run(CALL)
    assert (row["status"], row["error"]) == ("passed", None)
    assert (row["agent_version"], row["sandbox"]) == ("1.2.3", "none")
    (trace,) = project.path.glob(".agentv/results/*/artifacts/*/trace.json")
    (call,) = [one for one in json.loads(trace.read_text())["steps"] if one["type"] == "tool_call"]
    assert (call["name"], call["evidence"]) == ("shop.refund", "tools")


def test_a_call_that_the_agent_only_reports_fails(run):
    row, _ = run(LIST, CLAIM)
    assert row["status"] == "failed"
    assert [one["pass"] for one in row["scores"]] == [False, False]


def test_an_agent_that_never_connected_is_an_error(run):
    row, _ = run(CLAIM)
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
    project.write("agent.py", CLI_AGENT)
    project.write("template/a.txt", "a")
    project.write("tools.py", TOOLS)
    text = CLI_SUITE.format(sandbox=sandbox, network=network, transport=transport, command=command)
    project.write("suite.eval.yaml", text)
    ended = project.run("eval", "suite.eval.yaml")
    (row,) = project.rows()
    assert (row["status"], row["error"], row["sandbox"]) == ("passed", None, sandbox), ended.stderr
