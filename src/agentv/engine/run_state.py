"""State of a run: the results that are not reported yet, and whether more trials start."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterable
from itertools import count

from msgspec import Struct

from agentv.model.run.events import StopReason
from agentv.model.run.trial import Trial, TrialResult


class RunLimits(Struct, frozen=True):
    """Conditions for starting no more trials.

    Attributes:
        max_errors: number of errored trials; None: no limit.
        fail_fast: stop after the first that failed or errored.
        decided: receives each result, and returns whether no more cases are needed; None: all are needed.
    """

    max_errors: int | None = None
    fail_fast: bool = False
    decided: Callable[[TrialResult], bool] | None = None


NO_LIMITS = RunLimits()


class RunState:
    """State of a run. Used from one event loop.

    Attributes:
        finished: results that have not been reported yet.
        begun: the running trials, each with the time at which it began.
        stopped: why no more trials start; None: they do.
        changed: set when there is something to report.
    """

    def __init__(self, limits: RunLimits = NO_LIMITS) -> None:
        self.finished: deque[TrialResult] = deque()
        self.begun: dict[int, tuple[Trial, float]] = {}
        self._places = count()
        self.stopped: StopReason | None = None
        self.changed = asyncio.Event()
        self._limits = limits
        self._errors = 0

    @property
    def running(self) -> int:
        """Number of running trials."""
        return len(self.begun)

    def begin(self, trials: Iterable[Trial], now: float) -> Collection[int]:
        """Count trials as running; returns what `end` takes."""
        places = {next(self._places): (trial, now) for trial in trials}
        self.begun |= places
        return places

    def end(self, begun: Collection[int]) -> None:
        """Count trials as running no more."""
        for place in begun:
            del self.begun[place]

    def stop(self, reason: StopReason) -> None:
        """Start no more trials. The first reason is reported."""
        self.stopped = self.stopped or reason
        self.changed.set()

    def add(self, result: TrialResult) -> None:
        """Add a result, and stop if the limits require it."""
        self.finished.append(result)
        self.changed.set()
        limits = self._limits
        if limits.fail_fast and result.status in ("failed", "errored"):
            self.stop("fail-fast")
        if limits.decided is not None and limits.decided(result):
            self.stop("decided")
        if result.status == "errored":
            self._errors += 1
            if limits.max_errors is not None and self._errors >= limits.max_errors:
                self.stop("max-errors")
