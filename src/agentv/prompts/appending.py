"""Append a row to a prompt's log. An exam costs money, so every way to save its row is tried."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISREG

from agentv.errors import StoreError
from agentv.model.suite.exam import ExamRow
from agentv.prompts.disk import DISK, Disk, sync_directory, sync_file, write_all
from agentv.prompts.reading import BOM, log_path
from agentv.prompts.rows import is_object, line_of
from agentv.user_code.files import store_error

TORN = ".eval.jsonl.torn"
"""File that incomplete lines, left by a crash, are moved to."""

LOCK_TRIES = 200
LOCK_PAUSE_S = 0.05
"""Seconds between attempts to lock the log. A lock is only held for one write, so ten seconds in all are plenty."""

_REOPENED = 20
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.EBADF})
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Appending:
    """System calls of an append; tests replace them with failing ones."""

    disk: Disk = DISK
    pause: Callable[[float], None] = time.sleep


APPENDING = Appending()


def append(directory: str, exam_row: ExamRow, system: Appending = APPENDING) -> tuple[str, ...]:
    """Append an exam to the log of a prompt. The row is on disk when this returns.

    Returns:
        A sentence on each unusual event: an incomplete line was moved away, or the log could not be locked. The
        sentences name the log's file without its directory, which the caller adds.

    Raises:
        StoreError: the system refuses; the log is then unchanged, as far as that is possible.
    """
    path = log_path(directory)
    try:
        with _opened(path, system) as log:
            size = log.disk.stat(log.descriptor).st_size
            log.write(_line_prefix(log, size) + line_of(exam_row))
            if size == 0:
                sync_directory(log.disk, path.parent)
            return tuple(log.notes)
    except OSError as error:
        raise store_error("write", path, error) from error


@dataclass(slots=True)
class _OpenLog:
    """A log that is open for appending.

    Attributes:
        locked: whether no other process writes to the log, so that an incomplete write may be cut off again.
    """

    path: Path
    disk: Disk
    descriptor: int
    locked: bool = True
    notes: list[str] = field(default_factory=list)

    def write(self, data: bytes) -> None:
        """Write all data to disk, or nothing of it."""
        size = self.disk.stat(self.descriptor).st_size
        try:
            write_all(self.disk, self.descriptor, data)
            sync_file(self.disk, self.descriptor)
        except OSError:
            if self.locked:
                with suppress(OSError):  # the next row must not follow half a line
                    self.disk.truncate(self.descriptor, size)
            raise


@contextmanager
def _opened(path: Path, system: Appending) -> Iterator[_OpenLog]:
    """Open the log, creating it if it is missing, and lock it if the file system allows that.

    Raises:
        StoreError: the path is not a file, or other programs keep replacing it.
    """
    for _ in range(_REOPENED):
        log = _OpenLog(path, system.disk, system.disk.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK))
        try:
            if not S_ISREG(system.disk.stat(log.descriptor).st_mode):
                raise StoreError(f"cannot write {path}: it is not a file")
            _lock(log, system.pause)
            if not _was_replaced(log):
                yield log
                return
        finally:
            with suppress(OSError):  # the row is already on disk
                system.disk.close(log.descriptor)
    raise StoreError(f"cannot write {path}: other programs keep replacing it")


def _lock(log: _OpenLog, pause: Callable[[float], None]) -> None:
    """Take the lock. The row is written even without it, by a single system call that appends."""
    for _ in range(LOCK_TRIES):
        try:
            log.disk.lock(log.descriptor)
        except BlockingIOError:
            pause(LOCK_PAUSE_S)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            why = "files cannot be locked there: do not run exams of this prompt on two machines at the same time"
            break
        else:
            return
    else:
        why = f"another process has held the lock for {LOCK_TRIES * LOCK_PAUSE_S:g} s"
    log.locked = False
    log.notes.append(f"{log.path.name}: the row was written without a lock, because {why}")


def _was_replaced(log: _OpenLog) -> bool:
    """Return whether the log was replaced by another file during the wait for the lock, as git does."""
    ours = log.disk.stat(log.descriptor)
    try:
        there = log.disk.stat_at(log.path)
    except FileNotFoundError:
        return True
    return (ours.st_dev, ours.st_ino) != (there.st_dev, there.st_ino)


def _line_prefix(log: _OpenLog, size: int) -> bytes:
    """Return the bytes to write before the row so that it is a line of its own; move an incomplete line away."""
    start, tail = _tail(log, size)
    text = tail.removeprefix(BOM) if start == 0 else tail
    if not tail:
        return b""
    if not text.strip() or is_object(text):
        return b"\n"
    if not log.locked:
        log.notes.append(
            f"the last line of {log.path.name} is incomplete; it was left there, because the log is not locked"
        )
        return b"\n"
    return _set_aside(log, start, tail)


def _set_aside(log: _OpenLog, start: int, tail: bytes) -> bytes:
    """Move an incomplete line out of the log; return the bytes to write before the row."""
    broken = f"the last line of {log.path.name} is incomplete, because an exam was stopped while writing it"
    disk, aside = log.disk, log.path.with_name(TORN)
    try:
        descriptor = disk.open(aside, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK)
        try:
            write_all(disk, descriptor, tail + b"\n")
            sync_file(disk, descriptor)
        finally:
            disk.close(descriptor)
        disk.truncate(log.descriptor, start)
    except OSError as error:
        log.notes.append(f"{broken}; it was left there: {store_error('move it to', aside, error)}")
        return b"\n"
    log.notes.append(f"{broken}; it was moved to {TORN}")
    return b""


def _tail(log: _OpenLog, size: int) -> tuple[int, bytes]:
    """Return the position after the last line end, and the bytes from there on."""
    tail, start = b"", size
    while start > 0:
        begin = max(0, start - _CHUNK)
        part = log.disk.read(log.descriptor, start - begin, begin)
        end = part.rfind(b"\n")
        if end >= 0:
            return begin + end + 1, part[end + 1 :] + tail
        tail, start = part + tail, begin
    return 0, tail
