"""`ollama`: models on this machine, or on one that runs Ollama."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar
from urllib.parse import urlsplit

from agentv.model.values.message import Block, DocumentBlock, ImageBlock
from agentv.registry.fields import Alias, Doc, FromEnvironment, Secret, Text
from agentv.targets.openai_api.dialect import Dialect
from agentv.targets.openai_api.provider import OpenAIProvider

HOST = "127.0.0.1"
PORT = 11434


@dataclass(frozen=True, slots=True)
class Ollama(OpenAIProvider):
    """Calls Ollama."""

    small_model: ClassVar[str | None] = "llama3.2"

    base_url: Annotated[
        Text | None,
        Alias(("endpoint",)),
        FromEnvironment(("OLLAMA_HOST", "OLLAMA_BASE_URL"), required=False),
        Doc(f"address of the server; defaults to OLLAMA_HOST, then `http://localhost:{PORT}/v1`"),
    ] = None
    api_key: Annotated[
        Text | None,
        Secret(),
        FromEnvironment(("OLLAMA_API_KEY",), required=False),
        Doc("API key, only for a proxy that requires one"),
    ] = None

    def dialect(self) -> Dialect:
        """It keeps to schemas (since 0.5), fetches no pictures, takes no PDFs, and has no price."""
        base_url = address_of(self.base_url)
        return Dialect(
            name="ollama",
            base_url=base_url,
            api_key=self.api_key,
            embedding_model=self.embedding_model or self.model,
            strict_schemas=self.strict_schemas is not False,
            fetches_pictures=False,
            takes_documents=False,
            unreachable="is it running? Start it with 'ollama serve'",
            key_from=("OLLAMA_API_KEY",),
        )

    def refuses(self, block: Block) -> str | None:
        """It is sent pictures by their bytes, and nothing else beside text."""
        if isinstance(block, DocumentBlock):
            return f"does not accept PDFs: replace '{block.value}' with pictures of its pages, or its text"
        if isinstance(block, ImageBlock) and block.path is None and not block.value.startswith("data:"):
            return f"does not fetch pictures: '{block.value}' must be a local file"
        return None


def address_of(address: str | None) -> str:
    """The base URL behind what OLLAMA_HOST may be: `host`, `host:port`, `:port` or a URL, with a path or without.

    `0.0.0.0` is where a server listens, and no address that can be called.
    """
    text = (address or "").strip().rstrip("/")
    if "://" not in text:
        text = f"http://{text}"
    parts = urlsplit(text)
    try:
        port = parts.port or {"https": 443}.get(parts.scheme, 80 if address and "://" in address else PORT)
    except ValueError:
        return text  # refused later as an invalid URL
    host = parts.hostname or "localhost"
    host = HOST if host == "0.0.0.0" else f"[{host}]" if ":" in host else host  # noqa: S104  # nothing is bound to it
    path = parts.path.removesuffix("/v1")  # where it speaks OpenAI's protocol, whether it is said or not
    return f"{parts.scheme}://{host}:{port}{path}/v1"
