"""Settings of the provider `acp`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar

from agentv.extensions.agents.adapters.settings import AgentSettings
from agentv.registry.extras import missing_extra
from agentv.registry.fields import Doc, Issue, Text
from agentv.registry.gateway_options import Otel, UpstreamKey, UpstreamUrl


@dataclass(frozen=True, slots=True)
class AcpSettings(AgentSettings):
    """Starts an agent that speaks the Agent Client Protocol (ACP) on stdio."""

    example: ClassVar[str | None] = "my-agent --acp"

    model: Annotated[Text | None, Doc("model, where the agent has an option for it")] = None
    mode: Annotated[Text | None, Doc("session mode, by the agent's id of it")] = None
    auth_method: Annotated[
        Text | None, Doc("how to authenticate, by the agent's id of it; default: only if its variables are set")
    ] = None

    base_url: UpstreamUrl = None
    api_key: UpstreamKey = None
    otel: Otel = False

    def validate(self) -> Iterable[Issue]:
        """The SDK is not installed; what is wrong with the settings of any agent."""
        missing = missing_extra("acp", "agents", "calling an agent over ACP")
        if missing is not None:
            yield missing
        yield from AgentSettings.validate(self)
        yield from self.protocol_issues()
