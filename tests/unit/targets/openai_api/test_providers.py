"""Loopback servers that speak OpenAI's API."""

import asyncio
from dataclasses import replace

import pydantic
import pytest
from openai.types.chat import ChatCompletionContentPartParam
from openai.types.responses import ResponseInputFileParam

from agentv.model.values.message import FileBlock, ImageBlock, Message, TextBlock, ToolCall
from agentv.model.values.response import STRUCTURED, TargetResponse
from agentv.model.values.usage import TokenUsage
from agentv.targets.catalogue import registry
from agentv.targets.openai_api.hosted import Hosted, OpenRouter
from agentv.targets.openai_api.providers import Azure, Ollama, OpenAI
from agentv.testing import Answer, Hang, ModelServer, SlowDrip, Status, StoppedStream
from agentv.user_code.threads import DaemonThreads
from doubles.asking import answer, as_own_server, call_target, embed_texts, received_call, request, spec_of
from doubles.documents import PDF_BASE64, pdf

KEY = "sk-very-secret-key"
SCHEMA = {"type": "object", "properties": {"score": {"type": "number"}}, "required": ["score"]}
SCHEMA["additionalProperties"] = False
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
HUGE_CALL = ToolCall("save", {"text": "a" * 65_000_000})
CALL = ToolCall("weather", {"city": "Ghent"}, "call_9")


def openai(server: ModelServer, model: str = "gpt-4o", **settings) -> OpenAI:
    return OpenAI(model, server.openai, KEY, **settings)


def body_of(settings, one=None, server=None):
    answer(settings, one or request())
    return server.calls[-1].body


@pytest.fixture(scope="module")
def server():
    with ModelServer(lambda call: call.text) as running:
        yield running


BOTH = pytest.mark.parametrize("api", ["chat", "responses"])


@BOTH
def test_an_answer_comes_with_all_that_is_known_of_it(api):
    usage = TokenUsage(input=100, output=50, total=150, cached=40, reasoning=30)
    with ModelServer(Answer("Hi", usage=usage)) as server:
        found = answer(openai(server, api=api))
    assert found.output == "Hi"
    assert found.messages == ()
    assert found.token_usage == usage
    assert found.finish_reason == {"chat": "stop", "responses": "completed"}[api]
    assert found.metadata == {"model": "gpt-4o"}


@pytest.mark.parametrize("status", [401, 403])
def test_a_server_of_ones_own_that_wants_a_key_was_sent_none(status):
    with ModelServer(Status(status)) as server:
        found = answer(OpenAI("gpt-4o", server.openai))
        assert "authorization" not in server.calls[0].headers
        assert "no key was sent: set OPENAI_API_KEY, or 'api_key' of the target" in found.message
        assert found.stops
        found = answer(OpenAI("gpt-4o", server.openai, headers={"Authorization": "Bearer mine"}))
        assert server.calls[1].headers["authorization"] == "Bearer mine"
        assert "check 'headers'" in found.message
        assert "no key was sent: set OLLAMA_API_KEY" in answer(Ollama("m", f"{server.ollama}/v1")).message


def test_the_environment_names_an_organization_and_a_url_names_a_user(server, monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    answer(OpenAI("gpt-4o", server.openai.replace("://", "://me:word@"), KEY))
    headers = server.calls[-1].headers
    assert headers["openai-organization"] == "org-1"
    assert headers["authorization"] == "Basic bWU6d29yZA=="


@pytest.mark.parametrize("step", [Hang(), SlowDrip(30.0), StoppedStream(silent=True)])
def test_what_takes_too_long_is_given_up(step):
    with ModelServer(step) as server:
        found = answer(openai(server), request(timeout_s=0.2))
    assert (found.code, found.retryable) == ("timeout", True)


def test_a_reply_that_comes_slowly_is_read_to_its_end():
    with ModelServer(SlowDrip(0.1, Answer("slowly"))) as server:
        assert answer(openai(server)).output == "slowly"


@pytest.mark.parametrize("step", [Answer("a" * 10_000_001), Answer(tool_calls=(HUGE_CALL,))], ids=["answer", "reply"])
def test_a_reply_is_not_read_without_end(step):
    with ModelServer(step) as server:
        assert answer(openai(server)).code == "output-too-large"


def test_cookies_are_not_kept():
    with ModelServer(Answer("a", headers={"Set-Cookie": "a=1; Path=/"})) as server:

        async def twice():
            target = openai(server).connect(spec_of(None), DaemonThreads())
            await call_target(target, request())
            await call_target(target, request())
            await target.close()

        asyncio.run(twice())
        assert "cookie" not in server.calls[-1].headers


# Requests.


@BOTH
def test_settings_are_sent_by_the_names_of_the_api(api, server):
    settings = openai(server, api=api, temperature=0.5, top_p=0.9, max_tokens=100, reasoning_effort="low")
    body = body_of(replace(settings, extra={"user": "me"}, system="Be brief."), server=server)
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}]
    both = {"model": "gpt-4o", "temperature": 0.5, "top_p": 0.9, "user": "me"}
    if api == "chat":
        assert body == {**both, "messages": messages, "max_tokens": 100, "reasoning_effort": "low"}
    else:
        own = {"input": messages, "store": False, "max_output_tokens": 100, "reasoning": {"effort": "low"}}
        assert body == {**both, **own}


def picture(tmp_path):
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    return ImageBlock("./a.png", str(tmp_path / "a.png"))


@BOTH
def test_pictures_go_as_parts_and_files_in_the_text(api, server, tmp_path):
    blocks = (
        TextBlock("Look:"),
        FileBlock("notes.md", "/x/notes.md", "# Notes"),
        picture(tmp_path),
        ImageBlock("https://e.org/a.jpg"),
    )
    body = body_of(openai(server, api=api), request(messages=(Message("user", blocks),)), server)
    parts = body["messages" if api == "chat" else "input"][0]["content"]
    assert [part.get("text") for part in parts[:2]] == ["Look:", '<file path="notes.md">\n# Notes\n</file>']
    urls = [part["image_url"]["url"] if api == "chat" else part["image_url"] for part in parts[2:]]
    assert urls[0].startswith("data:image/png;base64,iVBORw0K")
    assert urls[1] == "https://e.org/a.jpg"


def test_a_pdf_is_a_part_of_its_own(server, tmp_path):
    one = request(messages=(Message("user", (TextBlock("Sum up:"), pdf(tmp_path))),))
    said = {"filename": "report.pdf", "file_data": f"data:application/pdf;base64,{PDF_BASE64}"}
    part = body_of(openai(server), one, server)["messages"][0]["content"][1]
    assert part == {"type": "file", "file": said}
    pydantic.TypeAdapter(ChatCompletionContentPartParam).validate_python(part, extra="forbid")
    assert body_of(OpenRouter("m", server.openai, KEY), one, server)["messages"][0]["content"][1] == part
    part = body_of(openai(server, api="responses"), one, server)["input"][0]["content"][1]
    assert part == {"type": "input_file", **said}
    pydantic.TypeAdapter(ResponseInputFileParam).validate_python(part, extra="forbid")


def test_ollama_takes_no_pdf(server, tmp_path):
    calls, block = len(server.calls), pdf(tmp_path, "lost.pdf")
    one = request(messages=(Message("user", (block,)),))
    found = answer(Ollama("m", f"{server.ollama}/v1"), one)
    assert (found.code, "does not accept PDFs: replace './lost.pdf'" in found.message) == ("bad-document", True)
    assert len(server.calls) == calls


HISTORY = (
    Message("user", "How is the weather?", name="Ann Smith"),
    Message("assistant", "", tool_calls=(CALL, ToolCall("time", {}))),
    Message("tool", "rain", name="weather"),
    Message("tool", {"hour": 3}, name="time"),
)


def test_calls_of_tools_and_their_results_belong_together(server):
    _, called, rain, hour = body_of(openai(server), request(messages=HISTORY), server)["messages"]
    assert _["name"] == "Ann_Smith"
    assert called["content"] is None
    first, second = called["tool_calls"]
    assert first["function"] == {"name": "weather", "arguments": '{"city": "Ghent"}'}
    assert (rain["tool_call_id"], hour["tool_call_id"]) == ("call_9", second["id"])
    assert hour["content"] == '{\n  "hour": 3\n}'


def test_calls_of_tools_are_items_of_their_own_in_the_responses_api(server):
    items = body_of(openai(server, api="responses"), request(messages=HISTORY), server)["input"]
    shown = [item.get("type", item.get("role")) for item in items]
    assert shown == ["user", "function_call", "function_call", "function_call_output", "function_call_output"]
    assert items[1]["call_id"] == items[3]["call_id"] == "call_9"
    assert items[3]["output"] == "rain"


@BOTH
def test_tools_are_sent_in_the_form_of_the_api(api, server):
    body = body_of(openai(server, api=api, tools=(WEATHER,), tool_choice="weather"), server=server)
    function = {"name": "weather", "parameters": {"type": "object"}}
    if api == "chat":
        assert body["tools"] == [{"type": "function", "function": function}]
        assert body["tool_choice"] == {"type": "function", "function": {"name": "weather"}}
    else:
        assert body["tools"] == [{"type": "function", **function}]
        assert body["tool_choice"] == {"type": "function", "name": "weather"}


# Responses.


def test_a_model_that_thinks_until_its_limit_says_so():
    usage = TokenUsage(input=5, output=64, total=69, reasoning=64)
    with ModelServer(Answer("", finish_reason="length", usage=usage)) as server:
        found = answer(openai(server, max_tokens=64))
        assert found.code == "empty-output"
        assert "64 of its tokens were used for reasoning" in found.message
        assert "'max_tokens'" in found.message
        assert isinstance(answer(openai(server), allow_empty=True), TargetResponse)


# Judges: temperature and schema.


def judging(**others):
    return request(temperature=0.0, schema=SCHEMA, **others)


def test_a_schema_is_sent_strictly_where_the_server_keeps_to_it(server):
    body = body_of(openai(server, strict_schemas=True), judging(), server)
    wanted = {"name": "answer", "strict": True, "schema": SCHEMA}
    assert body["response_format"] == {"type": "json_schema", "json_schema": wanted}
    body = body_of(openai(server, strict_schemas=True, api="responses"), judging(), server)
    assert body["text"] == {"format": {"type": "json_schema", **wanted}}


@pytest.mark.parametrize(
    ("settings", "sent"),
    [
        (OpenAI("m", "https://api.openai.com/v1", KEY), True),
        (OpenAI("m", None, KEY), True),
        (OpenAI("m", "https://api.openai.com.evil.example/v1", KEY), False),
        (OpenAI("m", "http://localhost:8000/v1", KEY), False),
        (OpenAI("m", None, KEY, strict_schemas=False), False),
        (Azure("m", "https://x.openai.azure.com", KEY), True),
        (Ollama("m"), True),
        (OpenRouter("openai/gpt-5", None, KEY), True),
        (OpenRouter("some/llama", None, KEY), False),
    ],
)
def test_who_is_known_to_keep_to_schemas(settings, sent):
    assert settings.dialect().strict_schemas is sent


@pytest.mark.parametrize(
    ("key", "message", "settings"),
    [
        ("temperature", "Unsupported value: 'temperature' does not support 0 with this model.", {}),
        ("temperature", "Unsupported value: 'temperature' does not support 0 with this model.", {"api": "responses"}),
        ("response_format", "response_format is not supported", {"strict_schemas": True}),
        ("response_format", "Bad Request", {"strict_schemas": True}),
    ],
)
def test_what_a_judge_asks_for_and_a_server_refuses_is_left_out_from_then_on(key, message, settings):
    with ModelServer(lambda call: Status(400, message) if key in call.body else "fine") as server:
        target = openai(server, "my-model", **settings).connect(spec_of(None), DaemonThreads())

        async def twice():
            found = [await target.answer(judging()), await target.answer(judging())]
            await target.close()
            return [one.output for one in found]

        assert asyncio.run(twice()) == ["fine", "fine"]
        assert [key in call.body for call in server.calls] == [True, False, False]


@pytest.mark.parametrize(
    ("said", "sent"),
    [
        ("json_object", {"type": "json_object"}),
        ("json", {"type": "json_object"}),
        ({"type": "json_object"}, {"type": "json_object"}),
        (SCHEMA, {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA}}),
        (
            {"type": "object"},
            {"type": "json_schema", "json_schema": {"name": "answer", "strict": False, "schema": {"type": "object"}}},
        ),
    ],
)
def test_the_target_may_say_what_form_its_answers_have(said, sent, server):
    assert body_of(openai(server, response_format=said), server=server)["response_format"] == sent


# The other providers.


def test_azure_is_asked_by_deployment_and_version(server):
    answer(Azure("my-deployment", server.azure, KEY))
    call = server.calls[-1]
    assert call.path == "/azure/openai/deployments/my-deployment/chat/completions"
    assert call.query == {"api-version": "2025-04-01-preview"}
    assert call.headers["api-key"] == KEY
    answer(Azure("my-deployment", f"{server.azure}/openai/v1/", KEY))
    assert (server.calls[-1].path, server.calls[-1].query) == ("/azure/openai/v1/chat/completions", {})
    answer(Azure("my-deployment", server.azure, KEY, api_version="v1"))
    assert (server.calls[-1].path, server.calls[-1].query) == ("/azure/openai/v1/chat/completions", {})
    answer(Azure("my-deployment", server.azure, KEY, api="responses", api_version="2026-01-01"))
    assert (server.calls[-1].path, server.calls[-1].query) == ("/azure/openai/responses", {"api-version": "2026-01-01"})


def test_a_header_that_cannot_be_sent_is_no_mistake_of_the_server(server):
    found = answer(OpenAI("gpt-4o", server.openai, KEY, headers={"X-Team": "search\n"}, stream=True))
    assert (found.code, found.message) == ("connection", "no reply: ValueError")


def test_ollama_that_does_not_run_is_told_how_to_start():
    found = answer(Ollama("llama3.3", "http://127.0.0.1:9"))
    assert (found.code, found.retryable) == ("connection", True)
    assert "is it running? Start it with 'ollama serve'" in found.message


@pytest.mark.parametrize(
    ("said", "address"),
    [
        (None, "http://localhost:11434/v1"),
        ("127.0.0.1:8080", "http://127.0.0.1:8080/v1"),
        (":7000", "http://localhost:7000/v1"),
        ("my-box", "http://my-box:11434/v1"),
        ("https://ollama.example/", "https://ollama.example:443/v1"),
        ("http://my-box:1/api/v1/", "http://my-box:1/api/v1"),
        ("[::1]:11434", "http://[::1]:11434/v1"),
    ],
)
def test_ollama_listens_where_its_own_variable_says(said, address):
    assert Ollama("m", said).dialect().base_url == address


def test_ollama_fetches_no_pictures(server):
    message = Message("user", (ImageBlock("https://e.org/a.png"),))
    found = answer(Ollama("llava", f"{server.ollama}/v1"), request(messages=(message,)))
    assert found.code == "bad-picture"
    assert "must be a local file" in found.message


@pytest.mark.parametrize(
    ("response_format", "said", "marked"),
    [
        ({"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}, '{"score": 1}', True),
        (SCHEMA, '{"score": 1}', True),
        (SCHEMA, "I refuse", False),
        ("json_object", '{"score": 1}', False),
        (None, '{"score": 1}', False),
    ],
)
@BOTH
def test_an_answer_by_the_targets_own_schema_is_a_value_for_code(api, response_format, said, marked):
    with ModelServer(said) as server:
        found = answer(openai(server, api=api, response_format=response_format))
    assert found.output == said
    assert (STRUCTURED in found.metadata) is marked


# Cost.


def cost(settings, server):
    return answer(replace(settings, base_url=settings.base_url or server.openai)).cost_usd


def test_a_call_costs_what_the_price_list_says(server):
    known = pytest.approx((10 * 2.5 + 5 * 10) / 1e6)
    assert cost(as_own_server(Azure("gpt-4o", server.azure, KEY)), server) == known
    assert cost(as_own_server(openai(server)), server) == known
    assert cost(as_own_server(OpenRouter("openai/gpt-4o", server.openai, KEY)), server) == known


def test_a_price_that_nobody_knows_is_none(server):
    assert cost(Azure("my-own-deployment", server.azure, KEY), server) is None
    assert cost(openai(server), server) is None
    assert cost(OpenRouter("openai/gpt-4o", server.openai, KEY), server) is None
    assert cost(Azure("gpt-4o", server.azure, KEY), server) is None
    assert cost(Ollama("gpt-4o", f"{server.ollama}/v1"), server) is None


# Vectors.


def test_many_texts_go_in_several_calls_and_keep_their_order(server):
    calls = len(server.calls)
    texts = [f"text {number}" for number in range(600)]
    found = embed_texts(openai(server, "embedder"), texts)
    assert [len(call.body["input"]) for call in server.calls[calls:]] == [128, 128, 128, 128, 88]
    assert len(found.vectors) == 600
    assert found.vectors[599] == embed_texts(openai(server, "embedder"), ["text 599"]).vectors[0]


def test_vectors_of_several_lengths_are_no_answer():
    with ModelServer(Answer(vectors=((1.0, 2.0), (1.0,)))) as server:
        assert embed_texts(openai(server), ["a", "b"]).code == "bad-answer"


# Settings.


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        (OpenAI("m", "localhost:8000"), "'base_url' must start with http:// or https://"),
        (Azure("m", "https://x.openai.azure.com/openai/deployments/d"), "'base_url' must not contain a deployment"),
        (Ollama("m", "http://host:port"), "must start with http:// or https://"),
        (OpenAI("m", api="responses", seed=1), "the responses API does not support 'seed'"),
        (OpenAI("m", tools=("weather",)), "a tool must be an object: {type: function, function: {name, parameters}}"),
        (OpenAI("m", response_format="file://schema.json"), "'response_format' must be"),
        (OpenAI("m", stop=()), "'stop' is empty"),
    ],
)
def test_faults_are_told_before_anything_runs(settings, fault):
    assert any(fault in one.message for one in settings.validate())


def test_an_endpoint_names_server_and_key_and_shows_neither_key_nor_password():
    one, other = OpenAI("m", "https://u:pw@h/v1/", KEY), OpenAI("n", "https://u:pw@h/v1", KEY)
    assert one.endpoint() == other.endpoint() != replace(one, api_key="another").endpoint()
    assert "https://h/v1" in one.endpoint()
    assert KEY not in one.endpoint()
    assert "pw" not in one.endpoint()
    assert KEY not in repr(one.dialect())


EACH = pytest.mark.parametrize("name", ["cohere", "groq", "huggingface", "mistral", "perplexity", "together", "xai"])


def settings(name: str, model: str = "m", **others: object) -> Hosted:
    provider = registry().find(name)
    assert issubclass(provider.settings, Hosted)
    return provider.settings(model, **{"api_key": "sk-key-of-mine", **others})


@EACH
def test_it_asks_its_own_address_by_its_own_key(name):
    assert settings(name).elsewhere() is None
    assert settings(name, base_url="https://proxy.example/v1").elsewhere() == "https://proxy.example/v1"
    assert settings(name, api_key=None).dialect().keyless


@EACH
def test_the_key_is_the_bearer_and_the_body_is_openais(name):
    call = received_call(lambda server: settings(name, base_url=server.openai, max_tokens=5, temperature=0.5))
    assert call.headers["authorization"] == "Bearer sk-key-of-mine"
    messages = [{"role": "user", "content": "hello"}]
    assert call.body == {"model": "m", "messages": messages, "max_tokens": 5, "temperature": 0.5}
