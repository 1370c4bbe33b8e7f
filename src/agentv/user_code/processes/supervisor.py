"""The small process in front of a command: it adopts what loses its parent below it, and ends it.

It is there before anything is loaded, has one thread, and does four things: it passes signals on, waits for its child,
ends what the child leaves running, and exits with the child's status. A child that a signal ended has given no verdict.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from agentv.errors import ExitStatus
from agentv.user_code.processes.descriptors import fill_standard
from agentv.user_code.processes.interrupts import ENDING, heeded
from agentv.user_code.processes.notes import GO_ON, SHOW_CURSOR
from agentv.user_code.processes.orphans import adopt_orphans, end_all_children, end_all_programs

_HEARD = 3
"""Signals that a run acts on; another one kills it."""

_ALSO = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH, signal.SIGCONT, signal.SIGTSTP)


def supervise(work: Callable[[], int]) -> int:
    """Do some work in a child process; its exit status, in the process in front.

    Args:
        work: gives the exit status; it never raises.

    Returns:
        The status, in the process in front alone: the child exits in here.
    """
    fill_standard()
    notes, passed_on, lifeline = os.pipe(), os.pipe(), os.pipe()
    passed = [one for one in (*ENDING, *_ALSO) if heeded(one)]
    signal.pthread_sigmask(signal.SIG_BLOCK, passed)  # none is lost before there is somebody to handle it
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    try:
        watch = _start_watch(lifeline, (*notes, *passed_on))
        child = os.fork()
    except OSError as error:
        _write(f"error: cannot start a process: {error.strerror}")
        return ExitStatus.WRONG
    if child == 0:
        from agentv.user_code.processes.supervised import run_supervised

        for descriptor in (notes[0], passed_on[1], lifeline[1]):
            os.close(descriptor)
        run_supervised(work, (notes[1], passed_on[0], lifeline[0]), watch)
    for descriptor in (notes[1], passed_on[0], lifeline[0]):
        os.close(descriptor)
    return _Front(child, notes[0], passed_on[1]).status(passed)


def _start_watch(lifeline: tuple[int, int], others: tuple[int, ...]) -> int:
    """Start what ends all programs of a run where this process and its child are killed at once; its id.

    It is in a session of its own, so that a SIGKILL for the process group passes it by, and it ends with this process.
    0: there is none, where programs cannot be found by their marks.
    """
    if sys.platform != "linux":
        return 0
    watch = os.fork()
    if watch:
        return watch
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(null, descriptor)
    for descriptor in (*others, lifeline[1]):
        os.close(descriptor)
    os.read(lifeline[0], 1)
    end_all_programs()
    os._exit(0)


def _write(text: str) -> None:
    with suppress(OSError):  # the terminal may be gone
        os.write(2, f"{text}\n".encode(errors="replace"))


class _Front:
    """The process in front, while its child runs."""

    def __init__(self, child: int, notes: int, passed_on: int) -> None:
        self._child = child
        self._notes = notes
        self._passed_on = passed_on
        self._ended: int | None = None
        self._asked = 0
        os.set_blocking(notes, False)
        os.set_blocking(passed_on, False)

    def status(self, passed: Sequence[int]) -> int:
        """Wait until the child has ended; what this process exits with."""
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        for number in (*passed, signal.SIGCHLD):
            signal.signal(number, _nothing)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, passed)
        adopt_orphans()
        self._reap()
        while self._ended is None:
            self._pass_on(os.read(wake_read, 4096))
            self._reap()
        end_all_children()
        return os.WEXITSTATUS(self._ended) if os.WIFEXITED(self._ended) else self._killed(os.WTERMSIG(self._ended))

    def _pass_on(self, numbers: bytes) -> None:
        for number in numbers:
            if number == signal.SIGCHLD:
                continue
            if number in ENDING:
                self._asked += 1
                with suppress(OSError):
                    os.write(self._passed_on, bytes([number]))
            with suppress(ProcessLookupError):
                os.kill(self._child, signal.SIGKILL if self._asked > _HEARD else number)
            if number == signal.SIGTSTP:
                _stop_here()

    def _reap(self) -> None:
        """Take notice of the child's end, and of that of orphans."""
        while True:
            try:
                found, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return
            if found == 0:
                return
            if found == self._child and os.WIFSTOPPED(status):
                if os.WSTOPSIG(status) == signal.SIGSTOP:  # of code that it runs: a terminal sends other signals
                    os.kill(found, signal.SIGCONT)
            elif found == self._child:
                self._ended = status

    def _killed(self, number: int) -> int:
        """The status where a signal has ended the child, which is said."""
        if os.isatty(2):
            _write(SHOW_CURSOR)
        _write("interrupted" if self._asked else f"error: {_how(number)}, so there is no verdict")
        with suppress(BlockingIOError):
            resume = os.read(self._notes, 1 << 16).decode(errors="replace").rpartition("\n")[2]
            if resume:
                _write(f"{GO_ON}\n  {resume}")
        return ExitStatus.INTERRUPTED if self._asked else ExitStatus.ERRORED


def _how(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    cause = ": it was killed from outside, or ran out of memory" if number == signal.SIGKILL else ""
    return f"agentv was ended by {name}{cause}"


def _stop_here() -> None:
    """Stop as a shell's job does. In a process group that no shell could wake again, the system ignores it."""
    signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTSTP)
    signal.signal(signal.SIGTSTP, _nothing)


def _nothing(*_: object) -> None:
    """The number is read from the pipe."""
