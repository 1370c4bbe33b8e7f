"""Where model APIs are asked."""

from __future__ import annotations

import pytest

from agentv.targets.anthropic.target import Anthropic
from agentv.targets.gemini.target import Gemini
from agentv.targets.http.model_calls import other_server
from agentv.targets.litellm.target import LiteLLM
from agentv.targets.openai_compatible.azure import Azure
from agentv.targets.openai_compatible.hosted import OpenRouter
from agentv.targets.openai_compatible.ollama import Ollama
from agentv.targets.openai_compatible.openai import OpenAI


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
        (Azure, "https://name.azure-api.net/team"),
        (Anthropic, "https://api.anthropic.com"),
        (Gemini, "https://generativelanguage.googleapis.com"),
        (Ollama, "http://gpu.example:11434/v1"),
        (LiteLLM, None),
    ],
)
def test_each_provider_knows_its_own_servers(kind, own):
    assert kind("m", base_url=own).elsewhere() is None
    if kind is not Ollama:  # which is nobody's in particular
        assert kind("m", base_url="http://localhost:8000/v1").elsewhere() == "http://localhost:8000/v1"
