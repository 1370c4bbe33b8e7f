"""Signals that end a run."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from agentv.errors import ExitStatus

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""What asks a run to end."""

_ALWAYS = frozenset({signal.SIGINT, signal.SIGTERM})
"""Handled where the shell had them ignored, too: a run in the background can be ended by its id. `nohup` is heeded."""

_HEARD = 3
"""Signals that a run acts on; the next one ends the process."""

Act = Callable[[int], object]


class SignalError(KeyboardInterrupt):
    """A signal, and nothing that users' code raised."""


def _raise(_number: int) -> None:
    raise SignalError


def _leave(_number: int) -> None:
    """End at once: nothing has begun that must be finished, and an exception could end up anywhere in an import."""
    with suppress(OSError):
        os.write(2, b"\ninterrupted; nothing was run\n")
    os._exit(ExitStatus.INTERRUPTED)


class _Signals:
    """What is done when a signal comes, and how many have come."""

    def __init__(self) -> None:
        self.act: Act = _raise
        self._heard = 0

    def handle(self, number: int, _frame: FrameType | None) -> None:
        """Act on a signal."""
        self._heard += 1
        if self._heard > _HEARD:
            os._exit(ExitStatus.INTERRUPTED)
        self.act(number)


_signals = _Signals()


def handle_signals() -> None:
    """Handle signals from now on: each ends the process, until `raise_on_signals` or `acting_on_signals`."""
    _signals.act = _leave
    _install()


def raise_on_signals() -> None:
    """From now on, signals are exceptions in the main thread: whoever is interrupted has something to finish."""
    _signals.act = _raise


@contextmanager
def acting_on_signals(act: Act) -> Iterator[None]:
    """Call `act` with the number of each signal, in the main thread, between any two lines of it."""
    before, earlier = _install(), _signals.act
    _signals.act = act
    try:
        yield
    finally:
        _signals.act = _raise if earlier is _leave else earlier
        for number, handler in before.items():
            signal.signal(number, handler)


def ignore_signals() -> None:
    """The status of this process is settled: no signal changes it any more."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


def _install() -> dict[int, Any]:
    """Set the handler; what stood there before."""
    heeded = (one for one in ENDING if one in _ALWAYS or signal.getsignal(one) is not signal.SIG_IGN)
    return {number: signal.signal(number, _signals.handle) for number in heeded}
