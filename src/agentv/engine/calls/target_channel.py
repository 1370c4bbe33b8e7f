"""State shared by all calls of one target, waits that end when the run is interrupted, and targets that are stopped."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from agentv.model.run.trial import Trial
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.response import CallFailure, Failure

if TYPE_CHECKING:
    from agentv.engine.calls.budget import TargetSpend
    from agentv.engine.calls.pacing import RateLimiter
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


class CallNews:
    """What the calls of one run find out, until the run reports it.

    Attributes:
        stopped: targets that were stopped, with the reason.
        paused: targets whose server asks for a long wait, with the reason for an earlier retry.
        limits_calls: a server has refused a call for its limits, since the run last looked.
        noticed: called when there is something to report.
    """

    def __init__(self) -> None:
        self.stopped: deque[tuple[str, Failure]] = deque()
        self.paused: deque[tuple[str, str]] = deque()
        self.limits_calls = False
        self.noticed: Callable[[], None] = lambda: None

    def pause(self, spec: TargetSpec, why: str) -> None:
        """Report a long wait."""
        self.paused.append((spec.name, why))
        self.noticed()

    def limit(self) -> None:
        """Report that a call waits for a limit, where none did before."""
        if not self.limits_calls:
            self.limits_calls = True
            self.noticed()


class TargetChannel(Struct, frozen=True):
    """Shared state of the calls to one target.

    Attributes:
        limiter: of its server; None: a target on this machine, which needs no limit.
        networked: it is called over a network, so an attempt that takes too long may be lost.
        rate_limiter: of its own rate; None if it has none.
        stop: whether it is stopped.
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
        """Whether the target is stopped from now on by this failure, which is then reported."""
        if not self.stop.note(failure):
            return False
        self.news.stopped.append((self.spec.name, failure))
        return True


STOPPED = "target-stopped"
INTERRUPTED = Failure("interrupted", "the run was interrupted while a call waited")
UNAFFORDABLE: Final = "budget-spent"


class TargetStop(Struct):
    """Whether a target is stopped, and why. Shared by all that reach the same system with the same key."""

    failure: CallFailure | None = None

    def note(self, failure: Failure) -> bool:
        """Whether the target is stopped from now on, by this failure: it was not before."""
        if self.failure is not None or not isinstance(failure, CallFailure) or not failure.stops:
            return False
        self.failure = failure
        return True

    def failure_for(self, name: str) -> Failure | None:
        """Failure of every later call; None as long as the target is not stopped."""
        return None if self.failure is None else Failure(STOPPED, f"'{name}' is stopped: {self.failure.message}")


class CircuitBreaker:
    """The stopped targets of a run."""

    def __init__(self) -> None:
        self._all: dict[Hashable, TargetStop] = {}
        self._kept: list[TargetSpec] = []  # alive, so that their ids stay their own

    def of(self, spec: TargetSpec) -> TargetStop:
        """Of one target; two specs that say the same are one."""
        return self._all.setdefault(self.key_of(spec), TargetStop())

    def key_of(self, spec: TargetSpec) -> Hashable:
        """The same for two specs that say the same."""
        if not spec.fingerprint:
            self._kept.append(spec)
        return (spec.name, spec.provider, spec.fingerprint or id(spec), spec.secrets)

    def why_not(self, trial: Trial) -> Failure | None:
        """Why a trial need not begin: its target, or a judge that it needs, is stopped."""
        if all(stop.failure is None for stop in self._all.values()):
            return None
        found = (self.of(spec).failure_for(spec.name) for spec in (trial.target, *judges_of(trial)))
        return next((failure for failure in found if failure is not None), None)


def is_stopped(failure: Failure | None) -> bool:
    """Whether a trial has no verdict since its target, or its judge, was stopped before."""
    return _is(failure, STOPPED)


def is_interrupted(failure: Failure | None) -> bool:
    """Whether a trial has no verdict since the run was interrupted."""
    return _is(failure, INTERRUPTED.code)


def is_unaffordable(failure: Failure | None) -> bool:
    """Whether a trial has no verdict since a call of it does not fit into the budget."""
    return _is(failure, UNAFFORDABLE)


def _is(failure: Failure | None, code: str) -> bool:
    return failure is not None and re.sub(r"^(judge|embedder|user)-", "", failure.code) == code


def judges_of(trial: Trial) -> Iterator[TargetSpec]:
    """The judges that a trial's assertions ask, and the model that plays its user."""
    if trial.user_model is not None:
        yield trial.user_model
    for entry in trial.case.all_assertions():
        if getattr(entry.assertion, "needs_judge", False):
            spec = trial.judge_called(getattr(entry.assertion, "judge", None))
            if spec is not None:
                yield spec
