"""The file of a cassette: its header, and allowed locations."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from agentv.errors import StoreError
from agentv.store.files.lines import read_lines
from agentv.store.files.private_files import check_link, checkout_of, open_private
from agentv.user_code.files import store_error

VERSION = 3
_FORMAT = "agentv-cassette"


def header(*, trials: bool = False) -> bytes:
    """The first line of a cassette; without recorded trials of agents it is of version 1."""
    return f'{{"format":"{_FORMAT}","version":{3 if trials else 1}}}\n'.encode()


def check_exists(path: Path) -> None:
    """Check that a cassette exists.

    Raises:
        StoreError: the path is not a file.
    """
    if not path.is_file():
        raise StoreError(f"no cassette at {path}; `agentv eval --record {path}` writes one")


def calls_in(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a cassette that hold calls, each with its number in the file; none where there is no file.

    Raises:
        StoreError: it cannot be read, is no cassette, or a newer agentv wrote it.
    """
    lines = read_lines(path)
    first = next(lines, None)
    if first is None and not path.exists():
        return
    _check_header(path, first[1] if first is not None else b"")
    yield from lines


def new_file(path: Path) -> Path:
    """The path at which a cassette is written before it takes its place."""
    return path.with_name(f".{path.name}.new")


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write a cassette to, which takes the old one's place at the end; a link goes on leading to it.

    Whoever writes holds a lock on the new file. Its name is gone once it stands in its place: who waited for it begins
    with a file of their own.

    Raises:
        StoreError: the system refuses.
    """
    try:
        place = _place(path)
        new = new_file(place)
        place.parent.mkdir(parents=True, exist_ok=True)
        with _locked(new) as file, ExitStack() as leftover:
            leftover.callback(new.unlink, missing_ok=True)
            file.truncate(0)
            yield file
            file.flush()
            os.fsync(file.fileno())
            new.replace(place)
            leftover.pop_all()
    except OSError as error:
        raise store_error("write", path, error) from error


def _place(path: Path) -> Path:
    """Where a cassette really lies: a symbolic link may lead to a place in the same repository.

    Raises:
        StoreError: it leads elsewhere.
    """
    if not path.is_symlink():
        return Path(os.path.realpath(path))
    return check_link(path, checkout_of(path))


def _locked(new: Path) -> BinaryIO:
    while True:
        file = open(open_private(new, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab")  # noqa: PTH123, SIM115  # a descriptor has no path; closed where it is used
        fcntl.flock(file, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), new.stat()):
                return file
        file.close()  # another process has put it in its place while this one waited


def check_place(path: Path) -> None:
    """Refuse an existing file that is not a cassette, and a path that cannot be written, before any paid call.

    Raises:
        StoreError: a file that is no cassette is there, or a directory; or the system would refuse.
    """
    try:
        if path.exists():
            if not path.is_file():
                kind = "a directory" if path.is_dir() else "not a regular file"
                raise StoreError(f"{path} is {kind}: a cassette must be a file")
            next(calls_in(path), None)
        place = _place(path)
        _check_parent(place)
        new_file(place).exists()  # a name that is too long is refused here
    except OSError as error:
        raise store_error("write", path, error) from error


def _check_parent(path: Path) -> None:
    """The nearest directory that is there, in which those that are missing would be made."""
    there = next(one for one in path.absolute().parents if one.exists())
    if not there.is_dir():
        raise StoreError(f"cannot write {path}: {there.name} is not a directory")
    if not os.access(there, os.W_OK | os.X_OK):
        raise StoreError(f"cannot write {path}: the directory {there} is not writable")


def _check_header(path: Path, line: bytes) -> None:
    try:
        found = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = None
    if isinstance(found, dict) and found.get("format") == _FORMAT:
        version = found.get("version")
        if version in range(1, VERSION + 1):
            return
        raise StoreError(f"{path} was written by a newer agentv (format {version}; this one reads up to {VERSION})")
    raise StoreError(f"{path} is not a cassette: its first line is not {header().decode().strip()}")
