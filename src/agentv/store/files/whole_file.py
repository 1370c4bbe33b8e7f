"""Files replaced as a whole, and files that only their owner reads; no link leads elsewhere (SPEC section 13)."""

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
def refusals(action: str, path: Path, more: str = "") -> Iterator[None]:
    """What the system refuses in the block is said in the words of a user: which action, on which path, and why.

    Raises:
        StoreError: the system refuses.
    """
    try:
        yield
    except OSError as error:
        raise StoreError(f"{store_error(action, path, error)}{more}") from error


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


def write_whole(path: Path, chunks: Iterable[str]) -> None:
    """Write a file piece by piece, in UTF-8; it takes the place of an older one when it is whole.

    A symbolic link stays one: what it points to is written, where that lies below its directory. What UTF-8 cannot say
    becomes a question mark.

    Raises:
        StoreError: the system refuses. An older file is then as it was. So too whatever the chunks raise.
    """
    with refusals("write", path):
        real = check_link(path)
        new = _beside(real)
        try:
            with open(new_private(new), "w", encoding="utf-8", errors="replace", newline="") as file:
                file.writelines(chunks)
                file.flush()
                os.fsync(file.fileno())
            new.replace(real)
        finally:
            new.unlink(missing_ok=True)  # there only where it did not take the other's place


def check_place(path: Path) -> None:
    """Refuse a place where a file cannot be written. The directory is tried out: what its mode says may not hold.

    Raises:
        StoreError: something that is no file is there, or the system refuses.
    """
    with refusals("write", path):
        if path.is_dir():
            raise StoreError(f"cannot write {path}: it is a directory")
        if path.exists() and not path.is_file():
            raise StoreError(f"cannot write {path}: it is not a regular file")
        real = check_link(path)
        sweep(real.parent, rf"\.{re.escape(real.name)}\.(\d+)\.new")
        new = _beside(real)
        os.close(new_private(new))
        new.unlink()


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.new")
