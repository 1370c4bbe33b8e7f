"""The queries of `triggering:` come first: a case's model is called when all of its suite's are answered (SPEC 11).

The plan has them before the suite's other trials, so whoever takes one of those need only wait for what is under way.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agentv.model.run.trial import Trial


class Queries:
    """The queries that are under way, by suite. Used from one event loop."""

    def __init__(self) -> None:
        self._running: Counter[int] = Counter()
        self._ended: asyncio.Event | None = None

    @property
    def any(self) -> bool:
        """Whether there are some, so that another trial may have to wait."""
        return any(self._running.values())

    @asynccontextmanager
    async def turn(self, trial: Trial) -> AsyncIterator[None]:
        """Wait until a trial may run; the body runs it."""
        suite = id(trial.suite)
        if not trial.case.asks_judge:
            while self._running[suite]:
                self._ended = self._ended or asyncio.Event()
                await self._ended.wait()
            yield
            return
        self._running[suite] += 1
        try:
            yield
        finally:
            self._running[suite] -= 1
            if not self._running[suite] and self._ended is not None:
                self._ended.set()
                self._ended = None
