"""A provider that needs a key, as model APIs do, but sends no requests."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec.structs import replace

from agentv.app.registries import registries
from agentv.authoring.fields.request import Registries
from agentv.model.values.response import TargetResponse
from agentv.registry.fields import Alias, Doc, FromEnvironment, Secret, Text
from agentv.registry.types import Provider, ProviderSettings, Registry
from agentv.targets.catalogue import PROVIDERS
from agentv.targets.http.failures import other_server


@dataclass(frozen=True, slots=True)
class Keyed(ProviderSettings):
    """A target that answers with its model's name."""

    short: ClassVar[str | None] = "model"

    model: Annotated[Text, Doc("the model")]
    api_key: Annotated[
        Text | None, Secret(), FromEnvironment(("KEYED_API_KEY", "KEYED_KEY")), Alias(("key",)), Doc("the key")
    ] = None
    base_url: Annotated[Text | None, FromEnvironment(("KEYED_BASE_URL",), required=False), Doc("where")] = None

    def spares(self) -> Collection[str]:
        """Whether the server is on this machine and needs no key."""
        return ("api_key",) if self.base_url is not None and "localhost" in self.base_url else ()

    def elsewhere(self) -> str | None:
        """The configured server, if any."""
        return other_server(self.base_url)

    def connect(self, spec, executor):
        del spec, executor
        return _Answering(self.model)


@dataclass(frozen=True, slots=True)
class Regional(ProviderSettings):
    """A provider that needs a region."""

    region: Annotated[Text | None, FromEnvironment(("REGION",)), Doc("of the world")] = None


class _Answering:
    def __init__(self, model: str) -> None:
        self._model = model

    async def answer(self, request):
        del request
        return TargetResponse(self._model)

    async def close(self) -> None: ...


def keyed_registries() -> Registries:
    """Return the standard registries with the providers `keyed` and `regional`."""
    table = {**PROVIDERS, "keyed": "doubles.keyed:Keyed", "regional": "doubles.keyed:Regional"}
    return replace(registries(), providers=Registry("provider", table, Provider))
