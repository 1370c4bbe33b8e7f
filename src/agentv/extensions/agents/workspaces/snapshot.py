"""Snapshots of the files in a directory: the type, mode and hash of each. No link is followed.

A file with the inode, size and times of an earlier snapshot is not read again, since programs cannot set the time at
which an inode last changed.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

REGULAR, EXECUTABLE, LINK = "100644", "100755", "120000"
TEXT_LIMIT = 1_000_000
"""Size in bytes above which a file counts as binary and is shown by its size and hash."""

TICK_S = 0.012
"""Seconds between two changes of a file after which the times of its inode are sure to differ."""

_KINDS = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
BINARY_WITHIN = 8_000
"""Bytes at the start of a file that are searched for a zero byte; a file with one is binary."""

_DEEPEST = 200
_CHUNK = 1 << 20
_Signature = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class FileState:
    """State of one file.

    Attributes:
        mode: git's file mode, such as `100644`.
        size: in bytes.
        sha256: hash of the content, or of the target of a link.
        binary: whether it is shown by size and hash.
        signature: inode, size, and the times at which content and inode last changed.
        special: description, if it is neither a file nor a link, or cannot be read.
    """

    mode: str
    size: int
    sha256: str
    binary: bool
    signature: _Signature
    special: str = ""

    def is_like(self, other: FileState) -> bool:
        """Whether both have the same content and mode."""
        return (self.mode, self.sha256, self.special) == (other.mode, other.sha256, other.special)


Snapshot = Mapping[bytes, FileState]
"""Path below a directory, as bytes → state of the file."""


def take(directory: str, earlier: Snapshot, *, copied: bool = False) -> Snapshot:
    """Return the current state of a directory. Blocks.

    Args:
        directory: directory of the files. `.git` directories are skipped; files of nested repositories are not.
        earlier: an earlier state, from which hashes of unchanged files are taken.
        copied: the directory was just copied, with its times, from the one of `earlier`.

    Raises:
        OSError: the directory cannot be read.
    """
    if os.path.islink(directory):  # noqa: PTH114  # as text
        raise OSError(errno.ELOOP, "it is a link")
    found: dict[bytes, FileState] = {}
    for path, entry in _walk(os.fsencode(directory), b"", 0):
        try:
            found[path] = _state(entry, earlier.get(path), copied=copied)
        except OSError as error:
            found[path] = _special(f"unreadable: {error.strerror}", (entry.inode(), 0, 0, 0))
    return found


def content(directory: str, path: bytes, limit: int = TEXT_LIMIT) -> bytes:
    """Return the content of a file in a directory, up to `limit` bytes, or the target of a link.

    Raises:
        OSError: it cannot be read, or is behind a link.
    """
    place = Path(directory).resolve() / os.fsdecode(path)
    if place.parent.resolve() != place.parent:
        raise OSError(errno.ELOOP, "it is behind a link")
    if place.is_symlink():
        return os.readlink(os.fsencode(place))  # noqa: PTH115  # as bytes
    with _open_regular(os.fsencode(place)) as file:
        return file.read(limit)


def _walk(folder: bytes, prefix: bytes, depth: int) -> Iterator[tuple[bytes, os.DirEntry[bytes]]]:
    """Yield the path and the entry of each file below a directory."""
    with os.scandir(folder) as entries:
        inside = sorted(entries, key=lambda entry: entry.name)
    for entry in inside:
        path = prefix + entry.name
        if not entry.is_dir(follow_symlinks=False) or depth > _DEEPEST or not _is_accessible(entry.path, os.X_OK):
            yield path, entry
        elif entry.name != b".git":
            yield from _walk(entry.path, path + b"/", depth + 1)


def _is_accessible(path: bytes, mode: int = 0) -> bool:
    """Whether a file or directory can be read, after giving its owner permission if necessary."""
    if not os.access(path, os.R_OK | mode):
        with suppress(OSError):
            place = Path(os.fsdecode(path))
            place.chmod(place.stat().st_mode | (stat.S_IRWXU if mode else stat.S_IRUSR))
    return os.access(path, os.R_OK | mode)


def _state(entry: os.DirEntry[bytes], known: FileState | None, *, copied: bool) -> FileState:
    found = entry.stat(follow_symlinks=False)
    signature = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    mode = LINK if stat.S_ISLNK(found.st_mode) else EXECUTABLE if found.st_mode & stat.S_IXUSR else REGULAR
    if known is not None and known.mode == mode and not known.special:
        if signature == known.signature:
            return known
        if copied and signature[1:3] == known.signature[1:3]:
            return FileState(mode, known.size, known.sha256, known.binary, signature)
    if stat.S_ISLNK(found.st_mode):
        target = os.readlink(entry.path)  # noqa: PTH115  # as bytes
        return FileState(mode, len(target), hashlib.sha256(target).hexdigest(), binary=False, signature=signature)
    if not stat.S_ISREG(found.st_mode):
        what = "a directory that cannot be read, or is nested too deep"
        return _special(_KINDS.get(stat.S_IFMT(found.st_mode), what), signature)
    digest = hashlib.sha256()
    size, begin = 0, b""
    with _open_regular(entry.path) as file:
        while chunk := file.read(_CHUNK):
            begin = begin or chunk[:BINARY_WITHIN]
            digest.update(chunk)
            size += len(chunk)
    return FileState(mode, size, digest.hexdigest(), size > TEXT_LIMIT or b"\0" in begin, signature)


def _special(what: str, signature: _Signature) -> FileState:
    digest = hashlib.sha256(what.encode()).hexdigest()
    return FileState(REGULAR, 0, digest, binary=True, signature=signature, special=what)


def _open_regular(path: bytes) -> IO[bytes]:
    """Open a regular file for reading. Other files are an error, since opening a pipe would block."""
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    _is_accessible(path)
    return open(path, "rb", buffering=0)  # noqa: PTH123  # hot loop
