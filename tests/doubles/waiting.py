"""Wait for other threads, processes and tasks."""

import asyncio
import time
from collections.abc import Callable


def until(holds: Callable[[], object], within_s: float = 120.0) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, "it never got there"
        time.sleep(0.01)


async def turns_until(holds: Callable[[], object]) -> None:
    """Yield to the other tasks of the loop until a condition holds; counts turns, not time."""
    for _ in range(10_000):
        if holds():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never held")


async def turns(number: int = 5) -> None:
    """Yield to the other tasks of the loop this many times."""
    for _ in range(number):
        await asyncio.sleep(0)
