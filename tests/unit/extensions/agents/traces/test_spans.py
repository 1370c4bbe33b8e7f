"""Spans of a call, collected in the process that records them."""

import asyncio
import json
import socket
from threading import Thread
from typing import Any

import pytest
from aiohttp import ClientSession
from opentelemetry import trace as otel

from agentv.extensions.agents.traces import spans
from agentv.extensions.agents.traces import spans as receiver
from agentv.extensions.agents.traces.otlp_export import protobuf_of
from agentv.extensions.agents.traces.spans import SpanReceivers, SpanRecording, TrialSpans
from agentv.model.values.response import CallFailure, Failure, TargetResponse
from agentv.model.values.trace import MessageStep, ToolCallStep, Trace


def chat(text: str) -> None:
    about = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": f'[{{"role": "assistant", "content": "{text}"}}]'}  # fmt: skip
    otel.get_tracer("test").start_span("chat m", attributes=about).end()


def on_a_thread(text: str) -> None:
    """Run without this thread's context, as in a thread pool."""
    thread = Thread(target=chat, args=(text,))
    thread.start()
    thread.join()


def texts(recording: SpanRecording) -> list[str]:
    return [step.text for step in recording.trace().steps if hasattr(step, "text")]


def test_recordings_beside_each_other_get_their_own_spans():
    chat("before")
    first, second = SpanRecording(), SpanRecording()
    with first:
        chat("one")
        on_a_thread("one, on a thread")
        with second:
            chat("two")
            on_a_thread("nobody knows whose")
        chat("one again")
    chat("after")
    assert (texts(first), texts(second)) == (["one", "one, on a thread", "one again"], ["two"])


def test_an_agent_within_another_is_a_sub_agent():
    outer = {"openinference.span.kind": "AGENT", "agent.name": "shop"}
    inner = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "refunds"}
    begin = otel.get_tracer("test").start_as_current_span
    with SpanRecording() as recording, begin("a", attributes=outer), begin("b", attributes=inner):
        chat("refunded")
    trace = recording.trace()
    [call] = trace.tool_calls
    assert (call.name, call.arguments) == ("subagent", {"agent": "refunds"})
    assert [step.parent for step in trace.steps if step is not call] == [call.id, call.id]


def test_spans_beyond_the_limit_are_left_out(monkeypatch):
    monkeypatch.setattr(spans, "MOST_SPANS", 2)
    with SpanRecording() as recording:
        for number in range(5):
            chat(str(number))
    assert (texts(recording), recording.trace().partial) == (["0", "1"], "spans beyond 2 were left out")


@pytest.mark.parametrize(("names", "seen"), [((), "there is no span at all"), (("GET", "SQL"), "there are GET, SQL")])
def test_a_call_without_spans_of_a_model_says_so(names, seen):
    with SpanRecording() as recording:
        for name in names:
            otel.get_tracer("test").start_span(name).end()
    assert recording.trace().partial == f"no span is about generative AI; {seen}; is the framework instrumented?"


pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


def document(trace_id: str, *names: str, parent: str = "", error: str = "") -> dict[str, Any]:
    about = [{"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}}]
    status = {"status": {"code": 2, "message": error}} if error else {}
    rows = [{"traceId": trace_id, "spanId": name.encode().hex(), "parentSpanId": parent, "name": f"execute_tool {name}", "attributes": about, **status} for name in names]  # fmt: skip
    return {"resourceSpans": [{"scopeSpans": [{"spans": rows}]}]}


async def send(url: str, body: bytes, kind: str = "application/json", path: str = "/v1/traces") -> int:
    async with ClientSession() as session, session.post(url + path, data=body, headers={"Content-Type": kind}) as reply:
        return reply.status


def received(work: Any, port: int = 0) -> Any:
    async def run() -> Any:
        receivers = SpanReceivers()
        try:
            opened = [await receivers.open(port) for _ in range(2)]
            return await work(*opened)
        finally:
            await receivers.close()

    return asyncio.run(run())


def names(answer: Any) -> list[str]:
    trace = answer.trace
    return [] if trace is None else [call.native_name for call in trace.tool_calls]


@pytest.mark.parametrize("protobuf", [True, False])
def test_a_program_sends_to_the_address_of_its_trial(protobuf):
    async def work(one: TrialSpans, two: TrialSpans) -> Any:
        data = document("ab" * 16, "get_order")  # a separate trace, because the program ignores TRACEPARENT
        body = protobuf_of(data) if protobuf else json.dumps(data).encode()
        kind = "application/x-protobuf" if protobuf else "application/json"
        statuses = [await send(one.env()["OTEL_EXPORTER_OTLP_ENDPOINT"], body, kind, path) for path in ("/v1/traces", "/v1/logs")]  # fmt: skip
        return statuses, [await trial.joined(TargetResponse("x")) for trial in (one, two)]

    statuses, answers = received(work)
    assert (statuses, list(map(names, answers))) == ([200, 200], [["get_order"], []])


def test_late_spans_are_awaited_until_those_that_they_are_within_are_there():
    async def work(one: TrialSpans, _two: TrialSpans) -> Any:
        async def later() -> None:
            await send(one.url, json.dumps(document("ab" * 16, "inner", parent=b"outer".hex())).encode())
            await asyncio.sleep(0.5)
            await send(one.url, json.dumps(document("ab" * 16, "outer")).encode())

        sending = asyncio.create_task(later())
        answer = await one.joined(TargetResponse("x"))
        await sending
        return answer

    assert names(received(work)) == ["inner", "outer"]


def test_spans_that_come_too_late_are_left_out(monkeypatch):
    monkeypatch.setattr(receiver, "LATE_S", 0.05)

    async def work(one: TrialSpans, _two: TrialSpans) -> Any:
        answer = await one.joined(TargetResponse("x"))
        await one.close()
        await send(one.url, json.dumps(document("ab" * 16, "late")).encode())
        return answer

    assert received(work).trace is None


OWN = Trace((MessageStep("assistant", "x"), ToolCallStep("shell", {}, "Bash")), "acp")


@pytest.mark.parametrize(
    ("given", "error", "tools", "code"),
    [
        (TargetResponse("x"), "", ["get"], ""),
        (TargetResponse("x"), "no route", ["get"], "target-error"),
        (TargetResponse("x", trace=OWN), "no route", ["Bash"], ""),
        (Failure("timeout", "late"), "", ["get"], "timeout"),
        (CallFailure("timeout", "late", response=TargetResponse(None, trace=OWN)), "", ["Bash"], "timeout"),
    ],
)
def test_the_trace_joins_what_the_target_says(given, error, tools, code):
    async def work(one: TrialSpans, _two: TrialSpans) -> Any:
        await send(one.url, json.dumps(document("ab" * 16, "get", error=error)).encode())
        return await one.joined(given)

    found = received(work)
    assert names(found.response if isinstance(found, CallFailure) else found) == tools
    assert (found.code if isinstance(found, Failure) else "") == code


def test_a_port_that_is_taken_is_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        async def work(one: Any, _two: Any) -> Any:
            return one

        found = received(work, port)
    assert (found.code, found.message.startswith(f"the receiver of spans cannot listen on port {port}")) == ("no-receiver", True)  # fmt: skip


def test_what_is_no_otlp_is_refused_and_noted():
    async def work(one: TrialSpans, _two: TrialSpans) -> Any:
        status = await send(one.url, b"garbage", "application/x-protobuf")
        await send(one.url, json.dumps(document("ab" * 16, "get")).encode())
        return status, (await one.joined(TargetResponse("x"))).trace.partial

    status, partial = received(work)
    assert status == 400
    assert partial.startswith("the file is neither JSON nor protobuf of OTLP")
