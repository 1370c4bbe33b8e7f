"""State shared by all calls of one target, and waits that end when the run is interrupted."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct, field

from agentv.model.suite.suite import TargetSpec
from agentv.model.values.response import Failure

if TYPE_CHECKING:
    from agentv.engine.calls.budget import TargetSpend
    from agentv.engine.calls.pacing import RateLimiter
    from agentv.engine.calls.retry_policy import TargetStop
    from agentv.engine.calls.server_limiter import ServerLimiter


class InterruptibleSleep(Struct):
    """Sleeps that end early when the run is interrupted. Used from one event loop."""

    _sleeping: set[asyncio.Future[bool]] = set()
    _over: bool = False

    async def sleep(self, seconds: float) -> bool:
        """Sleep; return False if the run was interrupted before the time had passed."""
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


class CallNews(Struct):
    """News from the calls of one run, kept until the run reports it.

    Attributes:
        stopped: targets that were stopped, with the reason.
        paused: targets whose server asks for a long wait, with the message to report.
        limits_calls: whether a server has refused a call because of its limits since the last report.
        on_news: called when there is something to report.
    """

    stopped: deque[tuple[str, Failure]] = field(default_factory=deque)
    paused: deque[tuple[str, str]] = field(default_factory=deque)
    limits_calls: bool = False
    on_news: Callable[[], None] = lambda: None

    def pause(self, spec: TargetSpec, why: str) -> None:
        """Report a long wait."""
        self.paused.append((spec.name, why))
        self.on_news()

    def limit(self) -> None:
        """Report that a call waits for a limit, where none did before."""
        if not self.limits_calls:
            self.limits_calls = True
            self.on_news()


class TargetChannel(Struct, frozen=True):
    """Shared state of the calls to one target.

    Attributes:
        limiter: limiter of its server; None: its calls are not limited, as for a local target.
        networked: whether it is called over a network, so that an attempt that takes too long may be lost.
        rate_limiter: limiter of its own rate; None if it has none.
        stop: whether the target is stopped.
        chance: returns a random number, 0..1.
        answer_spend, embedding_spend: budget of its calls; None if there is no budget, or if they cost nothing.
    """

    spec: TargetSpec
    limiter: ServerLimiter | None
    networked: bool
    rate_limiter: RateLimiter | None
    stop: TargetStop
    sleeper: InterruptibleSleep
    chance: Callable[[], float]
    news: CallNews
    answer_spend: TargetSpend | None = None
    embedding_spend: TargetSpend | None = None

    def note(self, failure: Failure) -> bool:
        """Stop the target if the failure requires it, and report that; return whether it was stopped just now."""
        if not self.stop.note(failure):
            return False
        self.news.stopped.append((self.spec.name, failure))
        return True
