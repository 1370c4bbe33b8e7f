"""The process of a command: its standard streams and signals, and a watch process that cleans up if it is killed."""

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
"""Signals that end a run."""

_ALWAYS = frozenset({signal.SIGINT, signal.SIGTERM})
"""Signals that are handled even if the shell ignored them, so that `kill` ends a background run.

SIGHUP is not one of them, so that `nohup` works.
"""

_MAX_SIGNALS = 3
"""Number of signals that a run handles. The next one exits the process at once."""

Act = Callable[[int], object]


class SignalError(KeyboardInterrupt):
    """A signal arrived. User code never raises this."""


def _raise(_number: int) -> None:
    raise SignalError


def _exit_now(_number: int) -> None:
    """Exit at once. There is nothing to clean up yet, and an exception could be raised in the middle of an import."""
    with suppress(OSError):
        os.write(2, b"\ninterrupted; nothing was run\n")
    os._exit(ExitStatus.INTERRUPTED)


class _Signals:
    """The current reaction to signals, and how many have arrived."""

    def __init__(self) -> None:
        self.act: Act = _raise
        self._count = 0

    def handle(self, number: int, _frame: FrameType | None) -> None:
        self._count += 1
        if self._count > _MAX_SIGNALS:
            os._exit(ExitStatus.INTERRUPTED)
        self.act(number)


_signals = _Signals()


def raise_on_signals() -> None:
    """Make signals raise SignalError in the main thread from now on, so that interrupted code can clean up."""
    _signals.act = _raise


@contextmanager
def acting_on_signals(act: Act) -> Iterator[None]:
    """In the body, call `act` in the main thread with the number of each signal that arrives."""
    before, earlier = _install(), _signals.act
    _signals.act = act
    try:
        yield
    finally:
        _signals.act = _raise if earlier is _exit_now else earlier
        for number, handler in before.items():
            signal.signal(number, handler)


def ignore_signals() -> None:
    """Ignore signals from now on, because the exit status is final."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


def _install() -> dict[int, Any]:
    """Install the handler and return the previous handlers by signal."""
    heeded = (one for one in ENDING if one in _ALWAYS or signal.getsignal(one) is not signal.SIG_IGN)
    return {number: signal.signal(number, _signals.handle) for number in heeded}


RESUME_HINT = "finished trials are saved. Resume with:"

_SHOW_CURSOR = "\x1b[?25h"
"""Terminal sequence that shows the cursor again, which the progress bar of a killed process left hidden."""

_resume: list[str] = []
_pipe: list[int] = []
"""File descriptor for writing to the watch process."""


def run_command(work: Callable[[], int]) -> NoReturn:
    """Run a command, end all processes that it started, and exit with its status.

    Args:
        work: runs the command and returns the exit status; it never raises.
    """
    from agentv.user_code.orphans import adopt_orphans, end_all_children

    for number in (0, 1, 2):  # replace a closed stream with /dev/null, so that no other file gets its number
        try:
            os.fstat(number)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            os.set_inheritable(number, True)
    _signals.act = _exit_now  # until `raise_on_signals` or `acting_on_signals`
    _install()
    adopt_orphans()
    try:
        watch = _start_watch()
    except OSError as error:
        os.write(2, f"error: cannot start a process: {error.strerror}\n".encode())
        os._exit(ExitStatus.WRONG)
    # stdout is for results only, so the output of plugins, libraries and programs goes to stderr
    if sys.stdout is not None:
        sys.stdout = _text_stream(os.dup(1), sys.stdout)
        os.dup2(2, 1)
    if sys.stderr is not None:
        sys.stderr = _text_stream(os.dup(2), sys.stderr)
    status = work()
    ignore_signals()
    atexit._run_exitfuncs()  # noqa: SLF001  # a normal exit would wait for threads of libraries
    stream: Any
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os.kill(watch, signal.SIGKILL)
    end_all_children()
    os._exit(status)


def note_resume(line: str) -> None:
    """Record the command line that resumes the current run, and send it to the watch in case this process is killed."""
    _resume[:] = [line]
    for descriptor in _pipe:
        with suppress(OSError):
            os.write(descriptor, b"\n" + line.replace("\n", " ").encode(errors="replace"))


def resume_line() -> str | None:
    """Return the command line that resumes the current run, or None before a run has begun."""
    return next(iter(_resume), None)


def _start_watch() -> int:
    """Start the watch process, which ends a run's programs if this process is killed. Return its process id.

    A normal exit kills the watch first. It has its own session, so that signals to the process group do not reach it.
    """
    from agentv.user_code.orphans import end_all_programs

    read, write = os.pipe()
    if watch := os.fork():
        os.close(read)
        _pipe.append(write)
        os.register_at_fork(after_in_child=_close_watch_pipe)
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
            os.write(
                2, f"{_SHOW_CURSOR if os.isatty(2) else ''}{text}\n{RESUME_HINT}\n  {resume}\n".encode(errors="replace")
            )
    os._exit(0)


def _close_watch_pipe() -> None:
    """Close a fork's copy of the pipe. Otherwise the watch would also wait for the end of the fork."""
    while _pipe:
        os.close(_pipe.pop())


def _text_stream(descriptor: int, stream: Any) -> io.TextIOWrapper:
    raw = _StandardStream(descriptor, "w", closefd=False)
    is_line_buffered = stream is sys.stderr or raw.isatty()
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=stream.encoding, errors=stream.errors, line_buffering=is_line_buffered
    )


class _StandardStream(io.FileIO):
    """A file descriptor that ignores write errors of a closed terminal."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return len(data)
