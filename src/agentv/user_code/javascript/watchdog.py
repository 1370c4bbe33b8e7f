"""Detection of a process that is blocked: it is silent, and a ping stays unanswered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

_TICKS = 4
"""Ticks of silence after which a process is blocked; halfway it is pinged."""


class Watchdog:
    """Watches one process while an answer of it is expected.

    Args:
        patience_s: seconds of silence after which the process is blocked; None: it may be busy for as long as it likes.
        is_waiting: whether an answer is expected. Without one the watch ends.
        ping: asks the process for a sign of life.
        kill: ends a process that gave none.
    """

    def __init__(
        self,
        patience_s: float | None,
        is_waiting: Callable[[], bool],
        ping: Callable[[], None],
        kill: Callable[[], None],
    ) -> None:
        self._tick_s = None if patience_s is None else patience_s / _TICKS
        self._is_waiting = is_waiting
        self._ping = ping
        self._kill = kill
        self._silent_ticks = 0
        self._is_watching = False

    def watch(self) -> None:
        """Watch from now on, until no answer is expected."""
        if self._tick_s is not None and not self._is_watching:
            self._is_watching = True
            self._silent_ticks = 0
            asyncio.get_running_loop().call_later(self._tick_s, self._tick, self._tick_s)

    def on_data(self) -> None:
        """The process is not silent."""
        self._silent_ticks = 0

    def _tick(self, tick_s: float) -> None:
        # ticks are counted rather than seconds, so that a pause of our own does not look like one of the process
        self._silent_ticks += 1
        if not self._is_waiting():
            self._is_watching = False
            return
        if self._silent_ticks >= _TICKS:
            self._kill()
        elif self._silent_ticks == _TICKS // 2:
            self._ping()
        asyncio.get_running_loop().call_later(tick_s, self._tick, tick_s)
