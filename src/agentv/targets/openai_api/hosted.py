"""Hosted model APIs that are compatible with OpenAI's.

Sources: the documentation of each API on its compatibility with OpenAI's SDK, and that of promptfoo and LiteLLM for
the environment variables of the keys.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from agentv.registry.fields import Alias, Doc, FromEnvironment, Secret, Text
from agentv.targets.http.failures import is_local
from agentv.targets.openai_api.parameters import Dialect
from agentv.targets.openai_api.providers import OpenAIProvider


@dataclass(frozen=True, slots=True)
class Hosted(OpenAIProvider):
    """Base of the providers of hosted APIs.

    Attributes:
        server: defaults of the API. Its `embedding_model` is empty if the API has no embeddings.
    """

    server: ClassVar[Dialect]

    def dialect(self) -> Dialect:
        """Return the server's dialect, with the values of the settings."""
        server = self.server
        base_url = (self.base_url or server.base_url).rstrip("/")
        embeds = self.model if "embed" in self.model else server.embedding_model or self.model
        return replace(
            server,
            base_url=base_url,
            api_key=self.api_key,
            embedding_model=self.embedding_model or embeds,
            prices=self.elsewhere() or server.prices or server.name,
            strict_schemas=self.follows_schemas if self.strict_schemas is None else self.strict_schemas,
            needs_key=not is_local(base_url),
        )

    @property
    def follows_schemas(self) -> bool:
        """Whether answers follow a JSON Schema, by the documentation of the API."""
        return self.server.strict_schemas


def _hosted(title: str, server: Dialect, small_model: str, *domains: str) -> type[Hosted]:
    """Return the settings class of one provider.

    Args:
        title: name of the provider, for the help text.
        server: `Hosted.server`. The variables in `key_from` are read in that order.
        small_model: `ProviderSettings.small_model`.
        domains: `ModelSettings.domains`.
    """
    address = f"base URL of the API; default: `{server.base_url}`"
    key = f"API key; defaults to {' or '.join(server.key_from)}"
    declared = {
        "__doc__": f"Calls a model of {title}.",
        "__module__": __name__,
        "__annotations__": {
            "base_url": Annotated[Text | None, Alias(("endpoint",)), Doc(address)],
            "api_key": Annotated[Text | None, Secret(), FromEnvironment(server.key_from), Doc(key)],
        },
        "base_url": None,
        "api_key": None,
        "server": server,
        "domains": domains,
        "small_model": small_model,
        "embeds": bool(server.embedding_model),
    }
    made: type[Hosted] = dataclass(frozen=True, slots=True)(type(server.name.capitalize(), (Hosted,), declared))
    return made


Cohere = _hosted(
    "Cohere",
    Dialect(
        "cohere", "https://api.cohere.ai/compatibility/v1", "embed-v4.0", key_from=("COHERE_API_KEY", "CO_API_KEY")
    ),
    "command-a-03-2025",
    "cohere.ai",
    "cohere.com",
)
Deepseek = _hosted(
    "DeepSeek",
    Dialect("deepseek", "https://api.deepseek.com", "", key_from=("DEEPSEEK_API_KEY",)),
    "deepseek-chat",
    "deepseek.com",
)
Fireworks = _hosted(
    "Fireworks AI",
    Dialect(
        "fireworks",
        "https://api.fireworks.ai/inference/v1",
        "nomic-ai/nomic-embed-text-v1.5",
        strict_schemas=True,
        key_from=("FIREWORKS_API_KEY",),
    ),
    "accounts/fireworks/models/gpt-oss-20b",
    "fireworks.ai",
)
Groq = _hosted(
    "Groq",
    Dialect("groq", "https://api.groq.com/openai/v1", "", key_from=("GROQ_API_KEY",)),
    "llama-3.1-8b-instant",
    "groq.com",
)
Huggingface = _hosted(
    "Hugging Face's Inference Providers",
    Dialect("huggingface", "https://router.huggingface.co/v1", "", key_from=("HF_TOKEN", "HF_API_TOKEN")),
    "openai/gpt-oss-20b",
    "huggingface.co",
)
Mistral = _hosted(
    "Mistral",
    Dialect(
        "mistral",
        "https://api.mistral.ai/v1",
        "mistral-embed",
        strict_schemas=True,
        seed="random_seed",
        key_from=("MISTRAL_API_KEY",),
    ),
    "mistral-small-latest",
    "mistral.ai",
)
Perplexity = _hosted(
    "Perplexity",
    Dialect("perplexity", "https://api.perplexity.ai", "", key_from=("PERPLEXITY_API_KEY",)),
    "sonar",
    "perplexity.ai",
)
Together = _hosted(
    "Together AI",
    Dialect(
        "together",
        "https://api.together.xyz/v1",
        "intfloat/multilingual-e5-large-instruct",
        key_from=("TOGETHER_API_KEY",),
    ),
    "meta-llama/Llama-3.3-70B-Instruct-Turbo",
    "together.xyz",
    "together.ai",
)
Xai = _hosted(
    "xAI",
    Dialect("xai", "https://api.x.ai/v1", "", prices="x-ai", strict_schemas=True, key_from=("XAI_API_KEY",)),
    "grok-3-mini",
    "x.ai",
)

_OPENROUTER = Dialect(
    "openrouter", "https://openrouter.ai/api/v1", "openai/text-embedding-3-small", key_from=("OPENROUTER_API_KEY",)
)


@dataclass(frozen=True, slots=True)
class OpenRouter(Hosted):
    """Calls OpenRouter; models are named `maker/model`."""

    server: ClassVar[Dialect] = _OPENROUTER
    domains: ClassVar[tuple[str, ...]] = ("openrouter.ai",)
    small_model: ClassVar[str | None] = "meta-llama/llama-3.3-70b-instruct"

    base_url: Annotated[
        Text | None,
        Alias(("endpoint",)),
        FromEnvironment(("OPENROUTER_BASE_URL",), required=False),
        Doc(f"base URL of the API; defaults to OPENROUTER_BASE_URL, then `{_OPENROUTER.base_url}`"),
    ] = None
    api_key: Annotated[
        Text | None, Secret(), FromEnvironment(("OPENROUTER_API_KEY",)), Doc("API key; defaults to OPENROUTER_API_KEY")
    ] = None

    @property
    def follows_schemas(self) -> bool:
        """Whether it is one of OpenAI's models. For others it depends on the provider that OpenRouter selects."""
        return self.model.startswith("openai/")
