"""The small process in front of a command: it runs no code of users, and its exit status is the one that counts.

It is there before anything is loaded, has one thread, and does four things: it passes signals on, waits for the child's
report, ends what the child leaves running, and exits with the status that the report says. A child that ends without a
report, whatever its exit status is, has given no verdict.

The report carries a word that is drawn for each command and stands in one frame of the child. Code that ends the
process, closes descriptors or writes into all of them does not know it. Code that searches the memory of its own
process does find it: nothing in one process can be hidden from the rest of it.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from agentv.errors import ExitStatus
from agentv.user_code.processes.descriptors import fill_standard, keep_private
from agentv.user_code.processes.interrupts import ENDING, heeded
from agentv.user_code.processes.notes import BEGUN, CANNOT_SAY, CLOSED, GO_ON, REASON, SHOW_CURSOR
from agentv.user_code.processes.orphans import adopt_orphans, end_all_children, end_all_programs
from agentv.user_code.processes.output import Outlet, Relay, is_relayed

EXIT_S = 3.0
"""Seconds that threads and exit handlers of users' code get once the result is reported."""

DEAF_S = 5.0
"""Seconds after which a child that was asked to end more than twice is killed."""

_HEARD = 2
"""Signals that a run acts on: to end what runs, and to end at once."""

_ALSO = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH, signal.SIGCONT, signal.SIGTSTP)
_MOST = 1 << 20
"""Bytes of notes that are kept; what users' code writes into the pipe is thrown away with them."""


def supervise(work: Callable[[], int]) -> int:
    """Do some work in a child process; the exit status that it reports, in the process in front.

    Args:
        work: gives the exit status; it never raises.

    Returns:
        The status, in the process in front alone: the child exits in here.
    """
    fill_standard()
    report, passed_on, lifeline = os.pipe(), os.pipe(), os.pipe()
    output = os.pipe() if sys.stdout is not None and is_relayed() else None
    token, word = (os.urandom(16).hex().encode() for _ in range(2))
    passed = [one for one in (*ENDING, *_ALSO) if heeded(one)]
    signal.pthread_sigmask(signal.SIG_BLOCK, passed)  # none is lost before there is somebody to handle it
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    try:
        watch = _start_watch(lifeline, (*report, *passed_on, *(output or ())))
        child = os.fork()
    except OSError as error:
        _write(f"error: cannot start a process: {error.strerror}")
        return ExitStatus.WRONG
    if child == 0:
        from agentv.user_code.processes.supervised import run_supervised

        for descriptor in (report[0], passed_on[1], lifeline[1], *(output or ())[:1]):
            os.close(descriptor)
        relay = Relay(keep_private(output[1]), word) if output else None
        run_supervised(work, (report[1], passed_on[0], lifeline[0]), token, watch, relay)
    for descriptor in (report[1], passed_on[0], lifeline[0], *(output or ())[1:]):
        os.close(descriptor)
    outlet = Outlet(output[0], word) if output else None
    return _Front(child, report[0], passed_on[1], token, outlet).status(passed)


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

    def __init__(self, child: int, report: int, passed_on: int, token: bytes, outlet: Outlet | None) -> None:
        self._child = child
        self._report = report
        self._passed_on = passed_on
        self._reported = b"\n" + token + b" "
        self._read = b""
        self._ended: int | None = None
        self._asked = 0
        self._asked_at = 0.0
        self._cut_off = False
        self._outlet = outlet
        if outlet is not None:
            os.set_blocking(outlet.descriptor, False)
        os.set_blocking(report, False)
        os.set_blocking(passed_on, False)

    def status(self, passed: Sequence[int]) -> int:
        """Wait until the child has ended; what this process exits with."""
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_read, False)
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        for number in (*passed, signal.SIGCHLD):
            signal.signal(number, _nothing)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, passed)
        adopt_orphans()
        self._reap()
        self._wait(wake_read)
        end_all_children()
        self._drain(wake_read)
        return self._settled()

    def _wait(self, wake_read: int) -> None:
        ends_at: float | None = None
        closed = killed = False
        while self._ended is None:
            left = None if ends_at is None or killed else max(0.0, ends_at - time.monotonic())
            watched = (wake_read,) if closed else (wake_read, self._report)
            for descriptor in self._ready(watched, left):
                if descriptor == wake_read:
                    self._pass_on(os.read(wake_read, 4096))
                else:
                    closed = not self._take_report()
            if closed or self._verdict() is not None:
                ends_at = ends_at or time.monotonic() + EXIT_S
                if time.monotonic() >= ends_at and not killed:
                    self._cut_off = self._verdict() is None
                    self._kill()
                    killed = True
            self._reap()
        while self._take_report():
            pass

    def _ready(self, watched: Sequence[int], left_s: float | None) -> list[int]:
        """Those of some descriptors that can be read, after a wait. What is printed meanwhile is handed on."""
        poll = select.poll()
        for one in watched:
            poll.register(one, select.POLLIN)
        outlet = self._outlet
        if outlet is not None:
            if outlet.reads:
                poll.register(outlet.descriptor, select.POLLIN)
            if outlet.writes:
                poll.register(1, select.POLLOUT)
        found = [one for one, _ in poll.poll(None if left_s is None else left_s * 1000)]
        if outlet is not None:
            if 1 in found:
                outlet.give()
            if outlet.descriptor in found:
                outlet.take()
        return [one for one in found if one in watched]

    def _drain(self, wake_read: int) -> None:
        """Hand on what was printed to the end, for as long as nobody asks to end."""
        outlet = self._outlet
        while outlet is not None and (outlet.take() or outlet.writes):
            if self._ready((wake_read,), None) and any(one in ENDING for one in os.read(wake_read, 4096)):
                outlet.fail(InterruptedError())

    def _take_report(self) -> bool:
        """Read what has arrived; whether there may be more."""
        try:
            chunk = os.read(self._report, 65_536)
        except BlockingIOError:
            return self._ended is None
        if len(self._read) > _MOST:
            self._read = self._read[-_MOST // 2 :]
        self._read += chunk
        return bool(chunk)

    def _verdict(self) -> int | None:
        """The status that the child reports; None: it has not."""
        report = self._read_report()
        return None if report is None else report[0]

    def _read_report(self) -> tuple[int, int] | None:
        """The status, and how many bytes were printed."""
        _, found, after = self._read.partition(self._reported)
        verdict, ended, _ = after.partition(b"\n")
        if not (found and ended):
            return None
        status, _, printed = verdict.partition(b" ")
        return int(status), int(printed)

    def _pass_on(self, numbers: bytes) -> None:
        for number in numbers:
            if number == signal.SIGCHLD:
                continue
            if number in ENDING:
                if self._is_in_the_way():
                    self._kill()
                    continue
                with suppress(OSError):
                    os.write(self._passed_on, bytes([number]))
            with suppress(ProcessLookupError):
                os.kill(self._child, number)
            if number == signal.SIGTSTP:
                _stop_here()

    def _is_in_the_way(self) -> bool:
        """Whether the child keeps nothing but itself from its end: it has told its verdict, or it hears nothing.

        Code in C that holds Python's lock keeps it from hearing a signal, and its trials from their time limits.
        """
        self._asked += 1
        self._asked_at = self._asked_at or time.monotonic()
        return self._verdict() is not None or (self._asked > _HEARD and time.monotonic() > self._asked_at + DEAF_S)

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._child, signal.SIGKILL)

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

    def _settled(self) -> int:
        report = self._read_report()
        if report is not None:
            return self._printed(*report)
        stopped = self._asked > 0 and os.WIFSIGNALED(self._ended or 0)
        if os.isatty(2):
            _write(SHOW_CURSOR)
        _write("interrupted" if stopped else f"error: {self._reason()}, so there is no verdict")
        self._print_resume_hint()
        return ExitStatus.INTERRUPTED if stopped else ExitStatus.ERRORED

    def _printed(self, verdict: int, printed: int) -> int:
        """The verdict, if all that was printed with it has arrived: never a success where it has not."""
        outlet = self._outlet
        if outlet is None or (outlet.failure is None and outlet.received == printed):
            return verdict
        if outlet.failure is None:
            _write("error: user code intercepted standard output, so there is no verdict")
            self._print_resume_hint()
            return ExitStatus.ERRORED
        if not isinstance(outlet.failure, BrokenPipeError | InterruptedError):
            _write(f"error: {outlet.failure}")
        return verdict or ExitStatus.ERRORED

    def _print_resume_hint(self) -> None:
        resume = next(self._notes(BEGUN), None)
        if resume is not None:
            _write(f"{GO_ON}\n  {resume}")

    def _reason(self) -> str:
        if self._cut_off:
            return f"{CLOSED}, or replaced the program"
        return next(self._notes(REASON), None) or _how(self._ended or 0)

    def _notes(self, kind: bytes) -> Iterator[str]:
        for line in self._read.split(b"\n"):
            if line.startswith(kind):
                with suppress(ValueError):
                    yield bytes.fromhex(line.removeprefix(kind).decode()).decode(errors="replace")


def _how(status: int) -> str:
    """How a process ended that was not to end yet."""
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == CANNOT_SAY:
        return CLOSED
    if not os.WIFSIGNALED(status):
        return f"user code ended the whole process (exit status {os.WEXITSTATUS(status)}) before it finished"
    number = os.WTERMSIG(status)
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    cause = ": it was killed from outside, or ran out of memory" if number == signal.SIGKILL else ""
    return f"the process that runs user code was ended by {name}{cause}"


def _stop_here() -> None:
    """Stop as a shell's job does. In a process group that no shell could wake again, the system ignores it."""
    signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTSTP)
    signal.signal(signal.SIGTSTP, _nothing)


def _nothing(*_: object) -> None:
    """The number is read from the pipe."""
