"""Waiting for what another thread or process does."""

import time
from collections.abc import Callable


def until(holds: Callable[[], object], within_s: float = 120.0) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, "it never got there"
        time.sleep(0.01)
