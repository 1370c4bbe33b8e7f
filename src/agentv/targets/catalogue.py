"""The catalogue of target providers, by name."""

from __future__ import annotations

from agentv.registry.extensions import PROVIDERS as OF_EXTENSIONS
from agentv.registry.extensions import registered
from agentv.registry.fields import is_declared
from agentv.registry.plugins import NO_PLUGINS, PluginCode, PluginSource
from agentv.registry.types import Provider, ProviderSettings, Registry

PROVIDERS = {
    "echo": "agentv.targets.mock:Echo",
    "mock": "agentv.targets.mock:Mock",
    "replay": "agentv.targets.replay:Replay",
    "python": "agentv.targets.python:Python",
    "javascript": "agentv.targets.promptfoo:JavaScript",
    "cli": "agentv.targets.cli:Cli",
    "http": "agentv.targets.http.target:Http",
    "openai": "agentv.targets.openai_api.providers:OpenAI",
    "azure": "agentv.targets.openai_api.providers:Azure",
    "ollama": "agentv.targets.openai_api.providers:Ollama",
    "openrouter": "agentv.targets.openai_api.hosted:OpenRouter",
    "anthropic": "agentv.targets.anthropic.target:Anthropic",
    "gemini": "agentv.targets.gemini.target:Gemini",
    "litellm": "agentv.targets.litellm.target:LiteLLM",
    "bedrock": "agentv.targets.litellm.target:Bedrock",
    "vertex": "agentv.targets.litellm.target:Vertex",
    **{
        name: f"agentv.targets.openai_api.hosted:{name.capitalize()}"
        for name in (
            "cohere",
            "deepseek",
            "fireworks",
            "groq",
            "huggingface",
            "mistral",
            "perplexity",
            "together",
            "xai",
        )
    },
    "local": "agentv.targets.local:Local",
    **registered(OF_EXTENSIONS),
}
"""Provider name → import path of its settings class, imported when the name is first looked up."""

NOT_YET = frozenset({"cc-mirror", "copilot-log", "transcript", "vscode", "vscode-insiders"})
"""Providers of AgentV (its `providers/types.ts`) that are not implemented here: coding agents and log readers."""


def registry(plugins: PluginSource = NO_PLUGINS) -> Registry[Provider]:
    """Return the registry of built-in providers and those of plugins."""
    return Registry("provider", PROVIDERS, _provider, kind=OF_EXTENSIONS, not_yet=NOT_YET, plugins=plugins)


def _provider(name: str, settings: type, plugin: PluginCode | None = None) -> Provider:
    sound = issubclass(settings, ProviderSettings) and is_declared(settings)
    if not sound:
        raise TypeError(f"provider {name!r} must be a frozen dataclass derived from ProviderSettings, got {settings!r}")
    return Provider(name, settings, plugin)
