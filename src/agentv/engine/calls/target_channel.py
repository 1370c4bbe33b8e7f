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
    """Shared state of the calls to one target.

    Attributes:
        limiter: of its server; None: a target on this machine, which needs no limit.
        networked: it is called over a network, so an attempt that takes too long may be lost.
        rate_limiter: of its own rate; None if it has none.
        stop: whether it is stopped.
        chance: returns a random number, 0..1.
        report_stop: receives the failure that stopped it.
        report_pause: receives the reason of an unusually long wait.
        report_limit: called when its server refuses a call for its limits.
        answer_spend, vectors: budget of its calls; None if there is no budget, or if they cost nothing.
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
    report_limit: Callable[[], None]
    answer_spend: TargetSpend | None = None
    embedding_spend: TargetSpend | None = None
