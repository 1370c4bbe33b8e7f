"""Reading and writing OTLP."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Status, StatusCode

from agentv.extensions.agents.traces.otlp import read_otlp
from agentv.extensions.agents.traces.otlp_export import TraceOrigin, otlp_of, protobuf_of
from agentv.model.values.response import Failure
from agentv.model.values.trace import MessageStep, ToolCallStep, Trace, UsageStep
from agentv.model.values.usage import TokenUsage
from doubles.traces import WORK, mutations

RECORDED = Path(__file__).parent / "recorded"


def attributes(**about):
    return [{"key": key, "value": value_of(value)} for key, value in about.items()]


def value_of(value):
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [value_of(one) for one in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": attributes(**value)}}
    return {"stringValue": value}


def hexed(identity):
    return identity.encode().hex()


def span(identity, parent="", start=0, took=10, name="", *, trace="ab" * 16, events=(), status=None, **about):
    row = {"traceId": trace, "spanId": hexed(identity), "name": name, "startTimeUnixNano": str(10**18 + start * 10**6),
           "endTimeUnixNano": str(10**18 + (start + took) * 10**6), "attributes": attributes(**{key.replace("__", "."): one for key, one in about.items()})}  # fmt: skip
    row |= {"parentSpanId": hexed(parent)} if parent else {}
    row |= {
        "events": [
            {"name": event, "attributes": attributes(**{key.replace("__", "."): one for key, one in more.items()})}
            for event, more in events
        ]
    }
    return row | ({"status": status} if status else {})


def document(*spans, **resource):
    return {
        "resourceSpans": [{"resource": {"attributes": attributes(**resource)}, "scopeSpans": [{"spans": list(spans)}]}]
    }


def read(*spans) -> Trace:
    found = read_otlp(json.dumps(document(*spans)).encode())
    assert not isinstance(found, Failure), found
    return found[0]


def parts(role, *parts):
    return json.dumps([{"role": role, "parts": list(parts)}])


AGENT = span(
    "a1",
    start=0,
    took=500,
    name="invoke_agent shopper",
    gen_ai__operation__name="invoke_agent",
    gen_ai__agent__name="shopper",
    gen_ai__conversation__id="conv-1",
)
CHAT = span("c1", "a1", 10, 100, "chat m", gen_ai__operation__name="chat", gen_ai__request__model="m", gen_ai__response__model="m-2026",
            gen_ai__usage__input_tokens=10, gen_ai__usage__output_tokens=4, gen_ai__system_instructions=json.dumps([{"type": "text", "content": "be kind"}]),
            gen_ai__input__messages=parts("user", {"type": "text", "content": "refund 7"}),
            gen_ai__output__messages=parts("assistant", {"type": "reasoning", "content": "hm"}, {"type": "text", "content": "I look"},
                                           {"type": "tool_call", "id": "t1", "name": "get_order", "arguments": {"id": 7}}, {"type": "tool_call", "id": "t9", "name": "Bash", "arguments": "{}"}))  # fmt: skip
TOOL = span("x1", "a1", 120, 30, "execute_tool get_order", gen_ai__operation__name="execute_tool", gen_ai__tool__name="get_order", gen_ai__tool__call__id="t1",
            gen_ai__tool__call__arguments='{"id": 7}', gen_ai__tool__call__result='{"status": "shipped"}')  # fmt: skip
AGAIN = span("c2", "a1", 200, 100, "chat m", gen_ai__operation__name="chat", gen_ai__request__model="m",
             gen_ai__input__messages=json.dumps([{"role": "user", "parts": [{"type": "text", "content": "refund 7"}]}, {"role": "tool", "parts": [{"type": "tool_call_response", "id": "t9", "response": "ok"}]}]),
             gen_ai__output__messages=parts("assistant", {"type": "text", "content": "done"}))  # fmt: skip
CONVERSATION = (AGAIN, TOOL, AGENT, CHAT)

STEPS = (
    MessageStep("system", "be kind", None, 10.0),
    MessageStep("user", "refund 7", None, 10.0),
    UsageStep("m-2026", TokenUsage(10, 4, 14), None, 10.0, 100.0),
    MessageStep("assistant", "I look", "hm", 110.0),
    ToolCallStep("shell", {}, "Bash", "t9", "ok", None, "completed", 110.0),
    ToolCallStep("get_order", {"id": 7}, "get_order", "t1", '{"status": "shipped"}', None, "completed", 120.0, 30.0),
    UsageStep("m", None, None, 200.0, 100.0),
    MessageStep("assistant", "done", None, 300.0),
)


def test_a_conversation_by_todays_conventions():
    trace = read(*CONVERSATION)
    assert trace.steps == STEPS
    shown = (trace.agent, trace.session_id, trace.duration_ms, trace.partial, trace.source)
    assert shown == ("shopper", "conv-1", 500.0, "", "otlp")


def test_messages_as_events_until_version_1_36():
    call = {"id": "t1", "type": "function", "function": {"name": "get_order", "arguments": '{"id": 7}'}}
    trace = read(span("c1", gen_ai__system="openai", gen_ai__request__model="m", name="chat m", events=[
        ("gen_ai.system.message", {"content": "be kind"}),
        ("gen_ai.user.message", {"content": "refund 7"}),
        ("gen_ai.choice", {"index": 0, "finish_reason": "tool_calls", "message": json.dumps({"tool_calls": [call]})}),
    ]), span("c2", start=20, gen_ai__system="openai", gen_ai__request__model="m", events=[
        ("gen_ai.user.message", {"content": "refund 7"}),
        ("gen_ai.tool.message", {"id": "t1", "content": "shipped"}),
        ("gen_ai.choice", {"message": {"content": "done"}}),
    ]))  # fmt: skip
    assert trace.steps == (
        MessageStep("system", "be kind", None, 0.0),
        MessageStep("user", "refund 7", None, 0.0),
        UsageStep("m", None, None, 0.0, 10.0),
        ToolCallStep("get_order", {"id": 7}, "get_order", "t1", "shipped", None, "completed", 10.0),
        UsageStep("m", None, None, 20.0, 10.0),
        MessageStep("assistant", "done", None, 30.0),
    )


@pytest.mark.parametrize(
    "row",
    [
        span("c", name="chat", gen_ai__system="x", events=[("gen_ai.content.prompt", {"gen_ai__prompt": '[{"role": "user", "content": "hi"}]'}), ("gen_ai.content.completion", {"gen_ai__completion": '[{"role": "assistant", "content": "ho"}]'})]),
        span("c", name="openai.chat", gen_ai__system="x", gen_ai__prompt__0__role="user", gen_ai__prompt__0__content="hi", gen_ai__completion__0__content="ho", gen_ai__completion__0__role="assistant"),
        span("c", gen_ai__operation__name="chat", events=[("gen_ai.client.inference.operation.details", {"gen_ai__input__messages": parts("user", {"type": "text", "content": "hi"}), "gen_ai__output__messages": parts("assistant", {"type": "text", "content": "ho"})})]),
        span("c", gen_ai__operation__name="chat", gen_ai__input__messages=[{"role": "user", "parts": [{"type": "text", "content": "hi"}]}], gen_ai__output__messages=[{"role": "assistant", "parts": [{"type": "text", "content": "ho"}]}]),
    ],
)  # fmt: skip
def test_older_and_other_forms_of_messages(row):
    shown = [(step.role, step.text) for step in read(row).steps if isinstance(step, MessageStep)]
    assert shown == [("user", "hi"), ("assistant", "ho")]


def test_what_opentelemetrys_own_sdk_records_is_read():
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("test")
    with tracer.start_as_current_span(
        "invoke_agent a", attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}
    ):
        with tracer.start_as_current_span(
            "chat m",
            attributes={"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 3},
        ):
            pass
        with tracer.start_as_current_span(
            "execute_tool Bash", attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "Bash"}
        ) as failing:
            failing.set_status(Status(StatusCode.ERROR, "exit 1"))
    rows = [
        {"traceId": f"{one.context.trace_id:032x}", "spanId": f"{one.context.span_id:016x}", "parentSpanId": f"{one.parent.span_id:016x}" if one.parent else "",
         "name": one.name, "startTimeUnixNano": str(one.start_time), "endTimeUnixNano": str(one.end_time), "attributes": attributes(**one.attributes),
         "status": {"code": one.status.status_code.value, "message": one.status.description}}
        for one in exporter.get_finished_spans()
    ]  # fmt: skip
    data = protobuf_of(document(*rows))
    trace = read_otlp(data)[0]
    assert [type(step) for step in trace.steps] == [UsageStep, ToolCallStep]
    shown = (trace.agent, trace.tokens, trace.tool_calls[0].name, trace.tool_calls[0].error)
    assert shown == ("a", TokenUsage(3, None, 3), "shell", "exit 1")


def test_what_is_written_reads_back():
    made = otlp_of([(WORK, TraceOrigin("key", 1.7e12, {"agentv.case.id": "refund"}))])
    data = protobuf_of(json.loads(json.dumps(made)))
    message = TracesData.FromString(data)
    spans = {one.name: one for one in message.resource_spans[0].scope_spans[0].spans}
    assert set(spans) == {
        "invoke_agent claude",
        "chat m-1",
        "execute_tool Read",
        "execute_tool Task",
        "execute_tool Bash",
        "execute_tool mcp__shop__refund",
    }
    assert spans["execute_tool Bash"].parent_span_id == spans["execute_tool Task"].span_id
    assert spans["execute_tool Bash"].status.message == "exit 1"
    shown = spans["invoke_agent claude"].end_time_unix_nano - spans["invoke_agent claude"].start_time_unix_nano
    assert shown == 250_000_000
    for content in (data, json.dumps(made).encode()):
        again = read_otlp(content)[0]
        shown = (again.agent, again.agent_version, again.session_id, again.stop_reason)
        assert shown == ("claude", "2.1", "session-1", "end_turn")
        assert again.tool_calls == tuple(replace(call, duration_ms=call.duration_ms or 0.0) for call in WORK.tool_calls)
        assert (again.tokens, again.cost_usd, again.duration_ms) == (WORK.tokens, WORK.cost_usd, 250.0)
        shown = [step.text for step in again.steps if isinstance(step, MessageStep)]
        assert shown == ["be kind", "mend it", "I look <b>", "done"]
        assert again.metadata == {"agentv.case.id": "refund"}


def test_a_message_without_a_model_call_is_not_counted_as_one():
    trace = Trace((MessageStep("user", "x"), MessageStep("assistant", "y")), agent="a")
    again = read_otlp(json.dumps(otlp_of([(trace, TraceOrigin("k"))])).encode())[0]
    assert [replace(step, started_ms=None) for step in again.steps] == list(trace.steps)


@pytest.mark.parametrize(("name", "agent"), [("langgraph", "LangGraph"), ("openai-agents", "shop"), ("pydantic-ai", "ChatCompletion")])  # fmt: skip
def test_openinference_as_three_frameworks_record_it(name, agent):
    """LangGraph uses an argument's value as its name; pydantic-ai's client has a trace for each model call."""
    [trace] = read_otlp((RECORDED / f"{name}.pb").read_bytes())
    assert [(call.name, call.arguments, call.result, call.status) for call in trace.tool_calls] == [
        ("get_order", {"order_id": "7"}, '{"price": 40}', "completed"),
        ("refund", {"order_id": "7", "amount": 40}, '{"refunded": 40}', "completed"),
    ]
    assert [(step.role, step.text) for step in trace.steps if isinstance(step, MessageStep) and step.role != "system"] == [
        ("user", "Refund order 7."),
        ("assistant", "I look it up."),
        ("assistant", "Order 7 is refunded: 40 euros."),
    ]  # fmt: skip
    assert (trace.agent, len(trace.usages), trace.usages[0].model, trace.tokens.total) == (agent, 3, "gpt-4.1", 461)
    assert (trace.partial, trace.unanswered) == ("", "")


def test_one_call_described_by_spans_that_are_not_within_each_other_counts_once():
    told = {"gen_ai__operation__name": "chat", "gen_ai__response__id": "r1", "gen_ai__usage__input_tokens": 5}
    ran = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": "get", "gen_ai__tool__call__id": "t1"}
    trace = read(AGENT, span("c", "a1", 1, **told), span("d", "a1", 2, **told), span("x", "a1", 3, **ran), span("y", "a1", 4, **ran))  # fmt: skip
    assert (len(trace.usages), len(trace.tool_calls)) == (1, 1)


def test_parents_in_a_circle():
    trace = read(
        span("a", "b", gen_ai__operation__name="execute_tool", gen_ai__tool__name="x"),
        span("b", "a", gen_ai__operation__name="execute_tool", gen_ai__tool__name="y"),
        span("s", "s", gen_ai__operation__name="chat"),
    )
    assert len(trace.steps) == 3
    assert "spans are each other's parents" in trace.partial


@pytest.mark.parametrize(
    ("parents", "partial"), [(("remote", "remote"), ""), (("x", "y"), "the parents of 2 spans are missing")]
)
def test_missing_spans_make_the_trace_partial(parents, partial):
    spans = [span(name, parent, gen_ai__operation__name="chat") for name, parent in zip("ab", parents, strict=True)]
    assert read(*spans).partial == partial


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "the file has no spans of OTLP"),
        (b"{}", "the file has no spans of OTLP: line 1 has no 'resourceSpans'"),
        (b'{"resourceSpans": [', "the file has no spans of OTLP: line 1: "),
        (b"\x00\x01\x02garbage", "the file is neither JSON nor protobuf of OTLP: "),
        (json.dumps(document(span("a", name="GET /x"))).encode(), "no span follows the conventions for generative AI (gen_ai.operation.name, openinference.span.kind); there are GET /x"),
    ],
)  # fmt: skip
def test_nothing_to_read_is_a_failure(data, said):
    found = read_otlp(data)
    assert found.message.startswith(said)


@pytest.mark.parametrize("junk", [None, 7, "x", [], {}, 10**30])
def test_no_value_of_a_wrong_type_raises(junk):
    for mutated in mutations(document(AGENT, CHAT, TOOL, AGAIN), junk):
        found = read_otlp(json.dumps(mutated).encode())
        assert isinstance(found, list | Failure)


FAILED = {"code": 2, "message": "ValueError: the bank is closed"}
OTHER = {"gen_ai__operation__name": "invoke_agent", "gen_ai__agent__name": "shopper"}
SAYS = {"gen_ai__operation__name": "chat", "gen_ai__output__messages": parts("assistant", {"type": "text", "content": "I look"})}  # fmt: skip
WHY = "the session ended in an error: ValueError: the bank is closed"


@pytest.mark.parametrize(
    ("spans", "why"),
    [
        ([span("a", took=90, status=FAILED, **OTHER), span("c", "a", 10, **SAYS)], WHY),
        ([span("h", took=99, status=FAILED, name="POST /chat"), span("a", "h", 1, **OTHER), span("c", "a", 10, **SAYS)], WHY),
        ([span("h", took=99, name="POST /chat"), span("a", "h", 1, status=FAILED, **OTHER), span("c", "a", 10, **SAYS)], WHY),
        ([span("h", took=99), span("a", "h", 1, status=FAILED, **OTHER), span("b", "h", 20, **OTHER), span("c", "b", 25, **SAYS)], ""),
        ([span("a", took=90, **OTHER), span("t", "a", 5, status=FAILED, gen_ai__tool__name="refund"), span("c", "a", 10, **SAYS)], ""),
        ([span("a", took=90, error__type="TimeoutError", **OTHER), span("c", "a", 10, **SAYS)], "the session ended in an error: TimeoutError"),
        ([span("c", start=1, **SAYS), span("d", start=10, status=FAILED, gen_ai__operation__name="chat")], WHY),
        ([span("c", **SAYS, gen_ai__response__finish_reasons=["length"])], "the session ended without an answer: length"),
        ([span("c", gen_ai__operation__name="chat", gen_ai__input__messages=parts("user", {"type": "text", "content": "go"}))], "the trace ends before the agent has answered"),
        ([span("a", took=90, **OTHER), span("c", "a", 10, **SAYS)], ""),
    ],
)  # fmt: skip
def test_the_root_decides_how_a_session_ended(spans, why):
    assert read(*spans).unanswered == why


def traceloop(identity, parent, start, name, kind, **more):
    return span(identity, parent, start, 5, name, **{"traceloop__span__kind": kind, "traceloop__entity__name": name, **more})  # fmt: skip


ASKED = parts("assistant", {"type": "tool_call", "id": "call_1", "name": "get_order", "arguments": {"order": "7"}})
MESSAGE = {"output": {"lc": 1, "kwargs": {"content": "shipped", "type": "tool", "tool_call_id": "call_1", "status": "success"}}}  # fmt: skip
GIVEN = {"input_str": "{'order': '7'}", "inputs": {"order": "7"}, "kwargs": {"tool_call_id": "call_1"}}


@pytest.mark.parametrize(
    ("given", "result", "said"),
    [
        (GIVEN, MESSAGE, "shipped"),
        ({**GIVEN, "kwargs": {}}, MESSAGE, "shipped"),
        ({**GIVEN, "kwargs": {}}, "shipped", "shipped"),
        ({"order": "7"}, "shipped", "shipped"),
        ({"input_str": "no JSON"}, "shipped", "shipped"),
    ],
)
def test_a_call_is_counted_once_however_many_spans_describe_it(given, result, said):
    about = {"gen_ai__operation__name": "invoke_agent", "gen_ai__agent__name": "LangGraph"}
    counted = {"gen_ai__usage__input_tokens": 100, "gen_ai__usage__output_tokens": 10}
    told = {"traceloop__entity__input": json.dumps(given), "traceloop__entity__output": json.dumps(result) if isinstance(result, dict) else result}  # fmt: skip
    trace = read(
        span("a", "", 0, 90, "invoke_agent LangGraph", **about),
        traceloop("w", "a", 1, "LangGraph", "workflow", **about),
        traceloop("n", "w", 2, "agent", "task"),
        span("c", "n", 3, 5, "ChatOpenAI.chat", gen_ai__operation__name="chat", gen_ai__output__messages=ASKED, **counted),
        span("o", "c", 4, 3, "openai.chat", gen_ai__operation__name="chat", gen_ai__output__messages=ASKED, **counted),
        traceloop("t", "w", 20, "get_order", "tool", **told),
        traceloop("u", "t", 21, "get_order", "tool", **told),
    )  # fmt: skip
    (call,) = trace.tool_calls
    assert (call.name, call.arguments, call.id, call.result, call.parent) == ("get_order", {"order": "7"}, "call_1", said, None)  # fmt: skip
    assert (call.started_ms, call.duration_ms, call.status) == (20.0, 5.0, "completed")
    assert trace.tokens.input == 100
