"""Usage from streams in chunks of any size."""

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv.extensions.agents.gateway import usage as model_apis
from agentv.extensions.agents.gateway.usage import ReplyReader, StreamReader, TooLongEventError, failure_of_finish
from agentv.model.suite.tools import ModelUpstream

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
    found = failure_of_finish(finish)
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
    assert reader.body["content"][0]["input"] == {}


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


OPENAI_API = ModelUpstream("openai", "https://api.openai.com/v1", "sk-a")
ANTHROPIC_API = ModelUpstream("anthropic", "https://api.anthropic.com", "sk-a")
GEMINI_API = ModelUpstream("gemini", "https://generativelanguage.googleapis.com", "sk-a")
BODY_KEYS = ["type", "source", "input", "url", "image_url", "data", "inlineData", "mimeType", "tools"]
HI = [{"role": "user", "content": "hi"}]


def tokens_of(upstream, model, **body):
    ceiling = model_apis.ceiling(upstream, model, body)
    assert ceiling.usd > 0
    return ceiling.tokens


def test_numbers_count_however_an_api_may_read_them():
    assert tokens_of(OPENAI_API, "gpt-4o", messages=HI, max_tokens=1000, n=5.0) > 5000
    assert tokens_of(OPENAI_API, "gpt-3.5-turbo-instruct", prompt=[1] * 20, max_tokens=1000) < 2000
    snake = {"contents": [], "generation_config": {"max_output_tokens": 100, "candidate_count": 3}}
    assert 300 < tokens_of(GEMINI_API, "gemini-2.5-flash", **snake) < 600
    assert tokens_of(OPENAI_API, "gpt-4o", messages=HI, max_tokens=float("nan")) > 16_000


def test_a_text_is_no_picture_and_an_address_is_not_counted_by_its_length():
    text = [{"role": "user", "content": "data:image/" + "x" * 100_000}]
    assert tokens_of(OPENAI_API, "gpt-4o", messages=text, max_tokens=10) > 100_000
    parts = [{"type": "image_url", "image_url": {"url": "https://x/y.png"}}] * 10
    assert tokens_of(OPENAI_API, "gpt-4o", messages=[{"role": "user", "content": parts}], max_tokens=10) > 60_000
    document = {"type": "document", "source": {"type": "url", "url": "https://x/y.pdf"}}
    messages = [{"role": "user", "content": [document]}]
    assert tokens_of(ANTHROPIC_API, "claude-sonnet-4-5", messages=messages, max_tokens=10) > 100_000
    assert tokens_of(OPENAI_API, "gpt-5", prompt={"id": "pmpt_1"}, max_output_tokens=16) > 100_000


@settings(max_examples=60)
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.sampled_from(["image", "tool_use", "data:image/png"]),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(BODY_KEYS), inner, max_size=4),
        max_leaves=12,
    )
)
def test_whatever_an_agent_sends_has_a_ceiling(value):
    bodies = [{"messages": [value], "tools": [value]}, dict.fromkeys(BODY_KEYS, value)]
    for upstream in (OPENAI_API, ANTHROPIC_API, GEMINI_API):
        for body in bodies:
            model_apis.ceiling(upstream, "gpt-4o", body)


def test_a_picture_counts_as_one_and_not_by_its_bytes():
    data = "A" * 1_000_000
    source = {"type": "base64", "media_type": "image/png", "data": data}
    messages = [{"role": "user", "content": [{"type": "image", "source": source}]}]
    assert 6000 < tokens_of(ANTHROPIC_API, "claude-sonnet-4-5", messages=messages, max_tokens=10) < 7000
    part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    messages = [{"role": "user", "content": [part]}]
    assert 6000 < tokens_of(OPENAI_API, "gpt-4o", messages=messages, max_tokens=10) < 7000
    messages = [{"role": "tool", "content": f"<img src='data:image/png;base64,{data}'>"}]
    assert tokens_of(OPENAI_API, "gpt-4o", messages=messages, max_tokens=10) > 1_000_000
    source["media_type"] = "application/pdf"
    assert tokens_of(ANTHROPIC_API, "claude-sonnet-4-5", messages=[{"source": source}], max_tokens=10) > 1_000_000


@pytest.mark.parametrize("key", ["previous_response_id", "conversation"])
def test_what_stands_elsewhere_counts_as_the_models_window(key):
    assert tokens_of(OPENAI_API, "gpt-4o", input="hi", max_output_tokens=10, **{key: "resp_1"}) == 128_010


def test_usage_reads_as_agentv_counts():
    usage = {"input_tokens": 10, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 3, "output_tokens": 2}
    tokens, written = model_apis.usage_of("anthropic", usage)
    assert (tokens.input, tokens.cached, tokens.output, tokens.total, written) == (18, 5, 2, 20, 3)
    usage = {"promptTokenCount": 7, "candidatesTokenCount": 2, "thoughtsTokenCount": 4}
    tokens, _ = model_apis.usage_of("gemini", usage)
    assert (tokens.input, tokens.output, tokens.reasoning) == (7, 6, 4)
    details = {"prompt_tokens_details": {"cached_tokens": 4}}
    tokens, _ = model_apis.usage_of("openai", {"prompt_tokens": 9, "completion_tokens": 1, **details})
    assert (tokens.input, tokens.cached, tokens.total) == (9, 4, 10)
    for protocol in ("openai", "anthropic", "gemini"):
        assert model_apis.usage_of(protocol, None)[0] is None
        assert model_apis.usage_of(protocol, {"prompt_tokens": -1})[0] is None


def test_cached_tokens_are_priced_as_such():
    other = ModelUpstream("anthropic", "https://other.example", "k")
    counts = {"input_tokens": 100_000}, {"input_tokens": 0, "cache_read_input_tokens": 100_000}
    whole, cached = (model_apis.usage_of("anthropic", {**one, "output_tokens": 1})[0] for one in counts)
    cost, less = (model_apis.cost_in(ANTHROPIC_API, "claude-sonnet-4-5", one) for one in (whole, cached))
    assert less < 0.2 * cost
    assert model_apis.cost_in(other, "claude-sonnet-4-5", whole) is None


def test_errors_mean_what_they_mean_to_targets():
    body = json.dumps({"error": {"message": "slow down, sk-a"}}).encode()
    found = model_apis.failure_in(ANTHROPIC_API, 429, {"Retry-After": "7"}, body, frozenset())
    assert (found.retryable, found.retry_after_s, found.stops) == (True, 7.0, False)
    assert model_apis.failure_in(OPENAI_API, 401, {}, b"<html>", frozenset()).stops
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3.5s"}]
    body = json.dumps([{"error": {"code": 429, "message": "no", "details": details}}]).encode()
    assert model_apis.failure_in(GEMINI_API, 429, {}, body, frozenset()).retry_after_s == 3.5
