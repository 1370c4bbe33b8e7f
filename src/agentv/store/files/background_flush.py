"""A thread for the slow part of writing, so that answers do not wait for the disk."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread

from agentv.errors import StoreError


class BackgroundFlusher:
    """Does `work` soon after `wake`, and then at most once in `every_s` seconds.

    Attributes:
        failure: the error that the work failed with; nothing is done after it.
    """

    def __init__(self, work: Callable[[], None], every_s: float) -> None:
        self.failure: StoreError | None = None
        self._work = work
        self._every_s = every_s
        self._wanted = Event()
        self._stopping = Event()
        self._thread: Thread | None = None

    def wake(self) -> None:
        """There is something to do."""
        if not self._wanted.is_set():
            self._wanted.set()
            if self._thread is None:
                self._thread = Thread(target=self._beat, name="agentv-store", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """End the thread, once what it does now is done."""
        self._stopping.set()
        self._wanted.set()
        if self._thread is not None:
            self._thread.join()

    def _beat(self) -> None:
        while self.failure is None:
            self._wanted.wait()
            if self._stopping.is_set():
                return
            self._wanted.clear()
            try:
                self._work()
            except StoreError as error:
                self.failure = error
            self._stopping.wait(self._every_s)
