"""Sessions of agents, one for each trial: begun at its first turn, asked again at the next ones, and ended."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Generic, Protocol, TypeAlias, TypeVar

from agentv.extensions.agents.adapters.failures import NO_SESSION
from agentv.extensions.agents.adapters.process import GRACE_S
from agentv.model.values.message import Message
from agentv.model.values.response import Failure, TargetResponse
from agentv.ports import TargetRequest


def new_messages(messages: Sequence[Message]) -> Sequence[Message]:
    """The messages after the agent's last answer: those that its session has not seen."""
    answers = [place for place, one in enumerate(messages) if one.role == "assistant"]
    return messages[answers[-1] + 1 :] if answers else messages


TrialKey: TypeAlias = tuple[str | int | None, ...]


def trial_key(request: TargetRequest) -> TrialKey:
    """What the requests of one trial have in common."""
    if request.workspace_path is not None:
        return (request.workspace_path,)
    return (request.suite, request.case_id, request.prompt_id, request.variant, request.sample)


class AgentSession(Protocol):
    """A session of one trial."""

    @property
    def usable(self) -> bool:
        """Whether it can be asked again."""
        ...

    @property
    def grace_s(self) -> float:
        """Seconds that the agent has to end within the time of the call."""
        ...

    async def close(self, grace_s: float) -> None:
        """End the agent."""
        ...


Session = TypeVar("Session", bound=AgentSession)


class SessionTarget(Generic[Session]):
    """Base of targets whose agents have a session for each trial."""

    def __init__(self) -> None:
        self._sessions: dict[TrialKey, Session] = {}

    async def begin(self, request: TargetRequest) -> Session | Failure:
        """A new session."""
        raise NotImplementedError

    async def ask(self, session: Session, request: TargetRequest) -> TargetResponse | Failure:
        """The answer of a session to a turn."""
        raise NotImplementedError

    async def answer(self, request: TargetRequest) -> TargetResponse | Failure:
        """Ask the session of the trial. It goes on after an answer to one of several turns, and ends otherwise."""
        key = trial_key(request)
        answer: TargetResponse | Failure | None = None
        try:
            session = await self._session(key, request)
            answer = session if isinstance(session, Failure) else await self.ask(session, request)
        finally:
            goes_on = request.turn is not None and isinstance(answer, TargetResponse)
            if not goes_on:
                await self._end(key, in_time=True, at_once=answer is None)
        return answer

    async def _session(self, key: TrialKey, request: TargetRequest) -> Session | Failure:
        if request.turn is not None and request.turn > 1:
            found = self._sessions.get(key)
            if found is None or not found.usable:
                return Failure(NO_SESSION, f"turn {request.turn} needs the agent's session of the turns before it")
            return found
        await self._end(key, at_once=True)
        session = await self.begin(request)
        if not isinstance(session, Failure):
            self._sessions[key] = session
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
