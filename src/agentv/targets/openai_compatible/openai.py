"""`openai`: OpenAI's models, and every server that speaks its API (vLLM, LM Studio, LiteLLM, gateways)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from agentv.registry.fields import Alias, Doc, FromEnvironment, Secret, Text
from agentv.targets.http.model_calls import is_local, other_server
from agentv.targets.openai_api.dialect import Dialect
from agentv.targets.openai_api.provider import OpenAIProvider

BASE_URL = "https://api.openai.com/v1"
_EMBEDDING_MODEL = "text-embedding-3-small"


@dataclass(frozen=True, slots=True)
class OpenAI(OpenAIProvider):
    """Calls OpenAI, or any server with its API."""

    model_names: ClassVar[tuple[str, ...]] = ("gpt-", "o1", "o3", "o4", "chatgpt-")
    small_model: ClassVar[str | None] = "gpt-5-mini"

    base_url: Annotated[
        Text | None,
        Alias(("endpoint",)),
        FromEnvironment(("OPENAI_BASE_URL",), required=False),
        Doc(f"base URL of the API; defaults to OPENAI_BASE_URL, then `{BASE_URL}`"),
    ] = None
    api_key: Annotated[
        Text | None,
        Secret(),
        FromEnvironment(("OPENAI_API_KEY",)),
        Doc("API key; defaults to OPENAI_API_KEY"),
    ] = None

    def dialect(self) -> Dialect:
        """OpenAI keeps to schemas and has prices; of another server neither is known."""
        base_url = (self.base_url or BASE_URL).rstrip("/")
        elsewhere = self.elsewhere()
        own = elsewhere is None
        return Dialect(
            name="openai",
            base_url=base_url,
            api_key=self.api_key,
            embedding_model=self.embedding_model or _embedding_model(self.model, own=own),
            prices=elsewhere or "openai",
            strict_schemas=own if self.strict_schemas is None else self.strict_schemas,
            completion_tokens=own,
            packed_vectors=own,
            key_from=("OPENAI_API_KEY",),
            needs_key=not is_local(base_url),
        )

    def elsewhere(self) -> str | None:
        """A server that is not OpenAI's."""
        return other_server(self.base_url, "openai.com")


def _embedding_model(model: str, *, own: bool) -> str:
    """`openai:text-embedding-3-small` is asked as it is named, and so is another server's model."""
    return model if "embed" in model or not own else _EMBEDDING_MODEL
