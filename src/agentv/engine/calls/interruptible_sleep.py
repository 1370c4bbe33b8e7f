"""Waits that an interrupted run cuts short."""

from __future__ import annotations

import asyncio


class InterruptibleSleep:
    """Those who wait for a time to pass. Used from one event loop."""

    def __init__(self) -> None:
        self._sleeping: set[asyncio.Future[bool]] = set()
        self._over = False

    async def sleep(self, seconds: float) -> bool:
        """Wait; False where the run was interrupted before the time had passed."""
        if self._over:
            return False
        loop = asyncio.get_running_loop()
        woken: asyncio.Future[bool] = loop.create_future()
        timer = loop.call_later(seconds, _wake, woken, True)  # passed on by position
        self._sleeping.add(woken)
        try:
            return await woken
        finally:
            timer.cancel()
            self._sleeping.discard(woken)

    def end(self) -> None:
        """Wake all sleepers, and end all later sleeps at once."""
        self._over = True
        for woken in self._sleeping:
            _wake(woken, False)


def _wake(woken: asyncio.Future[bool], slept: bool) -> None:  # called by the loop
    if not woken.done():
        woken.set_result(slept)
