"""Environment variables of LiteLLM's providers, kept here since asking the library takes seconds.

Source: LiteLLM's `validate_environment` and its modules for the providers. Of one that is not here the library says
itself what it lacks, at the first call: Azure, Bedrock and Vertex AI, for some, take credentials from many places.
"""

from __future__ import annotations

from collections.abc import Mapping

_KEYS: Mapping[str, tuple[str, ...]] = {
    "ai21": ("AI21_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "cerebras": ("CEREBRAS_API_KEY",),
    "codestral": ("CODESTRAL_API_KEY",),
    "cohere": ("COHERE_API_KEY", "CO_API_KEY"),
    "deepinfra": ("DEEPINFRA_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "fireworks_ai": ("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY", "FIREWORKSAI_API_KEY", "FIREWORKS_AI_TOKEN"),
    "gemini": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "moonshot": ("MOONSHOT_API_KEY",),
    "nebius": ("NEBIUS_API_KEY",),
    "novita": ("NOVITA_API_KEY",),
    "nvidia_nim": ("NVIDIA_NIM_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY", "OR_API_KEY"),
    "perplexity": ("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"),
    "replicate": ("REPLICATE_API_KEY", "REPLICATE_API_TOKEN"),
    "together_ai": ("TOGETHER_API_KEY", "TOGETHER_AI_API_KEY", "TOGETHERAI_API_KEY", "TOGETHER_AI_TOKEN"),
    "xai": ("XAI_API_KEY",),
}
"""Providers by LiteLLM's names → the variables of their keys, in the order in which it looks for them."""

_INSTEAD: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_FEDERATION_RULE_ID"),
}
"""Variables with which LiteLLM can do without a key."""


def keys_of(model: str) -> tuple[str, ...]:
    """The variables, one of which must contain the key for a model such as `mistral/mistral-small`; empty: unknown."""
    return _KEYS.get(model.partition("/")[0], ()) if "/" in model else ()


def key_found(model: str, env: Mapping[str, str]) -> str | None:
    """The variable that lets LiteLLM in, of those of the model's provider."""
    names = (*keys_of(model), *_INSTEAD.get(model.partition("/")[0], ()))
    return next((name for name in names if env.get(name, "").strip()), None)
