"""Spans of a call, collected in the process that records them."""

from threading import Thread

import pytest
from opentelemetry import trace as otel

from agentv.extensions.agents.traces import spans
from agentv.extensions.agents.traces.spans import SpanRecording


def chat(text: str) -> None:
    about = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": f'[{{"role": "assistant", "content": "{text}"}}]'}  # fmt: skip
    otel.get_tracer("test").start_span("chat m", attributes=about).end()


def on_a_thread(text: str) -> None:
    """Without the context of this one, as a pool of threads runs things."""
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


def test_spans_beyond_the_limit_are_counted(monkeypatch):
    monkeypatch.setattr(spans, "MOST_SPANS", 2)
    with SpanRecording() as recording:
        for number in range(5):
            chat(str(number))
    assert (texts(recording), recording.trace().partial) == (["0", "1"], "3 spans beyond 2 were left out")


@pytest.mark.parametrize(("names", "seen"), [((), "there is no span at all"), (("GET", "SQL"), "there are GET, SQL")])
def test_a_call_without_spans_of_a_model_says_so(names, seen):
    with SpanRecording() as recording:
        for name in names:
            otel.get_tracer("test").start_span(name).end()
    assert recording.trace().partial == f"no span is about generative AI; {seen}; is the framework instrumented?"
