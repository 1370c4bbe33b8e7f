"""Models through LiteLLM, and its clouds, against loopback servers."""

import json
import os
import subprocess
import sys
from functools import partial

import pytest

from agentv.model.values.message import ImageBlock, Message, ToolCall
from agentv.model.values.response import TargetResponse
from agentv.model.values.usage import TokenUsage
from agentv.registry import fields
from agentv.targets.litellm import target as litellm_keys
from agentv.targets.litellm.library import missing_variables, parameters_from
from agentv.targets.litellm.target import Bedrock, LiteLLM, Vertex, _fixed_parameters, key_found, key_variables
from agentv.testing import ModelServer, WrongType
from doubles import asking
from doubles.asking import answer, as_own_server, request
from doubles.http_server import HttpServer
from needs import needs

pytestmark = needs("litellm")

KEY = "sk-a-very-secret-key"
SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "number"}},
    "required": ["score"],
    "additionalProperties": False,
}


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "MISTRAL_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def settings(server: ModelServer, model: str = "openai/gpt-4o", **others: object) -> LiteLLM:
    return LiteLLM(model, **{"api_key": KEY, "base_url": server.openai, **others})


def sent(one: object = None, model: str = "openai/gpt-4o", **others: object) -> dict:
    """Return the body of a request."""
    return dict(asking.received_call(partial(settings, model=model, **others), one).body)


def test_messages_pictures_and_tools_are_sent_as_openai_takes_them():
    said = (
        Message("user", (ImageBlock("https://example.com/b.png"),)),
        Message("assistant", "", tool_calls=(ToolCall("look", {"at": 1}, "c1"),)),
        Message("tool", "seen"),
    )
    found = sent(request(messages=said), system="Be brief.")["messages"]
    assert [one["role"] for one in found] == ["system", "user", "assistant", "tool"]
    assert found[1]["content"] == [{"type": "image_url", "image_url": {"url": "https://example.com/b.png"}}]
    assert found[3]["tool_call_id"] == "c1"


@pytest.mark.parametrize(
    ("given", "body"),
    [
        ({"temperature": 0.5, "max_tokens": 5, "top_p": 0.5}, {"temperature": 0.5, "max_tokens": 5, "top_p": 0.5}),
        ({"stop": ("END",), "seed": 7}, {"stop": ["END"], "seed": 7}),
        ({"response_format": "json_object"}, {"response_format": {"type": "json_object"}}),
        ({"extra": {"user": "x"}}, {"user": "x"}),
    ],
)
def test_settings_are_sent(given, body):
    assert sent(**given) == {"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}], **body}


def test_a_tool_may_be_named_and_headers_added():
    tool = {"type": "function", "function": {"name": "find", "parameters": {"type": "object", "properties": {}}}}
    with ModelServer("yes") as server:
        answer(settings(server, tools=(tool,), tool_choice="find", headers={"X-Team": "support"}))
        (call,) = server.calls
    assert call.body["tools"] == [tool]
    assert call.body["tool_choice"] == {"type": "function", "function": {"name": "find"}}
    assert call.headers["x-team"] == "support"


def test_what_a_judge_asks_for_wins_over_the_settings():
    found = sent(request(temperature=0.0, schema=SCHEMA), temperature=1.0)
    assert found["temperature"] == 0.0
    assert found["response_format"]["json_schema"]["schema"] == SCHEMA


def test_the_price_is_the_providers_and_of_a_server_elsewhere_not_known(monkeypatch):
    with ModelServer("yes") as server:
        assert answer(as_own_server(settings(server))).cost_usd > 0
        assert answer(as_own_server(settings(server, "openai/no-such-model-anywhere"))).cost_usd is None
        assert answer(settings(server)).cost_usd is None
        assert answer(settings(server, base_url=None, extra={"api_base": server.openai})).cost_usd is None
        monkeypatch.setenv("OPENAI_API_BASE", server.openai)
        assert answer(settings(server, base_url=None)).cost_usd is None


def test_a_reply_without_content_is_a_bad_answer_and_no_traceback_is_shown():
    with ModelServer(WrongType('{"id": "x", "type": "message"}', "application/json")) as server:
        found = answer(settings(server, "anthropic/claude-haiku-4-5", base_url=server.anthropic))
    assert (found.code, found.retryable) == ("bad-answer", True), found
    assert "Traceback" not in found.message
    assert "File " not in found.message


@pytest.mark.parametrize(
    ("given", "code", "stops", "said"),
    [
        ({"model": "azure/gpt-4o"}, "missing-key", True, "Missing credentials"),
        ({"model": "openai/gpt-4o", "extra": {"user": object()}}, "target-error", False, "not JSON serializable"),
        ({"model": "openai/m", "base_url": "http://ann:pw@127.0.0.1:9"}, "target-error", False, "credentials encoded"),
    ],
)
def test_what_the_library_cannot_do_is_no_status_of_a_server(given, code, stops, said, monkeypatch):
    monkeypatch.delenv("AZURE_API_KEY", raising=False)
    given = {"api_key": None if code == "missing-key" else KEY, "base_url": "http://127.0.0.1:9", **given}
    found = answer(LiteLLM(**given))
    assert (found.code, found.status, found.retryable, found.stops) == (code, None, False, stops)
    assert said in found.message


@pytest.mark.parametrize(
    ("model", "variable", "place"),
    [("anthropic/claude-haiku-4-5", "ANTHROPIC_API_KEY", "anthropic"), ("openai/gpt-4o", "OPENAI_API_KEY", "openai")],
)
def test_a_key_of_the_suites_environment_reaches_the_provider_and_is_written_nowhere(model, variable, place):
    before = dict(os.environ)
    with ModelServer("yes", keys=[KEY]) as server:
        one = settings(server, model, api_key=None, base_url=getattr(server, place))
        assert answer(one, request(env={variable: KEY})).output == "yes"
        refused = answer(one, request(env={variable: "sk-another-secret"}))
    assert refused.status == 401
    assert "secret" not in refused.message
    assert {name: value for name, value in os.environ.items() if before.get(name) != value}.keys() <= {
        "PYTEST_CURRENT_TEST",
        "TIKTOKEN_CACHE_DIR",  # set by LiteLLM to find its bundled file
    }


def test_without_a_key_nothing_is_asked():
    found = answer(LiteLLM("mistral/mistral-small"))
    assert (found.code, found.stops) == ("missing-key", True)
    assert "MISTRAL_API_KEY" in found.message


@pytest.mark.parametrize("provider", sorted(litellm_keys._KEYS))
def test_the_variables_of_keys_are_those_of_the_library(provider, monkeypatch):
    names = key_variables(f"{provider}/m")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    assert set(missing_variables(f"{provider}/m")) & set(names)
    assert all(key_found(f"{provider}/m", {name: "k"}) == name for name in names)


@pytest.mark.parametrize("variable", ["PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"])
def test_a_key_under_any_of_the_librarys_names_reaches_the_provider(variable):
    with ModelServer("yes", keys=[KEY]) as server:
        one = settings(server, "perplexity/sonar", api_key=None)
        assert answer(one, request(env={variable: KEY})).output == "yes"


@pytest.mark.parametrize(
    ("given", "env", "missing"),
    [
        ({"model": "cohere/m"}, {}, [True]),
        ({"model": "cohere/m"}, {"CO_API_KEY": "k"}, [False]),
        ({"model": "cohere/m"}, {"CO_API_KEY": " "}, [True]),
        ({"model": "anthropic/m"}, {"ANTHROPIC_AUTH_TOKEN": "k"}, [False]),
        ({"model": "cohere/m", "api_key": "k"}, {}, []),
        ({"model": "cohere/m", "extra": {"api_key": "k"}}, {}, []),
        ({"model": "cohere/m", "headers": {"Authorization": "Bearer k"}}, {}, []),
        ({"model": "cohere/m", "base_url": "http://localhost:1"}, {}, []),
        ({"model": "azure/m"}, {}, []),
        ({"model": "cohere"}, {}, []),
    ],
)
def test_a_key_that_is_missing_is_known_without_the_library(given, env, missing):
    assert [one.missing for one in LiteLLM(**given).reads(env)] == missing


def test_variables_become_parameters_of_the_call():
    env = {
        "AZURE_API_KEY": "k",
        "AZURE_API_BASE": "https://a",
        "AZURE_API_VERSION": "v",
        "OTHER": "x",
        "VERTEXAI_PROJECT": "",
    }
    names = ("AZURE_API_BASE", "AZURE_API_VERSION", "AZURE_API_KEY", "VERTEXAI_PROJECT", "OTHER", "NOT_THERE")
    assert parameters_from(env, names) == {"api_base": "https://a", "api_version": "v", "api_key": "k"}


def test_the_import_fetches_nothing_prints_nothing_and_reads_no_dotenv(tmp_path):
    (tmp_path / ".env").write_text("AGENTV_FROM_DOTENV=1\n")
    code = (
        "import os, socket\n"
        "def refuse(*_): raise SystemExit('it asked the network')\n"
        "socket.getaddrinfo = refuse\n"
        "from agentv.targets.litellm.library import library\n"
        "library()\n"
        "print(*sorted({'AGENTV_FROM_DOTENV', 'LITELLM_MODE', 'LITELLM_LOCAL_MODEL_COST_MAP'} & set(os.environ)))\n"
    )
    env = {name: value for name, value in os.environ.items() if not name.startswith("LITELLM")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")


def test_a_file_that_needs_the_missing_library_does_not_load(monkeypatch):
    monkeypatch.setattr(fields, "_is_installed", lambda module: False)
    (fault,) = LiteLLM("m").validate()
    assert fault.message == "calling a model through LiteLLM requires litellm, which is not installed"
    assert fault.hint == "pip install 'agentv[litellm]'"


def test_an_endpoint_is_the_provider_or_the_address():
    assert LiteLLM("mistral/a").endpoint() == LiteLLM("mistral/b").endpoint() != LiteLLM("groq/a").endpoint()
    assert "http://localhost:1 " in LiteLLM("openai/a", base_url="http://localhost:1").endpoint()


REPLY = {
    "output": {"message": {"role": "assistant", "content": [{"text": "yes"}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 2, "outputTokens": 1, "totalTokens": 3},
}


@needs("litellm")
def test_bedrock_is_asked_in_its_own_protocol():
    settings = {"api_key": "key-of-bedrock", "region": "us-east-1"}
    with HttpServer(lambda _: (200, {"Content-Type": "application/json"}, json.dumps(REPLY).encode())) as server:
        found = answer(Bedrock("us.amazon.nova-lite-v1:0", base_url=server.url, **settings))
    assert isinstance(found, TargetResponse), found
    assert (found.output, found.token_usage) == ("yes", TokenUsage(2, 1, 3, 0, 0))
    (asked,) = server.requests
    assert asked.path.endswith(
        ("/model/us.amazon.nova-lite-v1%3A0/converse", "/model/us.amazon.nova-lite-v1:0/converse")
    )
    assert asked.headers["Authorization"] == "Bearer key-of-bedrock"
    assert json.loads(asked.body)["messages"] == [{"role": "user", "content": [{"text": "hello"}]}]


def test_litellm_is_told_the_provider_and_the_place():
    found = _fixed_parameters(Bedrock("amazon.nova-lite-v1:0", region="eu-west-1"))
    assert (found["model"], found["aws_region_name"]) == ("bedrock/amazon.nova-lite-v1:0", "eu-west-1")
    found = _fixed_parameters(Vertex("gemini-2.5-flash", project="mine", location="europe-west4"))
    assert (found["model"], found["vertex_project"]) == ("vertex_ai/gemini-2.5-flash", "mine")
    assert found["vertex_location"] == "europe-west4"
    assert "vertex_project" not in _fixed_parameters(Vertex("gemini-2.5-flash"))
