"""Rate limits, timeouts and retries for every call of a target.

Trials and judges that call one endpoint share its limiter (SPEC sections 10 and 12). Targets that answer at once, such
as `echo`, take a fast path without any of this, and the modules for it are not even imported.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.engine.calls.retry_policy import CircuitBreaker
from agentv.engine.calls.running_agents import RunningAgents
from agentv.engine.calls.target_channel import CallNews, InterruptibleSleep, TargetChannel
from agentv.model.run.events import LimitedTarget
from agentv.model.suite.suite import DEFAULT_WORKERS, TargetSpec
from agentv.model.values.response import CallFailure, Embeddings, Failure, TargetResponse
from agentv.model.values.usage import UNKNOWN, Ceiling
from agentv.ports import Embedder, Target, TargetRequest

if TYPE_CHECKING:
    from agentv.engine.calls.attempts import AttemptAllowance
    from agentv.engine.calls.budget import BudgetLimiter, Reservation, TargetSpend
    from agentv.engine.calls.model_calls import TrialModelCalls
    from agentv.engine.calls.server_limiter import ServerLimiter, Waiter


def random_fraction() -> float:
    """Return a random number, 0..1."""
    import random

    return random.random()  # noqa: S311  # it spreads calls; no secret depends on it


class CallThrottle(Struct):
    """Shared state of the calls of one run.

    Attributes:
        workers: maximum number of concurrent calls to one endpoint.
        chance: returns random numbers, 0..1.
        budget_limiter: the budget's limiter; None if there is no budget.
        stops: the stopped targets.
        news: news that the run has not reported yet.
        agents: the agents that are working.
    """

    workers: int = DEFAULT_WORKERS
    chance: Callable[[], float] = random_fraction
    budget_limiter: BudgetLimiter | None = None
    stops: CircuitBreaker = field(default_factory=CircuitBreaker)
    news: CallNews = field(default_factory=CallNews)
    agents: RunningAgents = field(default_factory=RunningAgents)
    _limiters: dict[str, ServerLimiter] = {}
    _own: list[ServerLimiter] = []
    _names: dict[int, str] = {}
    _sleeper: InterruptibleSleep = field(default_factory=InterruptibleSleep)
    _model_channels: dict[tuple[int, str], TargetChannel] = {}

    def wrap(self, spec: TargetSpec, target: Target) -> Target:
        """Return the target with its calls throttled. The result is an `Embedder` if the target is one."""
        endpoint: str | None = getattr(spec.settings, "endpoint", lambda: None)()
        paced_by_calls = spec.upstream is not None  # a session that held a permit would block its own calls
        answers = vectors = None
        limiter = self.budget_limiter
        # an agent's cost is reserved for each of its model calls instead
        if limiter is not None and not paced_by_calls and not getattr(spec.settings, "free", False):
            key = self.stops.key_of(spec)
            answers, vectors = limiter.target_spend(key, spec, "answers"), limiter.target_spend(key, spec, "vectors")
        channel = self._channel(spec, endpoint, answers, vectors, limited=not paced_by_calls)
        paced = ThrottledEmbedder if isinstance(target, Embedder) else ThrottledTarget
        return paced(target, channel)

    def model_calls(self, spec: TargetSpec, endpoint: str, budget_usd: float | None) -> TrialModelCalls:
        """Return the throttled model calls of one trial's agent.

        Args:
            spec: the agent.
            endpoint: endpoint of its model's API, whose limits apply.
            budget_usd: what the trial may spend; None: only the run's budget applies.
        """
        from agentv.engine.calls.budget import Budget, BudgetLimiter
        from agentv.engine.calls.model_calls import TrialModelCalls

        channel = self._model_channels.get((id(spec), endpoint))
        if channel is None:
            limiter = self.budget_limiter
            spend = None if limiter is None else limiter.target_spend(self.stops.key_of(spec), spec, "answers")
            channel = self._model_channels[id(spec), endpoint] = self._channel(spec, endpoint, spend)
        return TrialModelCalls(channel, None if budget_usd is None else BudgetLimiter(Budget(budget_usd)))

    def _channel(
        self,
        spec: TargetSpec,
        endpoint: str | None,
        answers: TargetSpend | None,
        vectors: TargetSpend | None = None,
        *,
        limited: bool = True,
    ) -> TargetChannel:
        limiter = rate_limiter = None
        if limited and (endpoint is not None or spec.rate is not None):
            limiter = self._limiter_of(spec, endpoint)
        if limited and spec.rate is not None:
            from agentv.engine.calls.pacing import RateLimiter

            rate_limiter = RateLimiter(spec.rate)
        return TargetChannel(
            spec,
            limiter,
            endpoint is not None,
            rate_limiter,
            self.stops.of(spec),
            self._sleeper,
            self.chance,
            self.news,
            answers,
            vectors,
        )

    def interrupt(self) -> None:
        """End all waits for retries and for servers, and have agents end their work."""
        self.agents.interrupt()
        self._sleeper.end()
        if self.budget_limiter is not None:
            self.budget_limiter.close()
        for limiter in (*self._limiters.values(), *self._own):
            limiter.close()

    def record_stop(self, spec: TargetSpec, failure: CallFailure) -> None:
        """Record that a target was stopped on another machine."""
        if self.stops.of(spec).note(failure):
            self.news.stopped.append((spec.name, failure))

    def _limiter_of(self, spec: TargetSpec, endpoint: str | None) -> ServerLimiter:
        """Return the limiter that an endpoint's calls share, or a new one for a target that only has a rate."""
        if endpoint is not None and endpoint in self._limiters:
            return self._limiters[endpoint]
        from agentv.engine.calls.pacing import AdaptiveConcurrency
        from agentv.engine.calls.server_limiter import ServerLimiter

        made = ServerLimiter(AdaptiveConcurrency(self.workers))
        self._names[id(made)] = spec.name
        if endpoint is None:
            self._own.append(made)
        else:
            self._limiters[endpoint] = made
        return made

    def limited(self) -> tuple[LimitedTarget, ...]:
        """Return the targets whose next call waits for a limit of their server; each server once."""
        found = ((self._names[id(one)], one.limits()) for one in (*self._limiters.values(), *self._own))
        return tuple(LimitedTarget(name, *limits) for name, limits in found if limits is not None)


class ThrottledTarget:
    """A target whose calls go through a `CallThrottle`.

    Attributes:
        wrapped: the target itself.
    """

    def __init__(self, wrapped: Target, channel: TargetChannel) -> None:
        self.wrapped = wrapped
        self._channel = channel
        self._answer = wrapped.answer
        self._at_once = channel.limiter is None and channel.answer_spend is None
        self._is_plain = self._at_once and channel.spec.price is None
        self._stop = channel.stop

    def answer(self, request: TargetRequest) -> TargetResponse | Failure | Awaitable[TargetResponse | Failure]:
        """Call the target, with retries where they may help."""
        if not self._is_plain or self._stop.failure is not None:
            return self._send(request, None)
        given = self._answer(request)
        if isinstance(given, TargetResponse):
            return given
        if isinstance(given, Failure) and not given.retryable and not isinstance(given, CallFailure):
            return given
        return self._send(request, given)

    async def close(self) -> None:
        """Close the target."""
        await self.wrapped.close()

    async def _send(
        self, request: TargetRequest, first: TargetResponse | Failure | Awaitable[TargetResponse | Failure] | None
    ) -> TargetResponse | Failure:
        from agentv.engine.calls.attempts import RetriedCall

        in_workspace = request.workspace_path is not None
        first = _not_repeated(first) if in_workspace and first is not None else first

        def ask(turn: AttemptAllowance) -> TargetResponse | Failure | Awaitable[TargetResponse | Failure]:
            asked = request
            if turn.number or turn.seconds != request.timeout_s:
                asked = replace(request, attempt=request.attempt + turn.number, timeout_s=turn.seconds)
            given = self._answer(asked)
            return _not_repeated(given) if in_workspace else given

        channel = self._channel
        reservation = _reservation(channel.answer_spend, channel.spec, "ceiling", request)
        waiter, price = _waiter(request.prompt, channel), channel.spec.price
        call = RetriedCall(channel, ask, request.timeout_s, waiter, reservation, price)
        found, took_s = await call.outcome(first)
        if isinstance(found, Failure):
            return _record_failure(found, channel)
        if self._at_once and not call.attempts:
            return found
        took_ms = found.duration_ms if found.duration_ms is not None else took_s * 1000
        return replace(found, duration_ms=took_ms, attempts=(*found.attempts, *call.attempts))


class ThrottledEmbedder(ThrottledTarget):
    """A throttled target that also computes embeddings."""

    async def embed(self, texts: Sequence[str], timeout_s: float) -> Embeddings | Failure:
        """Return the vectors of the texts, with retries where they may help."""
        from agentv.engine.calls.attempts import RetriedCall

        embedder = self.wrapped
        assert isinstance(embedder, Embedder)  # noqa: S101  # checked by `wrap`

        def ask(turn: AttemptAllowance) -> Awaitable[Embeddings | Failure]:
            return embedder.embed(texts, turn.seconds)

        channel = self._channel
        reservation = _reservation(channel.embedding_spend, channel.spec, "ceiling_of_vectors", texts)
        waiter, price = _waiter("".join(texts), channel), channel.spec.price
        found, _ = await RetriedCall(channel, ask, timeout_s, waiter, reservation, price).outcome()
        return _record_failure(found, channel) if isinstance(found, Failure) else found


async def _not_repeated(
    given: TargetResponse | Failure | Awaitable[TargetResponse | Failure],
) -> TargetResponse | Failure:
    """Await an answer in a workspace; a failure may be retried only if the agent cannot have begun its work."""
    from agentv.engine.calls.retry_policy import is_limited

    found = given if isinstance(given, TargetResponse | Failure) else await given
    if isinstance(found, TargetResponse) or found.code == "cannot-start" or is_limited(found):
        return found
    return replace(found, retryable=False)


def _record_failure(failure: Failure, channel: TargetChannel) -> Failure:
    """Record the failure and return it, or return that the target was already stopped."""
    if channel.note(failure):
        return failure
    stops = isinstance(failure, CallFailure) and failure.stops
    return (channel.stop.failure_for(channel.spec.name) if stops else None) or failure


def _waiter(text: str, channel: TargetChannel) -> Waiter:
    from agentv.engine.calls.server_limiter import Waiter

    if channel.rate_limiter is None:
        return Waiter()
    from agentv.engine.calls.pacing import CHARACTERS_A_TOKEN

    return Waiter(tokens=len(text) / CHARACTERS_A_TOKEN, rate_limiter=channel.rate_limiter)


def _reservation(account: TargetSpend | None, spec: TargetSpec, ask: str, about: object) -> Reservation | None:
    """Return the reservation of a call, or None without a budget. Settings of older plugins have no ceiling."""
    if account is None:
        return None
    ceiling: Ceiling = getattr(spec.settings, ask, lambda _: UNKNOWN)(about)
    if spec.price is not None:
        ceiling = replace(ceiling, usd=spec.price.at_most(ceiling.tokens))
    from agentv.engine.calls.budget import Reservation

    return Reservation(account, ceiling)
