"""Parts of a launch that adapters share: the agent's model API, and the native names of its tools."""

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
    """Settings of an agent that is started for each turn. Adapters derive from it."""

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """Return a target that starts the agent for each turn."""
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
"""Prefix of a model's name → protocol of its provider."""


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """The API that an agent sends its model calls to: protocol, base URL and key."""

    protocol: ModelProtocol
    base_url: str
    api_key: str

    def url(self, versions: Mapping[ModelProtocol, str]) -> str:
        """Return the base URL, with the version of the protocol, such as `/v1`, added if it is missing."""
        version, url = versions.get(self.protocol, ""), self.base_url.rstrip("/")
        return url if url.endswith(version) else f"{url}{version}"


def model_access(settings: NativeAgentSettings, request: TargetRequest, protocol: ModelProtocol) -> ModelAccess | None:
    """Return the model API of a turn, or None if the agent uses its own login."""
    if request.gateway is not None:
        return ModelAccess(protocol, request.gateway.base_url(protocol), request.gateway.token)
    if not settings.base_url and not settings.api_key:
        return None
    return ModelAccess(protocol, settings.base_url or API_URLS[protocol], settings.api_key or "none")


@dataclass(frozen=True, slots=True)
class AnyModelSettings(NativeProvider):
    """Base of the settings of agents that can call models of several providers."""

    api: Annotated[ModelProtocol, Doc("protocol of the model's API: `openai`, `anthropic` or `gemini`")] = "openai"

    def validate(self) -> Iterable[Issue]:
        """Report a model API without a model, and what is wrong with the settings of any agent."""
        yield from NativeProvider.validate(self)
        if (self.base_url or self.api_key) and not self.model:
            yield Issue(("model",), f"{self.title} needs 'model' with 'base_url' or 'api_key'")

    @property
    def model_protocol(self) -> ModelProtocol | None:
        """Protocol of the agent's model calls, or None if the agent uses its own login.

        It is `api` if the target names its own API, otherwise the protocol of the provider in the model's name, as in
        `anthropic/claude-haiku-4-5`.
        """
        provider, slash, name = (self.model or "").partition("/")
        if self.base_url or self.api_key:
            return self.api
        return _PROVIDERS.get(provider) if slash and name else None

    @property
    def model_name(self) -> str:
        """Name of the model in its API, without a provider."""
        named = not self.base_url and not self.api_key and self.model_protocol is not None
        return (self.model or "").partition("/")[2] if named else self.model or ""


def native_tools(agent: str, names: Iterable[str], of_server: str) -> Iterator[str]:
    """Yield the native names of tools: `shell` is `bash` in one agent and `run_shell_command` in another.

    Args:
        agent: key of the agent in `TOOLS`.
        names: canonical or native names.
        of_server: format of the native name of `server.tool`, such as `mcp_{server}_{tool}`.
    """
    for name in names:
        server, dot, tool = name.partition(".")
        yield from (of_server.format(server=server, tool=tool),) if dot else TOOLS.get(name, {}).get(agent, (name,))
