"""What an agent's launch is made of, in the same terms for every agent: its model API, tools by their native names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from agentv.extensions.agents.adapters.native_settings import NativeAgentSettings
from agentv.model.suite.suite import TargetSpec
from agentv.model.suite.tools import API_URLS, ModelProtocol
from agentv.model.values.tool_names import TOOLS
from agentv.ports import Executor, Target, TargetRequest
from agentv.registry.fields import Doc, Issue


@dataclass(frozen=True, slots=True)
class NativeProvider(NativeAgentSettings):
    """Settings of one agent, which its target starts for each turn. An adapter derives from it."""

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """A target that starts the agent for each turn."""
        from agentv.extensions.agents.adapters.native import NativeTarget

        del spec, executor
        return NativeTarget(self)


WITHOUT_RULES = "takes no rules for permissions; set 'allow' or 'deny', and 'allowed_tools'"

_PROVIDERS: Mapping[str, ModelProtocol] = {
    "openai": "openai",
    "anthropic": "anthropic",
    "google": "gemini",
    "gemini": "gemini",
}
"""How names of models begin → protocol of the provider."""


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """Where an agent sends the calls of its model, in which protocol and with which key."""

    protocol: ModelProtocol
    base_url: str
    api_key: str

    def url(self, versions: Mapping[ModelProtocol, str]) -> str:
        """The base URL, with the version of the protocol, such as `/v1`, added where it does not end with it."""
        version, url = versions.get(self.protocol, ""), self.base_url.rstrip("/")
        return url if url.endswith(version) else f"{url}{version}"


def model_access(settings: NativeAgentSettings, request: TargetRequest, protocol: ModelProtocol) -> ModelAccess | None:
    """The model API of a turn; None: the agent finds it by itself, signed in as it is."""
    if request.gateway is not None:
        return ModelAccess(protocol, request.gateway.base_url(protocol), request.gateway.token)
    if not settings.base_url and not settings.api_key:
        return None
    return ModelAccess(protocol, settings.base_url or API_URLS[protocol], settings.api_key or "none")


@dataclass(frozen=True, slots=True)
class AnyModelSettings(NativeProvider):
    """Base of the settings of an agent that calls models of several providers."""

    api: Annotated[ModelProtocol, Doc("protocol of the model's API: `openai`, `anthropic` or `gemini`")] = "openai"

    def validate(self) -> Iterable[Issue]:
        """Reports a model API without a model."""
        yield from NativeProvider.validate(self)
        if (self.base_url or self.api_key) and not self.model:
            yield Issue(("model",), f"{self.title} needs 'model' with 'base_url' or 'api_key'")

    @property
    def model_protocol(self) -> ModelProtocol | None:
        """The protocol by which the agent calls its model; None: it is signed in somewhere by itself.

        It is `api` where the target names an API of its own, else that of the provider in front of the model's name,
        as in `anthropic/claude-haiku-4-5`.
        """
        provider, slash, name = (self.model or "").partition("/")
        if self.base_url or self.api_key:
            return self.api
        return _PROVIDERS.get(provider) if slash and name else None

    @property
    def model_name(self) -> str:
        """The model as its API knows it."""
        named = not self.base_url and not self.api_key and self.model_protocol is not None
        return (self.model or "").partition("/")[2] if named else self.model or ""


def native_tools(agent: str, names: Iterable[str], of_server: str) -> Iterator[str]:
    """Tools by their names in an agent: `shell` is `bash` in one and `run_shell_command` in another.

    Args:
        agent: as in the table of names.
        names: canonical or native.
        of_server: the form of `server.tool`, such as `mcp_{server}_{tool}`.
    """
    for name in names:
        server, dot, tool = name.partition(".")
        yield from (of_server.format(server=server, tool=tool),) if dot else TOOLS.get(name, {}).get(agent, (name,))
