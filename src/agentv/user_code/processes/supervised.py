"""The process that runs a command behind the one in front (`supervisor.py`)."""

from __future__ import annotations

import _thread
import atexit
import errno
import io
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, NoReturn
from weakref import WeakSet

from agentv.user_code.processes.descriptors import keep_private
from agentv.user_code.processes.interrupts import count_signals, ignore_signals
from agentv.user_code.processes.notes import GO_ON, SHOW_CURSOR
from agentv.user_code.processes.orphans import Leftovers, end_all_programs, mark_this_process

_FINISH_S = 1.0
"""Seconds for which a line that is being written is waited for."""

_KILLED = 3
"""Exit status of a process that ends since the one in front is gone."""

_notes: list[int] = []
_resume: list[str] = []
_locks: WeakSet[_thread.LockType] = WeakSet()
_front: list[tuple[int, int]] = []
"""The process in front, and its other child."""


def run_supervised(work: Callable[[], int], pipes: tuple[int, int, int], watch: int) -> NoReturn:
    """Do the work, and exit with its status.

    Args:
        work: gives the status.
        pipes: for notes; with the signals that are passed on; one that ends when the process in front does.
        watch: another child of the process in front.
    """
    notes, passed_on, lifeline = (keep_private(one) for one in pipes)
    os.set_blocking(passed_on, False)
    count_signals(passed_on)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    _notes.append(notes)
    _front.append((os.getppid(), watch))
    mark_this_process()
    _own_streams()
    # not a `Thread`: work is divided by forks where there is one
    _thread.start_new_thread(_wait_for_front, (lifeline,))
    status = work()
    ignore_signals()
    atexit._run_exitfuncs()  # noqa: SLF001  # threads of libraries are not waited for, and no object is taken apart
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(status)


def note_resume(line: str) -> None:
    """A run begins: say which command line resumes it, should this process end in the middle of it."""
    _resume[:] = [line]
    for descriptor in _notes:
        with suppress(OSError):
            os.write(descriptor, b"\n" + line.replace("\n", " ").encode(errors="replace"))


def resume_line() -> str | None:
    """The command line that resumes the run that was begun last."""
    return next(iter(_resume), None)


def finish_first(lock: _thread.LockType) -> None:
    """Have what is done under a lock be finished before this process ends early, so that no line is half written."""
    _locks.add(lock)


@cache
def leftovers() -> Leftovers:
    """What ends the processes that trials of this process leave behind."""
    return Leftovers(*next(iter(_front), (None, 0)))


def _wait_for_front(lifeline: int) -> None:
    """End at once, and all programs too, when the process in front is gone. Lines of the journal are written whole."""
    os.read(lifeline, 1)
    for lock in tuple(_locks):
        lock.acquire(timeout=_FINISH_S)
    text = "error: the supervising process was killed, so there is no verdict"
    for line in _resume:
        text += f"\n{GO_ON}\n  {line}"
    with suppress(OSError):
        os.write(2, f"{SHOW_CURSOR if os.isatty(2) else ''}{text}\n".encode(errors="replace"))
    end_all_programs()
    os._exit(_KILLED)


def _own_streams() -> None:
    """Keep standard output for results: what plugins, libraries and programs print goes to stderr."""
    if sys.stdout is not None:
        sys.stdout = _own(os.dup(1), sys.stdout)
        os.dup2(2, 1)
    if sys.stderr is not None:
        sys.stderr = _own(os.dup(2), sys.stderr)


def _own(descriptor: int, stream: Any) -> io.TextIOWrapper:
    raw = _Raw(keep_private(descriptor), "w", closefd=False)
    is_line_buffered = stream is sys.stderr or raw.isatty()
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=stream.encoding, errors=stream.errors, line_buffering=is_line_buffered
    )


class _Raw(io.FileIO):
    """A descriptor. A terminal that was closed takes no more, and that is no error: it has nobody to tell."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return len(data)
