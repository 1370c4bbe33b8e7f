"""Chat through the real SDKs."""

from __future__ import annotations

import anthropic
import openai
import pytest
from google import genai
from google.genai.types import HttpOptions

from agentv.testing import Answer, ModelServer, Status, TokenUsage, ToolCall

USAGE = TokenUsage(input=100, output=30, total=130, cached=40, reasoning=20)
WEATHER = ToolCall("weather", {"city": "Bern", "days": 2})


def test_openai_gets_a_text_and_its_usage():
    with (
        ModelServer(Answer("hello there", usage=USAGE)) as server,
        openai.OpenAI(base_url=server.openai, api_key="k") as client,
    ):
        got = client.chat.completions.create(
            model="m", messages=[{"role": "system", "content": "Be kind"}, {"role": "user", "content": "Hi"}], seed=3
        )
        (call,) = server.calls
    assert got.choices[0].message.content == "hello there"
    assert got.choices[0].finish_reason == "stop"
    assert got.usage.prompt_tokens_details.cached_tokens == 40
    assert got.usage.completion_tokens_details.reasoning_tokens == 20
    assert (got.usage.prompt_tokens, got.usage.completion_tokens, got.usage.total_tokens) == (100, 30, 130)
    assert (call.protocol, call.operation, call.path, call.model) == (
        "openai",
        "chat",
        "/openai/v1/chat/completions",
        "m",
    )
    assert call.text == "Be kind\nHi"
    assert call.body["seed"] == 3
    assert call.headers["authorization"] == "Bearer k"
    assert "Bearer" not in repr(call)


def test_anthropic_gets_a_text_and_tool_calls():
    with (
        ModelServer(Answer("wait", tool_calls=(WEATHER,), usage=USAGE)) as server,
        anthropic.Anthropic(base_url=server.anthropic, api_key="k") as client,
    ):
        got = client.messages.create(
            model="c", max_tokens=9, system="Be kind", messages=[{"role": "user", "content": "Hi"}]
        )
        (call,) = server.calls
    assert [block.type for block in got.content] == ["text", "tool_use"]
    assert got.content[1].input == {"city": "Bern", "days": 2}
    assert got.stop_reason == "tool_use"
    assert (got.usage.input_tokens, got.usage.cache_read_input_tokens, got.usage.output_tokens) == (60, 40, 30)
    assert got.usage.output_tokens_details.thinking_tokens == 20
    assert (call.protocol, call.operation, call.model, call.text) == ("anthropic", "messages", "c", "Be kind\nHi")


def test_gemini_gets_a_text_and_tool_calls():
    with ModelServer(Answer("wait", tool_calls=(WEATHER,), usage=USAGE)) as server:
        client = genai.Client(api_key="k", http_options=HttpOptions(base_url=server.gemini))
        got = client.models.generate_content(model="g", contents="Hi", config={"system_instruction": "Be kind"})
        client.close()
        (call,) = server.calls
    assert got.candidates[0].content.parts[0].text == "wait"
    assert got.function_calls[0].args == {"city": "Bern", "days": 2}
    assert got.usage_metadata.cached_content_token_count == 40
    assert got.usage_metadata.thoughts_token_count == 20
    assert got.usage_metadata.candidates_token_count == 10
    assert (call.protocol, call.operation, call.model, call.text) == ("gemini", "generate", "g", "Be kind\nHi")


def test_a_status_is_the_providers_own_error():
    with (
        ModelServer(Status(429, retry_after=2)) as server,
        openai.OpenAI(base_url=server.openai, api_key="k", max_retries=0) as client,
        pytest.raises(openai.RateLimitError) as caught,
    ):
        client.chat.completions.create(model="m", messages=[])
    assert caught.value.code == "rate_limit_exceeded"
    assert caught.value.response.headers["retry-after"] == "2"
