"""State shared by all calls of one target."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from agentv.model.suite.suite import TargetSpec

if TYPE_CHECKING:
    from agentv.engine.calls.budget_limiter import TargetSpend
    from agentv.engine.calls.circuit_breaker import TargetStop
    from agentv.engine.calls.interruptible_sleep import InterruptibleSleep
    from agentv.engine.calls.rate_limiter import RateLimiter
    from agentv.engine.calls.server_limiter import ServerLimiter
    from agentv.model.values.response import Failure


class TargetChannel(NamedTuple):
    """The way to one target.

    Attributes:
        limiter: where its calls wait; None: a target on this machine, which needs no waiting.
        networked: it is asked over a network, so that an attempt that takes too long may be a lost one.
        rate_limiter: of its own rate; None: it has none.
        stop: whether it is stopped.
        chance: gives a random number, 0..1.
        report_stop: takes the failure that has stopped it.
        report_pause: takes why calls wait for longer than people would expect.
        answer_spend, vectors: what its calls may spend; None: there is no budget, or they cost nothing.
    """

    spec: TargetSpec
    limiter: ServerLimiter | None
    networked: bool
    rate_limiter: RateLimiter | None
    stop: TargetStop
    sleeper: InterruptibleSleep
    chance: Callable[[], float]
    report_stop: Callable[[TargetSpec, Failure], None]
    report_pause: Callable[[TargetSpec, str], None]
    answer_spend: TargetSpend | None = None
    embedding_spend: TargetSpend | None = None
