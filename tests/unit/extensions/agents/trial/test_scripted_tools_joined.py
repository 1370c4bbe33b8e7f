import pytest

from agentv.extensions.agents.trial.scripted_tools import UNCONFIRMED, joined
from agentv.model.values.trace import MessageStep, ToolCallStep, Trace

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
