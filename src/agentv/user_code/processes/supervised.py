"""The process that runs a command behind the one in front (`supervisor.py`), and users' code in it."""

from __future__ import annotations

import _thread
import errno
import gc
import io
import os
import select
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, NoReturn
from weakref import WeakSet

from agentv.user_code.processes.descriptors import close_private, keep_from_forks, keep_private
from agentv.user_code.processes.interrupts import count_signals, ignore_signals
from agentv.user_code.processes.notes import BEGUN, CANNOT_SAY, CLOSED, GO_ON, REASON, SHOW_CURSOR
from agentv.user_code.processes.orphans import Leftovers, end_all_programs, mark_this_process
from agentv.user_code.processes.output import Relay, wake

_EXIT = os._exit
"""As they are before anybody replaces them."""

_FINISH_S = 1.0
"""Seconds for which a line that is being written is waited for."""

_notes: list[int] = []
_resume: list[str] = []
_spared: dict[int, int] = {}
"""The first free number → the inode of the pipe that stands there."""

_stderr: list[int] = []
_locks: WeakSet[_thread.LockType] = WeakSet()
_front: list[tuple[int, int]] = []
"""The process in front, and its other child."""


def run_supervised(
    work: Callable[[], int], pipes: tuple[int, int, int], token: bytes, watch: int, relay: Relay | None
) -> NoReturn:
    """Do the work, report its status, and exit with it.

    Args:
        work: gives the status.
        pipes: for the report; with the signals that are passed on; one that ends when the process in front does.
        token: the word that makes a report count.
        watch: another child of the process in front.
        relay: where standard output goes; None: it is written to.
    """
    report, passed_on, lifeline = (keep_private(one) for one in pipes)
    process = os.getpid()
    spared = _reserve_first()
    os.set_blocking(passed_on, False)
    count_signals(passed_on)
    _unblock()
    _notes.append(report)
    _front.append((os.getppid(), watch))
    mark_this_process()
    _own_streams(relay)
    # not a `Thread`: work is divided by forks where there is one
    _thread.start_new_thread(_wait_for_parent, (lifeline, spared))
    status = work()
    if os.getpid() != process:  # a fork that came out of users' code
        _EXIT(status)
    ignore_signals()
    if (reason := why_no_verdict()) is not None:
        _end_early(reason)
    wake(_front[0][0])
    with suppress(OSError):
        os.write(report, b"\n%b %d %d\n" % (token, status, relay.printed if relay else 0))
    # one last search for cycles would take 0.4 s where the SDK of a model was loaded
    gc.disable()
    gc.freeze()
    sys.exit(status)


def note_resume(line: str) -> None:
    """A run begins: say which command line resumes it, should this process end in the middle of it."""
    _resume[:] = [line]
    _note(BEGUN, line)


def resume_line() -> str | None:
    """The command line that resumes the run that was begun last."""
    return next(iter(_resume), None)


def finish_first(lock: _thread.LockType) -> None:
    """Have what is done under a lock be finished before this process ends early, so that no line is half written."""
    _locks.add(lock)


def _note(kind: bytes, text: str) -> None:
    for descriptor in _notes:
        with suppress(OSError):
            os.write(descriptor, b"\n%b%b\n" % (kind, text.encode(errors="replace").hex().encode()))


@cache
def leftovers() -> Leftovers:
    """What ends the processes that trials of this process leave behind."""
    return Leftovers(*next(iter(_front), (None, 0)))


def _unblock() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _reserve_first() -> int:
    """A pipe whose end for writing has the first free number, for who closes all that there are; its other end.

    Nothing else tells of it. A loop that waits for events waits for ever where what would wake it was closed.
    """
    read, write = (keep_private(one) for one in os.pipe())
    first = os.dup(write)
    close_private(write)
    _spared[keep_from_forks(first)] = os.fstat(first).st_ino
    return read


def _is_cut_off() -> bool:
    """Whether users' code has closed our descriptors."""
    for first, inode in _spared.items():
        try:
            if os.fstat(first).st_ino != inode:
                return True
        except OSError:
            return True
    return False


def why_no_verdict() -> str | None:
    """What users' code did to this process, so that none of its results and errors count; None: nothing.

    This process ends with it in the end, and the process in front prints it.
    """
    return CLOSED if _is_cut_off() else None


def _wait_for_parent(lifeline: int, spared: int) -> None:
    """Wait until the process in front is gone, when nobody reads a verdict any more, or our descriptors are closed."""
    poll = select.poll()
    poll.register(lifeline, select.POLLIN)
    poll.register(spared, select.POLLIN)
    while True:
        for descriptor, _ in poll.poll():
            try:
                if os.read(descriptor, 65_536):  # somebody writes to every number
                    continue
            except OSError:  # closed
                pass
            _end_early(CLOSED if descriptor == spared else None)


def _end_early(reason: str | None) -> NoReturn:
    """End at once, and all programs too; what is written to the journal is written whole.

    Args:
        reason: why, for the process in front to tell; None: there is none any more.
    """
    for lock in tuple(_locks):
        lock.acquire(timeout=_FINISH_S)
    if reason is not None:
        _note(REASON, reason)
    else:
        text = "error: the supervising process was killed, so there is no verdict"
        for line in _resume:
            text += f"\n{GO_ON}\n  {line}"
        for descriptor in _stderr:
            with suppress(OSError):
                os.write(descriptor, f"{SHOW_CURSOR if os.isatty(descriptor) else ''}{text}\n".encode(errors="replace"))
    end_all_programs()
    _EXIT(CANNOT_SAY)


def _own_streams(relay: Relay | None) -> None:
    """Keep standard output for results: what users' code, its libraries and its programs print goes to stderr.

    Both streams are ours under numbers of their own, so that nobody who closes or redirects 1 and 2 reaches them.
    """
    if sys.stdout is not None:
        sys.stdout = _own(1, sys.stdout, relay)
        os.dup2(2, 1)
    if sys.stderr is not None:
        sys.stderr = _own(2, sys.stderr)
        _stderr.append(sys.stderr.fileno())


def _own(number: int, stream: Any, relay: Relay | None = None) -> _OutputStream:
    raw = relay or _Raw(keep_private(os.dup(number)), "w", closefd=False)
    return _OutputStream(
        _Results(raw) if number == 1 else io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=number == 2 or raw.isatty(),
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


class _Results(io.BufferedWriter):
    """Standard output. Of a run that has no verdict, nothing is printed."""

    def __init__(self, raw: Any) -> None:
        super().__init__(raw)
        self._process = os.getpid()

    def write(self, data: Any, /) -> int:
        if os.getpid() == self._process and (reason := why_no_verdict()) is not None:
            _end_early(reason)
        return super().write(data)


class _OutputStream(io.TextIOWrapper):
    """A stream that users' code cannot close: it is shown to them as `sys.stdout`, too."""

    def close(self) -> None:
        with suppress(OSError, ValueError):
            self.flush()
