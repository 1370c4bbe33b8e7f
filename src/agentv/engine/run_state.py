"""State of a run: the results that are not reported yet, and whether more trials start."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from agentv.lazy_dataclass import dataclass
from agentv.model.run.events import StopReason
from agentv.model.run.trial import TrialResult


@dataclass(frozen=True, slots=True)
class RunLimits:
    """When to start no more trials.

    Attributes:
        max_errors: after so many that errored; None: never.
        fail_fast: after the first that failed or errored.
        decided: takes in each result, and says when no more cases are needed; None: all of them are.
    """

    max_errors: int | None = None
    fail_fast: bool = False
    decided: Callable[[TrialResult], bool] | None = None


NO_LIMITS = RunLimits()


class RunState:
    """What has happened in a run, and whether it goes on. Used from one event loop.

    Attributes:
        finished: results that nobody has reported yet.
        running: how many trials are under way.
        stopped: why no more trials start; None: they do.
        changed: set when there is something to report.
    """

    def __init__(self, limits: RunLimits = NO_LIMITS) -> None:
        self.finished: deque[TrialResult] = deque()
        self.running = 0
        self.stopped: StopReason | None = None
        self.changed = asyncio.Event()
        self._limits = limits
        self._errors = 0

    def stop(self, reason: StopReason) -> None:
        """Start no more trials. The first reason is the one that is reported."""
        self.stopped = self.stopped or reason
        self.changed.set()

    def add(self, result: TrialResult) -> None:
        """Take in a result, and stop where it is the last one that the limits allow."""
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
