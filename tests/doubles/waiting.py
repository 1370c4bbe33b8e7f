"""Waiting for what another thread or process does."""

import asyncio
import time
from collections.abc import Callable


def until(holds: Callable[[], object], within_s: float = 120.0) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, "it never got there"
        time.sleep(0.01)


async def turns_until(holds: Callable[[], object]) -> None:
    """Let the other tasks of the loop run until something holds: turns of the loop, no time."""
    for _ in range(10_000):
        if holds():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never held")


async def turns(number: int = 5) -> None:
    """Let the other tasks of the loop run so often."""
    for _ in range(number):
        await asyncio.sleep(0)
