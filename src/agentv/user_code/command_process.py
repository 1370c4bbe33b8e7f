"""The process of a command: its standard streams, its signals, and the watch that ends what a killed command leaves."""

from __future__ import annotations

import atexit
import errno
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

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


GO_ON = "finished trials are saved. Resume with:"

_SHOW_CURSOR = "\x1b[?25h"
"""What a bar of progress does when it ends; one of a killed process did not."""

_resume: list[str] = []
_pipe: list[int] = []
"""To the watch."""


def run_command(work: Callable[[], int]) -> NoReturn:
    """Do the work of a command and exit with its status. Nothing that it started is left running then.

    Args:
        work: gives the exit status; it never raises.
    """
    from agentv.user_code.orphans import adopt_orphans, end_all_children

    for number in (0, 1, 2):  # /dev/null takes the place of a closed one, so that no file of ours gets its number
        try:
            os.fstat(number)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            os.set_inheritable(number, True)
    _signals.act = _leave  # each ends the process, until `raise_on_signals` or `acting_on_signals`
    _install()
    adopt_orphans()
    try:
        watch = _start_watch()
    except OSError as error:
        os.write(2, f"error: cannot start a process: {error.strerror}\n".encode())
        os._exit(ExitStatus.WRONG)
    # standard output is for results: what plugins, libraries and programs print goes to stderr
    if sys.stdout is not None:
        sys.stdout = _own(os.dup(1), sys.stdout)
        os.dup2(2, 1)
    if sys.stderr is not None:
        sys.stderr = _own(os.dup(2), sys.stderr)
    status = work()
    ignore_signals()
    atexit._run_exitfuncs()  # noqa: SLF001  # threads of libraries are not waited for, and no object is taken apart
    stream: Any
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os.kill(watch, signal.SIGKILL)
    end_all_children()
    os._exit(status)


def note_resume(line: str) -> None:
    """A run begins: say which command line resumes it, should this process end in the middle of it."""
    _resume[:] = [line]
    for descriptor in _pipe:
        with suppress(OSError):
            os.write(descriptor, b"\n" + line.replace("\n", " ").encode(errors="replace"))


def resume_line() -> str | None:
    """The command line that resumes the run that was begun last."""
    return next(iter(_resume), None)


def _start_watch() -> int:
    """Start a process that waits for the end of this one, and ends the programs of a run that is killed; its id.

    At an orderly end it is killed before. It has a session of its own: a signal to the process group passes it by.
    """
    from agentv.user_code.orphans import end_all_programs

    read, write = os.pipe()
    if watch := os.fork():
        os.close(read)
        _pipe.append(write)
        os.register_at_fork(after_in_child=_leave_watch)
        return watch
    os.setsid()
    ignore_signals()
    os.close(write)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    noted = b""
    while chunk := os.read(read, 1 << 16):
        noted = chunk
    end_all_programs()
    if noted:
        text = "error: agentv was killed, or ran out of memory, so there is no verdict"
        resume = noted.decode(errors="replace").rpartition("\n")[2]
        with suppress(OSError):  # the terminal may be gone
            os.write(2, f"{_SHOW_CURSOR if os.isatty(2) else ''}{text}\n{GO_ON}\n  {resume}\n".encode(errors="replace"))
    os._exit(0)


def _leave_watch() -> None:
    """In a fork: let go of the pipe, or the watch would wait for the fork's end, too."""
    while _pipe:
        os.close(_pipe.pop())


def _own(descriptor: int, stream: Any) -> io.TextIOWrapper:
    raw = _Raw(descriptor, "w", closefd=False)
    is_line_buffered = stream is sys.stderr or raw.isatty()
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=stream.encoding, errors=stream.errors, line_buffering=is_line_buffered
    )


class _Raw(io.FileIO):
    """A descriptor. A terminal that was closed takes no more, and that is no error: nobody reads it."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return len(data)
