"""`azure`: OpenAI's models on Azure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar

from agentv.registry.fields import Alias, Doc, FromEnvironment, Issue, Nonempty, Secret, Text
from agentv.targets.http.model_calls import is_local, other_server
from agentv.targets.openai_api.dialect import Dialect
from agentv.targets.openai_api.provider import OpenAIProvider

API_VERSION = "2025-04-01-preview"
"""The last version with a date; it knows reasoning models, JSON Schemas and the responses API."""

_DOMAINS = ("azure.com", "azure-api.net", "azure.us", "azure.cn")
"""Of Azure, with its gateways and its clouds of governments."""

_UNVERSIONED = "/openai/v1"
"""Where Azure's newer API begins, which has no versions and takes the deployment in the body."""


@dataclass(frozen=True, slots=True)
class Azure(OpenAIProvider):
    """Calls a deployment of Azure OpenAI."""

    example: ClassVar[str | None] = "my-deployment"

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
        """Azure keeps to schemas. A deployment may be called anything, so its prices go by what the answer says."""
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

    def elsewhere(self) -> str | None:
        """A server that is not in Azure."""
        return other_server(self.base_url, *_DOMAINS)

    def validate(self) -> Iterable[Issue]:
        """As everywhere; and the deployment must be in no URL."""
        yield from OpenAIProvider.validate(self)
        if "/deployments/" in (self.base_url or ""):
            hint = "write https://NAME.openai.azure.com, and set the deployment as 'model'"
            yield Issue(("base_url",), "'base_url' must not contain a deployment", hint=hint)
