"""What agents of all protocols share in a trial: codes of failures, limits, and the session.

An agent without a valid answer gives a Failure, never an empty or a passing answer.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from contextlib import suppress
from typing import Generic, Protocol, TypeAlias, TypeVar

from msgspec import structs

from agentv.extensions.agents.adapters.process import GRACE_S
from agentv.extensions.agents.adapters.settings import AgentSettings
from agentv.model.values.message import prompt_text
from agentv.model.values.response import RUN_INTERRUPTED, CallFailure, Failure, TargetResponse
from agentv.model.values.trace import Trace
from agentv.model.values.trace_summary import messages_of
from agentv.ports import TargetRequest
from agentv.user_code.excerpts import is_javascript_error, last_error, tail

LIMIT = "agent-limit"
AGENT_STOPPED = "agent-stopped"
PROTOCOL = "agent-protocol"
API = "agent-api"
DENIED = "permission-denied"
NO_TOOLS = "no-tools"
NO_SESSION = "no-session"
REFUSED = "refused"


def failed(code: str, message: str, response: TargetResponse | None = None, stderr: bytes = b"") -> CallFailure:
    """Return a failure with what the agent had done so far, and the end of its stderr in the message."""
    excerpt = last_error(stderr) if is_javascript_error(stderr) else tail(stderr)
    return CallFailure(code, f"{message}; stderr: {excerpt}" if excerpt else message, response=response)


def response_of(trace: Trace, answer: str | None, duration_ms: float, stderr: bytes) -> TargetResponse:
    """Return the response of a turn, from its trace."""
    return TargetResponse(
        answer,
        messages=tuple(one for one in messages_of(trace) if one.role != "user"),
        token_usage=trace.tokens,
        cost_usd=trace.cost_usd,
        duration_ms=duration_ms,
        finish_reason=trace.stop_reason or None,
        metadata=trace.metadata,
        trace=trace,
        logs={"stderr.txt": stderr} if stderr else {},
    )


_MARGIN_S = 10.0


class SessionLimits:
    """Limits of a session. Calls are counted over all turns; the time limit is for one turn.

    Args:
        settings: settings of the target.
        request: the first request of the session. Of each limit, the lower value applies.

    Attributes:
        reached: set to the limit that was exceeded, or to a message that the run was interrupted.
        is_interrupted: whether the run was interrupted.
        turns, tool_calls: number of model and tool calls in the turns that have ended.
    """

    def __init__(self, settings: AgentSettings, request: TargetRequest) -> None:
        self._max_turns = _lowest(settings.max_turns, request.max_turns)
        self._max_tool_calls = _lowest(settings.max_tool_calls, request.max_tool_calls)
        self.turns = 0
        self.tool_calls = 0
        self.is_interrupted = False
        self._interruption: asyncio.Future[None] | None = None
        self.reached: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.begin(request)

    def begin(self, request: TargetRequest) -> None:
        """Begin a turn: restart the clock, and watch for an interruption."""
        self._began = time.monotonic()
        self._timeout_s = request.timeout_s
        self._forget_interruption()
        self._interruption = request.interruption
        if self._interruption is not None:
            self._interruption.add_done_callback(self._interrupt)

    def close(self) -> None:
        """Stop watching, once the session has ended."""
        self._forget_interruption()
        self.reached.cancel()

    @property
    def code(self) -> str:
        """Failure code for an agent that was ended early: `agent-limit` or `interrupted`."""
        return RUN_INTERRUPTED if self.is_interrupted else LIMIT

    def _interrupt(self, interruption: asyncio.Future[None]) -> None:
        if not interruption.cancelled() and not self.reached.done():
            self.is_interrupted = True
            self.reached.set_result("the run was interrupted")

    def _forget_interruption(self) -> None:
        if self._interruption is not None:
            self._interruption.remove_done_callback(self._interrupt)
            self._interruption = None

    def end(self, turns: int, tool_calls: int) -> None:
        """End a turn, and count its calls."""
        self.turns += turns
        self.tool_calls += tool_calls

    def check(self, turns: int, tool_calls: int) -> None:
        """Set `reached` if the turn's calls exceed a limit."""
        passed = ""
        if self._max_turns is not None and self.turns + turns > self._max_turns:
            passed = f"more than {self._max_turns} model calls (max_turns)"
        elif self._max_tool_calls is not None and self.tool_calls + tool_calls > self._max_tool_calls:
            passed = f"more than {self._max_tool_calls} tool calls (max_tool_calls)"
        if passed and not self.reached.done():
            self.reached.set_result(passed)

    @property
    def elapsed_ms(self) -> float:
        """Milliseconds since the turn began."""
        return round((time.monotonic() - self._began) * 1000, 3)

    @property
    def remaining_s(self) -> float:
        """Seconds until the engine stops waiting."""
        return max(0.0, self._timeout_s - (time.monotonic() - self._began))

    @property
    def left_s(self) -> float:
        """Seconds until the agent is ended, which is before the engine stops waiting, so that its trace is kept."""
        return max(0.0, self.remaining_s - min(_MARGIN_S, self._timeout_s / 10))

    @property
    def grace_s(self) -> float:
        """Seconds that the agent has to exit, so that its answer or failure is still in time."""
        return min(GRACE_S, self.remaining_s * 0.5)


def _lowest(*limits: int | None) -> int | None:
    return min((one for one in limits if one is not None), default=None)


def is_later_turn(request: TargetRequest) -> bool:
    """Whether a request is for a later turn, which continues a session."""
    return request.turn is not None and request.turn > 1


def _with_new_messages(request: TargetRequest) -> TargetRequest:
    """Return the request with only the messages after the agent's last answer, since its session has the others."""
    answers = [place for place, one in enumerate(request.messages) if one.role == "assistant"]
    if not is_later_turn(request) or not answers:
        return request
    messages = request.messages[answers[-1] + 1 :]
    return structs.replace(request, messages=messages, prompt=prompt_text(messages))


def did_nothing(trace: Trace, root: str, moment: int) -> bool:
    """Whether the agent has changed nothing since a moment: no file in its workspace, and nothing through an MCP tool.

    This looks at times of change only, which any program can update. The comparison of the workspace with its baseline
    decides again once the agent has ended.
    """
    return not trace.worked_elsewhere and not changed_since(root, moment)


_CLOCK_REALTIME_COARSE = 5
"""Linux's CLOCK_REALTIME_COARSE (`clock_gettime(2)`), which Python's `time` does not define."""


def file_clock() -> int:
    """Return the current time in nanoseconds by the file system's clock, which Linux advances with each tick."""
    return time.clock_gettime_ns(_CLOCK_REALTIME_COARSE) if sys.platform == "linux" else time.time_ns()


def changed_since(root: str, moment: int) -> bool:
    """Whether anything in a directory, except `.git`, was changed since a moment of `file_clock`.

    Programs cannot set back the times that this reads (`ctime`).
    """
    for directory, inner, files in os.walk(root):
        inner[:] = [name for name in inner if name != ".git"]
        for name in ("", *(name for name in files if name != ".git")):
            with suppress(OSError):
                if os.lstat(os.path.join(directory, name)).st_ctime_ns >= moment:  # noqa: PTH118  # the hot loop
                    return True
    return False


TrialKey: TypeAlias = tuple[str | int | None, ...]


def trial_key(request: TargetRequest) -> TrialKey:
    """Return a key that all requests of one trial share."""
    if request.workspace_path is not None:
        return (request.workspace_path,)
    return (request.suite, request.case_id, request.prompt_id, request.variant, request.sample)


class AgentSession(Protocol):
    """A session of one trial."""

    limits: SessionLimits

    @property
    def usable(self) -> bool:
        """Whether it can be asked again."""
        ...

    async def close(self, grace_s: float) -> None:
        """End the agent."""
        ...


Session = TypeVar("Session", bound=AgentSession)


class SessionTarget(Generic[Session]):
    """Base of targets that have a session for each trial."""

    def __init__(self) -> None:
        self._sessions: dict[TrialKey, Session] = {}

    async def begin(self, request: TargetRequest) -> Session | Failure:
        """Return a new session."""
        raise NotImplementedError

    async def ask(self, session: Session, request: TargetRequest) -> TargetResponse | Failure:
        """Return a session's answer to a turn."""
        raise NotImplementedError

    async def answer(self, request: TargetRequest) -> TargetResponse | Failure:
        """Ask the session of the trial. It stays open after an answer in a case with turns; otherwise it is ended."""
        key = trial_key(request)
        answer: TargetResponse | Failure | None = None
        try:
            session = await self._session(key, request)
            answer = session if isinstance(session, Failure) else await self.ask(session, _with_new_messages(request))
        finally:
            goes_on = request.turn is not None and isinstance(answer, TargetResponse)
            if not goes_on:
                await self._end(key, in_time=True, at_once=answer is None)
        return answer

    async def _session(self, key: TrialKey, request: TargetRequest) -> Session | Failure:
        if is_later_turn(request):
            found = self._sessions.get(key)
            if found is None or not found.usable:
                return Failure(NO_SESSION, f"turn {request.turn} needs the agent's session of the turns before it")
            found.limits.begin(request)
            return found
        await self._end(key, at_once=True)
        session = await self.begin(request)
        if not isinstance(session, Failure):
            self._sessions[key] = session
        return session

    async def _end(self, key: TrialKey, *, in_time: bool = False, at_once: bool = False) -> None:
        """End a session. `in_time` keeps within the call's time limit; `at_once` gives no grace period."""
        session = self._sessions.pop(key, None)
        if session is not None:
            await session.close(0.0 if at_once else session.limits.grace_s if in_time else GRACE_S)

    async def end_session(self, request: TargetRequest) -> None:
        """End the session of a trial that has no more requests."""
        await self._end(trial_key(request))

    async def close(self) -> None:
        """End all sessions."""
        await asyncio.gather(*(self._end(key) for key in tuple(self._sessions)))
