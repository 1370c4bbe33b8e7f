"""Common behaviour of all model API providers, through their own SDK or library, against a loopback server."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from agentv.model.values.message import DocumentBlock, ImageBlock, Message, ToolCall
from agentv.targets.anthropic.target import Anthropic
from agentv.targets.gemini.target import Gemini
from agentv.targets.litellm.target import LiteLLM
from agentv.targets.openai_api.providers import Azure, OpenAI
from agentv.testing import (
    Answer,
    ClosedConnection,
    ContentFilter,
    EmptyChoices,
    Hang,
    MalformedJson,
    ModelServer,
    Status,
    StoppedStream,
    Truncated,
    WrongType,
)
from agentv.user_code.connections import proxy_for
from doubles.asking import answer, embed_texts, request
from needs import each

KEY = "sk-a-very-secret-key"
OTHER_KEY = "sk-another-secret-key"


@dataclass(frozen=True)
class Api:
    """A provider: its settings for a base URL, the path of that URL, and its key's variable."""

    settings: Callable[[str], Any]
    path: str
    variable: str
    cut_short: str = "bad-answer"
    bad_key: int = 401

    def at(self, server: ModelServer) -> Any:
        return self.settings(getattr(server, self.path))


APIS = {
    "openai": Api(lambda url: OpenAI("gpt-4o", url, KEY), "openai", "OPENAI_API_KEY"),
    "responses": Api(lambda url: OpenAI("gpt-4o", url, KEY, api="responses"), "openai", "OPENAI_API_KEY"),
    "azure": Api(lambda url: Azure("d", url, KEY), "azure", "AZURE_OPENAI_API_KEY"),
    "anthropic": Api(lambda url: Anthropic("claude-haiku-4-5", url, KEY), "anthropic", "ANTHROPIC_API_KEY"),
    "gemini": Api(lambda url: Gemini("gemini-2.5-flash", url, KEY), "gemini", "GOOGLE_API_KEY", bad_key=400),
    "litellm": Api(lambda url: LiteLLM("openai/gpt-4o", url, KEY), "openai", "OPENAI_API_KEY", "connection"),
}
ALL = pytest.mark.parametrize("name", each(APIS))


@pytest.fixture
def api(name: str) -> Api:
    return APIS[name]


@ALL
@pytest.mark.parametrize(
    ("step", "code", "retryable", "stops"),
    [
        (Status(400), "http-status", False, False),
        (Status(401), "http-status", False, True),
        (Status(404), "http-status", False, True),
        (Status(429), "http-status", True, False),
        (Status(500), "http-status", True, False),
        (Status(529), "http-status", True, False),
        (MalformedJson(), "bad-answer", True, False),
        (WrongType(), "bad-answer", True, False),
        (Truncated(), None, True, False),
        (ClosedConnection(), "connection", True, False),
        (StoppedStream(), "bad-answer", True, False),
        (WrongType("[]", "application/json"), "bad-answer", True, False),
        (ContentFilter(), "refused", False, False),
    ],
)
def test_what_goes_wrong_is_a_value_and_nothing_is_tried_again_here(api, step, code, retryable, stops, capfd):
    with ModelServer(step) as server:
        found = answer(api.at(server))
        assert len(server.calls) == 1
    assert (found.code, found.retryable, found.stops) == (code or api.cut_short, retryable, stops)
    assert KEY not in found.message
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", each(name for name in APIS if name != "anthropic"))
def test_a_reply_with_nothing_in_it_is_a_bad_answer(api):
    with ModelServer(EmptyChoices()) as server:
        found = answer(api.at(server))
    assert (found.code, found.retryable, found.stops) == ("bad-answer", True, False)


@ALL
def test_a_refusal_in_words_is_an_answer(api):
    with ModelServer(Answer(refusal="I will not.")) as server:
        assert answer(api.at(server)).output == "I will not."


@ALL
@pytest.mark.parametrize(("text", "output"), [("Let me see.", "Let me see."), ("", None)])
def test_calls_of_tools_come_back_in_the_transcript(api, text, output):
    calls = (ToolCall("look", {"at": 1}, "call_1"),)
    with ModelServer(Answer(text, tool_calls=calls)) as server:
        found = answer(api.at(server))
    assert (found.output, found.messages) == (output, (Message("assistant", text, tool_calls=calls),))


@pytest.mark.parametrize("name", ["openai", "gemini"])
@pytest.mark.parametrize(
    ("step", "code"),
    [(Status(429), "http-status"), (EmptyChoices(), "bad-answer"), (WrongType(), "bad-answer"), (Hang(), "timeout")],
)
def test_vectors_that_do_not_come_are_a_failure(api, step, code):
    with ModelServer(step) as server:
        assert embed_texts(api.at(server), ["a"], 0.5).code == code


@ALL
def test_the_key_goes_where_the_api_looks_for_it(api):
    with ModelServer("yes", keys=[KEY]) as server:
        assert answer(api.at(server)).output == "yes"
        refused = answer(replace(api.at(server), api_key=OTHER_KEY))
    assert (refused.status, refused.stops, refused.retryable) == (api.bad_key, True, False)
    assert "secret" not in refused.message


@pytest.mark.parametrize("name", [name for name in APIS if name != "litellm"])
def test_without_a_key_nothing_is_asked(api, monkeypatch):
    monkeypatch.setenv(api.variable, "of the process, which only the loader reads")
    found = answer(replace(api.settings("http://models.invalid/v1"), api_key=None))
    assert (found.code, found.stops) == ("missing-key", True)
    assert api.variable in found.message


@ALL
def test_no_secret_is_quoted(api):
    with ModelServer(Status(400, f"bad headers: {KEY}, {OTHER_KEY}")) as server:
        found = answer(replace(api.at(server), headers={"X-Second-Key": OTHER_KEY}))
        assert server.calls[0].headers["x-second-key"] == OTHER_KEY
    assert found.status == 400
    assert "secret" not in repr(found)


@ALL
def test_the_response_format_of_a_target_is_used_when_it_judges(api):
    own = {"type": "object", "properties": {"mine": {"type": "string"}}, "required": ["mine"]}
    asked = {"type": "object", "properties": {"score": {"type": "number"}}, "required": ["score"]}
    with ModelServer("{}") as server:
        answer(replace(api.at(server), response_format=own), request(schema=asked))
        answer(replace(api.at(server), response_format=own), request())
        judging, plain = (repr(call.body) for call in server.calls)
    assert "'mine'" in judging
    assert "'score'" not in judging
    assert judging == plain


@pytest.mark.parametrize("name", ["openai", "anthropic", "gemini"])
def test_the_proxy_of_the_environment_is_used(name, monkeypatch):
    for variable in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(variable, "")
    with ModelServer("through the proxy") as server:
        address = getattr(server, name)
        proxy, path = address[: address.index("/", 8)], address[address.index("/", 8) :]
        monkeypatch.setenv("http_proxy", proxy)
        proxy_for.cache_clear()
        try:
            found = answer(APIS[name].settings(f"http://models.invalid{path}"))
        finally:
            proxy_for.cache_clear()
    assert found.output == "through the proxy"


IMPORTS = """
import sys, threading
from agentv.testing import ModelServer
from doubles.asking import answer
from agentv.targets.{module} import {settings}

class Noting:
    def find_spec(self, name, path=None, target=None):
        if name == "{sdk}":
            print("imported by the event loop:", threading.current_thread() is threading.main_thread())

sys.meta_path.insert(0, Noting())
with ModelServer("yes") as server:
    assert answer({settings}("m", server.{name}, "a key")).output == "yes"
"""


@pytest.mark.parametrize(
    ("name", "module", "settings", "sdk"),
    [
        ("anthropic", "anthropic.target", "Anthropic", "anthropic"),
        ("gemini", "gemini.target", "Gemini", "google.genai"),
    ],
)
def test_an_sdk_is_imported_on_a_thread_since_it_takes_a_second(name, module, settings, sdk):
    code = IMPORTS.format(name=name, module=module, settings=settings, sdk=sdk)
    tests = Path(__file__).parents[3]
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, cwd=tests, capture_output=True, text=True, timeout=120, check=False)
    assert ended.stdout == "imported by the event loop: False\n", ended.stderr


@ALL
@pytest.mark.parametrize(
    ("block", "code"),
    [
        (ImageBlock("./a.png", "/nowhere/a.png"), "bad-picture"),
        (DocumentBlock("./a.pdf", "/nowhere/a.pdf", "gone"), "bad-document"),
    ],
)
def test_an_attached_file_that_is_gone_is_a_failure_and_nothing_is_sent(api, block, code):
    with ModelServer("yes") as server:
        assert answer(api.at(server), request(messages=(Message("user", (block,)),))).code == code
        assert not server.calls
