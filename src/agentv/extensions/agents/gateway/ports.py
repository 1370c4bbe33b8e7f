"""Ports of the gateway: what it offers to the engine, and what it needs of the engine and the price list."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from agentv.extensions.agents.gateway.routes import Api
from agentv.model.run.budget import Ceiling
from agentv.model.suite.gateway import GatewayAccess, ModelProtocol, ModelUpstream
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.response import CallFailure, Failure, RateLimits, TargetResponse
from agentv.model.values.trace import UsageStep
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import Json, JsonObject
from agentv.work_ports import TrialExchanges


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

    def ending(self, finish: str) -> Failure | None:
        """Why a reply with this finish reason is no whole answer; None: it is one."""
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


@dataclass(frozen=True, slots=True)
class SeenCall:
    """One model call as it passed the gateway.

    Attributes:
        request, reply: the bodies; empty beyond what is kept of a trial. A streamed reply is its events.
        step: what it used. Its time counts from when the trial's session was opened.
    """

    api: Api
    request: bytes
    reply: bytes
    step: UsageStep


class GatewaySession(Protocol):
    """The gateway as one trial uses it."""

    @property
    def access(self) -> GatewayAccess:
        """How the agent reaches it."""
        ...

    @property
    def failure(self) -> Failure | None:
        """Why the trial cannot count, such as `budget-spent`; None: nothing is wrong."""
        ...

    @property
    def abandoned(self) -> bool:
        """Whether the agent broke off all of its calls, as one does that is ended at a limit."""
        ...

    def usages(self) -> tuple[UsageStep, ...]:
        """The model calls so far, in order, with `evidence` gateway."""
        ...

    def seen(self) -> tuple[SeenCall, ...]:
        """The model calls so far with their bodies, in order."""
        ...

    def notes(self) -> tuple[str, ...]:
        """What the report says of them, such as a replay whose prompts differ from the recorded ones."""
        ...

    async def failed(self) -> None:
        """Return when no further call of the trial is made, since its budget or the run's is spent."""
        ...

    async def close(self) -> None:
        """End the calls that are still running; the token is refused from now on."""
        ...


class ModelGateway(Protocol):
    """The gateway of a run. It listens on loopback from its first trial on."""

    async def open(self, spec: TargetSpec, upstream: ModelUpstream, trial: GatewayTrial) -> GatewaySession | Failure:
        """Let the agent of a trial call its model.

        Args:
            spec: the target, whose budget and rate the calls count for.
            upstream: where its calls go.
            trial: whose calls they are.
        """
        ...

    async def close(self) -> None:
        """Stop listening."""
        ...


@dataclass(frozen=True, slots=True)
class GatewayTrial:
    """The trial whose model calls pass the gateway.

    Attributes:
        socket_directory: a directory that the sandbox shows to the agent under the same path; the gateway also listens
            on a socket there where the sandbox has no network of the host. Empty: it has.
        budget_usd: what the calls of the trial may cost; None: there is no limit but the run's.
        key: of the trial, the same in every run of the same case.
        exchanges: the recording of its calls, which are replayed from it or recorded to it; None: neither.
    """

    case_id: str
    target: str
    sample: int = 1
    variant: str | None = None
    socket_directory: str = ""
    budget_usd: float | None = None
    key: str = ""
    exchanges: TrialExchanges | None = None
