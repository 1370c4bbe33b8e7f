"""Signals that end a run, each counted once: a terminal sends them to a whole process group, and so does `timeout`.

The process in front passes on every signal that it gets (`supervisor.py`), and before that it writes the
signal's number into a pipe. One signal that reached both processes is handled twice here, with one number in the pipe:

    signals sent = max(passed on, handled - passed on)

which holds too where only one of the two processes was sent it, and where two of one kind were handled as one.

A fork of users' code is no part of the run: signals do to it what they do to any program. `multiprocessing` ends its
workers by SIGTERM, and waits for as long as it takes.
"""

from __future__ import annotations

import os
import signal
from _thread import get_ident
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from agentv.errors import ExitStatus

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""What asks a run to end."""

_ALWAYS = frozenset({signal.SIGINT, signal.SIGTERM})
"""Handled where the shell had them ignored, too: a run in the background can be ended by its id. `nohup` is heeded."""

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
    """The signals of this process."""

    def __init__(self) -> None:
        self.passed_on: int | None = None
        self.act: Act = _raise
        self._handled: Counter[int] = Counter()
        self._announced: Counter[int] = Counter()
        self._counted = 0

    def handle(self, number: int, _frame: FrameType | None) -> None:
        """Act, as often as signals were sent that were not counted yet."""
        self._handled[number] += 1
        if self.passed_on is not None:
            with suppress(OSError):
                self._announced.update(os.read(self.passed_on, 4096))
        kinds = self._handled.keys() | self._announced.keys()
        sent = sum(max(self._announced[one], self._handled[one] - self._announced[one]) for one in kinds)
        fresh, self._counted = sent - self._counted, max(sent, self._counted)
        for _ in range(fresh):
            self.act(number)


_signals = _Signals()
_held_back: dict[int, set[int | signal.Signals]] = {}
"""Thread that is about to fork → the signals that it had blocked before."""


def count_signals(passed_on: int) -> None:
    """Handle signals from now on: each ends the process, until `raise_on_signals` or `acting_on_signals`.

    Args:
        passed_on: a pipe, not blocking, with the numbers of the signals that the process in front passes on.
    """
    if _signals.passed_on is None:
        os.register_at_fork(before=_hold_back, after_in_parent=_let_through, after_in_child=_let_go)
    _signals.passed_on = passed_on
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


def heeded(number: int) -> bool:
    """Whether a signal is acted on: not where whoever started this process had it ignored."""
    return number in _ALWAYS or signal.getsignal(number) is not signal.SIG_IGN


def _install() -> dict[int, Any]:
    """Set the handler; what stood there before."""
    return {number: signal.signal(number, _signals.handle) for number in ENDING if heeded(number)}


def _hold_back() -> None:
    """Until a fork has handlers of its own, a signal that it is sent waits."""
    _held_back[get_ident()] = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)


def _let_through() -> None:
    before = _held_back.pop(get_ident(), None)
    if before is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _let_go() -> None:
    """In a fork: no signal that it is sent is one to the run."""
    signal.set_wakeup_fd(-1)
    for number in ENDING:
        if signal.getsignal(number) == _signals.handle:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    _let_through()
