"""`acp`: agents that speak the Agent Client Protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentv.extensions.agents.adapters.settings import AcpSettings
from agentv.extensions.agents.adapters.trials import SessionTarget
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.response import Failure, TargetResponse
from agentv.ports import Executor, Target, TargetRequest

if TYPE_CHECKING:
    from agentv.extensions.agents.adapters.acp_session import AcpSession


@dataclass(frozen=True, slots=True)
class Acp(AcpSettings):
    """Starts an agent that speaks the Agent Client Protocol (ACP) on stdio."""

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """Return a target that starts an agent for each trial."""
        from agentv.extensions.agents.adapters import acp_session  # noqa: F401  # takes half a second, which must not count towards the first answer

        del spec, executor
        return AcpTarget(self)


class AcpTarget(SessionTarget["AcpSession"]):
    """A target that starts an ACP agent for each trial."""

    def __init__(self, settings: Acp) -> None:
        super().__init__()
        self._settings = settings

    async def begin(self, request: TargetRequest) -> AcpSession | Failure:
        """Start an agent and return its session."""
        from agentv.extensions.agents.adapters.acp_session import open_session

        return await open_session(self._settings, request)

    async def ask(self, session: AcpSession, request: TargetRequest) -> TargetResponse | Failure:
        """Return the agent's answer."""
        return await session.prompt(request)
