"""Usage out of streams, in chunks of any size."""

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv.extensions.agents.gateway.usage import ReplyReader, StreamReader, TooLongEventError, ending

SAID = {"delta": {"content": '{"usage": {"prompt_tokens": 1}}'}, "finish_reason": None}
CHAT = [
    {"model": "gpt-4o-2024", "choices": [SAID]},
    {"model": "gpt-4o-2024", "choices": [{"delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 10}},
    {"choices": [], "usage": {"prompt_tokens": None, "completion_tokens": 5}},
]
COUNTED = {"output_tokens": 42, "input_tokens": None}
MESSAGES = [
    {"type": "message_start", "message": {"model": "claude-x", "usage": {"input_tokens": 9, "output_tokens": 1}}},
    {"type": "content_block_delta", "delta": {"type": "text_delta", "text": 'data: {"usage":1}\n\n'}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": COUNTED},
    {"type": "message_stop"},
]
RESPONSES = [
    {"type": "response.created", "response": {"model": "gpt-5", "usage": None, "error": None}},
    {"type": "response.output_text.delta", "delta": "hi"},
    {"type": "response.completed", "response": {"model": "gpt-5", "usage": {"input_tokens": 3, "output_tokens": 4}}},
]
GEMINI = [
    {"candidates": [{"content": {}}], "usageMetadata": {"promptTokenCount": 7}, "modelVersion": "gemini-x"},
    {"candidates": [{"finishReason": "STOP"}], "usageMetadata": {"candidatesTokenCount": 2}},
    {"usageMetadata": None},
]


def stream(events, end="\n\n", last=b""):
    return b"".join(f"event: x{end[0]}data: {json.dumps(one)}{end}".encode() for one in events) + last


EXPECTED = {
    "chat": (stream(CHAT, last=b"data: [DONE]\n\n"), {"prompt_tokens": 10, "completion_tokens": 5}, "gpt-4o-2024"),
    "messages": (stream(MESSAGES, "\r\n\r\n"), {"input_tokens": 9, "output_tokens": 42}, "claude-x"),
    "responses": (stream(RESPONSES), {"input_tokens": 3, "output_tokens": 4}, "gpt-5"),
    "gemini": (stream(GEMINI), {"promptTokenCount": 7, "candidatesTokenCount": 2}, "gemini-x"),
}


@pytest.mark.parametrize("api", EXPECTED)
@settings(max_examples=30)
@given(cuts=st.lists(st.integers(0, 900), max_size=12))
def test_a_stream_is_passed_on_unchanged_and_counted_wherever_it_is_cut(api, cuts):
    whole, usage, model = EXPECTED[api]
    reader = ReplyReader(api)
    read, places = StreamReader(reader), [0, *sorted(cuts), len(whole)]
    shown = b"".join(read.feed(whole[begin:end]) for begin, end in pairwise(places)) + read.end()
    assert shown == whole
    assert (reader.usage, reader.model, reader.complete, reader.error) == (usage, model, True, None)


@settings(max_examples=30)
@given(cuts=st.lists(st.integers(0, 900), max_size=12))
def test_usage_that_was_not_asked_for_is_hidden(cuts):
    whole = EXPECTED["chat"][0]
    reader = ReplyReader("chat")
    read, places = StreamReader(reader, hides_usage=True), [0, *sorted(cuts), len(whole)]
    shown = b"".join(read.feed(whole[begin:end]) for begin, end in pairwise(places)) + read.end()
    assert shown == stream(CHAT[:2], last=b"data: [DONE]\n\n")
    assert reader.usage == {"prompt_tokens": 10, "completion_tokens": 5}


@pytest.mark.parametrize("api", EXPECTED)
def test_a_stream_that_ends_early_is_not_complete(api):
    whole = EXPECTED[api][0]
    reader = ReplyReader(api)
    read = StreamReader(reader)
    read.feed(whole[: whole.index(b"\n", 20)])
    read.end()
    assert not reader.complete


@pytest.mark.parametrize(
    ("api", "event", "words"),
    [
        ("messages", {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "Overloaded"),
        ("chat", {"error": {"message": "lost the server"}}, "lost the server"),
        ("responses", {"type": "response.failed", "response": {"error": {"message": "no"}}}, "no"),
        ("responses", {"type": "response.failed", "response": {"id": "r"}}, "the response failed"),
        ("responses", {"type": "error", "message": "bad"}, "bad"),
        ("responses", {"type": ["error"], "error": {"message": "bad"}}, "bad"),
        ("gemini", {"error": {"code": 503, "message": "overloaded"}}, "overloaded"),
    ],
)
def test_an_error_within_a_stream_is_found(api, event, words):
    reader = ReplyReader(api)
    read = StreamReader(reader)
    read.feed(stream([event]))
    read.end()
    assert reader.error == words


@pytest.mark.parametrize(
    ("api", "body", "words"),
    [
        ("chat", {"choices": [{"message": {}, "error": {"message": "lost the server"}}]}, "lost the server"),
        ("responses", {"status": "failed", "output": []}, "the response failed"),
        ("responses", {"status": "cancelled", "output": []}, "the response was cancelled"),
        ("responses", {"type": "error", "status": "x", "message": "bad"}, "bad"),
        ("responses", {"status": "completed", "output": [], "error": None}, None),
    ],
)
def test_an_error_in_a_whole_reply_is_found(api, body, words):
    reader = ReplyReader(api)
    reader.read_whole(json.dumps(body).encode())
    assert (reader.error, reader.complete) == (words, True)


@pytest.mark.parametrize("kind", ["response.completed", "response.failed"])
def test_the_end_of_a_response_without_the_response_is_none(kind):
    reader = ReplyReader("responses")
    reader.read_event(json.dumps({"type": kind}).encode())
    reader.end()
    assert not reader.complete


@pytest.mark.parametrize(
    ("finish", "code"),
    [
        ("", None), ("stop", None), ("end_turn", None), ("tool_calls", None), ("length", "agent-limit"),
        ("MAX_TOKENS", "agent-limit"), ("CONTENT_FILTER", "refused"), ("SAFETY", "refused"), ("refusal", "refused"),
        ("PROHIBITED_CONTENT", "refused"), ("error", "bad-answer"), ("abort", "bad-answer"),
    ],
)  # fmt: skip
def test_how_the_last_answer_ended(finish, code):
    found = ending(finish)
    assert (found and found.code) == code


def test_arguments_that_are_nested_too_deep_are_none():
    reader = ReplyReader("messages")
    for event in (
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "a", "name": "t", "input": {}}},
        {"type": "content_block_delta", "index": 0, "delta": {"partial_json": "[" * 100_000}},
        {"type": "message_stop"},
    ):  # fmt: skip
        reader.read_event(json.dumps(event).encode())
    reader.end()
    assert reader.complete
    assert reader.answer["content"][0]["input"] == {}


@pytest.mark.parametrize(
    "body", [b"<html>", b"", b"null", b"[]", b'{"usage": 3}', b'{"usage": {"prompt_tokens": "many"}}']
)
def test_a_reply_that_is_none_raises_nothing(body):
    for api in EXPECTED:
        ReplyReader(api).read_whole(body)


def test_an_event_without_an_end_is_given_up(monkeypatch):
    monkeypatch.setattr("agentv.extensions.agents.gateway.usage.LONGEST_EVENT", 1000)
    stream = StreamReader(ReplyReader("chat"))
    with pytest.raises(TooLongEventError):
        stream.feed(b"data: " + b"x" * 2000)


KEYS = [
    "type", "response", "message", "item", "usage", "output", "candidates", "choices", "finish_reason",
    "finishReason", "stop_reason", "delta", "error", "model", "incomplete_details", "reason", "server_tool_use",
    "groundingMetadata", "promptFeedback", "blockReason", "speed", "service_tier",
]  # fmt: skip
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["fast", "priority", "length", "error"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=15,
)


@settings(max_examples=100)
@given(ANYTHING)
def test_whatever_a_server_replies_is_read(reply):
    for api in (*EXPECTED, "embeddings"):
        reader, body = ReplyReader(api), json.dumps(reply).encode()
        reader.read_event(body)
        reader.end()
        reader.read_whole(body)
