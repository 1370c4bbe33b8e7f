"""`acp`: an agent that speaks the Agent Client Protocol works on the case."""

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
        """A target that starts an agent for each trial."""
        from agentv.extensions.agents.adapters import acp_session  # noqa: F401  # half a second that must not count as the first answer's

        del spec, executor
        return AcpTarget(self)


class AcpTarget(SessionTarget["AcpSession"]):
    """Agents of one target."""

    def __init__(self, settings: Acp) -> None:
        super().__init__()
        self._settings = settings

    async def begin(self, request: TargetRequest) -> AcpSession | Failure:
        """A session with an agent that is started for it."""
        from agentv.extensions.agents.adapters.acp_session import open_session

        return await open_session(self._settings, request)

    async def ask(self, session: AcpSession, request: TargetRequest) -> TargetResponse | Failure:
        """The answer of the agent."""
        return await session.prompt(request)
