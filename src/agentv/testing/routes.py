"""Routes of the providers' APIs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

from agentv.testing.anthropic_messages import ANTHROPIC, MESSAGES
from agentv.testing.embeddings import EMBED, EMBED_MANY, EMBED_ONE
from agentv.testing.gemini import GEMINI, GENERATE
from agentv.testing.openai_chat import CHAT
from agentv.testing.openai_errors import AZURE, OLLAMA, OPENAI
from agentv.testing.openai_responses import RESPONSES
from agentv.testing.replies import ModelApi, Operation

ADDRESSES = {
    "openai": "/openai/v1",
    "anthropic": "/anthropic",
    "gemini": "/gemini",
    "azure": "/azure",
    "ollama": "/ollama",
}
"""Protocol → what is given to its SDK as the base URL, after the host."""

_GEMINI = r"/gemini/v1\w*/\w+/(?P<model>[^/:]+)"
_DEPLOYMENT = r"/azure/openai/deployments/(?P<model>[^/]+)"
_ROUTES: tuple[tuple[str, ModelApi, Operation], ...] = (
    (r"/openai/v1/chat/completions", OPENAI, CHAT),
    (r"/openai/v1/responses", OPENAI, RESPONSES),
    (r"/openai/v1/embeddings", OPENAI, EMBED),
    (r"/anthropic/v1/messages", ANTHROPIC, MESSAGES),
    (rf"{_GEMINI}:(?:generateContent|streamGenerateContent)", GEMINI, GENERATE),
    (rf"{_GEMINI}:embedContent", GEMINI, EMBED_ONE),
    (rf"{_GEMINI}:batchEmbedContents", GEMINI, EMBED_MANY),
    (rf"{_DEPLOYMENT}/chat/completions", AZURE, CHAT),
    (rf"{_DEPLOYMENT}/embeddings", AZURE, EMBED),
    (r"/azure/openai(?:/v1)?/chat/completions", AZURE, CHAT),
    (r"/azure/openai(?:/v1)?/responses", AZURE, RESPONSES),
    (r"/azure/openai(?:/v1)?/embeddings", AZURE, EMBED),
    (r"/ollama/v1/chat/completions", OLLAMA, CHAT),
    (r"/ollama/v1/responses", OLLAMA, RESPONSES),
    (r"/ollama/v1/embeddings", OLLAMA, EMBED),
)
_COMPILED = tuple((re.compile(pattern), provider, operation) for pattern, provider, operation in _ROUTES)
_PROVIDERS = {provider.name: provider for provider in (OPENAI, ANTHROPIC, GEMINI, AZURE, OLLAMA)}


@dataclass(frozen=True, slots=True)
class Route:
    """The operation of a path; `model` if the path contains it."""

    provider: ModelApi
    operation: Operation
    model: str = ""


def route_of(path: str) -> Route | None:
    """Operation of a POST to a path; None if no provider has such a path."""
    for pattern, provider, operation in _COMPILED:
        if match := pattern.fullmatch(path):
            return Route(provider, operation, unquote(match.groupdict().get("model") or ""))
    return None


def provider_of(path: str) -> ModelApi:
    """Provider of a path; OpenAI for unknown paths."""
    return _PROVIDERS.get(path.split("/")[1], OPENAI)
