"""Gemini's protocol, through its own SDK."""

import json
from urllib.request import Request, urlopen

import pytest
from google import genai
from google.genai import errors
from google.genai.types import FinishReason, HttpOptions

from agentv.testing import Answer, Status, TokenUsage, ToolCall
from agentv.testing.embeddings import vector_of

USAGE = TokenUsage(input=100, output=30, total=130, cached=40, reasoning=20)
WEATHER = ToolCall("weather", {"city": "Bern", "days": 2})


@pytest.fixture
def ask(opened):
    def connect(told, **options):
        server, client = opened(gemini_client, told, **options)
        return server, client.models

    return connect


def gemini_client(server):
    return genai.Client(api_key="the-key", http_options=HttpOptions(base_url=server.gemini))


def test_text_and_tool_calls_with_their_usage(ask):
    server, models = ask(Answer("wait", tool_calls=(WEATHER,), usage=USAGE))
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    config = {"system_instruction": "Be kind", "response_mime_type": "application/json", "response_json_schema": schema}
    got = models.generate_content(model="g", contents="Hi", config=config)
    assert got.candidates[0].content.parts[0].text == "wait"
    assert got.function_calls[0].args == {"city": "Bern", "days": 2}
    assert got.candidates[0].finish_reason == FinishReason.STOP
    usage = got.usage_metadata
    assert (usage.prompt_token_count, usage.candidates_token_count, usage.total_token_count) == (100, 10, 130)
    assert (usage.cached_content_token_count, usage.thoughts_token_count) == (40, 20)
    (call,) = server.calls
    assert (call.protocol, call.operation, call.model) == ("gemini", "generate", "g")
    assert (call.text, call.prompt) == ("Be kind\nHi", "Hi")
    assert call.body["generationConfig"]["responseJsonSchema"] == schema
    assert call.headers["x-goog-api-key"] == "the-key"


def test_one_vector(ask):
    server, _ = ask("")
    url = f"{server.gemini}/v1beta/models/e:embedContent"
    body = {"content": {"parts": [{"text": "a cat"}]}, "outputDimensionality": 8}
    with urlopen(Request(url, json.dumps(body).encode())) as reply:
        assert tuple(json.load(reply)["embedding"]["values"]) == vector_of("a cat", 8)


@pytest.mark.parametrize(
    ("status", "raised", "name"),
    [
        (400, errors.ClientError, "INVALID_ARGUMENT"),
        (403, errors.ClientError, "PERMISSION_DENIED"),
        (404, errors.ClientError, "NOT_FOUND"),
        (429, errors.ClientError, "RESOURCE_EXHAUSTED"),
        (500, errors.ServerError, "INTERNAL"),
        (503, errors.ServerError, "UNAVAILABLE"),
    ],
)
def test_errors_have_their_own_status(ask, status, raised, name):
    _, models = ask(Status(status))
    with pytest.raises(raised) as caught:
        models.generate_content(model="g", contents="Hi")
    assert (caught.value.code, caught.value.status) == (status, name)
    assert "details" not in caught.value.details["error"]


def test_a_key_that_is_not_known_is_an_invalid_argument(ask):
    _, models = ask("", keys=["another"])
    with pytest.raises(errors.ClientError) as caught:
        models.generate_content(model="g", contents="Hi")
    assert caught.value.code == 400
    assert caught.value.details["error"]["details"][0]["reason"] == "API_KEY_INVALID"
