"""`openrouter`: many providers' models through one API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from agentv.registry.fields import Alias, Doc, FromEnvironment, Secret, Text
from agentv.targets.http.model_calls import other_server
from agentv.targets.openai_api.dialect import Dialect
from agentv.targets.openai_api.provider import OpenAIProvider, is_local

BASE_URL = "https://openrouter.ai/api/v1"
_EMBEDDING_MODEL = "openai/text-embedding-3-small"


@dataclass(frozen=True, slots=True)
class OpenRouter(OpenAIProvider):
    """Calls OpenRouter; models are named `maker/model`."""

    small_model: ClassVar[str | None] = "meta-llama/llama-3.3-70b-instruct"

    base_url: Annotated[
        Text | None,
        Alias(("endpoint",)),
        FromEnvironment(("OPENROUTER_BASE_URL",), required=False),
        Doc(f"base URL of the API; defaults to OPENROUTER_BASE_URL, then `{BASE_URL}`"),
    ] = None
    api_key: Annotated[
        Text | None,
        Secret(),
        FromEnvironment(("OPENROUTER_API_KEY",)),
        Doc("API key; defaults to OPENROUTER_API_KEY"),
    ] = None

    def dialect(self) -> Dialect:
        """OpenAI's own models keep to schemas here too; of the others it depends on who serves them."""
        base_url = (self.base_url or BASE_URL).rstrip("/")
        return Dialect(
            name="openrouter",
            base_url=base_url,
            api_key=self.api_key,
            embedding_model=self.embedding_model or (self.model if "embed" in self.model else _EMBEDDING_MODEL),
            prices=self.elsewhere() or "openrouter",
            strict_schemas=self.model.startswith("openai/") if self.strict_schemas is None else self.strict_schemas,
            key_from=("OPENROUTER_API_KEY",),
            needs_key=not is_local(base_url),
        )

    def elsewhere(self) -> str | None:
        """A server that is not OpenRouter's."""
        return other_server(self.base_url, "openrouter.ai")
