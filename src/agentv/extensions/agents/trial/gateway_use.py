"""The gateway in one trial: the agent's usage as the gateway counted it, and as the agent reports it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from contextlib import suppress
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from msgspec import Struct, field, structs
from msgspec.structs import replace

from agentv.model.run.trial import TrialResult
from agentv.model.values.formatting import money, plural
from agentv.model.values.response import CallFailure, Failure, TargetResponse
from agentv.model.values.trace import AgentActivity, Step, Trace, UsageStep
from agentv.model.values.usage import TokenUsage, total_tokens
from agentv.model.values.values import Json
from agentv.ports import TargetRequest

if TYPE_CHECKING:
    from agentv.extensions.agents.gateway.session import TrialSession

ENDING_S = 10.0
"""Seconds that an agent has to end by itself once its model calls are refused."""

REPORTED = "reported_usage"
"""Key in a trace's metadata of the usage that the agent itself reports."""

_GRADED = frozenset({"passed", "failed", "shown"})
_COUNTS = ("input", "output", "total", "cached", "reasoning")

Answer = TargetResponse | Failure


class GatewayUse(Struct):
    """The gateway's session of one trial.

    Attributes:
        reported: tokens and cost that the agent reports, for each of its answers.
    """

    session: TrialSession
    reported: list[tuple[TokenUsage | None, float | None]] = field(default_factory=list)
    _asked_ms: float = 0.0
    _counted: int = 0
    _untraced: list[UsageStep] = field(default_factory=list)

    @property
    def replays(self) -> bool:
        """Whether the model's replies come from a recording, which was paid for earlier."""
        return self.session.exchanges is not None and self.session.exchanges.replays

    def request(self, request: TargetRequest) -> TargetRequest:
        """Return the request with the gateway in place of the model's API, without the real key in its environment."""
        self._asked_ms = self.session.now_ms
        upstream, access = self.session.upstream, self.session.access
        own = {name: access.filled(value) for name, value in request.env.items()}
        env = {name: value for name, value in own.items() if not upstream.holds_key(value)}
        return replace(request, gateway=access, env={**env, **access.env(upstream.protocol)})

    def corrected(self, activity: AgentActivity) -> AgentActivity:
        """Return the agent's reported progress, with the gateway's counts of its model calls."""
        steps = self.session.usages()
        tokens, cost = totals_of(steps)
        if tokens is None:
            return activity
        turns, total = max(activity.turns, len(steps)), total_tokens(tokens)
        return structs.replace(activity, turns=turns, tokens=total, cost_usd=cost)

    async def with_usage(self, given: Answer | Awaitable[Answer]) -> Answer:
        """Return the answer with the usage that the gateway counted, or the Failure that invalidates it."""
        answer = given if isinstance(given, TargetResponse | Failure) else await self._await_answer(given)
        response = answer.response if isinstance(answer, CallFailure) else answer
        if isinstance(response, TargetResponse):
            response = self._with_usages(response)
        own = answer if isinstance(answer, Failure) else None
        failure = self._failure(own) or own
        if not isinstance(response, TargetResponse):
            return failure or answer
        if failure is None:
            return response
        if isinstance(failure, CallFailure):
            return structs.replace(failure, response=response)
        return CallFailure(failure.code, failure.message, failure.retryable, response=response)

    def _failure(self, own: Failure | None) -> Failure | None:
        """Why the trial fails by its model calls. Calls that the agent aborted add nothing to its own Failure."""
        return None if own is not None and self.session.abandoned else self.session.failure

    async def _await_answer(self, given: Awaitable[Answer]) -> Answer:
        """Await an agent's answer. An agent that continues although its calls are refused is ended."""
        agent = asyncio.ensure_future(given)
        refused = asyncio.ensure_future(self.session.failed())
        try:
            await asyncio.wait((agent, refused), return_when=asyncio.FIRST_COMPLETED)
            if not agent.done():
                await asyncio.wait((agent,), timeout=ENDING_S)
            failure = self.session.failure
            if agent.done() or failure is None:
                return await agent
            return failure
        finally:
            refused.cancel()
            if not agent.done():
                agent.cancel()
                with suppress(asyncio.CancelledError):
                    await agent

    def _with_usages(self, response: TargetResponse) -> TargetResponse:
        """Return the answer with the model calls since the last one, in place of the usage that the agent reports."""
        trace = response.trace
        tokens = response.token_usage or (trace.tokens if trace is not None else None)
        cost = response.cost_usd if response.cost_usd is not None or trace is None else trace.cost_usd
        self.reported.append((tokens, cost))
        steps = self._new_steps()
        if trace is None and not response.messages:
            trace = self._conversation(len(steps), response.output)
        elif trace is None:
            self._untraced += steps
        else:
            counts = {} if tokens is None else {name: getattr(tokens, name) for name in _COUNTS}
            own: dict[str, Json] = {name: one for name, one in {**counts, "cost_usd": cost}.items() if one is not None}
            metadata = {**trace.metadata, REPORTED: own} if own else trace.metadata
            shown = None if trace.tool_calls else self._conversation(len(steps), response.output)
            if shown is not None and shown.tool_calls:  # the agent does not report its tool calls
                response = structs.replace(response, messages=())
            else:
                shown = structs.replace(trace, steps=_merged(trace.steps, steps))
            trace = structs.replace(trace, steps=shown.steps, metadata=metadata)
        used, paid = totals_of(steps)
        earlier = response.earlier or self.replays
        return structs.replace(response, trace=trace, token_usage=used, cost_usd=paid, metered=True, earlier=earlier)

    def _new_steps(self) -> tuple[UsageStep, ...]:
        """The calls since the last answer, with times relative to the latest request."""
        steps = self.session.usages()
        new, self._counted = steps[self._counted :], len(steps)
        asked_ms = self._asked_ms
        return tuple(structs.replace(one, started_ms=max(0.0, (one.started_ms or 0.0) - asked_ms)) for one in new)

    def _conversation(self, calls: int, answer: str | None) -> Trace | None:
        """The trace of an agent that reports none, built from its latest model calls; None without calls."""
        from agentv.extensions.agents.gateway.model_calls import trace_of_calls

        if not calls:
            return None
        trace = trace_of_calls(self.session.calls, calls, self._asked_ms, answer)
        return structs.replace(trace, duration_ms=round(self.session.now_ms - self._asked_ms, 3))

    def completed(self, trace: Trace | None) -> Trace | None:
        """Return the trace with the calls that no answer's trace has. Without a trace, build one from them."""
        new = self._new_steps()
        if trace is None and not self._untraced:
            return self._conversation(len(new), None)
        steps = (*self._untraced, *new)
        self._untraced.clear()
        if not steps:
            return trace
        trace = trace or Trace(source="gateway")
        return structs.replace(trace, steps=_merged(trace.steps, steps))

    def settled(self, result: TrialResult, *, grades_at_limits: bool) -> TrialResult:
        """Return the result with the usage of all model calls, and errored if they invalidate it."""
        steps = self.session.usages()
        tokens, cost = totals_of(steps)
        notes = [*self.session.notes()]
        unknown = sum(one.tokens is None and one.cost_usd is None for one in steps)
        if unknown:  # these calls broke off
            calls = plural(unknown, "model call")
            notes.append(f"what {calls} took that did not end is not known, and not in the totals")
        notes += self._differences(tokens, cost)
        result = structs.replace(result, token_usage=tokens, cost_usd=cost, notes=(*result.notes, *notes))
        if self.replays:
            result = structs.replace(result, reused=True)
        failure = self._failure(result.error)
        exchanges = self.session.exchanges
        if exchanges is not None:  # only graded answers are recorded; `finish` returns why a replay is void
            is_graded = result.status in _GRADED or bool(result.scores)
            failure = exchanges.finish(complete=is_graded and self.session.failure is None) or failure
        if failure is None or (failure.code == "agent-limit" and grades_at_limits):
            return result
        return structs.replace(result, status="errored", score=None, error=failure)

    def _differences(self, tokens: TokenUsage | None, cost: float | None) -> Iterable[str]:
        """Yield notes on differences between the agent's own count and the gateway's."""
        counts = [one for one, _ in self.reported if one is not None]
        own = reduce(add, counts) if counts else None
        prices = [one for _, one in self.reported if one is not None]
        if own is not None and tokens is not None and (own.input, own.output) != (tokens.input, tokens.output):
            yield (
                f"the agent reports {own.input or 0:,} input and {own.output or 0:,} output tokens, "
                f"the gateway counted {tokens.input or 0:,} and {tokens.output or 0:,}"
            )
        if prices and cost is not None and abs(sum(prices) - cost) > 0.01 * max(cost, 1e-6):
            yield f"the agent reports a cost of {money(sum(prices))}, the gateway counted {money(cost)}"


def totals_of(steps: Iterable[UsageStep]) -> tuple[TokenUsage | None, float | None]:
    """Return the known tokens and cost of model calls; None if none are known, or a price is missing."""
    counted = Trace(tuple(one for one in steps if one.tokens is not None))
    cost = counted.cost_usd
    return counted.tokens, None if cost is None else round(cost, 10)


def _merged(steps: Iterable[Step], usages: Iterable[UsageStep]) -> tuple[Step, ...]:
    """Merge the calls of a model into an agent's steps, in the order of known times."""
    waiting, found, now = sorted(usages, key=lambda one: one.started_ms or 0.0), list[Step](), 0.0
    for step in steps:
        now = max(now, step.started_ms or 0.0)
        while waiting and (waiting[0].started_ms or 0.0) < now:
            found.append(waiting.pop(0))
        found.append(step)
    return (*found, *waiting)
