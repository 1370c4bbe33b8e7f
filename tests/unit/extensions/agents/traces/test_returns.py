"""Return values of agent frameworks, as small classes with the names and attributes of the real ones.

Recorded from pydantic-ai 2.68, openai-agents 0.24, langchain 1.5 with langgraph 1.2, crewai 1.15, smolagents 1.26,
google-adk 2.13, openai 3.57 and anthropic 2.14.
"""

import json
from types import SimpleNamespace as Object
from typing import Any

import pytest

from agentv.extensions.agents.traces.returns import answer_in
from agentv.model.values.trace_summary import completed
from agentv.model.values.usage import TokenUsage

ASKED = "Where is order A-42?"
ANSWER = "Order A-42 is shipped."


def made(name: str, **fields: Any) -> Any:
    """Return an object whose class has this name."""
    return type(name, (Object,), {})(**fields)


def dumping(name: str, **fields: Any) -> Any:
    """Return the same for a pydantic model."""
    return type(name, (Object,), {"model_dump": lambda self, **_: vars(self)})(**fields)


CALL = {"name": "get_order", "arguments": '{"order_id": "A-42"}'}
REFUND = {"name": "refund", "arguments": '{"order_id": "A-42"}'}
USAGE = {"input_tokens": 10, "output_tokens": 5, "cache_read_tokens": 2, "output_reasoning_tokens": 1}


def pydantic_ai(output: Any = ANSWER) -> Any:
    def response(*parts: Any) -> Any:
        return {"kind": "response", "usage": USAGE | {"cost": "0.00006"}, "model_name": "gpt-4.1", "parts": parts}

    rows = [
        {"kind": "request", "instructions": "be kind", "parts": [{"part_kind": "user-prompt", "content": ASKED}]},
        response({"part_kind": "text", "content": "I look it up."}, {"part_kind": "tool-call", "tool_name": "get_order", "args": CALL["arguments"], "tool_call_id": "c1"}),
        {"kind": "request", "instructions": "be kind", "parts": [{"part_kind": "tool-return", "tool_name": "get_order", "content": {"status": "shipped"}, "tool_call_id": "c1", "outcome": "success"}]},
        response({"part_kind": "tool-call", "tool_name": "refund", "args": {"order_id": "A-42"}, "tool_call_id": "c2"}),
        {"kind": "request", "instructions": "be kind", "parts": [{"part_kind": "tool-return", "tool_name": "refund", "content": "no refund", "tool_call_id": "c2", "outcome": "retried"}]},
        response({"part_kind": "text", "content": ANSWER}),
    ]  # fmt: skip
    return made("AgentRunResult", output=output, new_messages_json=lambda: json.dumps(rows).encode())


def openai_agents(given: Any = ASKED) -> Any:
    usage = {"input_tokens": 10, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 2}, "output_tokens_details": {"reasoning_tokens": 1}}  # fmt: skip
    text = {"id": "m1", "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look it up."}]}  # fmt: skip
    items = [
        text, {"type": "function_call", "id": "f1", "call_id": "c1", **CALL}, {"type": "function_call_output", "call_id": "c1", "output": '{"status":"shipped"}'},
        {"type": "function_call", "id": "f2", "call_id": "c2", **REFUND}, {"type": "function_call_output", "call_id": "c2", "output": "An error occurred while running the tool. Please try again."},
        {"id": "m3", "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]},
    ]  # fmt: skip
    outputs = (items[0:2], items[3:4], items[5:6])
    asked = given if isinstance(given, list) else [{"role": "user", "content": given}]
    return made("RunResult", final_output=ANSWER, input=given, last_agent=Object(name="shop", model="gpt-4.1"), to_input_list=lambda: [*asked, *items],
                raw_responses=[{"output": one, "usage": usage} for one in outputs])  # fmt: skip


def langchain_messages() -> list[Any]:
    def said(text: str, *calls: Any) -> Any:
        used = {"input_tokens": 10, "output_tokens": 5, "input_token_details": {"cache_read": 2}, "output_token_details": {"reasoning": 1}}  # fmt: skip
        return dumping("AIMessage", type="ai", content=text, tool_calls=list(calls), usage_metadata=used, response_metadata={"model_name": "gpt-4.1"})  # fmt: skip

    return [
        dumping("HumanMessage", type="human", content=ASKED),
        said("I look it up.", {"name": "get_order", "args": {"order_id": "A-42"}, "id": "c1", "type": "tool_call"}),
        dumping("ToolMessage", type="tool", content='{"status":"shipped"}', tool_call_id="c1", status="success"),
        said("", {"name": "refund", "args": {"order_id": "A-42"}, "id": "c2", "type": "tool_call"}),
        dumping("ToolMessage", type="tool", content="no refund", tool_call_id="c2", status="error"),
        said(ANSWER),
    ]


def smolagents(state: str = "success") -> Any:
    def step(text: str, call: Any, observations: Any, error: Any = None) -> Any:
        calls = [{"id": "c", "type": "function", "function": call}]
        return {"tool_calls": [] if error else calls, "error": error, "observations": observations, "token_usage": {"input_tokens": 10, "output_tokens": 5},
                "model_output_message": {"role": "assistant", "content": text, "tool_calls": calls, "raw": {"model": "gpt-4.1"}}}  # fmt: skip

    failed = {"type": "AgentToolExecutionError", "message": "no refund"}
    steps = [{"task": ASKED}, step("I look it up.", CALL, '{"status":"shipped"}'), step("", REFUND, None, failed)]
    return made("RunResult", output=ANSWER, state=state, steps=steps)


def crewai() -> Any:
    rows = [{"role": "user", "content": ASKED}, {"role": "assistant", "content": "I look it up.", "tool_calls": [{"id": "c1", "type": "function", "function": CALL}]}, {"role": "tool", "content": '{"status":"shipped"}', "tool_call_id": "c1", "name": "get_order"},
            {"role": "assistant", "content": "", "tool_calls": [{"id": "c2", "type": "function", "function": REFUND}]}, {"role": "tool", "content": "no refund", "tool_call_id": "c2", "name": "refund"}, {"role": "assistant", "content": ANSWER}]  # fmt: skip
    failures = [{"tool_name": "refund", "failure": {"message": "no refund"}}]
    return made("CrewOutput", raw=ANSWER, tasks_output=[{"messages": rows, "tool_failures": failures}],
                token_usage={"prompt_tokens": 30, "completion_tokens": 15, "cached_prompt_tokens": 6, "reasoning_tokens": 3})  # fmt: skip


def adk_events(**last: Any) -> list[Any]:
    def event(role: str, *parts: Any, used: Any = None, **more: Any) -> Any:
        return dumping("Event", author="shop", actions={}, content={"role": role, "parts": list(parts)}, usage_metadata=used, **more)  # fmt: skip

    used = dumping("Usage", promptTokenCount=10, candidatesTokenCount=4, thoughtsTokenCount=1, cachedContentTokenCount=2)  # fmt: skip
    said = {"used": used, "model_version": "gpt-4.1"}
    return [
        event("model", {"text": "I look it up."}, {"function_call": {"id": "c1", "name": "get_order", "args": {"order_id": "A-42"}}}, **said),
        event("user", {"function_response": {"id": "c1", "name": "get_order", "response": {"status": "shipped"}}}),
        event("model", {"function_call": {"id": "c2", "name": "refund", "args": {"order_id": "A-42"}}}, **said),
        event("user", {"function_response": {"id": "c2", "name": "refund", "response": {"error": "no refund"}}}),
        event("model", {"text": ANSWER}, **said, **last),
    ]  # fmt: skip


HIDDEN = "An error occurred while running the tool. Please try again."


@pytest.mark.parametrize(
    ("returned", "tokens", "cost", "agent", "error"),
    [
        (pydantic_ai(), TokenUsage(30, 15, 45, 6, 3), 0.00018, "", "no refund"),
        (openai_agents(), TokenUsage(30, 15, 45, 6, 3), 0.000171, "shop", HIDDEN),
        (openai_agents([{"role": "user", "content": "hi"}, {"role": "user", "content": ASKED}]), TokenUsage(30, 15, 45, 6, 3), 0.000171, "shop", HIDDEN),
        ({"messages": langchain_messages(), "other": 1}, TokenUsage(30, 15, 45, 6, 3), 0.000171, "", "no refund"),
        ({"messages": [*langchain_messages(), *langchain_messages()]}, TokenUsage(30, 15, 45, 6, 3), 0.000171, "", "no refund"),
        (langchain_messages(), TokenUsage(30, 15, 45, 6, 3), 0.000171, "", "no refund"),
        (smolagents(), TokenUsage(20, 10, 30), 0.00012, "", "no refund"),
        (crewai(), TokenUsage(30, 15, 45, 6, 3), None, "", "no refund"),
        (adk_events(), TokenUsage(30, 15, 45, 6, 3), 0.000171, "shop", "no refund"),
    ],
    ids=["pydantic-ai", "openai-agents", "with-history", "langgraph", "with-earlier-turns", "langchain", "smolagents", "crewai", "google-adk"],
)  # fmt: skip
def test_the_run_of_each_framework_is_read(returned, tokens, cost, agent, error):
    found = answer_in(returned, ASKED)
    answer = completed(found)
    calls = found.trace.tool_calls
    assert [(call.name, call.arguments, call.result, call.error) for call in calls] == [
        ("get_order", {"order_id": "A-42"}, '{"status":"shipped"}', None),
        ("refund", {"order_id": "A-42"}, None, error),
    ]
    assert (answer.output, answer.token_usage, found.trace.partial, found.trace.agent) == (ANSWER, tokens, "", agent)
    assert answer.cost_usd == (None if cost is None else pytest.approx(cost))
    assert [one.text for one in answer.messages if one.role == "assistant"][0] == "I look it up."  # noqa: RUF015
    assert {one.model for one in found.trace.usages} == {"gpt-4.1" if cost is not None else None}


COMPLETION = {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": ANSWER}}], "usage": {"prompt_tokens": 10, "completion_tokens": 5}}  # fmt: skip
RESPONSE = {"status": "completed", "incomplete_details": None, "output": [{"type": "message", "content": [{"type": "output_text", "text": ANSWER}]}], "usage": {"input_tokens": 10, "output_tokens": 5}}  # fmt: skip


@pytest.mark.parametrize(
    "returned",
    [
        dumping("ChatCompletion", model="gpt-4.1", **COMPLETION),
        dumping("Response", model="gpt-4.1", **RESPONSE),
        dumping("Message", model="claude-sonnet-4-5", content=[{"type": "text", "text": ANSWER}], stop_reason="end_turn", usage={"input_tokens": 10, "output_tokens": 5}),
        dumping("GenerateContentResponse", model_version="gemini-2.5-flash", candidates=[{"content": {"parts": [{"text": ANSWER}]}}], usage_metadata=None, usageMetadata={"promptTokenCount": 10, "candidatesTokenCount": 5}),
        dumping("AIMessage", type="ai", content=ANSWER, usage_metadata={"input_tokens": 10, "output_tokens": 5}, response_metadata={"model_name": "gpt-4.1"}),
    ],
    ids=["chat", "responses", "anthropic", "gemini", "langchain"],
)  # fmt: skip
def test_a_reply_of_a_model_is_read(returned):
    answer = completed(answer_in(returned, ASKED))
    assert answer.output == ANSWER
    assert (answer.token_usage.input, answer.token_usage.output) == (10, 5)
    assert answer.cost_usd > 0


def test_an_output_that_is_no_text_is_its_json():
    found = answer_in(pydantic_ai(dumping("Order", status="shipped")), ASKED)
    assert (found.output, found.metadata) == ('{"status":"shipped"}', {"structured_output": True})
    state = {"messages": langchain_messages(), "structured_response": dumping("Order", status="shipped")}
    assert answer_in(state, ASKED).output == '{"status":"shipped"}'


@pytest.mark.parametrize(
    ("returned", "code", "says"),
    [
        (smolagents("max_steps_error"), "agent-limit", "smolagents reached its maximum number of steps"),
        ({"messages": langchain_messages(), "__interrupt__": ["refund?"]}, "target-error", "the graph was interrupted, and waits to be resumed: ['refund?']"),
        (adk_events(error_code="SAFETY", error_message="blocked"), "target-error", "blocked"),
    ],
)  # fmt: skip
def test_a_run_that_failed_is_errored_with_its_trace(returned, code, says):
    found = answer_in(returned, ASKED)
    assert (found.code, found.message, found.response.output) == (code, says, None)
    assert len(found.response.trace.tool_calls) == 2


def test_objects_of_another_version_are_named():
    broken = made("AgentRunResult", output="x", new_messages_json=lambda: 1 / 0)
    type(broken).__module__ = "pytest.other"
    assert answer_in(broken, ASKED).message.startswith(
        f"AgentRunResult of pytest {pytest.__version__} cannot be read by this version of agentv: it raised ZeroDivision"
    )
    stranger = made("Runner")
    type(stranger).__module__ = "anthropic.runners"
    found = answer_in(stranger, ASKED)
    assert found.message.startswith("Runner of anthropic 2.")
    assert found.message.endswith("is not what a run returns; return the result of the run")


@pytest.mark.parametrize("returned", [42, object(), ["a"], [], {"messages": "x"}, {"messages": []}, made("RunResult")])
def test_anything_else_is_not_of_a_framework(returned):
    assert answer_in(returned, ASKED) is None
