import asyncio
from collections.abc import Iterator
from urllib.parse import quote, urlsplit

import pytest

from agentv.model.suite.assertion import Transform
from agentv.model.values.response import STRUCTURED, Failure, TargetResponse
from agentv.targets.anthropic.target import Anthropic
from agentv.targets.gemini.target import Gemini
from agentv.targets.http.connection import tls_context
from agentv.targets.http.failures import other_server
from agentv.targets.http.preparation import Once, timed
from agentv.targets.http.target import Http
from agentv.targets.litellm.target import LiteLLM
from agentv.targets.openai_api.hosted import OpenRouter
from agentv.targets.openai_api.providers import Azure, Ollama, OpenAI
from agentv.testing import ModelServer
from doubles.asking import answer, request
from doubles.misbehaving_server import MisbehavingServer, misbehaving_server
from doubles.tls_front import make_certificate, tls_proxy

KEY = "sk-very-secret-key"

TARGETS = {
    "openai": lambda root: OpenAI("gpt-4o", f"{root}/openai/v1", KEY),
    "azure": lambda root: Azure("d", f"{root}/azure", KEY),
    "anthropic": lambda root: Anthropic("claude-haiku-4-5", f"{root}/anthropic", KEY),
    "gemini": lambda root: Gemini("gemini-2.5-flash", f"{root}/gemini", KEY),
}


@pytest.mark.parametrize("name", TARGETS)
def test_a_server_answers_where_its_certificate_is_trusted_and_gets_nothing_where_not(name, tmp_path, monkeypatch):
    certificate = make_certificate(tmp_path)
    with ModelServer("yes") as server, tls_proxy(urlsplit(server.openai).port, certificate) as port:
        settings = TARGETS[name](f"https://127.0.0.1:{port}")
        refused = answer(settings)
        assert server.calls == []
        assert (refused.code, "certificate" in refused.message.lower()) == ("connection", True), refused
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert isinstance(answer(settings), TargetResponse)
        assert len(server.calls) == 1


def test_certificates_that_cannot_be_read_are_named(tmp_path, monkeypatch):
    empty = tmp_path / "empty.pem"
    empty.touch()
    for path in (empty, tmp_path / "missing.pem"):
        monkeypatch.setenv("SSL_CERT_FILE", str(path))
        with pytest.raises(OSError, match=f"cannot read the certificates of SSL_CERT_FILE: {path}: "):
            tls_context("https://api.openai.com/v1")


@pytest.mark.parametrize(
    ("url", "found"),
    [
        (None, None),
        ("https://openai.com/v1", None),
        ("https://EU.api.openai.com/v1", None),
        ("https://notopenai.com/v1", "https://notopenai.com/v1"),
        ("https://api.openai.com.evil.example/", "https://api.openai.com.evil.example"),
        ("http://localhost:8000/openai.com?k=openai.com", "http://localhost:8000/openai.com"),
    ],
)
def test_a_server_is_a_providers_own_by_its_host_alone(url, found):
    assert other_server(url, "openai.com", "other.example") == found


@pytest.mark.parametrize(
    ("kind", "own"),
    [
        (OpenAI, "https://us.api.openai.com/v1"),
        (OpenRouter, "https://openrouter.ai/api/v1"),
        (Azure, "https://name.openai.azure.com"),
        (Anthropic, "https://api.anthropic.com"),
        (Gemini, "https://generativelanguage.googleapis.com"),
        (Ollama, "http://gpu.example:11434/v1"),
        (LiteLLM, None),
    ],
)
def test_each_provider_knows_its_own_servers(kind, own):
    assert kind("m", base_url=own).elsewhere() is None
    if kind is not Ollama:  # Ollama belongs to no hosted provider
        assert kind("m", base_url="http://localhost:8000/v1").elsewhere() == "http://localhost:8000/v1"


async def test_closing_stops_what_is_under_way():
    stopped = []

    async def prepare():
        try:
            await asyncio.sleep(60)
        finally:
            stopped.append(1)

    once = Once()
    await once.close()
    call = asyncio.ensure_future(once.result(prepare))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await once.close()
    await once.close()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert stopped == [1]


@pytest.mark.parametrize(
    ("given", "kept"),
    [(TargetResponse("x", duration_ms=7), True), (Failure("a", "b"), True), (TargetResponse("x"), False)],
)
def test_only_an_answer_without_a_duration_gets_one(given, kept):
    async def answering():
        await asyncio.sleep(0.002)
        return given

    found = asyncio.run(timed(answering()))
    assert (found is given) is kept
    if not kept:
        assert found.duration_ms >= 2


BODY = '{"choices": [{"text": " yes "}], "usage": {"prompt": 2}}'


@pytest.fixture(scope="module")
def server() -> Iterator[MisbehavingServer]:
    with misbehaving_server() as running:
        yield running


@pytest.fixture
def http(server, tmp_path):
    """Return a target whose server replies with a body."""

    def made(kind, expression, file=None, body=BODY):
        path = None
        if file is not None:
            path = tmp_path / file[0]
            path.write_text(file[1])
        transform = Transform(kind, expression, str(path) if path else None)
        return Http(server.url(f"json?body={quote(body)}"), transform=transform)

    return made


@pytest.mark.parametrize(
    ("kind", "expression", "file"),
    [
        ("javascript", "json.choices[0].text", None),
        ("javascript", "JSON.parse(text).choices[0].text", None),
        ("javascript", "const first = json.choices[0];\nreturn context.vars.x === 1 && first.text;", None),
        ("javascript", "(json, text, context) => context.response.status === 200 && json.choices[0].text", None),
        ("javascript", "({ output: json.choices[0].text })", None),
        ("javascript-file", "", ("shape.mjs", "export default (json) => json.choices[0].text;")),
        (
            "javascript-file",
            "pick",
            ("shape.cjs", "exports.pick = async (json) => ({ output: json.choices[0].text });"),
        ),
        ("function", "pick", ("two.py", "def pick(text, context): return ' yes ' if context['vars'] else text")),
        ("path", "$.choices[0].text", None),
        ("jinja", "json.choices[0].text", None),
    ],
)
def test_each_form_makes_the_answer(http, kind, expression, file):
    found = answer(http(kind, expression, file), request(vars={"x": 1}))
    assert isinstance(found, TargetResponse), found
    assert found.output == " yes "


def test_an_object_is_a_value(http):
    found = answer(http("javascript", "json.usage"))
    assert (found.output, found.metadata) == ('{"prompt":2}', {STRUCTURED: True})


@pytest.mark.parametrize("expression", ["undefined", "null", "json.nothing"])
def test_nothing_is_an_empty_answer(http, expression):
    assert answer(http("javascript", expression)).output is None


@pytest.mark.parametrize(
    ("kind", "expression", "body", "code", "said"),
    [
        ("javascript", "json.a.b.c", BODY, "target-raised", "json.a.b.c' raised TypeError"),
        ("javascript", "]]", BODY, "cannot-load", "SyntaxError"),
        ("javascript", "json.a", "no JSON", "target-raised", "TypeError"),
        ("javascript", "({ error: 'quota' })", BODY, "target-error", "quota"),
        ("path", "$.a", BODY, "bad-answer", "a"),
        ("jinja", "json.a.b", BODY, "bad-answer", "json.a.b"),
    ],
)
def test_what_goes_wrong_is_a_failure(http, kind, expression, body, code, said):
    found = answer(http(kind, expression, body=body))
    assert isinstance(found, Failure), found
    assert found.code == code
    assert said in found.message


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("def pick(data): raise ValueError('no')", "target-raised"),
        ("def pick(data): return object()", "bad-answer"),
        ("def other(data): pass", "cannot-load"),
        ("def pick(one, two): pass", "bad-signature"),
    ],
)
def test_a_python_function_that_fails_is_a_failure(http, text, code):
    found = answer(http("function", "pick", ("shape.py", text)))
    assert isinstance(found, Failure), found
    assert found.code == code


def test_a_path_and_a_transform_are_one_too_many(server):
    [issue] = Http(server.url("ok"), output="$.a", transform=Transform("path", "$.a")).validate()
    assert "keep one of them" in issue.message
