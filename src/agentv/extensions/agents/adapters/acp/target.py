"""`acp`: an agent that speaks the Agent Client Protocol works on the case."""

from __future__ import annotations

from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from agentv.extensions.agents.adapters.settings import AcpSettings
from agentv.extensions.agents.adapters.trials import SessionTarget
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.response import Failure, TargetResponse
from agentv.ports import Executor, Target, TargetRequest
from agentv.user_code.processes.leftovers import temporary_prefix

if TYPE_CHECKING:
    from agentv.extensions.agents.adapters.acp.session import AcpSession


@dataclass(frozen=True, slots=True)
class Acp(AcpSettings):
    """Starts an agent that speaks the Agent Client Protocol (ACP) on stdio."""

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """A target that starts an agent for each trial."""
        from agentv.extensions.agents.adapters.acp import session  # noqa: F401  # half a second that must not count as the first answer's

        del spec, executor
        return AcpTarget(self)


@dataclass(frozen=True, slots=True)
class PlacedSession:
    """A session, and the directory that it has where the trial has no workspace."""

    session: AcpSession
    directory: TemporaryDirectory[str] | None

    @property
    def usable(self) -> bool:
        """Whether it can be asked again."""
        return self.session.usable

    @property
    def grace_s(self) -> float:
        """Seconds that the agent has to end within the time of the call."""
        return self.session.grace_s

    async def close(self, grace_s: float) -> None:
        """End the agent, and remove the directory."""
        try:
            await self.session.close(grace_s)
        finally:
            _remove(self.directory)


class AcpTarget(SessionTarget[PlacedSession]):
    """Agents of one target."""

    def __init__(self, settings: Acp) -> None:
        super().__init__()
        self._settings = settings

    async def begin(self, request: TargetRequest) -> PlacedSession | Failure:
        """A session with an agent that is started for it."""
        from agentv.extensions.agents.adapters.acp.session import open_session

        directory = None if request.workspace_path is not None else TemporaryDirectory(prefix=temporary_prefix())
        root = request.workspace_path or (directory.name if directory else "")
        try:
            session = await open_session(self._settings, request, root)
        except BaseException:
            _remove(directory)
            raise
        if isinstance(session, Failure):
            _remove(directory)
            return session
        return PlacedSession(session, directory)

    async def ask(self, session: PlacedSession, request: TargetRequest) -> TargetResponse | Failure:
        """The answer of the agent."""
        return await session.session.prompt(request)


def _remove(directory: TemporaryDirectory[str] | None) -> None:
    if directory is not None:
        directory.cleanup()
