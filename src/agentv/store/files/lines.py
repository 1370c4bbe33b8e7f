"""Append-only files of lines, each written completely or repaired after an interruption; signatures of lines."""

from __future__ import annotations

import hashlib
import os
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from mmap import ACCESS_READ, mmap
from pathlib import Path
from threading import Lock
from typing import BinaryIO

from msgspec import Struct

from agentv.errors import StoreError
from agentv.store.files.private_files import Mark, mark, new_private, open_private
from agentv.user_code.os_errors import store_error

_KEYED = hashlib.sha256(os.urandom(64))  # one block of SHA-256: what follows is hashed from its state


def signature(line: bytes) -> int:
    """The signature of a line, which is given without its end. It holds in this process alone."""
    signed = _KEYED.copy()
    signed.update(line)
    return int.from_bytes(signed.digest()[:8])


class Signatures:
    """The signatures of the lines of one file, in their order."""

    def __init__(self) -> None:
        self._found = array("Q")

    def __len__(self) -> int:
        return len(self._found)

    def add(self, lines: bytes) -> None:
        """Lines were written, each with its end."""
        found = lines.split(b"\n")
        if len(found) == 2:  # one line, as for every answer
            self._found.append(signature(found[0]))
        else:
            self._found.extend(map(signature, found[:-1]))

    def agree(self, lines: Iterable[bytes]) -> bool:
        """Return true if these, with their ends, are the lines that were written: all, in their order, and no more."""
        found, number = self._found, 0
        for line in lines:
            if number == len(found) or line[-1:] != b"\n" or found[number] != signature(line[:-1]):
                return False
            number += 1
        return number == len(found)

    def own(self, *copies: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
        """The lines of copies of the file, with their ends: each that was written once, each other one as often.

        Yields:
            A line with its end, and whether it was written here.
        """
        missing = Counter(self._found)
        for lines in copies:
            for line in lines:
                signed = signature(line.rstrip(b"\n"))
                if missing[signed]:
                    missing[signed] -= 1
                    yield line.rstrip(b"\n") + b"\n", True
                elif signed not in missing and not line.isspace():
                    yield line.rstrip(b"\n") + b"\n", False


_READ_AHEAD = 1 << 17
"""Bytes; a row is about two kilobytes long, and the usual buffer holds four of them."""


_AT_ONCE = 1 << 20
"""Bytes that are counted at once."""


class LineFile:
    """A file of lines, open for appending, by several threads too.

    What is in it once `sign` was called, and what is appended later, is distinguished from what others write.

    Args:
        path: of the file.
        first: the line that it begins with, whatever becomes of the others.

    Raises:
        StoreError: it cannot be opened; so for every method, when the system refuses.
    """

    def __init__(self, path: Path, first: bytes = b"") -> None:
        self.path = path
        self._first = first
        self._signatures: Signatures | None = None
        self._found: Mark | None = None
        try:
            self._fd = open_private(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
            self.size = os.fstat(self._fd).st_size
            self._lock = Lock()
        except OSError as error:
            raise store_error("open", path, error) from error

    def append(self, lines: bytes) -> None:
        """Hand whole lines to the system, in one write where it takes them in one."""
        with self._lock:
            self._append(lines)

    def _append(self, lines: bytes) -> None:
        try:
            written = os.write(self._fd, lines)
            while written < len(lines):  # a signal, or the disk is nearly full
                written += os.write(self._fd, lines[written:])
        except OSError as error:
            with suppress(OSError):  # half a line must not stand before the next one
                os.ftruncate(self._fd, self.size)
            raise store_error("write", self.path, error) from error
        self.size += len(lines)
        if self._signatures is not None:
            self._signatures.add(lines)

    def sign(self) -> None:
        """From now on, no line is taken for one of this file but those that stand in it and those that are appended."""
        self._signatures = Signatures()
        if self.size:
            for _, line in self._opened():
                self._signatures.add(line)

    def restore(self) -> Restored | None:
        """Put the file right, where something else than this object wrote to it; None: nothing did.

        The file is replaced by one of the signed lines, as far as they are still to be had, and open as before.
        """
        signed = self._signatures
        if signed is None:
            return None
        with self._lock:
            if self.size > _SMALL and self._found is not None and mark(self.path) == self._found:
                return None
            before = mark(self.path)
            if self._is_here() and signed.agree(line for _, line in self._opened()):
                self._found = before
                return None
            return self._restore(signed)

    def _restore(self, signed: Signatures) -> Restored:
        new = self.path.with_name(f".{self.path.name}.new")
        before, foreign, spared = len(signed), list[bytes](), 0
        copies = [(line for _, line in self._opened())]
        if not self._is_here():
            copies.append(line for _, line in _regular_lines(self.path))
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = new_private(new)
            with open(descriptor, "wb") as file:  # noqa: PTH123  # a descriptor has no path
                file.write(self._first)
                for line, own in signed.own(*copies):
                    if own:
                        spared += 1
                        file.write(b"" if line == self._first else line)
                    elif len(foreign) < _FOREIGN:
                        foreign.append(line[:_FOREIGN_BYTES])
                file.flush()
                os.fsync(descriptor)
            _clear_place(self.path)
            new.replace(self.path)
            os.close(self._fd)
            self._fd = open_private(self.path, os.O_RDWR | os.O_APPEND)
            self.size = os.fstat(self._fd).st_size
        except OSError as error:
            raise store_error("restore", self.path, error) from error
        self.sign()
        return Restored(tuple(foreign), before - spared)

    def _opened(self) -> Iterator[tuple[int, bytes]]:
        """The lines of the open file, wherever it is now."""
        with open(os.dup(self._fd), "rb", buffering=_READ_AHEAD) as file:  # noqa: PTH123  # as above
            file.seek(0)
            yield from enumerate(file, 1)

    def _is_here(self) -> bool:
        """Whether the open file is still at its path, and not through a symlink."""
        try:
            return os.path.samestat(os.fstat(self._fd), os.lstat(self.path))
        except OSError:
            return False

    def sync(self) -> None:
        """Have the system put everything on the disk, and make sure that its directory is still there."""
        try:
            if os.fstat(self._fd).st_nlink == 0 and not self.path.parent.exists():
                raise StoreError(f"cannot write {self.path}: it was removed during the run")
            os.fsync(self._fd)
        except OSError as error:
            raise store_error("write", self.path, error) from error

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._fd)


class Restored(Struct, frozen=True):
    """The damage that another program did to a file of lines, and what was restored.

    Attributes:
        foreign: lines that were not written here; the first of them, cut where they are long.
        lost: how many lines that were written here are gone.
    """

    foreign: tuple[bytes, ...]
    lost: int


_FOREIGN = 1000
"""Lines of others that are kept."""

_FOREIGN_BYTES = 1 << 20

_SMALL = 1 << 20
"""Bytes of a file that is compared each time; a larger one only where the system says that it was written to."""


def _regular_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of what stands at a path, where it is a file; a link or a pipe has none."""
    try:
        descriptor = open_private(path, os.O_RDONLY)
    except (OSError, StoreError):
        return
    with open(descriptor, "rb", buffering=_READ_AHEAD) as file:  # noqa: PTH123  # a descriptor has no path
        yield from enumerate(file, 1)


def _clear_place(path: Path) -> None:
    """Move away a directory at the path of a file."""
    if path.is_dir() and not path.is_symlink():
        path.rename(path.with_name(f"{path.name}.{os.urandom(4).hex()}.removed"))


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
    try:
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
    except OSError as error:
        raise store_error("mend", path, error) from error
    return moved


def append_private(path: Path, lines: Iterable[bytes]) -> None:
    """Put lines, each with its end, behind a file, which is made where it is missing.

    Raises:
        StoreError: the system refuses.
    """
    try:
        with _opened_private(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)) as file:
            file.writelines(lines)
    except OSError as error:
        raise store_error("write", path, error) from error


def _opened_private(descriptor: int) -> BinaryIO:
    return open(descriptor, "wb", closefd=True)  # a descriptor has no path; who asks closes it


def cut_torn_end(path: Path, whole: Callable[[bytes], bool]) -> int:
    """Remove everything after the last complete line; returns the number of bytes removed.

    That is a line without its end, and a last line with an end that is not `whole`. A missing file is left missing.

    Raises:
        StoreError: the file cannot be read or cut.
    """
    try:
        with path.open("r+b") as file:
            size = os.fstat(file.fileno()).st_size
            end = _end_of_whole_lines(file.fileno(), whole) if size else 0
            if end < size:
                file.truncate(end)
            return size - end
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise store_error("mend", path, error) from error


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
    try:
        with path.open("rb", buffering=_READ_AHEAD) as file:
            for number, line in enumerate(file, 1):
                if not line.isspace():
                    yield place, number, line
                place += len(line)
    except FileNotFoundError:
        return
    except OSError as error:
        raise store_error("read", path, error) from error


def lines_at(path: Path, places: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    """The lines that begin at these places, in bytes, each with its place; none where there is no file.

    Raises:
        StoreError: the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            for place in places:
                file.seek(place)
                yield place, file.readline()
    except FileNotFoundError:
        return
    except OSError as error:
        raise store_error("read", path, error) from error


def last_lines(path: Path, most: int = _AT_ONCE) -> Iterator[bytes]:
    """The whole lines at the end of a file, the last one first, without their ends.

    Args:
        path: of the file.
        most: bytes that are read.

    Raises:
        StoreError: the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - most))
            lines = file.read(most).split(b"\n")
    except FileNotFoundError:
        return
    except OSError as error:
        raise store_error("read", path, error) from error
    yield from reversed(lines[1 if size > most else 0 : -1])


def count_lines(path: Path) -> int:
    """The number of complete lines in a file; 0 if it does not exist.

    Raises:
        StoreError: the file cannot be read.
    """
    try:
        with path.open("rb", buffering=0) as file:
            return sum(piece.count(b"\n") for piece in iter(lambda: file.read(_AT_ONCE), b""))
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise store_error("read", path, error) from error
