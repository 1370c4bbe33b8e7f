"""State shared by all calls of one target, and waits that end when the run is interrupted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from agentv.model.suite.suite import TargetSpec
from agentv.model.values.response import Failure

if TYPE_CHECKING:
    from agentv.engine.calls.budget_limiter import TargetSpend
    from agentv.engine.calls.circuit_breaker import TargetStop
    from agentv.engine.calls.rate_limiter import RateLimiter
    from agentv.engine.calls.server_limiter import ServerLimiter


class InterruptibleSleep:
    """Those who wait for a time to pass. Used from one event loop."""

    def __init__(self) -> None:
        self._sleeping: set[asyncio.Future[bool]] = set()
        self._over = False

    async def sleep(self, seconds: float) -> bool:
        """Wait; returns False if the run was interrupted before the time had passed."""
        if self._over:
            return False
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bool] = loop.create_future()
        timer = loop.call_later(seconds, _wake, future, True)  # passed on by position
        self._sleeping.add(future)
        try:
            return await future
        finally:
            timer.cancel()
            self._sleeping.discard(future)

    def end(self) -> None:
        """Wake all sleepers, and end all later sleeps at once."""
        self._over = True
        for future in self._sleeping:
            _wake(future, False)


def _wake(future: asyncio.Future[bool], slept: bool) -> None:  # called by the loop
    if not future.done():
        future.set_result(slept)


class TargetChannel(Struct, frozen=True):
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
