"""`acp`: an agent that speaks the Agent Client Protocol works on the case."""

from __future__ import annotations

import asyncio
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from agentv.agents.acp.settings import AcpSettings
from agentv.agents.failures import NO_SESSION
from agentv.agents.process import GRACE_S
from agentv.agents.trials import TrialKey, trial_key
from agentv.lazy_dataclass import dataclass
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.response import Failure, TargetResponse
from agentv.ports import Executor, Target, TargetRequest
from agentv.user_code.processes.leftovers import temporary_prefix

if TYPE_CHECKING:
    from agentv.agents.acp.session import AcpSession


@dataclass(frozen=True, slots=True)
class Acp(AcpSettings):
    """Starts an agent that speaks the Agent Client Protocol (ACP) on stdio."""

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """A target that starts an agent for each trial."""
        from agentv.agents.acp import session  # noqa: F401  # half a second that must not count as the first answer's

        del spec, executor
        return AcpTarget(self)


class AcpTarget:
    """Agents of one target; one session for each trial."""

    def __init__(self, settings: Acp) -> None:
        self._settings = settings
        self._sessions: dict[TrialKey, tuple[AcpSession, TemporaryDirectory[str] | None]] = {}

    async def answer(self, request: TargetRequest) -> TargetResponse | Failure:
        """Ask the session of the trial. It goes on after an answer to one of several turns, and ends otherwise."""
        key = trial_key(request)
        answer: TargetResponse | Failure | None = None
        try:
            session = await self._session(key, request)
            answer = session if isinstance(session, Failure) else await session.prompt(request)
        finally:
            goes_on = request.turn is not None and isinstance(answer, TargetResponse)
            if not goes_on:
                await self._end(key, in_time=True, at_once=answer is None)
        return answer

    async def _session(self, key: TrialKey, request: TargetRequest) -> AcpSession | Failure:
        if request.turn is not None and request.turn > 1:
            found = self._sessions.get(key)
            if found is None or not found[0].usable:
                return Failure(NO_SESSION, f"turn {request.turn} needs the agent's session of the turns before it")
            return found[0]
        await self._end(key, at_once=True)
        from agentv.agents.acp.session import open_session

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
        self._sessions[key] = session, directory
        return session

    async def _end(self, key: TrialKey, *, in_time: bool = False, at_once: bool = False) -> None:
        """End a session. `in_time`: before the time of its call is over; `at_once`: nobody waits for it any more."""
        found = self._sessions.pop(key, None)
        if found is None:
            return
        session, directory = found
        try:
            await session.close(0.0 if at_once else session.grace_s if in_time else GRACE_S)
        finally:
            _remove(directory)

    async def end_session(self, request: TargetRequest) -> None:
        """End the session of a trial that asks nothing more."""
        await self._end(trial_key(request))

    async def close(self) -> None:
        """End all sessions."""
        await asyncio.gather(*(self._end(key) for key in tuple(self._sessions)))


def _remove(directory: TemporaryDirectory[str] | None) -> None:
    if directory is not None:
        directory.cleanup()
