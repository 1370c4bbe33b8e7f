"""Append-only files of lines. Incomplete lines are repaired after an interruption."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from mmap import ACCESS_READ, mmap
from pathlib import Path
from threading import Lock
from typing import BinaryIO

from agentv.errors import StoreError
from agentv.store.files.whole_file import as_store_error, new_private, open_private
from agentv.user_code.files import store_error

_READ_AHEAD = 1 << 17
"""Size of the read buffer in bytes. Rows have about 2 KB, so the default buffer would hold only four."""


_BLOCK_BYTES = 1 << 20
"""Size of a block in bytes when reading without lines."""


class LineFile:
    """A file of lines, open for appending. Thread-safe.

    Raises:
        StoreError: it cannot be opened. Methods raise it if their operation fails.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with as_store_error("open", path):
            self._fd = open_private(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
            self.size = os.fstat(self._fd).st_size
            self._lock = Lock()

    def append(self, lines: bytes) -> None:
        """Write complete lines, in one system call if possible."""
        with self._lock:
            try:
                written = os.write(self._fd, lines)
                while written < len(lines):  # a signal, or the disk is nearly full
                    written += os.write(self._fd, lines[written:])
            except OSError as error:
                with suppress(OSError):  # remove the partial line
                    os.ftruncate(self._fd, self.size)
                raise store_error("write", self.path, error) from error
            self.size += len(lines)

    def sync(self) -> None:
        """Flush everything to disk, and check that the file still exists."""
        with as_store_error("write", self.path):
            if os.fstat(self._fd).st_nlink == 0:
                raise StoreError(f"cannot write {self.path}: it was removed during the run")
            os.fsync(self._fd)

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


def move_lines(path: Path, chosen: Callable[[int, bytes], bool], destination: Path) -> int:
    """Move lines of a file to the end of another, and return their number. The file is replaced atomically.

    Args:
        path: path of the file.
        chosen: decides whether to move a line, from its number (from 1) and its content without the line end.
        destination: path of the other file, which is created if missing.

    Raises:
        StoreError: a file cannot be read or written.
    """
    new = path.with_name(f".{path.name}.new")
    moved = 0
    with as_store_error("mend", path):
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
    """Append lines, with their line ends, to a private file, which is created if missing.

    Raises:
        StoreError: the file cannot be written.
    """
    with (
        as_store_error("write", path),
        _opened_private(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)) as file,
    ):
        file.writelines(lines)


def _opened_private(descriptor: int) -> BinaryIO:
    return open(descriptor, "wb", closefd=True)  # a descriptor; the caller closes it


def cut_torn_end(path: Path, whole: Callable[[bytes], bool]) -> int:
    """Remove an incomplete end of a file, and return the number of bytes removed.

    That is a line without a line end, or a last line that is not `whole`. A missing file is not created.

    Raises:
        StoreError: the file cannot be read or cut.
    """
    with as_store_error("mend", path), suppress(FileNotFoundError), path.open("r+b") as file:
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
    """Return the non-blank lines with their line ends, each with its number from 1; nothing if the file is missing.

    Raises:
        StoreError: the file cannot be read.
    """
    return ((number, line) for _, number, line in read_placed_lines(path))


def read_placed_lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yield (byte offset, number, line), otherwise like `read_lines`."""
    place = 0
    with as_store_error("read", path), suppress(FileNotFoundError), path.open("rb", buffering=_READ_AHEAD) as file:
        for number, line in enumerate(file, 1):
            if not line.isspace():
                yield place, number, line
            place += len(line)


def lines_at(path: Path, places: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    """Yield the lines at these byte offsets, each with its offset; nothing if the file is missing.

    Raises:
        StoreError: the file cannot be read.
    """
    with as_store_error("read", path), suppress(FileNotFoundError), path.open("rb") as file:
        for place in places:
            file.seek(place)
            yield place, file.readline()


def last_lines(path: Path, most: int = _BLOCK_BYTES) -> Iterator[bytes]:
    """Yield the complete lines at the end of a file, last one first, without line ends.

    Args:
        path: path of the file.
        most: maximum number of bytes to read.

    Raises:
        StoreError: the file cannot be read.
    """
    with as_store_error("read", path), suppress(FileNotFoundError), path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - most))
        lines = file.read(most).split(b"\n")
        yield from reversed(lines[1 if size > most else 0 : -1])


def count_lines(path: Path) -> int:
    """Return the number of complete lines in a file; 0 if it is missing.

    Raises:
        StoreError: the file cannot be read.
    """
    with as_store_error("read", path), suppress(FileNotFoundError), path.open("rb", buffering=0) as file:
        return sum(piece.count(b"\n") for piece in iter(lambda: file.read(_BLOCK_BYTES), b""))
    return 0
