"""Jobs for an event loop, from another thread."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress

Job = Callable[[], object]


class LoopQueue:
    """Queue of jobs that an event loop runs in order; jobs posted together wake it once.

    Jobs must not raise. Those of a loop that was closed are dropped: nobody waits for them any more.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._jobs: deque[Job] = deque()
        self._woken = False

    def post(self, job: Job) -> None:
        """Run a job on the loop soon. Safe to call from any thread."""
        self._jobs.append(job)
        if not self._woken:
            self._woken = True
            with suppress(RuntimeError):  # the loop is closed
                self.loop.call_soon_threadsafe(self._do_all)

    def _do_all(self) -> None:
        self._woken = False  # first, so that what is posted from now on wakes the loop again
        while self._jobs:
            self._jobs.popleft()()
