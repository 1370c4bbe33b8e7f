"""Append-only files of lines, each written completely or repaired after an interruption."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from mmap import ACCESS_READ, mmap
from pathlib import Path
from threading import Lock
from typing import BinaryIO

from agentv.errors import StoreError
from agentv.store.files.whole_file import new_private, open_private, refusals
from agentv.user_code.files import store_error

_READ_AHEAD = 1 << 17
"""Bytes; a row is about two kilobytes long, and the usual buffer holds four of them."""


_AT_ONCE = 1 << 20
"""Bytes that are counted at once."""


class LineFile:
    """A file of lines, open for appending, by several threads too.

    Raises:
        StoreError: it cannot be opened; so for every method, when the system refuses.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with refusals("open", path):
            self._fd = open_private(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
            self.size = os.fstat(self._fd).st_size
            self._lock = Lock()

    def append(self, lines: bytes) -> None:
        """Hand whole lines to the system, in one write where it takes them in one."""
        with self._lock:
            try:
                written = os.write(self._fd, lines)
                while written < len(lines):  # a signal, or the disk is nearly full
                    written += os.write(self._fd, lines[written:])
            except OSError as error:
                with suppress(OSError):  # half a line must not stand before the next one
                    os.ftruncate(self._fd, self.size)
                raise store_error("write", self.path, error) from error
            self.size += len(lines)

    def sync(self) -> None:
        """Have the system put everything on the disk, and make sure that the file is still there."""
        with refusals("write", self.path):
            if os.fstat(self._fd).st_nlink == 0:
                raise StoreError(f"cannot write {self.path}: it was removed during the run")
            os.fsync(self._fd)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._fd)


def move_lines(path: Path, chosen: Callable[[int, bytes], bool], destination: Path) -> int:
    """Move lines of a file to the end of another; how many. The file is whole at any moment: with them, or without.

    Args:
        path: of the file.
        chosen: whether a line is moved, given its number from 1, and itself without its end.
        destination: the other file, which is created if it is missing.

    Raises:
        StoreError: the system refuses.
    """
    new = path.with_name(f".{path.name}.new")
    moved = 0
    with refusals("mend", path):
        with (
            path.open("rb") as old,
            _opened_private(new_private(new)) as file,
            _opened_private(open_private(destination, os.O_WRONLY | os.O_CREAT | os.O_APPEND)) as other,
        ):
            for number, line in enumerate(old, 1):
                here = not line.isspace() and chosen(number, line.rstrip(b"\n"))
                moved += here
                (other if here else file).write(line)
            for one in (other, file):
                one.flush()
                os.fsync(one.fileno())
        new.replace(path)
    return moved


def append_private(path: Path, lines: Iterable[bytes]) -> None:
    """Put lines, each with its end, behind a file, which is made where it is missing.

    Raises:
        StoreError: the system refuses.
    """
    with (
        refusals("write", path),
        _opened_private(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)) as file,
    ):
        file.writelines(lines)


def _opened_private(descriptor: int) -> BinaryIO:
    return open(descriptor, "wb", closefd=True)  # a descriptor has no path; who asks closes it


def cut_torn_end(path: Path, whole: Callable[[bytes], bool]) -> int:
    """Remove everything after the last complete line; returns the number of bytes removed.

    That is a line without its end, and a last line with an end that is not `whole`. A missing file is left missing.

    Raises:
        StoreError: the file cannot be read or cut.
    """
    with refusals("mend", path), suppress(FileNotFoundError), path.open("r+b") as file:
        size = os.fstat(file.fileno()).st_size
        end = _end_of_whole_lines(file.fileno(), whole) if size else 0
        if end < size:
            file.truncate(end)
        return size - end
    return 0


def _end_of_whole_lines(descriptor: int, whole: Callable[[bytes], bool]) -> int:
    with mmap(descriptor, 0, access=ACCESS_READ) as text:
        end = text.rfind(b"\n") + 1
        if not end:
            return 0
        start = text.rfind(b"\n", 0, end - 1) + 1
        return end if whole(text[start : end - 1]) else start


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that hold something, each with its number from 1, their ends included; none where there is no file.

    Raises:
        StoreError: the file cannot be read.
    """
    return ((number, line) for _, number, line in read_placed_lines(path))


def read_placed_lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Read as `read_lines` does; the offset of each line, in bytes, stands first."""
    place = 0
    with refusals("read", path), suppress(FileNotFoundError), path.open("rb", buffering=_READ_AHEAD) as file:
        for number, line in enumerate(file, 1):
            if not line.isspace():
                yield place, number, line
            place += len(line)


def lines_at(path: Path, places: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    """The lines that begin at these places, in bytes, each with its place; none where there is no file.

    Raises:
        StoreError: the file cannot be read.
    """
    with refusals("read", path), suppress(FileNotFoundError), path.open("rb") as file:
        for place in places:
            file.seek(place)
            yield place, file.readline()


def last_lines(path: Path, most: int = _AT_ONCE) -> Iterator[bytes]:
    """The whole lines at the end of a file, the last one first, without their ends.

    Args:
        path: of the file.
        most: bytes that are read.

    Raises:
        StoreError: the file cannot be read.
    """
    with refusals("read", path), suppress(FileNotFoundError), path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - most))
        lines = file.read(most).split(b"\n")
        yield from reversed(lines[1 if size > most else 0 : -1])


def count_lines(path: Path) -> int:
    """The number of complete lines in a file; 0 if it does not exist.

    Raises:
        StoreError: the file cannot be read.
    """
    with refusals("read", path), suppress(FileNotFoundError), path.open("rb", buffering=0) as file:
        return sum(piece.count(b"\n") for piece in iter(lambda: file.read(_AT_ONCE), b""))
    return 0
