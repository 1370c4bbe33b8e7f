"""Files that only their owner reads, and that no symbolic link leads elsewhere (SPEC section 13)."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from stat import S_IMODE, S_ISCHR, S_ISREG

from agentv.errors import StoreError

FILE_MODE = 0o600
DIRECTORY_MODE = 0o700


def open_private(path: Path, flags: int) -> int:
    """A descriptor of a regular file, made where `flags` say so; a symbolic link in its place is refused.

    A file that others may read is closed to them.

    Raises:
        StoreError: something that is no file stands there.
        OSError: the system refuses.
    """
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, FILE_MODE)
    found = os.fstat(descriptor)
    if not (S_ISREG(found.st_mode) or S_ISCHR(found.st_mode)):
        os.close(descriptor)
        raise StoreError(f"cannot open {path}: it is not a file")
    if S_ISREG(found.st_mode) and S_IMODE(found.st_mode) & 0o077 and flags & (os.O_WRONLY | os.O_RDWR):
        with suppress(OSError):  # somebody else's file, or a file system without modes
            os.fchmod(descriptor, FILE_MODE)
    return descriptor


def new_private(path: Path) -> int:
    """A descriptor of a file that is new; whatever stood there, such as a link or a leftover, is removed first.

    Raises:
        OSError: the system refuses.
    """
    with suppress(FileNotFoundError):
        path.unlink()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    return os.open(path, flags, FILE_MODE)


def make_private(directory: Path) -> None:
    """Make a directory that is its owner's alone; those above it are made as usual. One that is there stays as it is.

    Raises:
        OSError: the system refuses.
    """
    if not directory.parent.exists():
        directory.parent.mkdir(parents=True, exist_ok=True)
    directory.mkdir(mode=DIRECTORY_MODE, exist_ok=True)


def check_link(path: Path, within: Path | None = None) -> Path:
    """The real path of a file: a symbolic link may lead to a place below its own directory, or below another one.

    Raises:
        StoreError: it leads elsewhere.
        OSError: the system refuses.
    """
    real = Path(os.path.realpath(path))
    if path.is_symlink():
        home = os.path.realpath(within or path.parent)
        if os.path.commonpath([home, real]) != home:
            raise StoreError(f"cannot write {path}: it is a symlink that leads out of {home}, to {real}")
    return real


def checkout_of(path: Path) -> Path:
    """The nearest directory above a file that holds `.git` or `.agentv`, else its own."""
    above = path.absolute().parents
    return next((one for one in above if (one / ".git").exists() or (one / ".agentv").is_dir()), path.parent)
