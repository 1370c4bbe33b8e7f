"""The model APIs that are rows of one table."""

from __future__ import annotations

import pytest

from agentv.model.values.response import Failure, TargetResponse
from agentv.targets.catalogue import registry
from agentv.targets.openai_compatible.hosted import Hosted
from agentv.testing import ModelServer
from doubles.asking import answer, request

ADDRESSES = {
    "cohere": ("https://api.cohere.ai/compatibility/v1", "COHERE_API_KEY"),
    "deepseek": ("https://api.deepseek.com", "DEEPSEEK_API_KEY"),
    "fireworks": ("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    "groq": ("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "huggingface": ("https://router.huggingface.co/v1", "HF_TOKEN"),
    "mistral": ("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "perplexity": ("https://api.perplexity.ai", "PERPLEXITY_API_KEY"),
    "together": ("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "xai": ("https://api.x.ai/v1", "XAI_API_KEY"),
}
EACH = pytest.mark.parametrize("name", ADDRESSES)


def settings(name: str, model: str = "m", **others: object) -> Hosted:
    provider = registry().find(name)
    assert provider is not None
    assert issubclass(provider.settings, Hosted)
    return provider.settings(model, **{"api_key": "sk-key-of-mine", **others})


def sent(name: str, one=None, **others):
    """The call that a server got."""
    with ModelServer("yes") as server:
        found = answer(settings(name, base_url=server.openai, **others), one or request())
        assert isinstance(found, TargetResponse), found
        return server.calls[0]


@EACH
def test_it_asks_its_own_address_by_its_own_key(name):
    address, key = ADDRESSES[name]
    assert settings(name).dialect().base_url == address
    assert settings(name).elsewhere() is None
    assert settings(name, base_url="https://proxy.example/v1").elsewhere() == "https://proxy.example/v1"
    assert settings(name).dialect().key_from[0] == key
    assert settings(name, api_key=None).dialect().keyless


@EACH
def test_the_key_is_the_bearer_and_the_body_is_openais(name):
    call = sent(name, max_tokens=5, temperature=0.5)
    assert call.headers["authorization"] == "Bearer sk-key-of-mine"
    messages = [{"role": "user", "content": "hello"}]
    assert call.body == {"model": "m", "messages": messages, "max_tokens": 5, "temperature": 0.5}


@EACH
def test_a_refusal_does_not_show_the_key(name):
    from agentv.testing import Status

    with ModelServer(Status(401, "Incorrect API key provided: sk-key-of-mine")) as server:
        found = answer(settings(name, base_url=server.openai))
    assert isinstance(found, Failure)
    assert "sk-key-of-mine" not in found.message
