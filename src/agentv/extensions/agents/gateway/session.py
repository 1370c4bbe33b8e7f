"""The model calls of one trial's agent: what they used, and why the trial may not count."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agentv.engine.calls.model_calls import TrialModelCalls
from agentv.extensions.agents.gateway.routes import Api, CallBody
from agentv.extensions.agents.gateway.usage import failure_of_finish
from agentv.model.run.trial import Trial
from agentv.model.suite.tools import GatewayAccess, ModelUpstream
from agentv.model.values.response import CallFailure, Failure
from agentv.model.values.trace import UsageStep
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import JsonObject

if TYPE_CHECKING:
    from agentv.extensions.agents.gateway.recording import TrialExchanges

UNREACHED = "agent-api"
"""Failure code of a trial whose agent could not reach its model."""

ABORTED = "connection"
"""Failure code of a call that the agent aborted."""

STILL_RUNNING = "cancelled"
"""Failure code of a call that still ran when its trial ended."""

MOST_KEPT = 64_000_000
"""Maximum bytes of bodies that are kept per trial, for the trace of an agent that reports none."""

_REFUSED_KEY = frozenset({401, 402, 403})


@dataclass(slots=True)
class CountedCall:
    """One model call of an agent.

    Attributes:
        number: number of the call within the trial, from 1.
        failure: why the call, or its last attempt so far, gave no answer; None if nothing failed.
        excused: whether the API is not to blame: the fault was injected, or the agent aborted the call.
        ended: whether the call has ended.
        offers_tools: whether the model gets tools. Side calls, such as one for a title, offer none.
        finish: finish reason in the words of the API; empty if the API gives none.
        api: format of its bodies.
        request, reply: the bodies, if they were kept; a streamed reply in its assembled form.
    """

    number: int
    model: str
    started_ms: float
    failure: Failure | None = None
    excused: bool = False
    tokens: TokenUsage | None = None
    cost_usd: float | None = None
    duration_ms: float | None = None
    ended: bool = False
    offers_tools: bool = False
    finish: str = ""
    api: Api = "chat"
    request: bytes = b""
    reply: JsonObject | None = None

    def abort(self, why: str, code: str = ABORTED) -> None:
        """Mark the call as aborted, unless it has already failed."""
        if self.failure is None:
            self.failure, self.excused = Failure(code, why), True

    def step(self) -> UsageStep:
        """Return the call as a step of the trace."""
        error = None if self.failure is None else self.failure.message
        return UsageStep(
            self.model or None,
            self.tokens,
            self.cost_usd,
            self.started_ms,
            self.duration_ms,
            error if self.ended else "it has not ended",
            evidence="gateway",
        )


@dataclass(slots=True)
class TrialSession:
    """One trial's session with the gateway.

    Attributes:
        limits: makes its calls, within the limits of the run.
        forget: revokes its token and closes its socket.
        spent: called with each call that has ended.
        exchanges: the recording that its calls are replayed from or recorded to; None for neither.
        refusal: why further calls are refused; None if they are not.
    """

    access: GatewayAccess
    upstream: ModelUpstream
    trial: Trial
    limits: TrialModelCalls
    clock: Callable[[], float]
    forget: Callable[[TrialSession], Awaitable[None]]
    spent: Callable[[TrialSession, CountedCall], None]
    exchanges: TrialExchanges | None = None
    running: set[asyncio.Task[object]] = field(default_factory=set)
    calls: list[CountedCall] = field(default_factory=list)
    closed: bool = False
    refusal: Failure | None = None
    _refused: asyncio.Event = field(default_factory=asyncio.Event)
    _began: float = field(init=False)
    _free_bytes: int = MOST_KEPT
    faults: Iterator[str | None] = field(init=False)

    def __post_init__(self) -> None:
        self._began = self.clock()
        self.faults = drawn_faults(self.upstream.faults, self.trial.key)

    def begin(self, body: CallBody, api: Api) -> CountedCall:
        """Begin a call."""
        tools = bool(body.values.get("tools"))
        call = CountedCall(len(self.calls) + 1, body.model, self.now_ms, offers_tools=tools, api=api)
        call.request = body.data if self._reserve(len(body.data)) else b""
        self.calls.append(call)
        return call

    def keep_reply(self, call: CountedCall, answer: JsonObject | None, size: int) -> None:
        """Keep a successful reply of `size` bytes, if there is room for it."""
        call.reply = answer if self._reserve(size) else None

    def _reserve(self, size: int) -> bool:
        self._free_bytes -= size
        return self._free_bytes >= 0

    def end(self, call: CountedCall) -> None:
        """End a call, unless it has already ended."""
        if call.ended:
            return
        call.duration_ms = round(self.now_ms - call.started_ms, 3)
        call.ended = True
        self.spent(self, call)

    def refuse(self, failure: Failure) -> None:
        """Refuse further calls of this trial, which fails with `failure`."""
        self.refusal = self.refusal or failure
        self._refused.set()

    @property
    def failure(self) -> Failure | None:
        """Why the trial fails: its calls are refused, or the last one gave no complete answer; None otherwise."""
        if self.refusal is not None:
            return self.refusal
        call = next((one for one in reversed(self.calls) if not one.excused), None)
        if call is not None and call.failure is not None:
            return self._unreached(call, call.failure)
        if call is not None:  # some agents use an incomplete reply without saying so
            replies = [one for one in self.calls if one.failure is None]
            own = [one for one in replies if one.offers_tools] or replies
            return failure_of_finish(own[-1].finish)
        if not self.abandoned:
            return None
        return CallFailure(UNREACHED, f"the agent broke off all of its {len(self.calls)} model calls")

    @property
    def abandoned(self) -> bool:
        """Whether the agent aborted all of its calls, as when it is ended at a limit."""
        codes = {one.failure.code for one in self.calls if one.failure is not None}
        excused = self.refusal is None and all(one.excused for one in self.calls)
        return excused and ABORTED in codes and STILL_RUNNING not in codes

    def _unreached(self, call: CountedCall, failure: Failure) -> Failure:
        message = f"the agent's last call of its model (call {call.number}) failed: {failure.message}"
        if not isinstance(failure, CallFailure):
            return CallFailure(UNREACHED, message, failure.retryable)
        stops = failure.stops and failure.status in _REFUSED_KEY
        return replace(failure, code=UNREACHED, message=message, stops=stops, attempts=())

    def usages(self) -> tuple[UsageStep, ...]:
        """Return the model calls so far."""
        return tuple(call.step() for call in self.calls)

    def notes(self) -> tuple[str, ...]:
        """Return notes on the calls."""
        found: list[str] = []
        if not self.calls:
            found.append("the agent called no model through the gateway, so its tokens and cost are unknown")
        unknown = sum(call.ended and call.tokens is None and call.failure is None for call in self.calls)
        if unknown:
            found.append(f"the model's API reported no usage for {unknown} of {len(self.calls)} calls")
        if self.exchanges is not None:
            found += self.exchanges.notes()
        return tuple(found)

    async def failed(self) -> None:
        """Return once further calls are refused."""
        await self._refused.wait()

    async def close(self) -> None:
        """End the calls that are still running and revoke the token."""
        if self.closed:
            return
        self.closed = True
        await self.forget(self)
        running = tuple(self.running)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=5)
        for call in self.calls:
            if not call.ended:
                call.abort("it had not ended when the trial did", STILL_RUNNING)
                self.end(call)
        failure = self.failure
        if isinstance(failure, CallFailure) and failure.stops:
            self.limits.stop(failure)

    @property
    def now_ms(self) -> float:
        """Milliseconds since the session was opened. The times of its calls have the same origin."""
        return round((self.clock() - self._began) * 1000, 3)


def drawn_faults(shares: Mapping[str, float], key: str) -> Iterator[str | None]:
    """Yield the fault of each call of a trial, or None for a call without one.

    Args:
        shares: fault (a status or `drop`) → share of the calls.
        key: key of the trial; the same key gives the same faults.
    """
    weights: dict[str | None, float] = {**dict(sorted(shares.items())), None: max(0.0, 1 - sum(shares.values()))}
    source = random.Random(f"faults\0{key}")  # noqa: S311  # must be repeatable, and protects nothing
    while True:
        yield source.choices([*weights], [*weights.values()])[0]
