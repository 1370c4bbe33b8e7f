import asyncio
import json
import socket
import subprocess
import sys

import pytest
from mcp import Client, MCPError, StdioServerParameters

from agentv.extensions.agents import sockets
from agentv.extensions.agents.trial.scripted_tools import UNCONFIRMED, joined, start_tools
from agentv.model.suite.tools import ScriptedServer, ScriptedTool, ToolFailure
from agentv.model.values.response import Failure
from agentv.model.values.trace import MessageStep, ToolCallStep, Trace
from agentv.user_code.threads import DaemonThreads

FUNCTIONS = """
import asyncio, os, sys

def refund(order_id, amount, state):
    state.setdefault("refunds", []).append([order_id, amount])
    if amount > 100:
        raise ValueError("too much")
    return {"ok": True}

async def count(state):
    await asyncio.sleep(0)
    state["count"] = state.get("count", 0) + 1
    return state["count"]

def everything(arguments):
    return sorted(arguments)

def exits():
    sys.exit(3)

def leaves():
    os._exit(3)

def torn(state):
    state["x"] = object()

def strange(nobody_gives_this, nor_this):
    return 1
"""

ORDER = {"order_id": "string"}


@pytest.fixture
def tools(tmp_path):
    """Return a function that makes tools from the functions of one file."""
    (tmp_path / "tools.py").write_text(FUNCTIONS)

    def make(name, **others):
        return ScriptedTool(name, function=f"{tmp_path}/tools.py:{name}", **others)

    return make


def served(server, use, directory=""):
    """Return `use(client)` with a client of the `mcp` package connected to the server, and the running tools."""

    async def run():
        executor = DaemonThreads()
        running = await start_tools([server], executor, directory)
        assert not isinstance(running, Failure), running
        try:
            async with asyncio.timeout(30), Client(parameters_of(running.servers[0])) as client:
                return await use(client), running
        finally:
            await running.close()
            await executor.aclose()

    return asyncio.run(run())


def parameters_of(one):
    return one.url or StdioServerParameters(command=one.command[0], args=list(one.command[1:]))


async def text(client, name, **arguments):
    result = await client.call_tool(name, arguments)
    return ("error: " if result.is_error else "") + result.content[0].text


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_tools_are_listed_called_and_recorded(tools, transport):
    order = ScriptedTool("get_order", "Look up an order", ORDER, {"status": "shipped"})
    refund = tools("refund", params={"order_id": "string", "amount": "number"})

    async def use(client):
        listed = (await client.list_tools()).tools
        assert [(one.name, one.description) for one in listed] == [("get_order", "Look up an order"), ("refund", None)]
        assert listed[0].input_schema["properties"] == {"order_id": {"type": "string"}}
        return [await text(client, "get_order", order_id="17"), await text(client, "refund", order_id="17", amount=5)]

    said, running = served(ScriptedServer("shop", (order, refund), {"refunds": []}, transport), use)
    assert said == ['{"status": "shipped"}', '{"ok": true}']
    assert [(one.name, one.arguments, one.result, one.status, one.evidence) for one in running.calls()] == [
        ("shop.get_order", {"order_id": "17"}, {"status": "shipped"}, "completed", "tools"),
        ("shop.refund", {"order_id": "17", "amount": 5}, {"ok": True}, "completed", "tools"),
    ]
    assert running.state() == {"shop": {"refunds": [["17", 5]]}}
    assert running.failure() is None


def test_wrong_calls_are_errors_that_the_agent_sees_and_that_are_recorded():
    order = ScriptedTool("get_order", params=ORDER, returns="x")

    async def use(client):
        await client.list_tools()
        return [
            await text(client, "get_order"),
            await text(client, "get_order", order_id=17),
            await text(client, "get_order", order_id="17", more=1),
            await text(client, "get_ordre"),
        ]

    said, running = served(ScriptedServer("shop", (order,)), use)
    assert said == [
        "error: invalid arguments for get_order: 'order_id' is a required property",
        "error: invalid arguments for get_order: order_id: 17 is not of type 'string'",
        "error: invalid arguments for get_order: the key 'more' is not allowed",
        "error: unknown tool: get_ordre",
    ]
    shown = [(one.name, one.status) for one in running.calls()]
    assert shown == [*[("shop.get_order", "failed")] * 3, ("shop.get_ordre", "failed")]
    assert f"error: {running.calls()[0].error}" == said[0]


def test_calls_fail_as_written():
    slow = ScriptedTool("slow", returns="late", failure=ToolFailure("timeout", (1,)))
    broken = ScriptedTool("broken", failure=ToolFailure("out of order"))

    async def use(client):
        with pytest.raises(MCPError, match="timed out"):
            await text(client, "slow")
        return [await text(client, "slow"), await text(client, "broken"), await text(client, "broken")]

    said, running = served(ScriptedServer("shop", (slow, broken)), use)
    assert said == ["late", "error: out of order", "error: out of order"]
    assert [one.error for one in running.calls()] == ["timed out", None, "out of order", "out of order"]


def test_a_function_that_raises_is_an_error_of_the_tool_and_leaves_the_state_alone(tools):
    refund = tools("refund", params={"order_id": "string", "amount": "number"})
    given = (refund, tools("exits"), tools("leaves"), tools("torn"), tools("count"))

    async def use(client):
        first = [await text(client, "refund", order_id="1", amount=500)]
        return [*first, *[await text(client, name) for name in ("exits", "leaves", "torn", "count", "count")]]

    said, running = served(ScriptedServer("shop", given), use)
    assert said[0] == "error: too much"
    assert said[1:3] == ["error: 3", "error: leaves: exit 3 before it answered"]
    assert "JSON" in said[3]
    assert said[4:] == ["1", "2"]
    assert running.state() == {"shop": {"count": 2}}
    shown = running.failure()
    assert shown == Failure("user-code-died", "a scripted tool is broken: leaves: exit 3 before it answered")


def test_a_tool_that_cannot_answer_breaks_the_trial(tools):
    said, running = served(ScriptedServer("shop", (tools("torn"),)), lambda client: text(client, "torn"))
    assert said.endswith("torn must return JSON and keep JSON in its state: object")
    assert running.failure().code == "bad-result"


def test_a_function_takes_what_it_names(tools):
    schema = {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "string"}}}
    said, _ = served(
        ScriptedServer("shop", (tools("everything", params=schema),)),
        lambda client: text(client, "everything", b="", a=""),
    )
    assert json.loads(said) == ["a", "b"]


def test_each_trial_has_its_own_state(tools):
    server = ScriptedServer("shop", (tools("count"),), {"count": 5})
    for _ in range(2):
        said, running = served(server, lambda client: text(client, "count"))
        assert (said, running.state()) == ("6", {"shop": {"count": 6}})
    assert server.state == {"count": 5}


def test_functions_that_cannot_be_called_stop_the_trial_before_the_agent_starts(tools, tmp_path):
    async def start(tool):
        executor = DaemonThreads()
        try:
            return await start_tools([ScriptedServer("shop", (tool,))], executor)
        finally:
            await executor.aclose()

    assert asyncio.run(start(tools("strange"))).code == "bad-signature"
    assert asyncio.run(start(tools("absent"))).code == "cannot-load"


async def test_an_agent_that_talks_nonsense_harms_nobody():
    running = await start_tools([ScriptedServer("shop", (ScriptedTool("a", returns="x"),))], DaemonThreads())
    path = running.servers[0].command[-1]

    def shout():
        for said in (b"nonsense\n", b'{"jsonrpc": "2.0", "id": 1}\n', b"\xff\n", b"[" * 100_000 + b"\n"):
            with socket.socket(socket.AF_UNIX) as one:
                one.connect(path)
                one.sendall(said)

    await asyncio.to_thread(shout)
    try:
        async with Client(parameters_of(running.servers[0])) as client:
            said, calls = (await text(client, "a"), running.calls())
    finally:
        await running.close()
    assert (said, len(calls)) == ("x", 1)


def test_the_relay_ends_with_its_server(tmp_path):
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        process = subprocess.Popen(
            [sys.executable, sockets.__file__, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        one, _ = listening.accept()
        process.stdin.write(b"there\n")
        process.stdin.flush()
        assert one.recv(10) == b"there\n"
        one.sendall(b"back\n")
        assert process.stdout.readline() == b"back\n"
        one.close()
        assert process.wait(10) == 0
        process.stdin.close()
        process.stdout.close()


ASKED = MessageStep("user", "refund 17")
DONE = MessageStep("assistant", "Done.")


def seen(tool, result="ok", **arguments):
    return ToolCallStep(f"shop.{tool}", arguments, tool, result=result, status="completed", evidence="tools")


def told(name, native="", status="completed", **arguments):
    return ToolCallStep(name, arguments, native or name, id="1", result="told", status=status, started_ms=5.0)


def join(*steps, calls=()):
    return joined(Trace((ASKED, *steps, DONE), "acp"), calls, ("shop",))


def names(trace):
    return [(one.name, one.evidence, one.result) for one in trace.tool_calls]


def test_a_call_that_both_report_counts_once_as_we_saw_it():
    found = join(told("shop.refund", "mcp__shop__refund", order_id="17"), calls=(seen("refund", order_id="17"),))
    (call,) = found.tool_calls
    assert (call.evidence, call.result, call.native_name) == ("tools", "ok", "mcp__shop__refund")
    assert (call.id, call.started_ms) == ("1", 5.0)
    assert found.steps[0] == ASKED
    assert found.steps[-1] == DONE


@pytest.mark.parametrize("silent", [(0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2)])
def test_every_call_that_arrived_counts_in_its_order_however_few_the_agent_reports(silent):
    tools = ("get_order", "refund", "close")
    steps = [told(f"shop.{tool}") for place, tool in enumerate(tools) if place not in silent]
    found = join(*steps, told("shop.cancel"), calls=tuple(map(seen, tools)))
    assert names(found) == [(f"shop.{tool}", "tools", "ok") for tool in tools]
    assert found.steps[-1] == DONE


def test_the_arguments_that_arrived_decide():
    found = join(told("shop.refund", order_id="1"), calls=(seen("refund", order_id="17"),))
    assert [one.arguments for one in found.tool_calls] == [{"order_id": "17"}]


def test_a_call_that_never_arrived_does_not_count():
    found = join(told("shop.refund"), calls=())
    assert found.tool_calls == ()
    assert found.metadata[UNCONFIRMED] == ["shop.refund"]


def test_a_call_that_never_reached_us_is_no_call_of_the_tool_though_it_is_said_to_have_failed():
    found = join(told("shop.refund", status="failed"), told("shop.refund", status="denied"))
    assert [one.status for one in found.tool_calls] == ["failed", "denied"]
    assert {one.name for one in found.tool_calls} == {"unconfirmed:shop.refund"}
    assert found.metadata["unconfirmed_calls"] == ["shop.refund", "shop.refund"]


@pytest.mark.parametrize("name", ["Shop.refund", "SHOP_REFUND", "shop__Refund"])
def test_a_claim_is_found_in_any_case_of_letters(name):
    assert join(told(name)).tool_calls == ()


def test_titles_for_people_are_matched_by_the_name_of_the_tool():
    found = join(told("get_order (shop MCP Server)"), calls=(seen("get_order"),))
    assert names(found) == [("shop.get_order", "tools", "ok")]


@pytest.mark.parametrize("name", ["shop_get_order", "shop__get_order", "shop/get_order"])
def test_names_that_agents_make_of_server_and_tool(name):
    assert names(join(told(name), calls=(seen("get_order"),))) == [("shop.get_order", "tools", "ok")]
    assert join(told(name)).tool_calls == ()
    assert len(join(told("shopping")).tool_calls) == 1


def test_without_a_trace_the_calls_are_the_trace():
    assert names(joined(None, (seen("refund"),), ("shop",))) == [("shop.refund", "tools", "ok")]
