"""Model APIs that speak OpenAI's, each with an address and a key of its own.

Sources: the documentation of each API on its compatibility with OpenAI's SDK, and of promptfoo and LiteLLM on the
variables of the keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from agentv.registry.fields import Alias, Doc, FromEnvironment, Secret, Text
from agentv.targets.http.failures import is_local, other_server
from agentv.targets.openai_api.parameters import Dialect
from agentv.targets.openai_api.providers import OpenAIProvider


@dataclass(frozen=True, slots=True)
class Server:
    """Row of the table: one hosted API.

    Attributes:
        name: of the provider.
        title: who it belongs to.
        base_url: its address.
        keys: the variables that may give the key, in the order in which they are looked for.
        small_model: as `ProviderSettings` says.
        domains: of its own servers, whose prices are known.
        prices: the provider as the price list calls it; None: by its name.
        strict_schemas: it is documented to keep to a JSON Schema.
        seed: its parameter for a seed.
        embedding_model: makes vectors; None: the API has none.
    """

    name: str
    title: str
    base_url: str
    keys: tuple[str, ...]
    small_model: str
    domains: tuple[str, ...]
    prices: str | None = None
    strict_schemas: bool = False
    seed: str = "seed"
    embedding_model: str | None = None


@dataclass(frozen=True, slots=True)
class Hosted(OpenAIProvider):
    """Base of the providers of the table."""

    server: ClassVar[Server]

    def dialect(self) -> Dialect:
        """What the table says of the server."""
        server = self.server
        base_url = (self.base_url or server.base_url).rstrip("/")
        return Dialect(
            name=server.name,
            base_url=base_url,
            api_key=self.api_key,
            embedding_model=self.embedding_model or self._embedding_model(),
            prices=self.elsewhere() or server.prices or server.name,
            strict_schemas=server.strict_schemas if self.strict_schemas is None else self.strict_schemas,
            seed=server.seed,
            key_from=server.keys,
            needs_key=not is_local(base_url),
        )

    def elsewhere(self) -> str | None:
        """A server that is not the provider's."""
        return other_server(self.base_url, *self.server.domains)

    def _embedding_model(self) -> str:
        return self.model if "embed" in self.model else self.server.embedding_model or self.model


def _hosted(server: Server) -> type[Hosted]:
    """The settings of one provider: those of all, with its address and the variable of its key."""
    address = f"base URL of the API; default: `{server.base_url}`"
    key = f"API key; defaults to {' or '.join(server.keys)}"
    class_name = "".join(word.capitalize() for word in server.name.split("-"))
    declared = {
        "__doc__": f"Calls a model of {server.title}.",
        "__module__": __name__,
        "__annotations__": {
            "base_url": Annotated[Text | None, Alias(("endpoint",)), Doc(address)],
            "api_key": Annotated[Text | None, Secret(), FromEnvironment(server.keys), Doc(key)],
        },
        "base_url": None,
        "api_key": None,
        "server": server,
        "small_model": server.small_model,
        "embeds": server.embedding_model is not None,
    }
    made: type[Hosted] = dataclass(frozen=True, slots=True)(type(class_name, (Hosted,), declared))
    return made


Cohere = _hosted(
    Server(
        "cohere",
        "Cohere",
        "https://api.cohere.ai/compatibility/v1",
        ("COHERE_API_KEY", "CO_API_KEY"),
        "command-a-03-2025",
        ("cohere.ai", "cohere.com"),
        embedding_model="embed-v4.0",
    )
)
Deepseek = _hosted(
    Server(
        "deepseek", "DeepSeek", "https://api.deepseek.com", ("DEEPSEEK_API_KEY",), "deepseek-chat", ("deepseek.com",)
    )
)
Fireworks = _hosted(
    Server(
        "fireworks",
        "Fireworks AI",
        "https://api.fireworks.ai/inference/v1",
        ("FIREWORKS_API_KEY",),
        "accounts/fireworks/models/gpt-oss-20b",
        ("fireworks.ai",),
        strict_schemas=True,
        embedding_model="nomic-ai/nomic-embed-text-v1.5",
    )
)
Groq = _hosted(
    Server("groq", "Groq", "https://api.groq.com/openai/v1", ("GROQ_API_KEY",), "llama-3.1-8b-instant", ("groq.com",))
)
Huggingface = _hosted(
    Server(
        "huggingface",
        "Hugging Face's Inference Providers",
        "https://router.huggingface.co/v1",
        ("HF_TOKEN", "HF_API_TOKEN"),
        "openai/gpt-oss-20b",
        ("huggingface.co",),
    )
)
Mistral = _hosted(
    Server(
        "mistral",
        "Mistral",
        "https://api.mistral.ai/v1",
        ("MISTRAL_API_KEY",),
        "mistral-small-latest",
        ("mistral.ai",),
        strict_schemas=True,
        seed="random_seed",
        embedding_model="mistral-embed",
    )
)
Perplexity = _hosted(
    Server(
        "perplexity", "Perplexity", "https://api.perplexity.ai", ("PERPLEXITY_API_KEY",), "sonar", ("perplexity.ai",)
    )
)
Together = _hosted(
    Server(
        "together",
        "Together AI",
        "https://api.together.xyz/v1",
        ("TOGETHER_API_KEY",),
        "meta-llama/Llama-3.3-70B-Instruct-Turbo",
        ("together.xyz", "together.ai"),
        embedding_model="intfloat/multilingual-e5-large-instruct",
    )
)
Xai = _hosted(
    Server(
        "xai",
        "xAI",
        "https://api.x.ai/v1",
        ("XAI_API_KEY",),
        "grok-3-mini",
        ("x.ai",),
        prices="x-ai",
        strict_schemas=True,
    )
)


_OPENROUTER_URL = "https://openrouter.ai/api/v1"
_OPENROUTER_EMBEDDINGS = "openai/text-embedding-3-small"


@dataclass(frozen=True, slots=True)
class OpenRouter(OpenAIProvider):
    """Calls OpenRouter; models are named `maker/model`."""

    small_model: ClassVar[str | None] = "meta-llama/llama-3.3-70b-instruct"

    base_url: Annotated[
        Text | None,
        Alias(("endpoint",)),
        FromEnvironment(("OPENROUTER_BASE_URL",), required=False),
        Doc(f"base URL of the API; defaults to OPENROUTER_BASE_URL, then `{_OPENROUTER_URL}`"),
    ] = None
    api_key: Annotated[
        Text | None,
        Secret(),
        FromEnvironment(("OPENROUTER_API_KEY",)),
        Doc("API key; defaults to OPENROUTER_API_KEY"),
    ] = None

    def dialect(self) -> Dialect:
        """OpenAI's own models keep to schemas here too; of the others it depends on who serves them."""
        base_url = (self.base_url or _OPENROUTER_URL).rstrip("/")
        return Dialect(
            name="openrouter",
            base_url=base_url,
            api_key=self.api_key,
            embedding_model=self.embedding_model or (self.model if "embed" in self.model else _OPENROUTER_EMBEDDINGS),
            prices=self.elsewhere() or "openrouter",
            strict_schemas=self.model.startswith("openai/") if self.strict_schemas is None else self.strict_schemas,
            key_from=("OPENROUTER_API_KEY",),
            needs_key=not is_local(base_url),
        )

    def elsewhere(self) -> str | None:
        """A server that is not OpenRouter's."""
        return other_server(self.base_url, "openrouter.ai")
