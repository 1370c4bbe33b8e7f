"""Target of an agent that prints a JSON stream: one session for each trial, started again for each turn."""

from __future__ import annotations

from agentv.extensions.agents.adapters.native.session import NativeSession
from agentv.extensions.agents.adapters.native.settings import NativeAgentSettings
from agentv.extensions.agents.adapters.native.versions import VersionLookup
from agentv.extensions.agents.adapters.trials import SessionTarget
from agentv.model.values.response import Failure, TargetResponse
from agentv.ports import TargetRequest


class NativeTarget(SessionTarget[NativeSession]):
    """Agents of one target."""

    def __init__(self, settings: NativeAgentSettings) -> None:
        super().__init__()
        self._settings = settings
        self._versions = VersionLookup(settings)

    async def begin(self, request: TargetRequest) -> NativeSession | Failure:
        """A session in the directories of the trial."""
        try:
            return NativeSession(self._settings, request)
        except OSError as error:
            return Failure("cannot-start", f"no directory can be made for the agent: {error}")

    async def ask(self, session: NativeSession, request: TargetRequest) -> TargetResponse | Failure:
        """The answer of the agent, whose version is looked up once."""
        return await session.ask(request, await self._versions.of(request))
