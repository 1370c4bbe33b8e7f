"""State shared by all calls of one target."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from agentv.model.suite.suite import TargetSpec

if TYPE_CHECKING:
    from agentv.engine.calls.budget_limiter import TargetSpend
    from agentv.engine.calls.circuit_breaker import Stop
    from agentv.engine.calls.interruptible_sleep import InterruptibleSleep
    from agentv.engine.calls.rate_limiter import RateLimiter
    from agentv.engine.calls.server_limiter import ServerLimiter
    from agentv.model.values.response import Failure


class TargetChannel(NamedTuple):
    """The way to one target.

    Attributes:
        gate: where its calls wait; None: a target on this machine, which needs no waiting.
        networked: it is asked over a network, so that an attempt that takes too long may be a lost one.
        meter: of its own rate; None: it has none.
        stop: whether it is stopped.
        chance: gives a random number, 0..1.
        tell: takes the failure that has stopped it.
        tell_pause: takes why calls wait for longer than people would expect.
        answers, vectors: what its calls may spend; None: there is no budget, or they cost nothing.
    """

    spec: TargetSpec
    gate: ServerLimiter | None
    networked: bool
    meter: RateLimiter | None
    stop: Stop
    sleeper: InterruptibleSleep
    chance: Callable[[], float]
    tell: Callable[[TargetSpec, Failure], None]
    tell_pause: Callable[[TargetSpec, str], None]
    answers: TargetSpend | None = None
    vectors: TargetSpend | None = None
