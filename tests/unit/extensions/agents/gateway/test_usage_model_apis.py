"""What the gateway knows of model APIs: ceilings by a body, usage, errors."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv.extensions.agents.gateway import usage as model_apis
from agentv.model.suite.tools import ModelUpstream

OPENAI = ModelUpstream("openai", "https://api.openai.com/v1", "sk-a")
ANTHROPIC = ModelUpstream("anthropic", "https://api.anthropic.com", "sk-a")
GEMINI = ModelUpstream("gemini", "https://generativelanguage.googleapis.com", "sk-a")
KEYS = ["type", "source", "input", "url", "image_url", "data", "inlineData", "mimeType", "tools"]
HI = [{"role": "user", "content": "hi"}]


def tokens_of(upstream, model, **body):
    ceiling = model_apis.ceiling(upstream, model, body)
    assert ceiling.usd > 0
    return ceiling.tokens


def test_numbers_count_however_an_api_may_read_them():
    assert tokens_of(OPENAI, "gpt-4o", messages=HI, max_tokens=1000, n=5.0) > 5000
    assert tokens_of(OPENAI, "gpt-3.5-turbo-instruct", prompt=["a"] * 20, max_tokens=1000) > 20_000
    assert tokens_of(OPENAI, "gpt-3.5-turbo-instruct", prompt=[1] * 20, max_tokens=1000) < 2000
    snake = {"contents": [], "generation_config": {"max_output_tokens": 100, "candidate_count": 3}}
    assert 300 < tokens_of(GEMINI, "gemini-2.5-flash", **snake) < 600
    assert tokens_of(OPENAI, "gpt-4o", messages=HI, max_tokens=float("nan")) > 16_000


def test_a_text_is_no_picture_and_an_address_is_not_counted_by_its_length():
    text = [{"role": "user", "content": "data:image/" + "x" * 100_000}]
    assert tokens_of(OPENAI, "gpt-4o", messages=text, max_tokens=10) > 100_000
    parts = [{"type": "image_url", "image_url": {"url": "https://x/y.png"}}] * 10
    assert tokens_of(OPENAI, "gpt-4o", messages=[{"role": "user", "content": parts}], max_tokens=10) > 60_000
    document = {"type": "document", "source": {"type": "url", "url": "https://x/y.pdf"}}
    messages = [{"role": "user", "content": [document]}]
    assert tokens_of(ANTHROPIC, "claude-sonnet-4-5", messages=messages, max_tokens=10) > 100_000
    assert tokens_of(OPENAI, "gpt-5", prompt={"id": "pmpt_1"}, max_output_tokens=16) > 100_000


@settings(max_examples=60)
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.sampled_from(["image", "tool_use", "data:image/png"]),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
        max_leaves=12,
    )
)
def test_whatever_an_agent_sends_has_a_ceiling(value):
    bodies = [{"messages": [value], "tools": [value]}, dict.fromkeys(KEYS, value)]
    for upstream in (OPENAI, ANTHROPIC, GEMINI):
        for body in bodies:
            model_apis.ceiling(upstream, "gpt-4o", body)


def test_a_picture_counts_as_one_and_not_by_its_bytes():
    data = "A" * 1_000_000
    source = {"type": "base64", "media_type": "image/png", "data": data}
    messages = [{"role": "user", "content": [{"type": "image", "source": source}]}]
    assert 6000 < tokens_of(ANTHROPIC, "claude-sonnet-4-5", messages=messages, max_tokens=10) < 7000
    part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    messages = [{"role": "user", "content": [part]}]
    assert 6000 < tokens_of(OPENAI, "gpt-4o", messages=messages, max_tokens=10) < 7000
    messages = [{"role": "tool", "content": f"<img src='data:image/png;base64,{data}'>"}]
    assert tokens_of(OPENAI, "gpt-4o", messages=messages, max_tokens=10) > 1_000_000
    source["media_type"] = "application/pdf"
    assert tokens_of(ANTHROPIC, "claude-sonnet-4-5", messages=[{"source": source}], max_tokens=10) > 1_000_000


@pytest.mark.parametrize("key", ["previous_response_id", "conversation"])
def test_what_stands_elsewhere_counts_as_the_models_window(key):
    assert tokens_of(OPENAI, "gpt-4o", input="hi", max_output_tokens=10, **{key: "resp_1"}) == 128_010


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
    cost, less = (model_apis.cost_in(ANTHROPIC, "claude-sonnet-4-5", one) for one in (whole, cached))
    assert less < 0.2 * cost
    assert model_apis.cost_in(other, "claude-sonnet-4-5", whole) is None


def test_errors_mean_what_they_mean_to_targets():
    body = json.dumps({"error": {"message": "slow down, sk-a"}}).encode()
    found = model_apis.failure_in(ANTHROPIC, 429, {"Retry-After": "7"}, body, frozenset())
    assert (found.retryable, found.retry_after_s, found.stops) == (True, 7.0, False)
    assert model_apis.failure_in(OPENAI, 401, {}, b"<html>", frozenset()).stops
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3.5s"}]
    body = json.dumps([{"error": {"code": 429, "message": "no", "details": details}}]).encode()
    assert model_apis.failure_in(GEMINI, 429, {}, body, frozenset()).retry_after_s == 3.5
