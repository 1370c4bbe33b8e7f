"""An event loop in virtual time: sleeping for a minute takes no time, and the clock advances by a minute."""

import asyncio
from collections.abc import Coroutine
from selectors import SelectSelector
from typing import Any, TypeVar

T = TypeVar("T")


class _Jumping(SelectSelector):
    """Advances the clock instead of waiting; works without outside events only."""

    now = 1000.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise AssertionError("everybody waits, and for nothing that will ever happen")
        self.now += max(timeout, 0)
        return super().select(0)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._time = _Jumping()
        super().__init__(self._time)

    def time(self) -> float:
        return self._time.now


def run_at_once(main: Coroutine[Any, Any, T]) -> T:
    """Like `asyncio.run`, in virtual time."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(main)


def now() -> float:
    """Return the virtual time in seconds."""
    return asyncio.get_running_loop().time()
