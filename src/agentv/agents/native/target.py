"""Target of an agent that prints a JSON stream: one session for each trial, started again for each turn."""

from __future__ import annotations

import asyncio

from agentv.agents.failures import NO_SESSION
from agentv.agents.native.session import NativeSession
from agentv.agents.native.settings import NativeAgentSettings
from agentv.agents.native.versions import VersionLookup
from agentv.agents.process import GRACE_S
from agentv.agents.trials import TrialKey, trial_key
from agentv.model.values.response import Failure, TargetResponse
from agentv.ports import TargetRequest


class NativeTarget:
    """Agents of one target."""

    def __init__(self, settings: NativeAgentSettings) -> None:
        self._settings = settings
        self._sessions: dict[TrialKey, NativeSession] = {}
        self._versions = VersionLookup(settings)

    async def answer(self, request: TargetRequest) -> TargetResponse | Failure:
        """Ask the agent of the trial. It goes on after an answer to one of several turns, and ends otherwise."""
        key = trial_key(request)
        answer: TargetResponse | Failure | None = None
        try:
            session = await self._session(key, request)
            if isinstance(session, Failure):
                return session
            answer = await session.ask(request, await self._versions.of(request))
        finally:
            goes_on = request.turn is not None and isinstance(answer, TargetResponse)
            if not goes_on:
                await self._end(key, in_time=True, at_once=answer is None)
        return answer

    async def _session(self, key: TrialKey, request: TargetRequest) -> NativeSession | Failure:
        if request.turn is not None and request.turn > 1:
            found = self._sessions.get(key)
            if found is None or not found.usable:
                return Failure(NO_SESSION, f"turn {request.turn} needs the agent's session of the turns before it")
            return found
        await self._end(key, at_once=True)
        try:
            session = self._sessions[key] = NativeSession(self._settings, request)
        except OSError as error:
            return Failure("cannot-start", f"no directory can be made for the agent: {error}")
        return session

    async def _end(self, key: TrialKey, *, in_time: bool = False, at_once: bool = False) -> None:
        """End a session. `in_time`: before the time of its call is over; `at_once`: nobody waits for it any more."""
        session = self._sessions.pop(key, None)
        if session is not None:
            await session.close(0.0 if at_once else session.grace_s if in_time else GRACE_S)

    async def end_session(self, request: TargetRequest) -> None:
        """End the session of a trial that asks nothing more."""
        await self._end(trial_key(request))

    async def close(self) -> None:
        """End all sessions."""
        await asyncio.gather(*(self._end(key) for key in tuple(self._sessions)))
