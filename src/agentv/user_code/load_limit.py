"""Time and memory limit for checking one file, the last defence against hostile files."""

from __future__ import annotations

import mmap
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TypeVar

from msgspec import Struct

from agentv.user_code.command_process import SignalError

SECONDS = 30.0
"""Of computing without a case or record that was finished."""

MEMORY = 2_000_000_000
"""Bytes of data that checking a file may take, beside what the process holds already."""

T = TypeVar("T")


class GivenUp(Struct, frozen=True):
    """A file asks for too much.

    Attributes:
        reason: completes a sentence that begins with the file.
        place: the file and line of the case or record that was begun last; None: of none.
    """

    reason: str
    place: tuple[str, int] | None


class _LimitError(SignalError):
    """Too long without progress; passes all guards, as signals do."""


class _Progress:
    count = 0
    place: tuple[str, int] | None = None


_progress = _Progress()


def begin_record(path: str, line: int) -> None:
    """Say that a case or record is begun, and so that all before it are done."""
    _progress.count += 1
    _progress.place = path, line


def within_limits(work: Callable[[], T], *, seconds: float = SECONDS, memory: int = MEMORY) -> T | GivenUp:
    """What the work gives, or why it was given up. Without limits where this is not the main thread."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        return work()
    _progress.place = None
    try:
        with _limited_memory(memory), _limited_time(seconds):
            return work()
    except _LimitError:
        reason = f"ran for more than {seconds:g} seconds without progress"
    except MemoryError:
        reason = f"uses more than {memory // 1_000_000:,} MB of memory"
    return GivenUp(reason, _progress.place)


@contextmanager
def _limited_time(seconds: float) -> Iterator[None]:
    seen = _progress.count

    def look(_number: int, _frame: FrameType | None) -> None:
        nonlocal seen
        if _progress.count == seen:
            raise _LimitError
        seen = _progress.count

    before = signal.signal(signal.SIGPROF, look)
    signal.setitimer(signal.ITIMER_PROF, seconds, seconds)  # again and again: whoever swallows one gets the next
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextmanager
def _limited_memory(most: int) -> Iterator[None]:
    if sys.platform != "linux":  # elsewhere this limit is not kept, or not only for data
        yield
        return
    import resource

    held = 0  # bytes of data, counted as the limit counts them; source: proc(5), /proc/pid/statm
    with suppress(OSError, ValueError, IndexError):
        held = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5]) * mmap.PAGESIZE
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    allowed = [one for one in (soft, hard, held + most) if one != resource.RLIM_INFINITY]
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (min(allowed), hard))
    try:
        yield
    finally:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
