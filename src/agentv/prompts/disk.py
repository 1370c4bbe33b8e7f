"""System calls that write a prompt's files, and the store of examined texts."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from agentv.user_code.files import store_error, sweep

_CANNOT_SYNC = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})


class Disk:
    """System calls, which raise OSError; tests replace some of them."""

    close = staticmethod(os.close)
    stat = staticmethod(os.fstat)
    stat_at = staticmethod(os.stat)
    read = staticmethod(os.pread)
    write = staticmethod(os.write)
    truncate = staticmethod(os.ftruncate)
    sync = staticmethod(os.fsync)
    own = staticmethod(os.fchown)
    permit = staticmethod(os.fchmod)
    replace = staticmethod(os.replace)
    unlink = staticmethod(os.unlink)

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
        """Open a file and return a descriptor that child processes do not inherit."""
        return os.open(path, flags | os.O_CLOEXEC, mode)

    def lock(self, descriptor: int) -> None:
        """Take the exclusive lock.

        Raises:
            BlockingIOError: another process holds the lock.
        """
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def make_directory(self, path: Path) -> None:
        """Create a directory and its parents; an existing directory is left alone."""
        os.makedirs(path.parent, exist_ok=True)  # noqa: PTH103
        os.makedirs(path, mode=0o700, exist_ok=True)  # noqa: PTH103


DISK = Disk()


def write_all(disk: Disk, descriptor: int, data: bytes) -> None:
    """Write all data, in one call unless a signal or a full disk cuts it short.

    Raises:
        OSError: the system refuses; a part may have been written.
    """
    written = disk.write(descriptor, data)
    while written < len(data):
        written += disk.write(descriptor, data[written:])


def replace_file(
    disk: Disk,
    path: Path,
    fill: Callable[[int], None],
    *,
    mode: int = 0o666,
    may_replace: Callable[[], bool] = lambda: True,
) -> bool:
    """Create or replace a file atomically; return whether that was done.

    Args:
        disk: system calls; they write a new file next to the old one and then rename it.
        path: path of the file.
        fill: writes the content, given a descriptor.
        mode: mode bits of the new file.
        may_replace: returns whether the new file may take its place; called after it is written.

    Raises:
        OSError: the system refuses; the new file is then removed.
    """
    sweep(path.parent, rf"\.{re.escape(path.name)}\.(\d+)\.[0-9a-f]{{8}}")
    new = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    descriptor = disk.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with ExitStack() as leftover:
        leftover.callback(_remove, disk, new)
        try:
            fill(descriptor)
        finally:
            disk.close(descriptor)
        done = may_replace()
        if done:
            disk.replace(new, path)
        else:
            disk.unlink(new)
        leftover.pop_all()
    return done


def _remove(disk: Disk, path: Path) -> None:
    with suppress(OSError):
        disk.unlink(path)


def sync_file(disk: Disk, descriptor: int) -> None:
    """Write a file's data to disk, if its file system supports that.

    Raises:
        OSError: the disk refuses, so that written data may be lost.
    """
    try:
        disk.sync(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise


def sync_directory(disk: Disk, path: Path) -> None:
    """Write the entries of a directory to disk if possible; renames are atomic in any case."""
    with suppress(OSError):
        descriptor = disk.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            disk.sync(descriptor)
        finally:
            disk.close(descriptor)


def texts_directory(home: Path) -> Path:
    """Return the directory of the texts; `home` contains `.agentv`, or is the repository's root."""
    return home / ".agentv" / "exams"


def store_texts(home: Path, texts: Mapping[str, bytes], disk: Disk = DISK) -> None:
    """Store the texts of an exam. Texts that are already stored are left alone.

    Raises:
        StoreError: the system refuses; each text is stored whole or not at all.
    """
    directory = texts_directory(home)
    try:
        disk.make_directory(directory)
        if not (directory / ".gitignore").exists():  # users may have changed it
            _store(disk, directory / ".gitignore", b"*\n")
        for data in texts.values():
            _store(disk, directory / hashlib.sha256(data).hexdigest(), data)
    except OSError as error:
        raise store_error("write", directory, error) from error


def stored_text(home: Path, sha256: str) -> bytes | None:
    """Return a text by its digest, or None if it is not stored here, or is damaged."""
    if not sha256.isalnum():  # it comes from a log and becomes part of a path
        return None
    try:
        data = (texts_directory(home) / sha256).read_bytes()
    except OSError:
        return None
    return data if hashlib.sha256(data).hexdigest() == sha256 else None


def _store(disk: Disk, path: Path, data: bytes) -> None:
    """Write a file, unless it already has this content: a power cut or the examined agent may have changed it."""
    with suppress(FileNotFoundError):
        if disk.stat_at(path).st_size == len(data) and not path.is_symlink() and path.read_bytes() == data:
            return
    replace_file(disk, path, lambda descriptor: write_all(disk, descriptor, data), mode=0o600)
