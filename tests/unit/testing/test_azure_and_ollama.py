"""Azure's paths and errors through OpenAI's SDK; Ollama's own API and its OpenAI-compatible one."""

import json
from functools import partial
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import openai
import pytest

from agentv.testing import Answer, ModelServer, Status, TokenUsage, ToolCall
from agentv.testing.embeddings import vector_of

HI = [{"role": "user", "content": "Hi"}]
WEATHER = ToolCall("weather", {"city": "Bern"})


@pytest.fixture
def azure(opened):
    def client_of(server):
        return openai.AzureOpenAI(azure_endpoint=server.azure, api_key="k", api_version="2024-10-21", max_retries=0)

    return partial(opened, client_of)


def post(url, **body):
    with urlopen(Request(url, json.dumps(body).encode())) as reply:
        return reply.headers["content-type"], reply.read()


@pytest.mark.parametrize(
    ("status", "code"), [(401, "401"), (404, "DeploymentNotFound"), (429, "429"), (500, "InternalServerError")]
)
def test_azures_errors(azure, status, code):
    _, client = azure(Status(status, retry_after=3))
    with pytest.raises(openai.APIStatusError) as caught:
        client.chat.completions.create(model="d", messages=HI)
    assert (caught.value.status_code, caught.value.code) == (status, code)
    assert "retry after 3 seconds" in caught.value.message


def test_ollamas_own_chat_streams_unless_told_otherwise():
    answer = Answer("one two", tool_calls=(WEATHER,), usage=TokenUsage(input=7, output=3))
    with ModelServer(answer) as server:
        kind, raw = post(f"{server.ollama}/api/chat", model="llama3", messages=HI)
        _, whole = post(f"{server.ollama}/api/chat", model="llama3", messages=HI, stream=False)
    lines = [json.loads(line) for line in raw.splitlines()]
    assert kind == "application/x-ndjson"
    assert [line["message"]["content"] for line in lines] == ["one", " two", ""]
    assert [line["done"] for line in lines] == [False, False, True]
    assert (lines[-1]["done_reason"], lines[-1]["prompt_eval_count"], lines[-1]["eval_count"]) == ("stop", 7, 3)
    message = json.loads(whole)["message"]
    assert (message["content"], message["tool_calls"][0]["function"]["arguments"]) == ("one two", {"city": "Bern"})


def test_ollamas_own_generation_and_vectors():
    with ModelServer("one two") as server:
        _, raw = post(f"{server.ollama}/api/generate", model="llama3", system="Be kind", prompt="Hi")
        _, whole = post(f"{server.ollama}/api/generate", model="llama3", prompt="Hi", stream=False)
        _, vectors = post(f"{server.ollama}/api/embed", model="e", input=["a cat"])
    assert [json.loads(line)["response"] for line in raw.splitlines()] == ["one", " two", ""]
    assert json.loads(whole)["response"] == "one two"
    assert json.loads(vectors)["embeddings"] == [list(vector_of("a cat"))]
    assert (server.calls[0].text, server.calls[0].prompt) == ("Be kind\nHi", "Hi")


def test_ollamas_own_errors_are_a_text():
    with ModelServer(Status(404)) as server, pytest.raises(HTTPError) as caught:
        post(f"{server.ollama}/api/chat", model="llama9", messages=HI)
    with caught.value as reply:
        assert json.load(reply) == {"error": 'model "llama9" not found, try pulling it first'}
