"""The `openai`, `azure` and `ollama` targets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar
from urllib.parse import urlsplit

from agentv.model.suite.suite import TargetSpec
from agentv.model.values.message import Block, DocumentBlock, ImageBlock
from agentv.ports import Executor, Target
from agentv.registry.fields import Alias, Doc, FromEnvironment, Issue, Nonempty, Secret, Text
from agentv.targets.http.failures import is_local
from agentv.targets.openai_api.parameters import Dialect, OpenAISettings

BASE_URL = "https://api.openai.com/v1"
_EMBEDDING_MODEL = "text-embedding-3-small"


@dataclass(frozen=True, slots=True)
class OpenAIProvider(OpenAISettings):
    """Base of the providers with OpenAI's API."""

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """Return a target that opens its connections at the first call."""
        from agentv.targets.openai_api.target import OpenAITarget

        return OpenAITarget(self, spec, executor)


@dataclass(frozen=True, slots=True)
class OpenAI(OpenAIProvider):
    """Calls OpenAI, or any server with its API."""

    model_names: ClassVar[tuple[str, ...]] = ("gpt-", "o1", "o3", "o4", "chatgpt-")
    small_model: ClassVar[str | None] = "gpt-5-mini"
    domains: ClassVar[tuple[str, ...]] = ("openai.com",)

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
        """Return OpenAI's dialect. A server elsewhere is not assumed to follow schemas, nor to have OpenAI's prices."""
        base_url = (self.base_url or BASE_URL).rstrip("/")
        elsewhere = self.elsewhere()
        own = elsewhere is None
        # an embedding model is used itself (`openai:text-embedding-3-small`), and so is another server's model
        embeds = self.model if "embed" in self.model or not own else _EMBEDDING_MODEL
        return Dialect(
            name="openai",
            base_url=base_url,
            api_key=self.api_key,
            embedding_model=self.embedding_model or embeds,
            prices=elsewhere or "openai",
            strict_schemas=own if self.strict_schemas is None else self.strict_schemas,
            completion_tokens=own,
            packed_vectors=own,
            key_from=("OPENAI_API_KEY",),
            needs_key=not is_local(base_url),
        )


API_VERSION = "2025-04-01-preview"
"""The last dated version. It supports reasoning models, JSON Schemas and the responses API."""

_UNVERSIONED = "/openai/v1"
"""Path of Azure's newer API, which has no versions and takes the deployment in the body."""


@dataclass(frozen=True, slots=True)
class Azure(OpenAIProvider):
    """Calls a deployment of Azure OpenAI."""

    example: ClassVar[str | None] = "my-deployment"
    domains: ClassVar[tuple[str, ...]] = ("azure.com", "azure-api.net", "azure.us", "azure.cn")

    model: Annotated[Text, Nonempty(), Alias(("deployment", "deployment_name")), Doc("name of the deployment")]
    base_url: Annotated[
        Text | None,
        Alias(("endpoint",)),
        FromEnvironment(("AZURE_OPENAI_ENDPOINT",)),
        Doc("the resource, `https://NAME.openai.azure.com`; defaults to AZURE_OPENAI_ENDPOINT"),
    ] = None
    api_key: Annotated[
        Text | None,
        Secret(),
        FromEnvironment(("AZURE_OPENAI_API_KEY",)),
        Doc("API key; defaults to AZURE_OPENAI_API_KEY"),
    ] = None
    api_version: Annotated[
        Text | None,
        Alias(("version",)),
        FromEnvironment(("OPENAI_API_VERSION",), required=False),
        Doc(
            f"API version; defaults to OPENAI_API_VERSION, then `{API_VERSION}`; `v1` is the API below "
            "`/openai/v1`, which has none"
        ),
    ] = None

    def dialect(self) -> Dialect:
        """Return Azure's dialect, which follows schemas."""
        given = (self.base_url or "").rstrip("/")
        if self.api_version == "v1" and not given.endswith(_UNVERSIONED):
            given = f"{given.removesuffix('/openai')}{_UNVERSIONED}"
        unversioned = given.endswith(_UNVERSIONED)
        return Dialect(
            name="azure",
            base_url=given if unversioned or given.endswith("/openai") else f"{given}/openai",
            api_key=self.api_key,
            embedding_model=self.embedding_model or self.model,
            prices=self.elsewhere() or "azure",
            strict_schemas=self.strict_schemas is not False,
            completion_tokens=True,
            packed_vectors=True,
            api_version=None if unversioned else self.api_version or API_VERSION,
            key_from=("AZURE_OPENAI_API_KEY",),
            needs_key=not is_local(given),
        )

    def validate(self) -> Iterable[Issue]:
        """Report the issues of every provider, and a URL with a deployment."""
        yield from OpenAIProvider.validate(self)
        if "/deployments/" in (self.base_url or ""):
            hint = "write https://NAME.openai.azure.com, and set the deployment as 'model'"
            yield Issue(("base_url",), "'base_url' must not contain a deployment", hint=hint)


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
        """Return Ollama's dialect, which follows schemas (since 0.5) and has no price."""
        base_url = address_of(self.base_url)
        return Dialect(
            name="ollama",
            base_url=base_url,
            api_key=self.api_key,
            embedding_model=self.embedding_model or self.model,
            strict_schemas=self.strict_schemas is not False,
            unreachable="is it running? Start it with 'ollama serve'",
            key_from=("OLLAMA_API_KEY",),
        )

    def refuses(self, block: Block) -> str | None:
        """Return why a block is not supported: only text and pictures in local files or data URLs are."""
        if isinstance(block, DocumentBlock):
            return f"does not accept PDFs: replace '{block.value}' with pictures of its pages, or its text"
        if isinstance(block, ImageBlock) and block.path is None and not block.value.startswith("data:"):
            return f"does not fetch pictures: '{block.value}' must be a local file"
        return None


def address_of(address: str | None) -> str:
    """Return the base URL for a value of OLLAMA_HOST: `host`, `host:port`, `:port`, or a URL with or without a path.

    `0.0.0.0` is replaced: a server can listen there, but a client cannot call it.
    """
    text = (address or "").strip().rstrip("/")
    if "://" not in text:
        text = f"http://{text}"
    parts = urlsplit(text)
    try:
        port = parts.port or {"https": 443}.get(parts.scheme, 80 if address and "://" in address else PORT)
    except ValueError:
        return text  # reported later as an invalid URL
    host = parts.hostname or "localhost"
    host = HOST if host == "0.0.0.0" else f"[{host}]" if ":" in host else host  # noqa: S104  # not bound to
    path = parts.path.removesuffix("/v1")  # appended again below
    return f"{parts.scheme}://{host}:{port}{path}/v1"
