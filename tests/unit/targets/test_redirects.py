"""Redirects: no key and no prompt leaves for a server that the settings do not name."""

from __future__ import annotations

import pytest

from agentv.targets.anthropic.target import Anthropic
from agentv.targets.gemini.target import Gemini
from agentv.targets.http.target import Http
from agentv.targets.litellm.target import LiteLLM
from agentv.targets.openai_compatible.azure import Azure
from agentv.targets.openai_compatible.openai import OpenAI
from agentv.testing import ModelServer, Status
from doubles.asking import answer
from needs import each

KEY = "sk-very-secret-key"

TARGETS = {
    "openai": lambda server: OpenAI("gpt-4o", server.openai, KEY),
    "responses": lambda server: OpenAI("gpt-4o", server.openai, KEY, api="responses"),
    "azure": lambda server: Azure("d", server.azure, KEY),
    "anthropic": lambda server: Anthropic("claude-haiku-4-5", server.anthropic, KEY),
    "gemini": lambda server: Gemini("gemini-2.5-flash", server.gemini, KEY),
    "litellm": lambda server: LiteLLM("openai/gpt-4o", server.openai, KEY),
    "litellm to anthropic": lambda server: LiteLLM("anthropic/claude-haiku-4-5", server.anthropic, KEY),
    "http": lambda server: Http(f"{server.openai}/chat/completions", headers={"x-api-key": KEY}),
}


@pytest.mark.parametrize("status", [302, 307])
@pytest.mark.parametrize("name", each(TARGETS))
def test_nothing_arrives_where_a_server_redirects_to(name, status):
    with ModelServer("stolen") as other:
        there = f"{other.openai}/chat/completions"
        where = there.replace("http://", "http://me:hidden@") + f"?key={KEY}"
        with ModelServer(Status(status, headers={"Location": where})) as server:
            found = answer(TARGETS[name](server))
            assert len(server.calls) == 1
        assert other.calls == []
    assert (found.code, found.status, found.retryable) == ("http-status", status, False)
    option, shown = ("url", there) if name == "http" else ("base_url", there.removesuffix("/chat/completions"))
    assert found.message.endswith(f"the server redirects to {shown.removeprefix('http://')}: write that as '{option}'")
    assert found.message.startswith(f"HTTP {status} ")
    assert KEY not in repr(found)
    assert "hidden" not in repr(found)


@pytest.mark.parametrize("where", ["ftp://x/", "http://[/", "/elsewhere"])
def test_a_redirect_to_nowhere_is_told_too(where):
    with ModelServer(Status(302, headers={"Location": where})) as server:
        found = answer(TARGETS["openai"](server))
    assert (found.code, found.status) == ("http-status", 302)
