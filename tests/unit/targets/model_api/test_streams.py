"""Streamed answers of every provider, read from loopback servers."""

import json
from codecs import BOM_UTF8
from dataclasses import replace
from typing import Any

import pytest

from agentv.model.values.message import ToolCall
from agentv.model.values.response import TargetResponse
from agentv.model.values.usage import TokenUsage
from agentv.targets.anthropic.target import Anthropic
from agentv.targets.gemini.target import Gemini
from agentv.targets.model_api.streams import events_in
from agentv.targets.openai_api.providers import Ollama, OpenAI
from agentv.testing import Answer, ContentFilter, Hang, ModelServer, SlowDrip, Status, StoppedStream, Truncated
from doubles import model_apis
from doubles.asking import answer, request
from doubles.event_server import event_server
from doubles.model_apis import KEY
from needs import each

pytestmark = pytest.mark.filterwarnings(
    "ignore:Accessing the 'model_:DeprecationWarning"
)  # from litellm's pydantic models

APIS = {**model_apis.APIS, "ollama": lambda server: Ollama("llama3.2", server.ollama)}
ALL = pytest.mark.parametrize("name", each(APIS))


def streamed(name: str, server: ModelServer) -> Any:
    return replace(APIS[name](server), stream=True)


CUT = {"anthropic": "max_tokens", "gemini": "MAX_TOKENS"}
CALLS = (ToolCall("get_order", {"id": "A-42", "of": ["a", 1]}, "call_1"), ToolCall("list_orders", {}, "call_2"))
USAGE = TokenUsage(input=900, output=40, total=940, cached=100, reasoning=8)


@ALL
@pytest.mark.parametrize(
    "step",
    [
        Answer("It has shipped, café ✓.", usage=USAGE),
        Answer("Let me look.", tool_calls=CALLS, usage=USAGE, reasoning="Which order?"),
        Answer("", tool_calls=CALLS, usage=USAGE),
        Answer("cut sho", finish_reason="length", usage=USAGE),
    ],
    ids=["text", "text and calls", "calls", "cut"],
)
def test_a_streamed_answer_is_the_answer_that_is_not_streamed(name, step):
    if step.finish_reason and name in CUT:
        step = replace(step, finish_reason=CUT[name])
    with ModelServer(step) as server:
        whole, found = answer(APIS[name](server)), answer(streamed(name, server))
    assert isinstance(found, TargetResponse), found.message
    assert 0 < found.time_to_first_token_ms <= found.duration_ms
    assert whole.time_to_first_token_ms is None
    same = {"duration_ms": None, "time_to_first_token_ms": None}
    assert {**facts(found), **same} == {**facts(whole), **same}


def facts(found: TargetResponse) -> dict[str, Any]:
    return {name: getattr(found, name) for name in found.__struct_fields__}


@ALL
@pytest.mark.parametrize(
    ("step", "code"),
    [(StoppedStream(), "bad-answer"), (Truncated(), "bad-answer"), (StoppedStream(silent=True), "timeout")],
    ids=["ends early", "cut off", "goes silent"],
)
def test_a_stream_that_breaks_off_is_a_failure_with_what_came(name, step, code):
    if name == "litellm":  # its first call imports for seconds
        with ModelServer("hello") as server:
            answer(streamed(name, server), request(timeout_s=60.0))
    with ModelServer(step) as server:
        found = answer(streamed(name, server), request(timeout_s=3.0 if code == "timeout" else 60.0))
    assert found.code == ("connection" if name == "litellm" and isinstance(step, Truncated) else code)
    assert found.retryable
    assert found.response.output in (step.answer.text[:end] for end in range(1, len(step.answer.text)))
    assert found.response.time_to_first_token_ms > 0
    assert (found.response.token_usage, found.response.finish_reason) == (None, None)  # unknown


@ALL
@pytest.mark.parametrize(
    ("step", "code", "status"),
    [(Status(429), "http-status", 429), (Status(503), "http-status", 503), (ContentFilter(), "refused", None)],
)
def test_a_refusal_is_that_of_a_call_that_is_not_streamed(name, step, code, status):
    with ModelServer(step) as server:
        found = answer(streamed(name, server))
    assert (found.code, found.status, found.response) == (code, status, None)


@ALL
def test_a_late_first_token_is_timed(name):
    with ModelServer(SlowDrip(1.0)) as server:
        found = answer(streamed(name, server))
    assert 90 <= found.time_to_first_token_ms < found.duration_ms
    assert found.duration_ms >= 990


def test_the_time_limit_holds_before_the_first_token():
    with ModelServer(Hang()) as server:
        found = answer(streamed("openai", server), request(timeout_s=0.3))
    assert (found.code, found.response) == ("timeout", None)


BEGIN = {"id": "m", "role": "assistant", "model": "claude-haiku-4-5", "content": [], "usage": {"input_tokens": 9}}


def test_thoughts_are_no_first_token():
    events = [
        {"type": "message_start", "message": {**BEGIN, "type": "message"}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Yes."}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]
    with event_server(events, pause_s=0.1) as server:
        found = answer(Anthropic("claude-haiku-4-5", server.url, KEY, stream=True))
    assert (found.output, found.finish_reason) == ("Yes.", "end_turn")
    assert found.token_usage == TokenUsage(9, 5, 14)
    assert 590 <= found.time_to_first_token_ms <= found.duration_ms - 150


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
async def test_events_are_read_wherever_the_network_cuts_them(size, end):
    lines = b': hello\n\nevent: x\ndata: {"a":\ndata: 1}\n\nid: 1\n\ndata:[2]\n\ndata: [DONE]\n\ndata: 3\n\n'
    sent = BOM_UTF8 + (b"data: 0\n\n" + lines).replace(b"\n", end)

    async def pieces():
        for start in range(0, len(sent), size):
            yield sent[start : start + size]

    assert [event async for event in events_in(pieces())] == [0, {"a": 1}, [2]]


def chunk(text: Any, **others: Any) -> dict[str, Any]:
    return {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "gpt-4o",
        "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": others.pop("finish", None)}],
        **others,
    }


def openai(url: str, **others: Any) -> OpenAI:
    return OpenAI("gpt-4o", url, KEY, stream=True, **others)


FAILED_CHOICE = {
    "choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "error": {"message": "died", "code": 502}}]
}
SAID = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "half a"}


@pytest.mark.parametrize(
    ("settings", "events", "code", "status", "message"),
    [
        (openai, [chunk("half a"), {"error": {"message": "Upstream died", "code": 502}}], "http-status", 502, "died"),
        (openai, [chunk("half a"), {"error": {"message": "overloaded", "type": "x"}}], "target-error", None, "overl"),
        (openai, [chunk("half a"), "data: {\n\n"], "bad-answer", None, "not JSON"),
        (openai, [chunk("half a"), FAILED_CHOICE], "http-status", 502, "died"),
        (
            openai,
            [chunk("half a"), {"type": "error", "message": "overloaded"}, chunk(None, finish="stop")],
            "target-error",
            None,
            "overloaded",
        ),
        (
            lambda url: openai(url, api="responses"),
            [SAID, {"type": "error", "code": "server_error", "message": "The server had an error"}],
            "target-error",
            None,
            "had an error",
        ),
        (
            lambda url: Anthropic("claude-haiku-4-5", url, KEY, stream=True),
            [
                {"type": "message_start", "message": {**BEGIN, "type": "message"}},
                {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "half a"}},
                {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
            ],
            "http-status",
            529,
            "Overloaded",
        ),
        (
            lambda url: Gemini("gemini-2.5-flash", url, KEY, stream=True),
            [
                {"candidates": [{"content": {"parts": [{"text": "half a"}], "role": "model"}, "index": 0}]},
                {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}},
            ],
            "http-status",
            503,
            "overloaded",
        ),
    ],
    ids=["openai 502", "openai", "no JSON", "openrouter", "no key error", "responses", "anthropic", "gemini"],
)
def test_an_error_event_ends_the_answer_with_what_came(settings, events, code, status, message):
    with event_server(events) as server:
        found = answer(settings(server.url))
    assert (found.code, found.status) == (code, status)
    assert message in found.message
    assert found.response.output == "half a"


def test_only_the_first_choice_is_read_and_a_cut_answer_stays_cut():
    second = {**chunk(None), "choices": [{"index": 1, "delta": {"content": "another"}, "finish_reason": "stop"}]}
    events = [chunk("half a", finish="stop"), second, chunk(None, finish="length"), chunk(None, finish="stop")]
    with event_server(events) as server:
        found = answer(openai(server.url))
    assert (found.output, found.finish_reason) == ("half a", "length")


@pytest.mark.parametrize(
    ("last", "code", "output"),
    [
        (
            {"candidates": [{"content": {"parts": [{"text": "!"}]}, "finishReason": "STOP", "index": 0}]},
            None,
            "half a!",
        ),
        ({"promptFeedback": {"blockReason": "SAFETY"}}, "refused", None),
    ],
    ids=["another candidate", "blocked"],
)
def test_of_gemini_the_first_candidate_is_read_unless_it_is_blocked(last, code, output):
    first, second = (
        {"candidates": [{"content": {"parts": [{"text": text}], "role": "model"}, "index": index}]}
        for index, text in enumerate(("half a", "another"))
    )
    with event_server([first, second, last]) as server:
        found = answer(Gemini("gemini-2.5-flash", server.url, KEY, stream=True))
    assert (getattr(found, "code", None), getattr(found, "output", None)) == (code, output)


def test_a_server_that_does_not_know_stream_options_is_asked_without_them():
    events = [chunk("yes"), chunk(None, finish="stop"), "data: [DONE]\n\n"]
    with event_server(events, refuses="stream_options") as server:
        found = answer(openai(server.url))
        assert ["stream_options" in json.loads(one.body) for one in server.requests] == [True, False]
    assert (found.output, found.token_usage) == ("yes", None)


@pytest.mark.parametrize("settings", [openai, lambda url: Anthropic("claude-haiku-4-5", url, KEY, stream=True)])
def test_a_server_that_does_not_stream_is_read_whole(settings):
    chat = {"model": "m", "choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}
    message = {**BEGIN, "content": [{"type": "text", "text": "yes"}], "stop_reason": "end_turn"}
    with event_server([chat | message], whole=True) as server:
        found = answer(settings(server.url))
    assert (found.output, found.time_to_first_token_ms) == ("yes", None)


@pytest.mark.parametrize("kind", ["Text/Event-Stream; charset=UTF-8", None])
def test_a_stream_is_read_however_the_server_names_it(kind):
    with event_server([chunk("yes", finish="stop")], kind=kind) as server:
        assert answer(openai(server.url)).output == "yes"


def test_text_in_parts_is_part_of_the_answer():
    events = [chunk([{"type": "text", "text": "a"}, {"type": "thinking"}]), chunk("b", finish="stop")]
    with event_server(events) as server:
        assert answer(openai(server.url)).output == "ab"


def test_calls_of_one_number_are_told_apart_by_their_ids():
    parts = [
        {"index": 0, "id": "1", "function": {"name": "search", "arguments": '{"a"'}},
        {"index": 0, "id": "of the piece", "function": {"arguments": ": 1}"}},
        {"index": 0, "id": "2", "function": {"name": "delete", "arguments": "{}"}},
    ]
    events = [{**chunk(None), "choices": [{"index": 0, "delta": {"tool_calls": [part]}}]} for part in parts]
    with event_server([*events, chunk(None, finish="tool_calls")]) as server:
        found = answer(openai(server.url))
    assert found.messages[0].tool_calls == (ToolCall("search", {"a": 1}, "1"), ToolCall("delete", {}, "2"))


def test_a_function_called_as_before_2024_is_joined():
    parts = [{"name": "get", "arguments": ""}, {"arguments": '{"id":'}, {"arguments": " 1}"}]
    events = [{**chunk(None), "choices": [{"index": 0, "delta": {"function_call": part}}]} for part in parts]
    with event_server([*events, chunk(None, finish="function_call")]) as server:
        found = answer(openai(server.url))
    assert [(one.name, one.arguments) for one in found.messages[0].tool_calls] == [("get", {"id": 1})]
