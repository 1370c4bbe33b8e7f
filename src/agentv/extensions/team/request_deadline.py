"""A deadline for a whole HTTP request. The timeouts of httpx are for one read: a byte each second never exceeds one."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock, Timer
from typing import Any


class DeadlineExceededError(Exception):
    """A request took longer than it may altogether.

    Attributes:
        seconds: that it may take.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(f"it did not answer within {seconds:.3g} seconds")
        self.seconds = seconds


class Connections:
    """The connections of one client that sends one request at a time, or of one request.

    Pass `extensions` with every request: httpx reports the connections that it opens.
    """

    def __init__(self) -> None:
        self._open: list[socket.socket] = []
        self._ended = False
        self._lock = Lock()

    @property
    def extensions(self) -> dict[str, Callable[[str, dict[str, Any]], None]]:
        """See the class."""
        return {"trace": self._trace}

    @property
    def ended(self) -> bool:
        """Whether the deadline of the last request has passed."""
        return self._ended

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """The block sends a request and reads its answer. When the time is over, its connection ends.

        Raises:
            DeadlineExceededError: whatever the block raised, or got: an answer without a length would look complete.
        """
        self._ended = False
        timer = Timer(max(seconds, 0.0), self._end)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            if self._ended:
                raise DeadlineExceededError(seconds)

    def _trace(self, event: str, info: dict[str, Any]) -> None:
        if not event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            return
        found = info["return_value"].get_extra_info("socket")
        with self._lock:
            self._open = [one for one in self._open if one.fileno() >= 0]
            self._open.append(found)
            if self._ended:
                _shut(found)

    def _end(self) -> None:
        with self._lock:
            self._ended = True
            for one in self._open:
                _shut(one)


def _shut(one: socket.socket) -> None:
    """Wake whoever reads from a connection or writes to it, in another thread; that one closes it."""
    with suppress(OSError):
        socket.socket.shutdown(one, socket.SHUT_RDWR)  # also of TLS: its own way would wait for the other side
