"""The threads behind `asyncio.to_thread` in users' code."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import Any, TypeVar

T = TypeVar("T")

WIDTH = min(32, (os.cpu_count() or 1) + 4)
"""Threads at most; as many as Python's own pool has."""


class DaemonPool(ThreadPoolExecutor):
    """A pool whose threads are daemons: Python waits at its exit for those of its own, however long they take.

    It is a ThreadPoolExecutor because event loops take no other as their default.
    """

    def __init__(self) -> None:
        super().__init__(WIDTH)
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._idle = Semaphore(0)
        self._started = 0

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Call the function on a thread; returns a future of its outcome."""
        outcome: Future[T] = Future()

        def job() -> None:
            if not outcome.set_running_or_notify_cancel():
                return
            try:
                value = fn(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001  # nothing is swallowed: it is raised where it is awaited
                outcome.set_exception(error)
            else:
                outcome.set_result(value)

        self._jobs.put(job)
        if not self._idle.acquire(blocking=False) and self._started < WIDTH:
            self._started += 1
            Thread(target=self._work, name="agentv-user-code", daemon=True).start()
        return outcome

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End idle threads, without waiting for busy ones."""
        del wait, cancel_futures
        for _ in range(self._started):
            self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
            del job  # or its arguments live on until the next one comes
            self._idle.release()
