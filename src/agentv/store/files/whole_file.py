"""Atomic and private writing of files, which follows no symlinks to other places (SPEC section 13)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_IMODE, S_ISCHR, S_ISREG

from agentv.errors import StoreError
from agentv.user_code.files import store_error, sweep

FILE_MODE = 0o600
DIRECTORY_MODE = 0o700


@contextmanager
def as_store_error(action: str, path: Path, more: str = "") -> Iterator[None]:
    """Turn an `OSError` in the block into an error for users that names the action, the path and the reason.

    Raises:
        StoreError: the block raised an `OSError`.
    """
    try:
        yield
    except OSError as error:
        raise StoreError(f"{store_error(action, path, error)}{more}") from error


def open_private(path: Path, flags: int) -> int:
    """Open a regular file and return its descriptor. Symlinks are refused.

    If the file is opened for writing, permissions of other users are removed.

    Raises:
        StoreError: the path is not a file.
        OSError: it cannot be opened.
    """
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, FILE_MODE)
    found = os.fstat(descriptor)
    if not (S_ISREG(found.st_mode) or S_ISCHR(found.st_mode)):
        os.close(descriptor)
        raise StoreError(f"cannot open {path}: it is not a file")
    if S_ISREG(found.st_mode) and S_IMODE(found.st_mode) & 0o077 and flags & (os.O_WRONLY | os.O_RDWR):
        with suppress(OSError):  # another user's file, or a file system without modes
            os.fchmod(descriptor, FILE_MODE)
    return descriptor


def new_private(path: Path) -> int:
    """Create a private file and return its descriptor. An existing file or symlink is removed first.

    Raises:
        OSError: it cannot be created.
    """
    with suppress(FileNotFoundError):
        path.unlink()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    return os.open(path, flags, FILE_MODE)


def make_private(directory: Path) -> None:
    """Create a directory that only its owner can access, and its parents with normal modes, unless it exists.

    Raises:
        OSError: it cannot be created.
    """
    if not directory.parent.exists():
        directory.parent.mkdir(parents=True, exist_ok=True)
    directory.mkdir(mode=DIRECTORY_MODE, exist_ok=True)


def check_link(path: Path, within: Path | None = None) -> Path:
    """Return the real path of a file. A symlink may only point below its own directory, or below `within`.

    Raises:
        StoreError: the symlink points elsewhere.
        OSError: the path cannot be resolved.
    """
    real = Path(os.path.realpath(path))
    if path.is_symlink():
        allowed = os.path.realpath(within or path.parent)
        if os.path.commonpath([allowed, real]) != allowed:
            raise StoreError(f"cannot write {path}: it is a symlink that leads out of {allowed}, to {real}")
    return real


def checkout_of(path: Path) -> Path:
    """Return the nearest directory above a file that contains `.git` or `.agentv`, or else the file's own directory."""
    above = path.absolute().parents
    return next((one for one in above if (one / ".git").exists() or (one / ".agentv").is_dir()), path.parent)


def write_whole(path: Path, chunks: Iterable[str]) -> None:
    """Write a file in UTF-8 from chunks; it replaces an existing file once it is complete.

    A symlink is kept, and its target is written if that is below the symlink's directory. Lone surrogates become
    question marks.

    Raises:
        StoreError: it cannot be written. In this case, or if the chunks raise an error, an existing file is unchanged.
    """
    with as_store_error("write", path):
        real = check_link(path)
        new = _temporary_path(real)
        try:
            with open(new_private(new), "w", encoding="utf-8", errors="replace", newline="") as file:
                file.writelines(chunks)
                file.flush()
                os.fsync(file.fileno())
            new.replace(real)
        finally:
            new.unlink(missing_ok=True)  # exists only if an error occurred


def check_place(path: Path) -> None:
    """Raise an error if a file could not be written, by creating one in its directory, since modes can mislead.

    Raises:
        StoreError: the path is not a file, or cannot be written.
    """
    with as_store_error("write", path):
        if path.is_dir():
            raise StoreError(f"cannot write {path}: it is a directory")
        if path.exists() and not path.is_file():
            raise StoreError(f"cannot write {path}: it is not a regular file")
        real = check_link(path)
        sweep(real.parent, rf"\.{re.escape(real.name)}\.(\d+)\.new")
        new = _temporary_path(real)
        os.close(new_private(new))
        new.unlink()


def _temporary_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.new")
