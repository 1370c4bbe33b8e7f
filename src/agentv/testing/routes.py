"""Which path asks for what, as the providers lay them out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

from agentv.testing.anthropic_messages import ANTHROPIC, MESSAGES
from agentv.testing.gemini import GEMINI, GENERATE
from agentv.testing.openai_chat import CHAT
from agentv.testing.openai_errors import AZURE, OLLAMA, OPENAI
from agentv.testing.replies import Operation, Provider

ADDRESSES = {
    "openai": "/openai/v1",
    "anthropic": "/anthropic",
    "gemini": "/gemini",
    "azure": "/azure",
    "ollama": "/ollama",
}
"""Protocol → what is given to its SDK as the base URL, after the host."""

_ROUTES: tuple[tuple[str, Provider, Operation], ...] = (
    (r"/openai/v1/chat/completions", OPENAI, CHAT),
    (r"/anthropic/v1/messages", ANTHROPIC, MESSAGES),
    (r"/gemini/v1\w*/\w+/(?P<model>[^/:]+):(?:generateContent|streamGenerateContent)", GEMINI, GENERATE),
    (r"/azure/openai/deployments/(?P<model>[^/]+)/chat/completions", AZURE, CHAT),
    (r"/azure/openai/v1/chat/completions", AZURE, CHAT),
    (r"/ollama/v1/chat/completions", OLLAMA, CHAT),
)
_COMPILED = tuple((re.compile(pattern), provider, operation) for pattern, provider, operation in _ROUTES)
_PROVIDERS = {provider.name: provider for provider in (OPENAI, ANTHROPIC, GEMINI, AZURE, OLLAMA)}


@dataclass(frozen=True, slots=True)
class Route:
    """What a path asks for; `model` as far as the path names it."""

    provider: Provider
    operation: Operation
    model: str = ""


def route_of(path: str) -> Route | None:
    """What a POST to a path asks for; None where no provider has such a path."""
    for pattern, provider, operation in _COMPILED:
        if match := pattern.fullmatch(path):
            return Route(provider, operation, unquote(match.groupdict().get("model") or ""))
    return None


def provider_of(path: str) -> Provider:
    """Whose address a path lies under; OpenAI where it is nobody's."""
    return _PROVIDERS.get(path.split("/")[1], OPENAI)
