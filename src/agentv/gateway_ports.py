"""Ports of the gateway: what it needs of the engine, the price list and the store. `ports` has those that it offers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import Protocol

from agentv.lazy_dataclass import dataclass
from agentv.model.run.budget import Ceiling
from agentv.model.suite.gateway import ModelProtocol, ModelUpstream
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.response import CallFailure, Failure, RateLimits, TargetResponse
from agentv.model.values.trace import UsageStep
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import Json, JsonObject
from agentv.ports import GatewayTrial


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What an agent asks of its model, as the gateway forwards it.

    Attributes:
        path: below the base URL of the protocol, such as `/chat/completions`, without a query.
        model: by its provider's name; empty: the request names none.
        body: as the agent sent it.
        streamed: the reply is asked for in pieces.
    """

    protocol: ModelProtocol
    path: str
    model: str
    body: bytes = field(repr=False)
    streamed: bool = False


@dataclass(frozen=True, slots=True)
class RecordedExchange:
    """A reply of a model API, whole: passed on as it is, streamed or not.

    Attributes:
        content_type: of the reply; `text/event-stream` of a stream.
        body: as the API sent it, uncompressed.
    """

    status: int
    content_type: str
    body: bytes = field(repr=False)


class ModelExchanges(Protocol):
    """Recorded model calls of agents: those of a cassette that is replayed, or recorded."""

    def recorded(self, trial: GatewayTrial, number: int, request: ModelRequest) -> RecordedExchange | Failure | None:
        """The recorded reply; a failure: there is none, and the call must not be made; None: make it.

        Args:
            trial: whose call it is.
            number: of the call within its trial, from 1.
            request: what is asked.
        """
        ...

    def keep(self, trial: GatewayTrial, number: int, request: ModelRequest, reply: RecordedExchange) -> None:
        """Keep the reply to a call that was made, once it is complete."""
        ...

    def notes(self, trial: GatewayTrial) -> tuple[str, ...]:
        """What the row of a trial says, such as that its prompts differ from the recorded ones."""
        ...


class ModelApis(Protocol):
    """What is known of model APIs: prices, limits, the meaning of their errors."""

    def ceiling(self, upstream: ModelUpstream, model: str, body: JsonObject) -> Ceiling:
        """The most that a call can cost, by its body."""
        ...

    def is_local(self, upstream: ModelUpstream) -> bool:
        """Whether the API runs on this machine, where nobody is paid unless it says so."""
        ...

    def usage(self, protocol: ModelProtocol, usage: Json) -> tuple[TokenUsage | None, int]:
        """The tokens in a `usage` of the API, and how many of them were written to a cache at a price of their own."""
        ...

    def cost(
        self, upstream: ModelUpstream, model: str, tokens: TokenUsage | None, *, cache_written: int = 0
    ) -> float | None:
        """The price of a call by the price list; None where it is not known."""
        ...

    def failure(
        self, upstream: ModelUpstream, status: int, headers: Mapping[str, str], body: bytes, retried: frozenset[int]
    ) -> CallFailure:
        """What an error of the API means; `retried`: the statuses after which the target's settings ask again."""
        ...

    def limits(self, headers: Mapping[str, str]) -> RateLimits | None:
        """What is left of the rate limits."""
        ...


class ModelCalls(Protocol):
    """The model calls of one trial's agent: admitted, paced and retried as the calls of a target are."""

    async def call(
        self, ask: Callable[[], Awaitable[TargetResponse | Failure]], ceiling: Ceiling, size: int
    ) -> TargetResponse | Failure:
        """The outcome of a call, once it may be made.

        Args:
            ask: makes one attempt. A failure that is `retryable` is asked again.
            ceiling: the most that an attempt can cost.
            size: bytes of what is asked, for the rate of tokens.
        """
        ...

    def stop(self, failure: CallFailure) -> None:
        """No call of this target can do better: its trials that have not started are not run."""
        ...


class ModelCallLimits(Protocol):
    """Limits of the model calls of agents: the run's budget, and the rate of each endpoint."""

    def model_calls(self, spec: TargetSpec, upstream: ModelUpstream, budget_usd: float | None) -> ModelCalls:
        """Those of one trial; `budget_usd`: what they may cost besides."""
        ...


class SpendingLog(Protocol):
    """Record of what model calls of agents cost, kept as soon as each has ended."""

    def spend(self, case_id: str, target: str, call: UsageStep) -> None:
        """Keep what one call took."""
        ...
