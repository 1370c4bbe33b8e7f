"""State of the files of a directory: what is regular, a link, or neither, with a hash of each. No link is followed.

A file whose inode, size and times are those of an earlier snapshot is not read again: the time of the last change of an
inode cannot be set.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO

from agentv.extensions.agents.workspaces.files.placing import make_accessible

REGULAR, EXECUTABLE, LINK = "100644", "100755", "120000"
TEXT_LIMIT = 1_000_000
"""Bytes above which a file counts as binary: shown by its size and hash."""

TICK_S = 0.012
"""Seconds between two changes of a file that the times of its inode are sure to tell apart."""

_BINARY_WITHIN = 8_000
_DEEPEST = 200
_CHUNK = 1 << 20
_Signature = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class FileState:
    """One file.

    Attributes:
        mode: as git writes it.
        size: in bytes.
        sha256: of its content; of where it leads, for a link.
        binary: whether it is shown by size and hash.
        signature: inode, size, and the times of its last change.
        special: what it is, if it is neither a file nor a link, or cannot be read.
    """

    mode: str
    size: int
    sha256: str
    binary: bool
    signature: _Signature
    special: str = ""

    def is_like(self, other: FileState) -> bool:
        """Whether it has the same content and mode."""
        return (self.mode, self.sha256, self.special) == (other.mode, other.sha256, other.special)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The files of a directory, by their paths below it, as bytes."""

    files: Mapping[bytes, FileState] = field(default_factory=dict)


def take(directory: str, earlier: Snapshot, *, copied: bool = False) -> Snapshot:
    """The state of a directory now. It blocks.

    Args:
        directory: where the files lie. `.git` directories in it are the agent's own and not part of its work; files
            of nested repositories are.
        earlier: what was there before.
        copied: the directory was just copied from where `earlier` was taken, with its times.

    Raises:
        OSError: the directory cannot be read.
    """
    known = earlier.files
    found: dict[bytes, FileState] = {}
    root = os.open(os.fsencode(directory), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        for folder, path, entry in _walk(root, b"", 0):
            found[path] = _state(folder, entry, known.get(path), copied=copied)
    finally:
        os.close(root)
    return Snapshot(found)


def content(directory: str, path: bytes, limit: int = TEXT_LIMIT) -> bytes:
    """What is in a file of a directory, or where a link leads. At most `limit` bytes are read."""
    *folders, name = path.split(b"/")
    folder = os.open(os.fsencode(directory), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        for one in folders:
            inner = os.open(one, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            return os.readlink(name, dir_fd=folder)
        with _opened(folder, name) as file:
            return file.read(limit)
    finally:
        os.close(folder)


def _walk(folder: int, prefix: bytes, depth: int) -> Iterator[tuple[int, bytes, os.DirEntry[str]]]:
    """All files below an open directory: the directory that holds each, its path, and its entry."""
    with os.scandir(folder) as entries:
        inside = sorted(entries, key=lambda entry: entry.name)
    for entry in inside:
        path = prefix + os.fsencode(entry.name)
        if not entry.is_dir(follow_symlinks=False) or depth > _DEEPEST:
            yield folder, path, entry
            continue
        if entry.name == ".git":
            continue
        inner = _directory(folder, entry.name)
        if inner is None:
            yield folder, path, entry
            continue
        try:
            yield from _walk(inner, path + b"/", depth + 1)
        finally:
            os.close(inner)


def _directory(folder: int, name: str) -> int | None:
    """An open directory, made readable where its owner may not read it; None where that cannot be."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    for _ in range(2):
        try:
            inner = os.open(name, flags, dir_fd=folder)
        except PermissionError:
            make_accessible(folder, name, 0o700)
            continue
        except OSError:
            return None
        if os.fstat(inner).st_mode & stat.S_IXUSR or os.geteuid() == 0:
            return inner
        os.close(inner)
        make_accessible(folder, name, 0o700)
    return None


def _state(folder: int, entry: os.DirEntry[str], known: FileState | None, *, copied: bool) -> FileState:
    found = entry.stat(follow_symlinks=False)
    signature = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    mode = LINK if stat.S_ISLNK(found.st_mode) else EXECUTABLE if found.st_mode & stat.S_IXUSR else REGULAR
    if known is not None and known.mode == mode and not known.special:
        if signature == known.signature:
            return known
        if copied and signature[1:3] == known.signature[1:3]:
            return FileState(mode, known.size, known.sha256, known.binary, signature)
    if stat.S_ISLNK(found.st_mode):
        target = os.fsencode(os.readlink(entry.name, dir_fd=folder))
        return FileState(mode, len(target), hashlib.sha256(target).hexdigest(), binary=False, signature=signature)
    if not stat.S_ISREG(found.st_mode):
        return _special(_kind(found.st_mode), signature)
    try:
        return _regular(folder, entry.name, mode, signature)
    except OSError as error:
        return _special(f"unreadable: {error.strerror}", signature)


def _special(what: str, signature: _Signature) -> FileState:
    return FileState(
        REGULAR, 0, hashlib.sha256(what.encode()).hexdigest(), binary=True, signature=signature, special=what
    )


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFIFO: "a named pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    return kinds.get(stat.S_IFMT(mode), "a directory that cannot be read, or is nested too deep")


def _regular(folder: int, name: str, mode: str, signature: _Signature) -> FileState:
    digest = hashlib.sha256()
    size, begin = 0, b""
    with _opened(folder, name) as file:
        while chunk := file.read(_CHUNK):
            begin = begin or chunk[:_BINARY_WITHIN]
            digest.update(chunk)
            size += len(chunk)
    return FileState(mode, size, digest.hexdigest(), size > TEXT_LIMIT or b"\0" in begin, signature)


def _opened(folder: int, name: str | bytes) -> IO[bytes]:
    """A regular file, open for reading: not through a link, and without waiting for whoever writes into a pipe."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(name, flags, dir_fd=folder)
    except PermissionError:
        make_accessible(folder, name, 0o400)
        descriptor = os.open(name, flags, dir_fd=folder)
    file = open(descriptor, "rb", buffering=0)  # noqa: PTH123, SIM115  # a descriptor; who calls closes it
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "not a regular file")
    return file
