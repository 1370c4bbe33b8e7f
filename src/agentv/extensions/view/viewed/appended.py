"""Whole lines that were appended to a file since it was last read."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple
from zlib import crc32

from agentv.errors import StoreError
from agentv.user_code.os_errors import store_error

_CHECKED = 4096
"""Bytes at the beginning of a file, and before a place in it, by which the file is recognized."""

_READ_AHEAD = 1 << 17


class FileState(NamedTuple):
    """What tells whether a file changed: its number in the file system, size, and time of the last write."""

    inode: int
    size: int
    changed_ns: int


def state_of(path: Path) -> FileState | None:
    """The state of a file; None where there is none.

    Raises:
        StoreError: something that is no regular file is there, such as a symbolic link.
    """
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise store_error("read", path, error) from error
    if not stat.S_ISREG(found.st_mode):
        raise StoreError(f"cannot read {path}: it is not a regular file")
    return FileState(found.st_ino, found.st_size, found.st_mtime_ns)


def fingerprint(path: Path, end: int) -> int:
    """A checksum of the beginning of a file and of the bytes before `end`: another file, another number.

    Raises:
        StoreError: the file cannot be read.
    """
    try:
        with _opened(path) as file:
            head = file.read(min(_CHECKED, end))
            file.seek(max(0, end - _CHECKED))
            return crc32(file.read(min(_CHECKED, end)), crc32(head))
    except OSError as error:
        raise store_error("read", path, error) from error


def appended_lines(path: Path, start: int) -> Iterator[tuple[int, bytes]]:
    """The whole lines from a place on, each with the place where it begins. A last line without its end is left.

    Raises:
        StoreError: the file cannot be read.
    """
    try:
        with _opened(path) as file:
            file.seek(start)
            place = start
            for line in file:
                if not line.endswith(b"\n"):
                    return
                yield place, line
                place += len(line)
    except FileNotFoundError:
        return
    except OSError as error:
        raise store_error("read", path, error) from error


def _opened(path: Path) -> BinaryIO:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    return open(descriptor, "rb", buffering=_READ_AHEAD)  # noqa: PTH123  # a descriptor has no path
